"""The study's recipes: for each task one record of what it changes, combined with every scheme and reading.

A plain name follows the authors' code, `-paper` the text (docs/study.md §1.4–§1.8, §8). For a CPU, `-smoke` shows in
seconds that everything works, and `-small` (addition) learns in minutes. ListOps has the paper's size;
`listops-large-*` has the released one. Countdown and Sudoku, whose runs are the longest, also have `-quarter`, a
quarter of the steps, and `-little`, a model that is small enough to be shipped. Sudoku also has `-tiny-quarter`, which
is smaller still and the one that is shipped.
"""

import reprlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from types import SimpleNamespace

from hardtail.core.errors import HardtailError
from hardtail.core.pretrained import HF, ZOO
from hardtail.schemes.base import Scheme
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.papl import Papl
from hardtail.schemes.puma import Puma, oracle_order
from hardtail.schemes.puma import paper as puma_paper
from hardtail.schemes.random import Random
from hardtail.schemes.stages import Fixed, Ramp, Stages, Stairs
from hardtail.study.names import LITTLE, QUARTER, RECIPES, TINY, recipe_parts
from hardtail.tasks.base import Task
from hardtail.tasks.datasets import WHOLE
from hardtail.tasks.named import make_task
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Recipe, Sizes, Watch


@dataclass(frozen=True)
class Smaller:
    """A task that is small enough for a CPU, its hard stratum and the split and stratum of the probe."""

    task: Task
    hard: str
    probe: tuple[str, str]


@dataclass(frozen=True)
class Arms:
    """The study's recipes on one task: random masking as released, and what schemes and readings change in it."""

    release: Recipe
    stairs: Stairs
    """PUMA's stages."""
    smoke: Smaller | None = None
    """None where the task is small enough as it is."""
    alpha: float = 5.0
    """PAPL's."""
    text: str = "paper"
    """The preset of the task that follows the text."""
    small: Smaller | None = None
    """Where a small recipe learns the task in minutes."""


# -- the five tasks ------------------------------------------------------------------------------------------------


def addition() -> Arms:
    """32-digit addition.

    Sums have their carry, as the text says in three places: with the "mod 10^32" of a fourth, one operand alone says
    nothing about any digit of the answer, and learning has nowhere to begin (grid `addition-paper-modulo`).
    """
    release = Recipe(task=make_task("addition"), scheme=Random(), watch=Watch(hard="chain>=28", order="lsb"))
    smoke, small = (Smaller(make_task("addition", digits=digits), "chain>=4", ("test", "natural")) for digits in (8, 4))
    return Arms(release, Stairs(3, 16, 3), smoke, alpha=1.0, text="paper-carry", small=small)


def _released(task: str, sizes: Sizes, watch: Watch, steps: int = Recipe.steps, size: int | None = None) -> Recipe:
    """Random masking on one of the other four tasks; `size` is the size of the training set."""
    optimiser = AdamW(lr=3e-4, floor=1e-5, weight_decay=0.01)
    return Recipe(make_task(task), Random(), sizes, optimiser, watch, steps, train_size=size)


def maze() -> Arms:
    """Mazes. Runs watch the longest corridor of the paper's table; the sweep continues to 60, without its figures."""
    watch = Watch(hard="corridor>=30", order="dead_end_filling", probe_size=5000, decoded=100)
    release = _released("maze", Sizes(3, 3, 192), watch, steps=50_000)
    return Arms(release, Stairs(10, 40, 3), Smaller(make_task("maze", size=3), "corridor>=4", release.watch.probe))


def listops() -> Arms:
    """ListOps at the paper's size, otherwise as released."""
    watch = Watch(hard="depth=5", order="post_order", probe=("probe", WHOLE), probe_size=5000)
    return Arms(_released("listops", Sizes(3, 3, 192), watch, size=20_000), Stairs(2, 10, 2))


def listops_large() -> Arms:
    """ListOps with the released model and training set."""
    arms = listops()
    return replace(arms, release=replace(arms.release, sizes=Sizes(8, 8, 384), train_size=200_000))


