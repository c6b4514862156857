"""What a run left behind, whether it is recorded under `results/` or in a run directory of its own.

Which records count: one cell a step, no sampling, every token allowed, in fp32, which is how the paper decodes. Of
several records of one run about the same thing that of the latest weights counts, then the one with most instances, of
equals the last.

Which diagnosis counts: one that covers every stratum that a run of the study is diagnosed on (`diagnosed_strata`), one
of exactly these before one of more. Diagnoses of some strata each are not put together: they hold medians, which cannot
be pooled.
"""

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from hardtail.core.errors import HardtailError
from hardtail.core.records import (
    Accuracy,
    Coverage,
    Finished,
    Head,
    LogLine,
    Measurement,
    Positive,
    RunEntry,
    read_json,
    read_jsonl,
    read_measurements,
)
from hardtail.core.registry import TASKS
from hardtail.measuring.diagnosis.record import Diagnosis, read_diagnoses
from hardtail.tasks.named import task_from_json

R = TypeVar("R", bound=Head)
K = TypeVar("K", bound=Hashable)
FINISHED = "finished.json"


class _Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """What of a recipe says who its run is."""

    task: dict[str, Any]
    seed: int
    steps: Positive
    name: str = ""


class _RecipeFile(msgspec.Struct, frozen=True):
    fields: _Recipe


@dataclass(frozen=True)
class Run:
    """A folder of a run and the entry that says who it is; its files are read when they are asked for."""

    entry: RunEntry
    folder: Path

    @classmethod
    def of_folder(cls, folder: Path) -> "Run":
        """A run directory that `hardtail train` wrote, finished or not."""
        recipe = read_json(folder / "recipe.json", _RecipeFile)
        if recipe is None:
            raise HardtailError(f"{folder} is no run directory: it has no recipe.json")
        said, ended, name = recipe.fields, read_json(folder / FINISHED, Finished), folder.resolve().name
        entry = RunEntry(
            name=name, arm=said.name or name, task=task_from_json(said.task).name, seed=said.seed, steps=said.steps
        )
        if ended is not None:
            facts = {key: getattr(ended, key) for key in ("commit", "device", "wall", "how", "patience")}
            entry = msgspec.structs.replace(entry, **facts, steps=ended.step if ended.patience else said.steps)
        return cls(entry, folder)

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def task(self) -> str:
        return self.entry.task

    @property
    def seed(self) -> int:
        return self.entry.seed

    @property
    def arm(self) -> str:
        """The arm without the task's name: what tells the runs of one task apart but for their seeds."""
        return self.entry.arm.removeprefix(f"{self.task}-")

    @cached_property
    def log(self) -> list[LogLine]:
        """What the run measured of itself."""
        return read_jsonl(self.folder / "log.jsonl", LogLine)

    @cached_property
    def evaluations(self) -> list[Measurement]:
        return read_measurements(self.folder / "evaluations.jsonl")

    @cached_property
    def diagnoses(self) -> list[Diagnosis]:
        return read_diagnoses(self.folder / "diagnoses.jsonl")

    @cached_property
    def coverage(self) -> Coverage | None:
        """The mask states that it was trained on."""
        return read_json(self.folder / "coverage.json", Coverage)

    @cached_property
    def measured(self) -> dict[tuple[type[Measurement], str, str, str | None], Measurement]:
        """The measurements that count, by kind, policy, stratum and kind of weights."""
        plain = [record for record in self.evaluations if record.plainly_decoded]
        return largest(plain, lambda of: (type(of), of.policy, of.stratum, of.checkpoint), lambda of: of.n)

    @property
    def accuracies(self) -> list[Accuracy]:
        return [record for record in self.measured.values() if isinstance(record, Accuracy)]

    @cached_property
    def explained(self) -> dict[tuple[str, str | None], Diagnosis]:
        """The diagnoses that count, by policy and kind of weights."""
        plain = [record for record in self.diagnoses if record.plainly_decoded]
        wanted = diagnosed_strata(self.task)
        exact = [record for record in plain if set(record.strata) == set(wanted)]
        covering = [record for record in plain if self.covers(record)]
        found: dict[tuple[str, str | None], Diagnosis] = {}
        for held in (plain, covering, exact):
            found |= largest(held, lambda of: (of.policy, of.checkpoint), lambda of: of.result.instances)
        return found

    def covers(self, diagnosis: Diagnosis) -> bool:
        """Whether a diagnosis is of all strata that claims are about."""
        return set(diagnosis.strata) >= set(diagnosed_strata(self.task))


def largest(records: Iterable[R], key: Callable[[R], K], size: Callable[[R], int]) -> dict[K, R]:
    """One record for each key: of the latest weights the largest, of equals the last."""
    found: dict[K, R] = {}
    for record in records:
        at = key(record)
        if at not in found or _rank(record, size) >= _rank(found[at], size):
            found[at] = record
    return found


def _rank(record: R, size: Callable[[R], int]) -> tuple[int, int]:
    return record.step or 0, size(record)


@cache
def diagnosed_strata(task: str) -> tuple[str, ...]:
    """The strata that a run of the study is diagnosed on; none of a task that is not registered."""
    if task not in TASKS.names():
        return ()
    kind = TASKS.load(task)()
    own = [part.stratum for part in kind.splits().get("diagnosis", ())]
    return tuple(own or (str(kind.stratum(name)) for name in kind.strata()))
