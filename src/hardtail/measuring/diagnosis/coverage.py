"""Coverage: the mask states that a decoder visits against those that training saw.

A state is described by the number of hidden cells and their ranks in a logical order: the bins in which training counts
what it sees (`coverage.json` of a run), over the whole of training.

*Rarely trained* is what training saw less than a tenth as often (`RARE`) as uniform masking of the decoded instances
would have: a hidden count uniform on 1 … n, then cells uniform among the n maskable ones. A decoder that commits one
cell per step visits exactly these counts, and random masking (a uniform rate) trains them, so the reference favours no
scheme. Ranks that hardly occur in the training set (deep trees) are rarely trained under any scheme.

Shapes: N instances, A answer cells, K = A + 1 hidden counts, R logical ranks, S steps, T events.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.records import Count, Coverage
from hardtail.core.types import Array, Instances, Trace
from hardtail.traces.states import blocks, hidden_before, visited
from hardtail.traces.summary import share

RARE = 0.1
"""What training saw less often than this share of the reference is rarely trained."""


@dataclass(frozen=True)
class AtCount:
    """The states with one number of hidden cells."""

    hidden: Count
    visited: float
    """Share of the decoder's states."""
    trained: float
    """Share of training's states."""
    rank_distance: float | None
    """Total variation between the ranks of hidden cells in the two; 1 if training has no such state."""


@dataclass(frozen=True)
class Gap:
    """How far a decoder's states are from those of training; every state weighs the same. Distances are total
    variation, ½ Σ |p − q|: 0 the same, 1 nothing in common. Figures of ranks are None if training counted none."""

    states: Count
    order: str | None
    count_distance: float
    """Between the distributions of the hidden count."""
    rank_distance: float | None
    """Between the ranks of hidden cells given the count, mean over visited states."""
    count_and_rank_distance: float | None
    """Between the joint distributions of the count and a hidden cell's rank."""
    rare_by_count: float
    """Share of visited states whose count was rarely trained."""
    rare_by_rank: float | None
    """Share of hidden cells in visited states whose rank was rarely trained at that count."""
    rare_commits: float | None
    """Share of commits at a rank and count that were rarely trained."""
    by_count: tuple[AtCount, ...]
    """The counts that are visited."""


