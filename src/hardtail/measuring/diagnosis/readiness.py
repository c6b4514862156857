"""Readiness: did the decoder commit cells before their prerequisites were known, and did that cost accuracy?

All figures cover the commits that stand at the end, in scored cells (ListOps: the trace without its padding). A cell
waits only for cells that are hidden at some time.

Shapes: N instances, A answer cells, K commits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.records import Count, Share
from hardtail.core.types import Array, Trace
from hardtail.measuring.diagnosis.kendall import rank_correlation
from hardtail.measuring.diagnosis.prerequisites import Missing, prerequisites
from hardtail.tasks.base import Task
from hardtail.traces.calibration import Calibration, calibration
from hardtail.traces.states import blocks, standing
from hardtail.traces.summary import mean, median, share


@dataclass(frozen=True)
class Right:
    """How many of some commits are right."""

    commits: Count
    right: Count
    accuracy: Share | None

    def __post_init__(self) -> None:
        if self.right > self.commits:
            raise ValueError(f"{self.right} right commits are more than the {self.commits} commits")


@dataclass(frozen=True)
class Ready:
    """Commits made after everything the cell waits for, by whether all of that was right."""

    prerequisites_right: Right
    prerequisite_wrong: Right


@dataclass(frozen=True)
class Early:
    """Commits made before all their prerequisites of one kind were revealed; means are over these commits."""

    commits: Count
    share: Share | None
    """Their share of the commits that have prerequisites of this kind."""
    missing_mean: float | None
    missing_fraction_mean: float | None
    steps_until_last_mean: float | None
    """Steps until the last missing one was committed; 0 is in the same step."""
    steps_until_last_median: float | None


@dataclass(frozen=True)
class Agreement:
    """How the order of commits agrees with a logical order: 1 along it, 0 no relation, −1 against it."""

    tau_b: float | None
    """Kendall's, mean over instances; even along an order with ties it is below 1, because steps break the ties."""
    gamma: float | None
    """Goodman and Kruskal's, mean over instances: it leaves out tied pairs, so that along any order it is 1."""
    instances: int
    """Instances in which both are defined: neither all steps nor all ranks are equal."""


@dataclass(frozen=True)
class Readiness:
    """What a trace says about commits and their prerequisites."""

    commits: Count
    dependent: Count
    """Commits in cells that wait for something."""
    premature: Count
    """Commits made while the cell was not ready."""
    premature_share: Share | None
    premature_share_of_dependent: Share | None
    accuracy: Mapping[str, Right]
    """`free` cells wait for nothing; `ready` and `unready` are the others."""
    early: Mapping[str, Early]
    """By direct parents and by all ancestors; empty if the task has no static parents."""
    agreement: Mapping[str, Agreement]
    """By name of the logical order."""
    calibration: Mapping[str, Calibration]
    """Of all commits, and of `free`, `ready` and `unready` ones."""
    ready: Ready | None = None
    """The `ready` commits by what they were based on; None in records that are older than this split."""


def readiness(task: Task, trace: Trace) -> Readiness:
    """The readiness profile of a trace."""
    made = prerequisites(task, trace)
    counts_NA = made.standing.there_NA & trace.instances.scored_NA
    right_K, prob_K = made.standing.right_NA[counts_NA], made.standing.prob_NA[counts_NA]
    ready_K, dependent_K = made.ready_NA[counts_NA], made.dependent_NA[counts_NA]
    sound_K = made.sound_NA[counts_NA]
    groups = {"free": ready_K & ~dependent_K, "ready": ready_K & dependent_K, "unready": ~ready_K}

    def right(in_K: NDArray[np.bool_]) -> Right:
        return Right(int(in_K.sum()), int(right_K[in_K].sum()), mean(right_K[in_K]))

    unready = int((~ready_K).sum())
    kinds = {"parents": made.parents, "ancestors": made.ancestors} if made.parents.needed_NA.any() else {}
    return Readiness(
        commits=ready_K.size,
        dependent=int(dependent_K.sum()),
        premature=unready,
        premature_share=share(unready, ready_K.size),
        premature_share_of_dependent=share(unready, dependent_K.sum()),
        accuracy={name: right(in_K) for name, in_K in groups.items()},
        early={name: _early(missing, counts_NA) for name, missing in kinds.items()},
        agreement=agreement(trace),
        calibration={
            "all": calibration(prob_K, right_K),
            **{name: calibration(prob_K[in_K], right_K[in_K]) for name, in_K in groups.items()},
        },
        ready=Ready(right(groups["ready"] & sound_K), right(groups["ready"] & ~sound_K)),
    )


def _early(missing: Missing, counts_NA: NDArray[np.bool_]) -> Early:
    needed_K, missing_K, wait_K = (
        array[counts_NA] for array in (missing.needed_NA, missing.missing_NA, missing.wait_NA)
    )
    early_K = missing_K > 0
    return Early(
        commits=int(early_K.sum()),
        share=share(early_K.sum(), (needed_K > 0).sum()),
        missing_mean=mean(missing_K[early_K]),
        missing_fraction_mean=mean(missing_K[early_K] / needed_K[early_K]),
        steps_until_last_mean=mean(wait_K[early_K]),
        steps_until_last_median=median(wait_K[early_K]),
    )


def agreement(trace: Trace) -> dict[str, Agreement]:
    """Rank correlation with each logical order of the instances, over the scored cells."""
    parts: dict[str, list[tuple[NDArray[np.float64], ...]]] = {name: [] for name in trace.instances.orders}
    for block in blocks(trace):
        held = standing(block)
        counts_NA = held.there_NA & block.instances.scored_NA
        for name, rank_NA in block.instances.orders.items():
            parts[name].append(rank_correlation(held.step_NA, rank_NA, counts_NA))
    return {name: mean_agreement(*map(np.concatenate, zip(*found, strict=True))) for name, found in parts.items()}


def mean_agreement(tau_N: Array, gamma_N: Array) -> Agreement:
    return Agreement(mean(tau_N), mean(gamma_N), int((~np.isnan(tau_N)).sum()))
