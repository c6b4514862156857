"""The figures to compare between strata: how many instances failed, and what their first wrong commits were.

The first wrong commit of a failure is the earliest of those that stand at the end. Some of Countdown's inexact answers
are valid: in these it is where the chain departs from gold.

Shapes: N instances, K failures that have a wrong commit.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.records import Count, Share
from hardtail.core.types import Trace
from hardtail.measuring.diagnosis.cross import with_all
from hardtail.tasks.base import Task
from hardtail.traces.commits import Commits, first_in_time, gold_second, revealed_before, wrong_cells
from hardtail.traces.states import standing
from hardtail.traces.summary import mean, median


@dataclass(frozen=True)
class StratumResult:
    """Exact match on some instances, and the first wrong commits of those that failed; None if none did."""

    n: Count
    failures: Count
    exact_match: Share | None
    valid: Share | None
    """Answers that solve the problem, gold or not."""
    unready: Share | None
    """Share of the first wrong commits that were made before everything the cell waits for was revealed."""
    prob: float | None
    """Mean probability of their tokens."""
    gold_second: float | None
    """Share of them in which only one token was more probable than the gold one."""
    step: float | None
    """Their median step, from 0."""


def by_stratum(
    task: Task, trace: Trace, groups: Mapping[str, NDArray[np.bool_]] | None = None
) -> dict[str, StratumResult]:
    """The figures of `all` instances, then of each group of them."""
    first = first_in_time(trace, wrong_cells(trace) & standing(trace).there_NA)
    ready_K = _ready(task, trace, first)
    exact_N, valid_N = trace.exact_N, task.check(trace.instances, trace.answer_NA)

    def of(inside_N: NDArray[np.bool_]) -> StratumResult:
        inside_K = inside_N[first.row_K]
        return StratumResult(
            n=int(inside_N.sum()),
            failures=int((inside_N & ~exact_N).sum()),
            exact_match=mean(exact_N[inside_N]),
            valid=mean(valid_N[inside_N]),
            unready=mean(~ready_K[inside_K]),
            prob=mean(first.prob_K[inside_K]),
            gold_second=gold_second(first.gold_rank_K[inside_K]),
            step=median(first.step_K[inside_K]),
        )

    return {name: of(inside_N) for name, inside_N in with_all(groups, len(trace)).items()}


def _ready(task: Task, trace: Trace, commits: Commits) -> NDArray[np.bool_]:
    """Whether each commit's cell was ready in the state that its step saw."""
    ready_KA = task.ready(trace.instances.take(commits.row_K), revealed_before(trace, commits))
    return ready_KA[np.arange(len(commits)), commits.cell_K]
