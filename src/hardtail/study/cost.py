"""What a grid costs before it is paid for: GPU-hours from recorded runs, and how long a number of GPUs takes.

Training takes the recorded seconds a step of the nearest runs on a GPU: of the same arm, else of the same task, scheme
and precision; of several the fastest, as others may have shared their GPU. Measuring takes the recorded seconds an
instance of the same task. What was never recorded is counted instead (`training.estimate`), which is good to a factor
of two.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median

from msgspec import Struct, field

from hardtail.core.depots import Depot
from hardtail.core.errors import HardtailError
from hardtail.core.parsing import converted
from hardtail.core.recipes import RecipeFile, recipe_of
from hardtail.core.records import Accuracy
from hardtail.measuring.given import GivenProblems, problems_beside
from hardtail.study.advance import status
from hardtail.study.grids import Entry
from hardtail.study.measure import decodes_of_weights
from hardtail.study.runs import Run
from hardtail.study.store import Store
from hardtail.tasks.base import Task
from hardtail.training.estimate import GPU_RATE, estimate
from hardtail.training.recipe import Recipe

GPU = "NVIDIA"
"""How the name of a device begins that counts as a GPU."""
KINDS_OF_WEIGHTS = 2
"""A finished run is measured with its last and its best weights."""
COUNTED = "an estimate"


@dataclass(frozen=True)
class RunCost:
    """What is left to pay for one run."""

    entry: Entry
    training: float
    """Seconds on one GPU."""
    measuring: float
    source: str
    """The recorded run that the time of a step is from."""

    @property
    def seconds(self) -> float:
        return self.training + self.measuring


@dataclass(frozen=True)
class GridCost:
    """What is left to pay for a grid."""

    runs: tuple[RunCost, ...]
    recorded: int

    @property
    def seconds(self) -> float:
        """On one GPU."""
        return sum(run.seconds for run in self.runs)

    @property
    def longest(self) -> RunCost | None:
        """The run that takes longest: all of them together take at least as long, as none waits for another."""
        return max(self.runs, key=lambda run: run.seconds, default=None)

    def on(self, workers: int) -> float:
        """Seconds until everything is recorded, if each worker takes the next run as soon as it is free."""
        return makespan([run.seconds for run in self.runs], workers)


def grid_cost(
    entries: Sequence[Entry],
    runs: Path | Depot,
    store: Store,
    n: int,
    *,
    ledger_only: bool = False,
    data_file: Path | None = None,
) -> GridCost:
    """The cost of what is not recorded yet, with the options of `advance`; saved steps are not paid again."""
    known, test_file = _Known(store), problems_beside(data_file)
    left = [item for item in status(entries, runs, store) if item.state != "recorded"]
    costs = []

    @cache
    def decodes(task: Task) -> int:
        given = GivenProblems.read(task, test_file) if test_file else None
        return KINDS_OF_WEIGHTS * decodes_of_weights(task, n, given, ledger_only=ledger_only)

    for item in left:
        recipe = item.entry.recipe
        step, source = known.step_seconds(item.entry)
        steps = 0 if item.state == "trained" else recipe.steps - item.step
        costs.append(RunCost(item.entry, step * steps, decodes(recipe.task) * known.decode_seconds(recipe), source))
    return GridCost(tuple(costs), len(entries) - len(left))


def makespan(seconds: Sequence[float], workers: int) -> float:
    """When the last of these ends, if each worker takes the next one as soon as it is free."""
    if workers < 1:
        raise HardtailError(f"the number of GPUs is {workers}; it must be at least 1")
    free = [0.0] * workers
    for duration in seconds:
        heapq.heapreplace(free, free[0] + duration)
    return max(free)


class _Known:
    """What recorded runs say about time."""

    def __init__(self, store: Store) -> None:
        runs = store.runs()
        self.runs = [run for run in runs if run.entry.wall and (run.entry.device or "").startswith(GPU)]

    def step_seconds(self, entry: Entry) -> tuple[float, str]:
        """Seconds of a step, and the run that they are from."""
        same_arm = [run for run in self.runs if run.entry.arm == entry.arm]
        ours = _work_of(RecipeFile.of(entry.recipe.as_json(), entry.name), entry.name)
        alike = [run for run, work in self._works if work == ours and run.task == entry.recipe.task.name]
        rates = [(run.entry.wall / run.entry.steps, run.name) for run in same_arm or alike if run.entry.wall]
        if rates:
            return min(rates)
        return estimate(entry.recipe).gpu_seconds / entry.recipe.steps, COUNTED

    def decode_seconds(self, recipe: Recipe) -> float:
        """Seconds to decode an instance."""
        return self._decoding.get(recipe.task.name) or _counted_decode(recipe)

    @cached_property
    def _works(self) -> list[tuple[Run, "_Work"]]:
        return [(run, _work_of(recipe_of(run.folder), str(run.folder))) for run in self.runs]

    @cached_property
    def _decoding(self) -> dict[str, float]:
        """Seconds to decode an instance of each task: the median of the records."""
        each: dict[str, list[float]] = {}
        for run in self.runs:
            for record in run.evaluations:
                if isinstance(record, Accuracy) and record.wall and (record.device or "").startswith(GPU):
                    each.setdefault(run.task, []).append(record.wall / record.n)
        return {task: median(seconds) for task, seconds in each.items()}


class _CostedScheme(Struct, frozen=True):
    kind: str = field(name="class")

    def __eq__(self, other: object) -> bool:
        """Modules have moved; the name of a scheme has not."""
        return isinstance(other, _CostedScheme) and self.kind.rpartition(":")[2] == other.kind.rpartition(":")[2]


class _SizeFields(Struct, frozen=True):
    layers: int
    heads: int
    width: int
    mlp_ratio: int
    dropout: float


class _Sizes(Struct, frozen=True):
    fields: _SizeFields


class _Work(Struct, frozen=True):
    """The fields of a recipe that the time of a step depends on, apart from the task."""

    scheme: _CostedScheme
    sizes: _Sizes
    batch: int
    precision: str
    accumulate: int = 1
    attention: str = "same"


class _CostedRecipe(Struct, frozen=True):
    fields: _Work


def _work_of(recipe: RecipeFile, where: str) -> _Work:
    return converted(recipe.described, _CostedRecipe, where).fields


def _counted_decode(recipe: Recipe) -> float:
    """Seconds to decode an instance, one forward pass for each cell, by counting operations."""
    forward = estimate(recipe).flops_per_step / 3 / (recipe.batch * recipe.accumulate)
    return recipe.task.answer_len * forward / GPU_RATE["fp32"]