def countdown() -> Arms:
    watch = Watch(hard="heldout=1,m=1-3", order="step_sequential", probe=("test", "heldout=1"), probe_size=1000)
    release = _released("countdown", Sizes(12, 12, 384, dropout=0.0), watch, steps=200_000)
    return Arms(replace(release, optimiser=replace(release.optimiser, warmup=1000)), Stairs(4, 20, 3))


def sudoku() -> Arms:
    """Sudoku as released: the probe, and so the choice of weights, is the hard tier of the test set.

    The highest tier is the hard tail here; its 200 puzzles take about half a minute to draw, the training set longer.
    """
    watch = Watch(2000, 8000, probe=("test", "tier=hard"), probe_size=500, hard="tier=top1pct", decoded=200)
    watch = replace(watch, order="constraint_propagation")
    release = _released("sudoku", Sizes(8, 8, 256, dropout=0.0), watch)
    return Arms(release, Stairs(8, 40, 5), Smaller(release.task, "tier=medium", ("test", "tier=easy")))


# -- schemes -------------------------------------------------------------------------------------------------------

SCHEME_OF: dict[str, Callable[[Arms], Scheme]] = {
    "random": lambda arms: Random(),
    "papl": lambda arms: Papl(alpha=arms.alpha),
    "puma": lambda arms: Puma(stages=arms.stairs),
    "oracle": lambda arms: oracle_order(arms.stairs),
    "mixture": lambda arms: Mixture(Puma(stages=arms.stairs), Random(), share=0.2),
}


def _as_text(scheme: Scheme) -> Scheme:
    """The scheme as the text describes it; which cells PUMA reveals first does not change."""
    text = Random(at_least_one=False, weighting="rate")
    if isinstance(scheme, Random):
        return text
    if isinstance(scheme, Papl):
        return replace(scheme, masking=replace(text, weighting="masked"))
    if isinstance(scheme, Puma) and isinstance(scheme.stages, Stairs):
        return replace(puma_paper(Ramp(scheme.stages.start, scheme.stages.end)), score=scheme.score)
    return _inside(scheme, _as_text)


def _with_stages(scheme: Scheme, stages: Stages) -> Scheme:
    """PUMA with other stages, also inside a mixture; any other scheme as it is."""
    if isinstance(scheme, Puma):
        return replace(scheme, stages=stages)
    return _inside(scheme, lambda part: _with_stages(part, stages))


def _inside(scheme: Scheme, change: Callable[[Scheme], Scheme]) -> Scheme:
    """A mixture with both parts changed; any other scheme as it is."""
    if isinstance(scheme, Mixture):
        return replace(scheme, first=change(scheme.first), second=change(scheme.second))
    return scheme


# -- readings and sizes --------------------------------------------------------------------------------------------


def as_paper(arms: Arms, recipe: Recipe) -> Recipe:
    """The text as written: its data, 3× MLP, betas, decay, 1/λ, cosine to 0; no dropout, no EMA, the last iterate."""
    return replace(
        recipe,
        task=recipe.task.preset(arms.text),
        scheme=_as_text(recipe.scheme),
        sizes=replace(recipe.sizes, mlp_ratio=3, dropout=0.0),
        optimiser=replace(recipe.optimiser, beta2=0.95, weight_decay=0.01, floor=0.0, ema=None),
        selection="last",
    )


def as_small(arms: Arms, recipe: Recipe) -> Recipe:
    """Learned in a minute or two on one core of a CPU; otherwise as released."""
    small = _smaller(
        recipe, arms.small, Stairs(2, 5, 1), Watch(100, 500, 500, probe_size=1000, decoded=200, save_every=500)
    )
    sizes = replace(recipe.sizes, heads=8, width=64)
    optimiser = replace(recipe.optimiser, lr=3e-3, warmup=100, ema=0.99)
    return replace(small, sizes=sizes, optimiser=optimiser, steps=4000, batch=64)


def as_small_paper(arms: Arms, recipe: Recipe) -> Recipe:
    """The text as written, on four digits."""
    small = as_small(arms, recipe)
    text = as_paper(arms, small)
    return replace(text, task=replace(text.task, digits=small.task.digits))  # type: ignore[attr-defined, call-arg]


