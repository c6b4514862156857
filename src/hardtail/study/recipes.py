"""Recipes: everything a training run depends on, as functions over other recipes.

`release` follows what the authors' code did, `-paper` what the text says (study §1.4–§1.8, §8). For a CPU, `-smoke`
shows in seconds that all works, and `-small` (addition) learns in minutes. ListOps is taken at the paper's size;
`listops-large-*` is the released one.
"""

from collections.abc import Callable
from dataclasses import replace

import hardtail
from hardtail.core.errors import HardtailError
from hardtail.schemes.base import Scheme
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.papl import Papl
from hardtail.schemes.puma import Puma, oracle_order
from hardtail.schemes.puma import paper as puma_paper
from hardtail.schemes.random import Random
from hardtail.schemes.stages import Fixed, Ramp, Stages, Stairs
from hardtail.tasks.datasets import WHOLE
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Recipe, Sizes, Watch

# -- the five tasks, random masking, release -----------------------------------------------------------------------


def addition() -> Recipe:
    """Random masking on 32-digit addition, as released."""
    return Recipe(task=hardtail.task("addition"), scheme=Random())


def maze() -> Recipe:
    """Random masking on mazes, as released.

    Watched is the longest corridor of the study's table; the sweep goes on to 60, where it prints no figures.
    """
    return Recipe(
        task=hardtail.task("maze"),
        scheme=Random(),
        sizes=Sizes(3, 3, 192),
        optimiser=AdamW(lr=3e-4, floor=1e-5, weight_decay=0.01),
        watch=Watch(hard="corridor>=30", order="dead_end_filling", probe_size=5000, decoded=100),
        steps=50_000,
    )


def listops() -> Recipe:
    """Random masking on ListOps at the paper's size, otherwise as released."""
    return Recipe(
        task=hardtail.task("listops"),
        scheme=Random(),
        sizes=Sizes(3, 3, 192),
        optimiser=AdamW(lr=3e-4, floor=1e-5, weight_decay=0.01),
        watch=Watch(hard="depth=5", order="post_order", probe=("probe", WHOLE), probe_size=5000),
        train_size=20_000,
    )


def listops_large() -> Recipe:
    """Random masking on ListOps with the released model and training set."""
    return replace(listops(), sizes=Sizes(8, 8, 384), train_size=200_000)


def countdown() -> Recipe:
    """Random masking on Countdown, as released."""
    return Recipe(
        task=hardtail.task("countdown"),
        scheme=Random(),
        sizes=Sizes(12, 12, 384, dropout=0.0),
        optimiser=AdamW(lr=3e-4, floor=1e-5, warmup=1000, weight_decay=0.01),
        watch=Watch(hard="heldout=1,m=1-3", order="step_sequential", probe=("test", "heldout=1"), probe_size=1000),
        steps=200_000,
    )


def sudoku() -> Recipe:
    """Random masking on Sudoku, as released: the probe, and so the choice of weights, is the hard tier of the test set.

    The highest tier is the hard tail here; its 200 puzzles take about half a minute to draw, the training set longer.
    """
    return Recipe(
        task=hardtail.task("sudoku"),
        scheme=Random(),
        sizes=Sizes(8, 8, 256, dropout=0.0),
        optimiser=AdamW(lr=3e-4, floor=1e-5, weight_decay=0.01),
        watch=Watch(
            log_every=2000,
            eval_every=8000,
            hard="tier=top1pct",
            order="constraint_propagation",
            probe=("test", "tier=hard"),
            probe_size=500,
            decoded=200,
        ),
    )


STAIRS = {
    "addition": Stairs(3, 16, 3),
    "maze": Stairs(10, 40, 3),
    "listops": Stairs(2, 10, 2),
    "countdown": Stairs(4, 20, 3),
    "sudoku": Stairs(8, 40, 5),
}


# -- changes to a recipe -------------------------------------------------------------------------------------------


def with_papl(recipe: Recipe) -> Recipe:
    """PAPL with the study's α: 1 for addition, 5 elsewhere."""
    return replace(recipe, scheme=Papl(alpha=1.0 if recipe.task.name == "addition" else 5.0))


def with_puma(recipe: Recipe) -> Recipe:
    return replace(recipe, scheme=Puma(stages=STAIRS[recipe.task.name]))


def with_oracle(recipe: Recipe) -> Recipe:
    """PUMA's chains revealed in the task's logical order."""
    return replace(recipe, scheme=oracle_order(STAIRS[recipe.task.name]))


def with_mixture(recipe: Recipe) -> Recipe:
    """PUMA with 20 % random states."""
    return replace(recipe, scheme=Mixture(with_puma(recipe).scheme, Random(), share=0.2))


