"""The grids: which runs make up the study, the most useful first.

An entry is a recipe under a name, which is also its folder in `runs/` and in `results/`. Seeds are outermost, so that
limited GPU time first gives one seed of everything.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial, reduce
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.hub import HF, called
from hardtail.core.records import RunEntry
from hardtail.schemes.base import Scheme
from hardtail.schemes.puma import Puma, official
from hardtail.schemes.puma import paper as stochastic
from hardtail.study.names import MORE_VERSIONS, ON, QUARTER, THREE, in_a_name
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

    def on(self, data_file: Path) -> "Entry":
        """The same run on other training data, which its name then says; of these the ledger reads `-on-published`."""
        stem = called(data_file) if str(data_file).startswith(HF) else data_file.stem
        arm = f"{self.arm}{ON}{in_a_name(stem)}"
        return Entry(arm, replace(self.recipe, name=arm))

    def on_files(self, recorded: Iterable[RunEntry]) -> list[RunEntry]:
        """Those of the recorded runs that are this one on other training data."""
        return [run for run in recorded if run.arm.startswith(f"{self.arm}{ON}") and run.seed == self.recipe.seed]


Change = Callable[[Recipe], Recipe]


def _with(**change: Callable[[Any], Any]) -> Change:
    """Change these fields of a recipe, each by a function of its value."""
    return lambda recipe: replace(recipe, **{name: make(getattr(recipe, name)) for name, make in change.items()})


def _stochastic(scheme: Scheme) -> bool:
    return isinstance(scheme, Puma) and scheme.law == "centred"


ALPHA_5 = _with(scheme=lambda papl: replace(papl, alpha=5.0))
MODULO = _with(task=lambda task: replace(task, sum="modulo"))
AS_BEGUN = _with(scheme=lambda scheme: replace(scheme, law="around") if _stochastic(scheme) else scheme)
"""PUMA of the text on addition with the stage law of the run that is recorded; the recipes centre it on n/K."""
BOUND = _with(scheme=lambda random: replace(random, weighting="bound"))
"""The loss of the text as it is written: a sum over cells, which clipping at 1.0 makes another optimiser."""
BF16 = _with(precision=lambda _: "bf16")
TF32 = _with(precision=lambda _: "tf32")
"""Released in fp32; tf32 takes half the time, and one seed runs in fp32 for comparison."""


def _arm(arm: str, recipe: str, *changes: Change, seeds: Sequence[int] = SEEDS) -> list[Entry]:
    made = reduce(lambda changed, change: change(changed), changes, recipe_named(recipe))
    return [Entry(arm, replace(made, seed=seed, name=arm)) for seed in seeds]


def _schemes(
    task: str,
    *changes: Change,
    arm: str = "",
    recipe: str = "",
    schemes: Sequence[str] = THREE,
    seeds: Sequence[int] = SEEDS,
    papl5: bool = False,
) -> list[Entry]:
    """One arm for each scheme, with the same ending of all arms and of all recipes; `papl5` adds PAPL with α = 5."""
    arms = [_arm(f"{task}-{scheme}{arm}", f"{task}-{scheme}{recipe}", *changes, seeds=seeds) for scheme in schemes]
    more = [_arm(f"{task}-papl5{arm}", f"{task}-papl{recipe}", ALPHA_5, *changes, seeds=seeds)] if papl5 else []
    return _grid(*arms, *more)


def _grid(*arms: list[Entry]) -> list[Entry]:
    """All arms, the first seed of each first."""
    return [entry for same_place in zip_longest(*arms) for entry in same_place if entry is not None]


def _addition_factors() -> list[Entry]:
    """One-factor changes from `release`, one seed each: which unstated choice carries the effect?"""

    def one(arm: str, recipe: str, *changes: Change) -> list[Entry]:
        return _arm(f"addition-{arm}", f"addition-{recipe}", TF32, *changes, seeds=(42,))

    general = {
        "no-dropout": _with(sizes=lambda sizes: replace(sizes, dropout=0.0)),
        "wd.01": _with(optimiser=lambda adam: replace(adam, weight_decay=0.01)),
        "no-ema": _with(optimiser=lambda adam: replace(adam, ema=None)),
        "bf16": BF16,
        "modulo": MODULO,
    }
    return _grid(
        one("mixture", "mixture"),
        one("oracle", "oracle"),
        one("puma-no-threshold", "puma", _with(scheme=lambda puma: replace(puma, threshold=None))),
        one("puma-stochastic", "puma", _with(scheme=lambda puma: stochastic(puma.stages))),
        one("puma-official", "puma", _with(scheme=lambda puma: official(puma.stages))),
        one("papl-matched", "papl", _with(scheme=lambda papl: replace(papl, planner="matched"))),
        *(one(f"{scheme}-{label}", scheme, change) for label, change in general.items() for scheme in reversed(THREE)),
    )


_addition = partial(_schemes, "addition")
OTHER_TASKS = ("maze", "listops", "countdown", "sudoku")
GRIDS: dict[str, Callable[[], list[Entry]]] = {
    "addition": partial(_addition, TF32, arm="-tf32", papl5=True),
    # The text states no precision; the study's own probes of it ran, and learned, in bf16.
    "addition-paper": partial(_addition, BF16, AS_BEGUN, arm="-paper", recipe="-paper", papl5=True),
    # The text as written, including the one formula that takes sums modulo 10^32; in tf32, as recorded first.
    "addition-paper-modulo": partial(
        _addition, TF32, MODULO, AS_BEGUN, arm="-paper-modulo", recipe="-paper", seeds=(42,)
    ),
    "addition-paper-bound": partial(
        _addition, BF16, BOUND, arm="-paper-bound", recipe="-paper", schemes=("random",), seeds=(42,)
    ),
    "addition-factors": _addition_factors,
    "addition-fp32": partial(_addition, schemes=("puma", "papl", "random"), seeds=(42,)),
    # The study and its two remedies on four digits: half an hour on two cores of a CPU.
    "addition-small": partial(
        _addition, arm="-small", recipe="-small", schemes=(*THREE, "mixture", "oracle"), papl5=True
    ),
    # Is the missing 1/n of the text's loss why random masking does not learn in that reading? On four digits.
    "addition-small-loss": lambda: _grid(
        *(
            _arm(f"addition-random-small-paper{end}", "addition-random-small-paper", *changes)
            for end, changes in (("", ()), ("-bound", (BOUND,)))
        )
    ),
    **{
        f"{task}{reading}": partial(_schemes, task, BF16, arm=reading, recipe=reading)
        for reading in ("", "-paper")
        for task in OTHER_TASKS
    },
    # Fewer steps or a smaller model: minutes of a GPU instead of half an hour.
    **{
        f"{task}{version}": partial(_schemes, task, BF16, arm=version, recipe=version, seeds=(42,))
        for task in OTHER_TASKS
        for version in MORE_VERSIONS.get(task, ())
    },
    # The two remedies, to see where they help.
    **{
        f"{task}{version}-remedies": partial(
            _schemes, task, BF16, arm=version, recipe=version, schemes=("mixture", "oracle"), seeds=(42,)
        )
        for task in OTHER_TASKS
        for version in ("", QUARTER)
        if version in ("", *MORE_VERSIONS.get(task, ()))
    },
    **{
        f"{task}-smoke": partial(_schemes, task, arm="-smoke", recipe="-smoke", seeds=(42,))
        for task in ("addition", *OTHER_TASKS)
    },
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
            close = get_close_matches(name, [*GRIDS, *runs], n=1)
            known = f"the grids are {', '.join(GRIDS)}, and `hardtail study GRID` lists a grid's runs"
            raise HardtailError(
                f"there is no grid or run {name!r}; {f'did you mean {close[0]!r}?' if close else known}"
            )
        found |= {entry.name: entry for entry in runs.get(name) or grid_named(name)}
    return list(found.values())