def as_quarter(arms: Arms, recipe: Recipe) -> Recipe:
    """As released, in a quarter of the steps: the learning rate falls and PUMA's stages rise four times as fast."""
    return replace(recipe, steps=recipe.steps // 4)


def as_little(arms: Arms, recipe: Recipe) -> Recipe:
    """As released, with the size of the paper's maze and ListOps models."""
    return replace(recipe, sizes=replace(recipe.sizes, layers=3, heads=3, width=192))


def as_tiny(arms: Arms, recipe: Recipe) -> Recipe:
    """A model of 3 MB, deeper and narrower than little ones, as Sudokus take steps of deduction; with the learning rate
    of addition, whose models are as narrow."""
    sizes = replace(recipe.sizes, layers=4, heads=4, width=128)
    return replace(recipe, sizes=sizes, optimiser=replace(recipe.optimiser, lr=1e-3))


def as_smoke(arms: Arms, recipe: Recipe) -> Recipe:
    """Seconds on a CPU: a tiny model, a small task, a few hundred steps."""
    smoke = _smaller(recipe, arms.smoke, Fixed(3), Watch(20, 50, 100, probe_size=100, decoded=20, save_every=50))
    sizes = replace(recipe.sizes, layers=2, heads=2, width=32)
    ema = 0.99 if recipe.optimiser.ema else None
    optimiser = replace(recipe.optimiser, lr=3e-3, floor=3e-4, warmup=20, ema=ema)
    return replace(smoke, sizes=sizes, optimiser=optimiser, steps=200, batch=32, train_size=1000)


def _smaller(recipe: Recipe, to: Smaller | None, stages: Stages, watch: Watch) -> Recipe:
    """The recipe on a smaller task, with these stages of PUMA, watched this often and on this many instances."""
    to = to or Smaller(recipe.task, recipe.watch.hard, recipe.watch.probe)
    watch = replace(watch, hard=to.hard, probe=to.probe, order=recipe.watch.order)
    return replace(recipe, task=to.task, scheme=_with_stages(recipe.scheme, stages), watch=watch)


# -- by name -------------------------------------------------------------------------------------------------------

Version = Callable[[Arms, Recipe], Recipe]
VERSIONS: dict[str, Version] = {
    "": lambda arms, recipe: recipe,
    "-paper": as_paper,
    "-smoke": as_smoke,
    "-small": as_small,
    "-small-paper": as_small_paper,
    QUARTER: as_quarter,
    LITTLE: as_little,
    TINY + QUARTER: lambda arms, recipe: as_quarter(arms, as_tiny(arms, recipe)),
}
ARMS: dict[str, Callable[[], Arms]] = {
    "addition": addition,
    "maze": maze,
    "listops": listops,
    "listops-large": listops_large,
    "countdown": countdown,
    "sudoku": sudoku,
}


def _made(base: str, scheme: str, version: str) -> Recipe:
    made = ARMS[base]()
    return VERSIONS[version](made, replace(made.release, scheme=SCHEME_OF[scheme](made)))


NAMED = SimpleNamespace(**{name.replace("-", "_"): partial(_made, *parts) for name, parts in recipe_parts().items()})
"""The study's recipes by name, with _ for -; `RECIPES` finds them here."""


def recipe_named(name: str) -> Recipe:
    """The recipe called `name`, which is a registered one or `package.module:function`."""
    if name.startswith((ZOO, HF)):
        raise HardtailError(
            f"{name} is a model, not a recipe; `hardtail train RECIPE --model {name}` trains it further, and `hardtail "
            "train` lists the recipes"
        )
    if ":" not in name and name not in RECIPES.names():
        close = get_close_matches(name, RECIPES.names(), n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else "`hardtail train` lists the recipes"
        raise HardtailError(f"there is no recipe {name!r}; {hint}")
    recipe = RECIPES.load(name)()
    if not isinstance(recipe, Recipe):
        raise HardtailError(f"{name!r} is not a recipe: it returned {reprlib.repr(recipe)}")
    return recipe if recipe.name != Recipe.name else replace(recipe, name=name.rpartition(":")[2])
