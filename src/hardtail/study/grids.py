"""The grids: which runs make up the study, in the order in which they are worth having.

An entry is a recipe under a name; the name is its folder in `runs/` and in `results/`. Seeds go outermost, so that a
short lease of a GPU first brings one seed of everything.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.schemes.papl import Papl
from hardtail.schemes.puma import Puma, official
from hardtail.schemes.puma import paper as stochastic
from hardtail.study.recipes import recipe_named
from hardtail.training.recipe import Recipe

SEEDS = (42, 43, 41)


@dataclass(frozen=True)
class Entry:
    """One run of a grid."""

    arm: str
    recipe: Recipe

    @property
    def name(self) -> str:
        return f"{self.arm}-s{self.recipe.seed}"


Change = Callable[[Recipe], Recipe]


def _tf32(recipe: Recipe) -> Recipe:
    """Released in fp32; tf32 takes half the time, and one seed in fp32 stands beside it for comparison."""
    return replace(recipe, precision="tf32")


def _bf16(recipe: Recipe) -> Recipe:
    return replace(recipe, precision="bf16")


def _task(**fields: Any) -> Change:
    return lambda recipe: replace(recipe, task=replace(recipe.task, **fields))


def _papl(**fields: Any) -> Change:
    def changed(recipe: Recipe) -> Recipe:
        assert isinstance(recipe.scheme, Papl)
        return replace(recipe, scheme=replace(recipe.scheme, **fields))

    return changed


def _puma(change: Callable[[Puma], Puma]) -> Change:
    def changed(recipe: Recipe) -> Recipe:
        assert isinstance(recipe.scheme, Puma)
        return replace(recipe, scheme=change(recipe.scheme))

    return changed


def _arm(arm: str, recipe: str, *changes: Change, seeds: tuple[int, ...] = SEEDS) -> Iterator[Entry]:
    for seed in seeds:
        made = recipe_named(recipe)
        for change in changes:
            made = change(made)
        yield Entry(arm, replace(made, seed=seed, name=arm))


def _grid(*arms: Iterator[Entry]) -> list[Entry]:
    """All arms, the first seed of each first."""
    entries = [list(arm) for arm in arms]
    return [arm[i] for i in range(max(map(len, entries))) for arm in entries if i < len(arm)]


def _four(arm: str, recipe: str, precision: Change) -> list[Entry]:
    """The schemes of the paper's Table 1; an arm and its recipe end alike for all of them."""
    return _grid(
        *(
            _arm(f"addition-{scheme}{arm}", f"addition-{scheme}{recipe}", precision)
            for scheme in ("random", "papl", "puma")
        ),
        _arm(f"addition-papl5{arm}", f"addition-papl{recipe}", _papl(alpha=5.0), precision),
    )


def _addition() -> list[Entry]:
    return _four("-tf32", "", _tf32)


def _addition_fp32() -> list[Entry]:
    return _grid(
        _arm("addition-puma", "addition-puma", seeds=(42,)),
        _arm("addition-papl", "addition-papl", seeds=(42,)),
        _arm("addition-random", "addition-random", seeds=(42,)),
    )


def _addition_paper() -> list[Entry]:
    """In bf16: the text states no precision, and the study's own probes of it ran, and learned, in bf16."""
    return _four("-paper", "-paper", _bf16)


def _addition_paper_modulo() -> list[Entry]:
    """The text as written, down to the one formula that takes sums modulo 10^32; in tf32, as recorded first."""
    return _grid(
        *(
            _arm(f"addition-{scheme}-paper-modulo", f"addition-{scheme}-paper", _tf32, _task(sum="modulo"), seeds=(42,))
            for scheme in ("random", "papl", "puma")
        )
    )


