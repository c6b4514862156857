"""What stood, what was hidden, and when: a trace as states by step and as the one commit of each cell that lasted.

Shapes: N instances, A answer cells, T events, S steps.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Trace

_BLOCK = 1 << 23
"""Elements of the largest array that is made at once."""


@dataclass(frozen=True)
class Standing:
    """Of each cell the commit that stands at the end: with a policy that remasks, the last of several.

    A cell that was never hidden, or that is hidden at the end, has none; its other values mean nothing.
    """

    there_NA: NDArray[np.bool_]
    event_NA: NDArray[np.int64]
    """The column of the trace's events; 0 where there is none."""
    step_NA: NDArray[np.int64]
    """The forward pass it came from, from 0."""
    right_NA: NDArray[np.bool_]
    prob_NA: NDArray[np.float32]
    """The probability of the committed token: the largest of any token, where decoding is greedy."""


def standing(trace: Trace) -> Standing:
    """The commits of a trace that stand at the end."""
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
    """S: the forward passes of the instance that took most."""
    return int(np.max(trace.step_NT, where=trace.happened_NT, initial=-1)) + 1


def visited(trace: Trace) -> NDArray[np.bool_]:
    """Which steps each instance took [N, S]: those that wrote something."""
    visited_NS = np.zeros((len(trace), steps_of(trace)), dtype=np.bool_)
    row_K, event_K = np.nonzero(trace.happened_NT)
    visited_NS[row_K, trace.step_NT[row_K, event_K]] = True
    return visited_NS


def hidden_before(trace: Trace) -> NDArray[np.bool_]:
    """Which cells were hidden when each step looked [N, S, A]; what a step itself wrote shows in the next one."""
    hidden_NSA = np.zeros((len(trace), steps_of(trace), trace.instances.answer_len), dtype=np.bool_)
    shown_NSA, again_NSA = np.zeros_like(hidden_NSA), np.zeros_like(hidden_NSA)
    for wrote_NT, into_NSA in ((trace.commit_NT, shown_NSA), (trace.happened_NT & ~trace.commit_NT, again_NSA)):
        row_K, event_K = np.nonzero(wrote_NT)
        into_NSA[row_K, trace.step_NT[row_K, event_K], trace.cell_NT[row_K, event_K]] = True
    now_NA = trace.instances.maskable_NA
    for step in range(hidden_NSA.shape[1]):
        hidden_NSA[:, step] = now_NA
        now_NA = (now_NA & ~shown_NSA[:, step]) | again_NSA[:, step]  # a step commits first and remasks then
    return hidden_NSA


def blocks(trace: Trace) -> Iterator[Trace]:
    """The trace in parts whose states by step and pairs of cells fit in memory."""
    cells = trace.instances.answer_len + 1
    rows = max(1, _BLOCK // (cells * max(cells, steps_of(trace))))
    for start in range(0, len(trace), rows):
        yield trace.take(slice(start, start + rows))
