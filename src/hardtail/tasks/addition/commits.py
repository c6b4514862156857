"""The wrong commit of each failing sum: which cell, in which direction, how sure, how much of the chain was known.

Shapes: N instances, A answer cells, K failing instances that have a wrong commit.
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
    """One wrong commit, as profiles and figures show it."""

    instance: int
    cell: int
    role: str
    chain: int
    at_chain_msb: bool
    difference: int | None
    """None where the committed token is not a digit."""
    sign: int | None
    prob: float | None
    gold_rank: int | None
    masked: float | None
    step: int
    ready: bool


@dataclass(frozen=True)
class WrongCommits(Commits):
    """One wrong commit of each failing sum, and how it relates to the sum's longest carry chain."""

    role_K: NDArray[np.int8]
    """Index into `ROLES`."""
    at_chain_msb_K: NDArray[np.bool_]
    """Whether it is the cell directly above the chain."""
    chain_K: NDArray[np.int64]
    """Length of the chain."""
    masked_K: NDArray[np.float64]
    """The part of the chain that was hidden when the commit's step looked; NaN without a chain."""
    ready_K: NDArray[np.bool_]

    @property
    def difference_K(self) -> NDArray[np.int64]:
        """Committed minus gold digit; `NO_DIGIT` where no digit was committed."""
        return np.where(self.token_K <= 9, self.token_K.astype(np.int64) - self.gold_K, NO_DIGIT)

    @property
    def sign_K(self) -> NDArray[np.int64]:
        """The difference as a mistaken carry makes it: wrapped to −5 … 5, so that 9 for 0 is −1."""
        difference_K = self.difference_K
        return difference_K - 10 * np.sign(difference_K) * (np.abs(difference_K) > 5)

    def example(self, k: int) -> Example:
        names = [field.name for field in fields(Example)[1:]]
        one = {"instance": self.row_K[k].item()} | {name: getattr(self, f"{name}_K")[k].item() for name in names}
        one["role"] = ROLES[one["role"]]
        if one["difference"] == NO_DIGIT:
            one["difference"] = one["sign"] = None
        if one["gold_rank"] < 0:
            one["gold_rank"] = None
        return Example(**one | {name: None if np.isnan(one[name]) else one[name] for name in ("prob", "masked")})

    def take(self, index: Array) -> "WrongCommits":
        return WrongCommits(**{name: array[index] for name, array in vars(self).items()})


def wrong_commits(task: Task, trace: Trace) -> Readings[WrongCommits]:
    """The wrong commit of each failing instance, among the commits that stand at the end."""
    wrong_NA = wrong_cells(trace) & standing(trace).there_NA
    return readings_of(trace, wrong_NA).map(lambda found: _annotated(task, trace, found))


def _annotated(task: Task, trace: Trace, found: Commits) -> WrongCommits:
    revealed_KA = revealed_before(trace, found)
    failing = trace.instances.take(found.row_K)
    at = np.arange(len(found)), found.cell_K
    chain_KA = chain_cells(task, failing)
    length_K, masked_K = chain_KA.sum(axis=1), np.full(len(found), np.nan)
    np.divide((chain_KA & ~revealed_KA).sum(axis=1), length_K, out=masked_K, where=length_K > 0)
    return WrongCommits(
        **vars(found),
        role_K=annotation(task, failing.extras, "role_NA")[at],
        at_chain_msb_K=annotation(task, failing.extras, "chain_msb_N") == found.cell_K,
        chain_K=length_K,
        masked_K=masked_K,
        ready_K=task.ready(failing, revealed_KA)[at],
    )


def chain_cells(task: Task, instances: Instances) -> NDArray[np.bool_]:
    """The cells of the longest chain [N, A]; of the lowest chain where several are longest."""
    chain_N1 = annotation(task, instances.strata, "chain")[:, None]
    msb_N1 = annotation(task, instances.extras, "chain_msb_N")[:, None].astype(np.int64)
    # In a sum modulo 10^digits no cell waits above a chain that reaches the top digit, which is answer cell 1.
    top_N1 = np.where(msb_N1 >= 0, msb_N1 + 1, 1)
    cell_A = np.arange(instances.answer_len)
    return (cell_A >= top_N1) & (cell_A < top_N1 + chain_N1)