def as_paper(recipe: Recipe) -> Recipe:
    """The text as written: its data, 3× MLP, betas, decay, 1/λ, cosine to 0; no dropout, no EMA, the last iterate.

    Sums have their carry, as the text says in three places: with the "mod 10^32" of a fourth, one operand alone says
    nothing about any digit of the answer, and learning has nowhere to begin (grid `addition-paper-modulo`).
    """
    reading = "paper-carry" if recipe.task.name == "addition" else "paper"
    return replace(
        recipe,
        task=hardtail.task(recipe.task.name, reading),
        scheme=_as_text(recipe.scheme),
        sizes=replace(recipe.sizes, mlp_ratio=3, dropout=0.0),
        optimiser=replace(recipe.optimiser, beta2=0.95, weight_decay=0.01, floor=0.0, ema=None),
        selection="last",
    )


def _as_text(scheme: Scheme) -> Scheme:
    """The scheme as the text has it; which cells PUMA reveals first stays what it was."""
    text = Random(at_least_one=False, weighting="rate")
    if isinstance(scheme, Random):
        return text
    if isinstance(scheme, Papl):
        return replace(scheme, masking=replace(text, weighting="masked"))
    if isinstance(scheme, Puma) and isinstance(scheme.stages, Stairs):
        return replace(puma_paper(Ramp(scheme.stages.start, scheme.stages.end)), score=scheme.score)
    if isinstance(scheme, Mixture):
        return replace(scheme, first=_as_text(scheme.first), second=_as_text(scheme.second))
    return scheme


def _with_stages(scheme: Scheme, stages: Stages) -> Scheme:
    """PUMA with other stages, also inside a mixture; any other scheme as it is."""
    if isinstance(scheme, Puma):
        return replace(scheme, stages=stages)
    if isinstance(scheme, Mixture):
        return replace(scheme, first=_with_stages(scheme.first, stages), second=_with_stages(scheme.second, stages))
    return scheme


def as_small(recipe: Recipe) -> Recipe:
    """Addition of four digits, learned in a minute or two on one core of a CPU; otherwise as released."""
    return replace(
        recipe,
        task=replace(recipe.task, digits=4),  # type: ignore[call-arg] # of addition alone
        scheme=_with_stages(recipe.scheme, Stairs(2, 5, 1)),
        sizes=replace(recipe.sizes, heads=8, width=64),
        optimiser=replace(recipe.optimiser, lr=3e-3, warmup=100, ema=0.99),
        watch=replace(
            recipe.watch,
            log_every=100,
            eval_every=500,
            gen_every=500,
            save_every=500,
            probe_size=1000,
            hard="chain>=4",
            decoded=200,
        ),
        steps=4000,
        batch=64,
    )


def as_smoke(recipe: Recipe) -> Recipe:
    """Seconds on a CPU: a tiny model, a small task, a few hundred steps."""
    small = {
        "addition": {"digits": 8},
        "maze": {"size": 3},
    }.get(recipe.task.name, {})
    hard = {"addition": "chain>=4", "maze": "corridor>=4", "sudoku": "tier=medium"}.get(
        recipe.task.name, recipe.watch.hard
    )
    probe = ("test", "tier=easy") if recipe.task.name == "sudoku" else recipe.watch.probe
    return replace(
        recipe,
        task=replace(recipe.task, **small),
        scheme=_with_stages(recipe.scheme, Fixed(3)),
        sizes=replace(recipe.sizes, layers=2, heads=2, width=32),
        optimiser=replace(recipe.optimiser, lr=3e-3, floor=3e-4, warmup=20, ema=0.99 if recipe.optimiser.ema else None),
        watch=replace(
            recipe.watch,
            log_every=20,
            eval_every=50,
            gen_every=100,
            save_every=50,
            probe=probe,
            probe_size=100,
            hard=hard,
            decoded=20,
        ),
        steps=200,
        batch=32,
        train_size=1000,
    )


def _all() -> dict[str, Callable[[], Recipe]]:
    bases = {
        "addition": addition,
        "maze": maze,
        "listops": listops,
        "listops-large": listops_large,
        "countdown": countdown,
        "sudoku": sudoku,
    }
    schemes: dict[str, Callable[[Recipe], Recipe]] = {
        "random": lambda recipe: recipe,
        "papl": with_papl,
        "puma": with_puma,
        "oracle": with_oracle,
        "mixture": with_mixture,
    }
    readings: dict[str, Callable[[Recipe], Recipe]] = {
        "": lambda recipe: recipe,
        "-paper": as_paper,
        "-smoke": as_smoke,
        "-small": as_small,
    }

    def make(base: str, scheme: str, reading: str) -> Callable[[], Recipe]:
        return lambda: readings[reading](schemes[scheme](bases[base]()))

    return {
        f"{base}-{scheme}{reading}": make(base, scheme, reading)
        for base in bases
        for scheme in schemes
        for reading in readings
        if reading != "-small" or base == "addition"
    }


RECIPES = _all()


def recipe_named(name: str) -> Recipe:
    if name not in RECIPES:
        from difflib import get_close_matches

        close = get_close_matches(name, RECIPES, n=3)
        raise HardtailError(
            f"there is no recipe {name!r}; "
            + (f"close are {', '.join(close)}" if close else "they are called TASK-SCHEME[-paper|-smoke|-small]")
        )
    return replace(RECIPES[name](), name=name)
