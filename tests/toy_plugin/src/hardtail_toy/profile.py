"""Where running parities go wrong."""

from collections.abc import Mapping
from dataclasses import dataclass

from hardtail.core.types import Trace
from hardtail.tasks.base import Task
from hardtail.traces.commits import Groups, Readings, Timing, count, readings_of, wrong_cells


@dataclass(frozen=True)
class Profile:
    """The wrong commits of a trace, and what the bits below them do."""

    instances: int
    failures: int
    first_wrong: Readings[Timing]
    role: Groups[Mapping[str, int]]

    @classmethod
    def of(cls, task: Task, trace: Trace) -> "Profile":
        wrong_NA, roles = wrong_cells(trace), task.roles(trace.instances)
        firsts = readings_of(trace, wrong_NA)
        return cls(
            instances=len(trace),
            failures=int((~trace.exact_N).sum()),
            first_wrong=firsts.map(Timing.of),
            role=Groups.of(
                firsts, wrong_NA, trace.instances.scored_NA, lambda at: count(roles.role_NA[at], roles.names)
            ),
        )
