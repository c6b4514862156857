"""The wrong commit of each failing sum: which cell, in which direction, how surely, how much of the chain known.

Two readings of "the wrong commit": `lowest_index` is the most significant wrong cell of the final answer, as in the
study's own analysis (docs/study.md §7.1); `first_in_time` is the wrong cell that was committed first (of several in
one step the best-scored). Both are commits that stand at the end. Steps count from 0.

Shapes: N instances, S steps, A answer cells, F failing instances that have a wrong commit.
"""

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.addition.solver import ROLES
from hardtail.tasks.base import Task
from hardtail.traces.commits import Commits, Readings, annotation, readings_of, revealed_before, wrong_cells
from hardtail.traces.states import standing

NO_DIGIT = 0
"""A difference that no wrong digit has."""


@dataclass(frozen=True)
class Example:
    """One wrong commit, alone."""

    instance: int
    cell: int
    role: str
    chain: int
    at_chain_msb: bool
    difference: int | None
    """None where the committed token is not a digit."""
    sign: int | None
    prob: float
    gold_rank: int
    masked: float | None
    step: int
    ready: bool


@dataclass(frozen=True)
class WrongCommits:
    """One wrong commit of each failing instance."""

    instance_F: NDArray[np.int64]
    cell_F: NDArray[np.int64]
    role_F: NDArray[np.int8]
    """Index into `ROLES`."""
    at_chain_msb_F: NDArray[np.bool_]
    """Whether it is the cell directly above the longest chain."""
    chain_F: NDArray[np.int64]
    """Length of the longest chain."""
    difference_F: NDArray[np.int64]
    """Committed minus gold digit; `NO_DIGIT` where no digit was committed."""
    prob_F: NDArray[np.float32]
    gold_rank_F: NDArray[np.int32]
    """1: the gold token was the second most probable."""
    masked_F: NDArray[np.float64]
    """The part of the longest chain that was hidden when the commit's step looked; NaN without a chain."""
    step_F: NDArray[np.int64]
    ready_F: NDArray[np.bool_]

    @property
    def sign_F(self) -> NDArray[np.int64]:
        """The difference as a mistaken carry makes it: wrapped to −5 … 5, so that 9 for 0 is −1."""
        difference_F = self.difference_F
        return np.where(
            difference_F > 5, difference_F - 10, np.where(difference_F < -5, difference_F + 10, difference_F)
        )

    def example(self, f: int) -> Example:
        one = {field.name: getattr(self, f"{field.name}_F")[f].item() for field in fields(Example)}
        one["role"] = ROLES[one["role"]]
        if one["difference"] == NO_DIGIT:
            one["difference"] = one["sign"] = None
        return Example(**one | {"masked": None if np.isnan(one["masked"]) else one["masked"]})

    def take(self, index: Array) -> "WrongCommits":
        return WrongCommits(**{name: array[index] for name, array in vars(self).items()})

    def __len__(self) -> int:
        return len(self.instance_F)


def wrong_commits(task: Task, trace: Trace) -> Readings[WrongCommits]:
    """The wrong commit of each failing instance."""
    wrong_NA = wrong_cells(trace) & standing(trace).there_NA
    return readings_of(trace, wrong_NA).map(lambda found: _annotated(task, trace, found))


def _annotated(task: Task, trace: Trace, found: Commits) -> WrongCommits:
    revealed_FA = revealed_before(trace, found)
    failing, cell_F = trace.instances.take(found.row_K), found.cell_K
    at = np.arange(len(found)), cell_F
    chain_FA = chain_cells(task, failing)
    length_F, masked_F = chain_FA.sum(axis=1), np.full(len(found), np.nan)
    np.divide((chain_FA & ~revealed_FA).sum(axis=1), length_F, out=masked_F, where=length_F > 0)
    return WrongCommits(
        instance_F=found.row_K,
        cell_F=cell_F,
        role_F=annotation(task, failing.extras, "role_NA")[at],
        at_chain_msb_F=annotation(task, failing.extras, "chain_msb_N") == cell_F,
        chain_F=length_F,
        difference_F=np.where(found.token_K <= 9, found.token_K.astype(np.int64) - found.gold_K, NO_DIGIT),
        prob_F=found.prob_K,
        gold_rank_F=found.gold_rank_K,
        masked_F=masked_F,
        step_F=found.step_K,
        ready_F=task.ready(failing, revealed_FA)[at],
    )


def chain_cells(task: Task, instances: Instances) -> NDArray[np.bool_]:
    """The cells of the longest chain [N, A], the lowest one where several are."""
    chain_N1 = annotation(task, instances.strata, "chain")[:, None]
    msb_N1 = annotation(task, instances.extras, "chain_msb_N")[:, None].astype(np.int64)
    # Without a cell above it that waits (the sum modulo 10^digits) a chain reaches up to the top digit, answer cell 1.
    top_N1 = np.where(msb_N1 >= 0, msb_N1 + 1, 1)
    cell_A = np.arange(instances.answer_len)
    return (cell_A >= top_N1) & (cell_A < top_N1 + chain_N1)
