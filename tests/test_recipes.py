"""Recipes: the study's settings as it lists them, both readings, and fields that make no sense."""

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.core.describe import differences
from hardtail.models.precision import Precision
from hardtail.schemes import Focal, Mixture, Papl, Puma, Random, Scheme
from hardtail.schemes.stages import Fixed, Ramp, Stairs
from hardtail.study.grids import entries_named
from hardtail.study.names import ON
from hardtail.study.recipes import recipe_named
from hardtail.training.estimate import estimate
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Sizes, Watch

STUDY: dict[str, tuple[Any, ...]] = {
    # docs/study.md §1.4–§1.8: L/H/d, dropout, steps, lr, floor, warm-up, weight decay, eval_every, N train, α, PUMA's K
    "addition": ((2, 2, 128), 0.1, 300_000, 1e-3, 1e-4, 2000, 0.1, 5000, 20_000, 1.0, Stairs(3, 16, 3)),
    "maze": ((3, 3, 192), 0.1, 50_000, 3e-4, 1e-5, 2000, 0.01, 5000, 10_000, 5.0, Stairs(10, 40, 3)),
    "listops": ((3, 3, 192), 0.1, 300_000, 3e-4, 1e-5, 2000, 0.01, 5000, 20_000, 5.0, Stairs(2, 10, 2)),
    "listops-large": ((8, 8, 384), 0.1, 300_000, 3e-4, 1e-5, 2000, 0.01, 5000, 200_000, 5.0, Stairs(2, 10, 2)),
    "countdown": ((12, 12, 384), 0.0, 200_000, 3e-4, 1e-5, 1000, 0.01, 5000, None, 5.0, Stairs(4, 20, 3)),
    "sudoku": ((8, 8, 256), 0.0, 300_000, 3e-4, 1e-5, 2000, 0.01, 8000, None, 5.0, Stairs(8, 40, 5)),
}


@pytest.mark.parametrize("name", STUDY)
def test_the_released_settings(name: str) -> None:
    shape, dropout, steps, lr, floor, warmup, decay, eval_every, n_train, alpha, stages = STUDY[name]
    for scheme, expected in (("random", Random()), ("papl", Papl(alpha=alpha)), ("puma", Puma(stages=stages))):
        recipe = recipe_named(f"{name}-{scheme}")
        layers, heads, width = shape
        assert recipe.sizes == Sizes(layers, heads, width, mlp_ratio=4, dropout=dropout)
        assert recipe.optimiser == AdamW(lr, floor, warmup, "cosine", 0.9, 0.99, decay, clip=1.0, ema=0.9999)
        assert (recipe.steps, recipe.batch, recipe.watch.eval_every) == (steps, 256, eval_every)
        assert (recipe.precision, recipe.attention, recipe.selection) == ("fp32", "same", "best_probe")
        if n_train is not None:
            built = sum(part.n for part in recipe.task.splits()["train"])
            assert (recipe.train_size or built) == n_train
        assert recipe.scheme == expected


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        ("random", Random(at_least_one=False, weighting="rate")),
        ("papl", Papl(alpha=1.0, masking=Random(at_least_one=False))),
        ("puma", Puma(Ramp(3, 16), law="centred", threshold=None)),
        ("oracle", Puma(Ramp(3, 16), law="centred", threshold=None, score="logical")),
        (
            "mixture",
            Mixture(Puma(Ramp(3, 16), law="centred", threshold=None), Random(at_least_one=False, weighting="rate")),
        ),
    ],
)
def test_the_text_as_written(scheme: str, expected: Scheme) -> None:
    """docs/study.md §8: every scheme changes to what the text says, and stays the scheme that its name says."""
    recipe = recipe_named(f"addition-{scheme}-paper")
    assert recipe.scheme == expected
    assert recipe.sizes == Sizes(2, 2, 128, mlp_ratio=3, dropout=0.0)
    assert recipe.optimiser == AdamW(1e-3, 0.0, 2000, beta2=0.95, weight_decay=0.01, ema=None)
    assert recipe.selection == "last"
    assert recipe.task.preset_name() == "paper-carry"


@pytest.mark.parametrize("name", STUDY)
def test_runs_watch_a_natural_slice_and_the_hard_tail(name: str) -> None:
    """Two sets that differ in difficulty; the natural one is of its own where the study's probe is one tier."""
    expected = {
        "addition": {"probe": ("test", ("natural", 10_000)), "hard": ("sweep", ("chain>=28", 500))},
        "maze": {"probe": ("test", ("natural", 5000)), "hard": ("sweep", ("corridor>=30", 100))},
        "listops": {"probe": ("probe", ("all", 5000)), "hard": ("sweep", ("depth=5", 500))},
        "countdown": {"probe": ("test", ("heldout=1", 1000)), "hard": ("sweep", ("heldout=1,m=1-3", 500))},
        "sudoku": {
            "probe": ("test", ("tier=hard", 500)),
            "hard": ("sweep", ("tier=top1pct", 200)),
            "natural": ("test", ("natural", 200)),
        },
    }[name.removesuffix("-large")]
    recipe = recipe_named(f"{name}-random")
    assert recipe.watch.parts(recipe.task) == expected