def _addition_factors() -> list[Entry]:
    """One-factor changes from `release`, one seed each: which unstated choice carries the effect?"""

    def one(arm: str, recipe: str, *changes: Change) -> Iterator[Entry]:
        return _arm(f"addition-{arm}", recipe, _tf32, *changes, seeds=(42,))

    def no_dropout(recipe: Recipe) -> Recipe:
        return replace(recipe, sizes=replace(recipe.sizes, dropout=0.0))

    def decay(recipe: Recipe) -> Recipe:
        return replace(recipe, optimiser=replace(recipe.optimiser, weight_decay=0.01))

    def no_ema(recipe: Recipe) -> Recipe:
        return replace(recipe, optimiser=replace(recipe.optimiser, ema=None))

    general: dict[str, Change] = {
        "no-dropout": no_dropout,
        "wd.01": decay,
        "no-ema": no_ema,
        "bf16": _bf16,
        "modulo": _task(sum="modulo"),
    }
    return _grid(
        one("mixture", "addition-mixture"),
        one("oracle", "addition-oracle"),
        one("puma-no-threshold", "addition-puma", _puma(lambda puma: replace(puma, threshold=None))),
        one("puma-stochastic", "addition-puma", _puma(lambda puma: stochastic(puma.stages))),
        one("puma-official", "addition-puma", _puma(lambda puma: official(puma.stages))),
        one("papl-matched", "addition-papl", _papl(planner="matched")),
        *(
            one(f"{scheme}-{label}", f"addition-{scheme}", change)
            for label, change in general.items()
            for scheme in ("puma", "papl", "random")
        ),
    )


def _addition_small() -> list[Entry]:
    """The study and its two remedies on four digits, half an hour on two cores of a CPU."""
    schemes = ("random", "papl", "puma", "mixture", "oracle")
    arms = [_arm(f"addition-{scheme}-small", f"addition-{scheme}-small") for scheme in schemes]
    return _grid(*arms, _arm("addition-papl5-small", "addition-papl-small", _papl(alpha=5.0)))


def _other(task: str, precision: Change = _tf32) -> Callable[[], list[Entry]]:
    schemes = ("random", "papl", "puma")
    return lambda: _grid(*(_arm(f"{task}-{scheme}", f"{task}-{scheme}", precision) for scheme in schemes))


def _smoke(task: str) -> Callable[[], list[Entry]]:
    schemes = ("random", "papl", "puma")
    return lambda: _grid(*(_arm(f"{task}-{scheme}-smoke", f"{task}-{scheme}-smoke", seeds=(42,)) for scheme in schemes))


GRIDS: dict[str, Callable[[], list[Entry]]] = {
    "addition": _addition,
    "addition-paper": _addition_paper,
    "addition-paper-modulo": _addition_paper_modulo,
    "addition-factors": _addition_factors,
    "addition-fp32": _addition_fp32,
    "addition-small": _addition_small,
    "maze": _other("maze", _bf16),
    "listops": _other("listops", _bf16),
    "countdown": _other("countdown", _bf16),
    "sudoku": _other("sudoku", _bf16),
    **{f"{task}-smoke": _smoke(task) for task in ("addition", "maze", "listops", "countdown", "sudoku")},
}


def grid_named(name: str) -> list[Entry]:
    if name not in GRIDS:
        raise HardtailError(f"there is no grid {name!r}; the grids are {', '.join(GRIDS)}")
    return GRIDS[name]()


def entries_named(names: Sequence[str]) -> list[Entry]:
    """The entries of grids and of single runs, in the order given."""
    runs = {entry.name: [entry] for grid in GRIDS.values() for entry in grid()}
    found: dict[str, Entry] = {}
    for name in names:
        if name not in GRIDS and name not in runs:
            raise HardtailError(
                f"there is no grid or run {name!r}; the grids are {', '.join(GRIDS)}, and `hardtail study GRID` "
                "lists a grid's runs"
            )
        found |= {entry.name: entry for entry in runs.get(name) or grid_named(name)}
    return list(found.values())


def entry_named(name: str) -> Entry:
    """An entry of any grid by its name."""
    found = entries_named([name])
    if name in GRIDS:
        raise HardtailError(f"{name} is a grid of {len(found)} runs; name one of them")
    return found[0]
