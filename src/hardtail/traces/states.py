"""A trace as the one commit of each cell that stands at the end, and as what was hidden at each step.

Shapes: N instances, A answer cells, T events, S steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Trace

_BLOCK = 1 << 23
"""Elements of the largest array that is built at once."""


@dataclass(frozen=True)
class Standing:
    """The commit of each cell that stands at the end, the last one where a policy remasked the cell."""

    there_NA: NDArray[np.bool_]
    """False for cells that were never hidden or are hidden at the end; their other values mean nothing."""
    event_NA: NDArray[np.int64]
    """The column of the trace's events; 0 where there is none."""
    step_NA: NDArray[np.int64]
    """The forward pass, from 0."""
    right_NA: NDArray[np.bool_]
    prob_NA: NDArray[np.float32]


def standing(trace: Trace) -> Standing:
    last_NA = np.full(trace.answer_NA.shape, -1, dtype=np.int64)
    row_K, event_K = np.nonzero(trace.happened_NT)
    np.maximum.at(last_NA, (row_K, trace.cell_NT[row_K, event_K]), event_K)
    event_NA = np.maximum(last_NA, 0)
    if not trace.cell_NT.shape[1]:
        nothing_NA = np.zeros(last_NA.shape, dtype=np.bool_)
        return Standing(nothing_NA, event_NA, event_NA, nothing_NA, nothing_NA.astype(np.float32))
    return Standing(
        there_NA=(last_NA >= 0) & np.take_along_axis(trace.commit_NT, event_NA, axis=1),
        event_NA=event_NA,
        step_NA=np.take_along_axis(trace.step_NT, event_NA, axis=1).astype(np.int64),
        right_NA=np.take_along_axis(trace.token_NT == trace.gold_NT, event_NA, axis=1),
        prob_NA=np.take_along_axis(trace.prob_NT, event_NA, axis=1),
    )


def steps_of(trace: Trace) -> int:
    """S: the most forward passes that an instance took."""
    return int(trace.steps_N.max(initial=0))


def visited(trace: Trace) -> NDArray[np.bool_]:
    """Which steps each instance took [N, S]: those that wrote something."""
    visited_NS = np.zeros((len(trace), steps_of(trace)), dtype=np.bool_)
    row_K, event_K = np.nonzero(trace.happened_NT)
    visited_NS[row_K, trace.step_NT[row_K, event_K]] = True
    return visited_NS


def hidden_before(trace: Trace) -> NDArray[np.bool_]:
    """Which cells were hidden when each step looked [N, S, A]; the next step sees what a step wrote."""
    hidden_NSA = np.zeros((len(trace), steps_of(trace), trace.instances.answer_len), dtype=np.bool_)
    wrote_NSA, hid_NSA = np.zeros_like(hidden_NSA), np.zeros_like(hidden_NSA)
    row_K, event_K = np.nonzero(trace.happened_NT)
    at = row_K, trace.step_NT[row_K, event_K], trace.cell_NT[row_K, event_K]
    wrote_NSA[at], hid_NSA[at] = True, ~trace.commit_NT[row_K, event_K]  # the last event of a cell in a step counts
    now_NA = trace.instances.maskable_NA
    for step in range(hidden_NSA.shape[1]):
        hidden_NSA[:, step] = now_NA
        now_NA = np.where(wrote_NSA[:, step], hid_NSA[:, step], now_NA)
    return hidden_NSA


def wrong_before(trace: Trace) -> NDArray[np.bool_]:
    """Which cells showed a wrong token when each step looked [N, S, A]."""
    shape = len(trace), steps_of(trace), trace.instances.answer_len
    wrote_NSA, wrong_NSA = np.zeros(shape, dtype=np.bool_), np.zeros(shape, dtype=np.bool_)
    row_K, event_K = np.nonzero(trace.commit_NT)
    at = row_K, trace.step_NT[row_K, event_K], trace.cell_NT[row_K, event_K]
    wrote_NSA[at], wrong_NSA[at] = True, trace.wrong_NT[row_K, event_K]
    now_NA = np.zeros_like(trace.instances.maskable_NA)
    for step in range(shape[1]):
        after_NA = np.where(wrote_NSA[:, step], wrong_NSA[:, step], now_NA)
        wrong_NSA[:, step], now_NA = now_NA, after_NA
    return wrong_NSA & ~hidden_before(trace)


def blocks(trace: Trace) -> Iterator[Trace]:
    """The trace in parts whose states by step and pairs of cells fit in memory."""
    cells = trace.instances.answer_len + 1
    rows = max(1, _BLOCK // (cells * max(cells, steps_of(trace))))
    for start in range(0, len(trace), rows):
        yield trace.take(slice(start, start + rows))
