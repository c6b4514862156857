"""A diagnosis as it is recorded: a line of `diagnoses.jsonl`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from hardtail.core.records import Count, Head, Positive, Share, read_jsonl
from hardtail.measuring.diagnosis.by_stratum import StratumResult
from hardtail.measuring.diagnosis.cells import WorstCell
from hardtail.measuring.diagnosis.checks import Checks
from hardtail.measuring.diagnosis.coverage import Gap
from hardtail.measuring.diagnosis.cross import Cross
from hardtail.measuring.diagnosis.order import WritingOrder
from hardtail.measuring.diagnosis.readiness import Readiness
from hardtail.tasks.named import kind_named, profile_of_file
from hardtail.tasks.parts import Profile

if TYPE_CHECKING:
    AnyProfile = Profile | Mapping[str, Any] | None
else:
    AnyProfile = object  # msgspec knows no union of a class with others; `_typed_profile` makes it what it is


@dataclass(frozen=True)
class Result:
    """How many answers and cells of a decode were right."""

    instances: Positive
    exact: Count | None = None
    exact_match: Share | None = None
    cell_accuracy: Share | None = None
    cells_mostly_wrong: Count | None = None
    worst_cells: tuple[WorstCell, ...] = ()


@dataclass(frozen=True)
class FirstWrong:
    """The first wrong commits of failures, of `all` instances and by stratum."""

    by_stratum: Mapping[str, StratumResult]


@dataclass(frozen=True)
class Crossed:
    """Which instances two policies solved, of `all` and by stratum."""

    first: str
    second: str
    strata: Mapping[str, Cross]


class Diagnosis(Head, frozen=True, kw_only=True, tag="diagnosis"):
    """What a decode shows; None if it was not measured, or not yet recorded at the time."""

    strata: tuple[str, ...]
    result: Result
    readiness: Readiness
    first_wrong: FirstWrong | None = None
    coverage: Gap | None = None
    profile: AnyProfile = None
    """What is specific to the task in its wrong commits: its `profile_type`, or JSON if the task is not registered."""
    cross: Crossed | None = None
    checks: Checks | None = None
    """What became of commits that were hidden and written again; None if there were none."""
    order: WritingOrder | None = None
    """How much like reading the cells were written; None in records that are older than this."""

    def number(self, path: Sequence[str]) -> float | None:
        """The number at a path such as `("readiness", "accuracy", "ready", "commits")`; None if there is none."""
        value: Any = self
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
        return float(value) if isinstance(value, int | float) else None


def read_diagnoses(path: Path) -> list[Diagnosis]:
    """The lines of a `diagnoses.jsonl`, none if there is no such file."""
    return read_jsonl(path, Diagnosis, _typed_profile)


def _typed_profile(held: dict[str, Any], schema: int) -> dict[str, Any]:
    """The profile in today's form; the profile of a task that is not registered stays as it is."""
    task, profile = held.get("task"), held.get("profile")
    own = kind_named(task) if isinstance(task, str) else None
    kind = own.profile_type() if own else None
    if kind is None or profile is None:
        return held
    renamed = profile_of_file(task, profile) if schema == 1 else profile
    return held | {"profile": msgspec.convert(renamed, kind)}