def test_recorded_runs_are_of_these_recipes() -> None:
    """A recipe that changes makes strangers of the runs that it was: they could neither go on nor be compared."""
    found = sorted(Path(__file__).parents[1].glob("results*/*/recipe.json"))
    assert found
    for path in found:
        held = json.loads(path.read_text())
        arm, _, file = held["fields"]["name"].partition(ON)  # a run that was set aside has another folder
        (entry,) = entries_named([f"{arm}-s{held['fields']['seed']}"])
        entry = entry.on(Path(f"{file}.npz")) if file else entry
        assert differences(held, entry.recipe.as_json()) == [], path.parent.name


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Watch(log_every=0), "log_every is 0"),
        (lambda: Watch(save_every=0), "save_every is 0"),
        (lambda: Watch(eval_every=-1), "eval_every is -1"),
        (lambda: Watch(gen_every=-1), "gen_every is -1; it must be at least 0"),
        (lambda: Watch(decoded=0), "decoded is 0"),
        (lambda: AdamW(beta2=1.0), "beta2 is 1.0; it must be at least 0 and below 1"),
        (lambda: AdamW(weight_decay=-0.1), "weight_decay"),
        (lambda: AdamW(clip=-1.0), "clip is"),
        (lambda: AdamW(floor=1.0), "learning rate"),
        (lambda: AdamW(ema=1.0), "ema is"),
        (lambda: AdamW(weight_decay=nan), "weight_decay"),
        (lambda: AdamW(clip=nan), "clip is"),
        (lambda: AdamW(lr=inf), "lr is inf"),
        (lambda: Papl(tau=0.0), "tau"),
        (lambda: Papl(tau=nan), "tau"),
        (lambda: Papl(alpha=-1.0), "alpha"),
        (lambda: Focal(gamma=-1.0), "gamma"),
        (lambda: replace(recipe_named("addition-random"), seed=-1), "seed is -1"),
        (lambda: replace(recipe_named("addition-random"), seed=1 << 64), "below 2"),
        (lambda: replace(recipe_named("addition-random"), steps=1 << 70), "between -2"),
        (lambda: replace(recipe_named("addition-random"), precision="fp16"), "'fp32', 'tf32', 'bf16'"),  # type: ignore[arg-type]
        (lambda: Puma(law="evn"), "Puma: law is 'evn'"),  # type: ignore[arg-type]
        (lambda: Fixed(1 << 70), "Fixed: count"),
        (lambda: Fixed(0), "at least 1"),
        (lambda: Ramp(5, 3), "must not decrease"),
        (lambda: Mixture(Mixture(Random(), Random()), Random()), "must not be mixtures themselves"),
    ],
)
def test_fields_that_make_no_sense(make: Any, sentence: str) -> None:
    with pytest.raises(HardtailError, match=sentence):
        make()


def test_fields_whose_types_only_a_checker_knows_are_let_be() -> None:
    """A package of someone else's may import them for its type checker alone."""

    @dataclass(frozen=True)
    class Foreign(Random):
        table: "OnlyForCheckers" = 3  # type: ignore[name-defined]  # noqa: F821

    assert replace(recipe_named("addition-random"), scheme=Foreign()).scheme == Foreign()


def test_a_dry_run_shows_the_cost_and_writes_nothing(tmp_path: Any) -> None:
    """Parameters of docs/study.md §1.3 at MLP ratio 4; any field is a flag, the scheme's too."""
    words = ["maze-random", "--dry-run", "--scheme.weighting", "batch", "--batch", "128"]
    done = subprocess.run(
        [sys.executable, "-m", "hardtail", "train", *words], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    for part in ("1,507,968 parameters", "GFLOP a step", "GB of memory", "50,000 steps: about", "weighting='batch'"):
        assert part in done.stdout
    assert not list(tmp_path.iterdir())


TIMED: dict[str, dict[Precision, float]] = {
    "addition": {"fp32": 2.15, "tf32": 1.11, "bf16": 0.696},
    "maze": {"fp32": 91.3, "tf32": 37.1, "bf16": 15.4},
    "listops": {"fp32": 13.3, "tf32": 5.47, "bf16": 2.98},
    "countdown": {"fp32": 52.5, "tf32": 14.8, "bf16": 8.20},
    "sudoku": {"fp32": 51.8, "tf32": 15.6, "bf16": 8.10},
}
"""Milliseconds of a step on the H200, dropout as in the recipe (docs/performance.md)."""


@pytest.mark.parametrize("name", TIMED)
def test_a_dry_run_is_right_to_a_factor_of_two(name: str) -> None:
    for precision, milliseconds in TIMED[name].items():
        recipe = replace(recipe_named(f"{name}-random"), precision=precision)
        assert 0.5 < estimate(recipe).gpu_seconds / recipe.steps * 1000 / milliseconds < 2, precision