@dataclass(frozen=True)
class Histogram:
    """States by hidden count, and their hidden cells by that count and logical rank."""

    count_K: NDArray[np.int64]
    rank_KR: NDArray[np.int64]

    @classmethod
    def of(cls, coverage: Coverage, whose: str = "the given coverage") -> "Histogram":
        """The counts of a run's `coverage.json`; `whose` names it in errors."""
        held = cls(np.array(coverage.by_count, np.int64), np.array(coverage.by_count_and_rank, np.int64))
        if not held.count_K[1:].sum():
            raise HardtailError(f"{whose} is empty: no training step has been counted")
        return held

    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Distributions of the count, and of the rank given the count (zeros at counts that never occurred)."""
        count_K = self.count_K.astype(np.float64)
        count_K[0] = 0.0  # a state with nothing hidden teaches nothing
        rank_KR = self.rank_KR / np.maximum(self.rank_KR.sum(axis=1, keepdims=True), 1)
        return count_K / max(count_K.sum(), 1.0), rank_KR

    def with_ranks(self, ranks: int) -> "Histogram":
        """The same with more ranks, or with all of them merged into one."""
        if ranks == 1:
            return Histogram(self.count_K, self.rank_KR.sum(axis=1, keepdims=True))
        return Histogram(self.count_K, np.pad(self.rank_KR, ((0, 0), (0, ranks - self.rank_KR.shape[1]))))


def compare(trace: Trace, trained: Histogram, order: str | None = None) -> Gap:
    """A decoder's states against training's; `order` is the logical order that training counted by, if it did."""
    _refuse(trace, trained, order)
    ranked = order is not None and trained.rank_KR.shape[1] > 1
    rank_NA = _ranks(trace.instances, order if ranked else None)
    ranks = max(trained.rank_KR.shape[1], int(rank_NA.max(initial=0)) + 1) if ranked else 1
    trained = trained.with_ranks(ranks)
    seen, commits_KR = _visits(trace, rank_NA, ranks)
    (visited_K, visited_KR), (trained_K, trained_KR) = seen.shares(), trained.shares()
    even_KR = _even(trace.instances.maskable_NA, rank_NA, ranks)
    there_K = visited_K > 0
    rank_distance_K = 0.5 * np.abs(visited_KR - trained_KR).sum(axis=1)
    rank_distance_K[trained_K == 0] = 1.0  # training has no such state
    joint_visited_KR, joint_trained_KR = visited_K[:, None] * visited_KR, trained_K[:, None] * trained_KR
    rare_KR = joint_trained_KR < RARE * even_KR
    return Gap(
        states=int(seen.count_K[1:].sum()),
        order=order if ranked else None,
        count_distance=float(0.5 * np.abs(visited_K - trained_K).sum()),
        rank_distance=float(visited_K @ rank_distance_K) if ranked else None,
        count_and_rank_distance=float(0.5 * np.abs(joint_visited_KR - joint_trained_KR).sum()) if ranked else None,
        rare_by_count=float(visited_K[trained_K < RARE * even_KR.sum(axis=1)].sum()),
        rare_by_rank=float(joint_visited_KR[rare_KR].sum()) if ranked else None,
        rare_commits=share(commits_KR[rare_KR].sum(), commits_KR.sum()) if ranked else None,
        by_count=tuple(
            AtCount(hidden, float(visited_K[hidden]), float(trained_K[hidden]), float(distance) if ranked else None)
            for hidden, distance in enumerate(rank_distance_K)
            if there_K[hidden]
        ),
    )


def visits(trace: Trace, order: str | None = None) -> Histogram:
    """The states that a decoder visits, one for every instance and step, counted as training counts."""
    rank_NA = _ranks(trace.instances, order)
    return _visits(trace, rank_NA, int(rank_NA.max(initial=0)) + 1)[0]


def _visits(trace: Trace, rank_NA: Array, ranks: int) -> tuple[Histogram, NDArray[np.int64]]:
    """Visited states, and commits by count and rank."""
    counts = trace.instances.answer_len + 1
    count_K, rank_KR = np.zeros(counts, np.int64), np.zeros(counts * ranks, np.int64)
    commits_KR = np.zeros(counts * ranks, np.int64)
    start = 0
    for block in blocks(trace):
        rank_of_NA = rank_NA[start : start + len(block)]
        start += len(block)
        hidden_NSA = hidden_before(block) & visited(block)[:, :, None]
        hidden_NS = np.count_nonzero(hidden_NSA, axis=2)
        count_K += np.bincount(hidden_NS[visited(block)], minlength=counts)
        row_H, step_H, cell_H = np.nonzero(hidden_NSA)
        bin_H = hidden_NS[row_H, step_H] * ranks + rank_of_NA[row_H, cell_H]
        rank_KR += np.bincount(bin_H, minlength=counts * ranks)
        row_H, event_H = np.nonzero(block.commit_NT)
        rank_H = rank_of_NA[row_H, block.cell_NT[row_H, event_H]]
        bin_H = hidden_NS[row_H, block.step_NT[row_H, event_H]] * ranks + rank_H
        commits_KR += np.bincount(bin_H, minlength=counts * ranks)
    return Histogram(count_K, rank_KR.reshape(counts, ranks)), commits_KR.reshape(counts, ranks)


def _even(maskable_NA: NDArray[np.bool_], rank_NA: Array, ranks: int) -> NDArray[np.float64]:
    """What uniform masking of these instances would give: P(count, rank of a hidden cell), mean over instances."""
    n, cells = maskable_NA.shape
    size_N = maskable_NA.sum(axis=1)
    row_H, cell_H = np.nonzero(maskable_NA)
    weight_H = 1.0 / size_N[row_H].astype(np.float64) ** 2  # 1/n for the count, 1/n for the cell
    bin_H = size_N[row_H] * ranks + rank_NA[row_H, cell_H]
    by_size_KR = np.bincount(bin_H, weights=weight_H, minlength=(cells + 1) * ranks).reshape(cells + 1, ranks)
    # An instance with n cells has every count up to n.
    even_KR = np.cumsum(by_size_KR[::-1], axis=0)[::-1] / n
    even_KR[0] = 0.0
    return even_KR


def _ranks(instances: Instances, order: str | None) -> NDArray[np.int64]:
    """Ranks as training bins them: all 0 without an order."""
    if order is None:
        return np.zeros(instances.maskable_NA.shape, dtype=np.int64)
    return np.maximum(instances.orders[order].astype(np.int64), 0)


def _refuse(trace: Trace, trained: Histogram, order: str | None) -> None:
    cells = trace.instances.answer_len
    if len(trained.count_K) != cells + 1:
        raise HardtailError(
            f"the coverage has {len(trained.count_K) - 1} answer cells, but the trace has {cells}; "
            "give the coverage of the run that was decoded"
        )
    if order is not None and order not in trace.instances.orders:
        known = ", ".join(trace.instances.orders) or "none"
        raise HardtailError(f"the trace has no order {order!r}; its orders are: {known}")
