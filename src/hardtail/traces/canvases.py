"""Canvases that other tools record, as a trace: the answer after every step, with the mask where a cell is hidden.

A canvas says which cells were written when, and with what; it has no probabilities. These are NaN in the trace, ranks
are -1, and the cells of one step are in the order of the answer.

Shapes: N instances, L sequence, A answer cells, S canvases, T events.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.types import (
    MOST_STEPS,
    MOST_TOKENS,
    NO_EVENT,
    Array,
    Instances,
    Tokens,
    Trace,
    refuse_long,
    token_dtype,
)
from hardtail.traces.states import steps_of

UNKNOWN_RANK = -1


def trace_of_canvases(
    instances: Instances,
    canvases: Sequence[Array],
    mask_id: int,
    about: Mapping[str, Any] | None = None,
) -> Trace:
    """The trace of a decode that another tool recorded.

    A canvas is [N, L] or [N, A]: whole sequences, or answers only, in our tokens, after each step in turn. A first one
    with every maskable cell hidden is understood and may be left out. Cells that are never hidden may hold anything.
    """
    refuse_long(instances)
    if not len(canvases):
        raise HardtailError("there are no canvases; give the answers after every step of the decode")
    if len(canvases) > MOST_STEPS:
        raise HardtailError(f"there are {len(canvases):,} canvases; a trace can have {MOST_STEPS:,} steps")
    answers_SNA = np.stack([_answers(instances, np.asarray(canvas), step) for step, canvas in enumerate(canvases)])
    maskable_NA = instances.maskable_NA
    answers_SNA = np.where(maskable_NA, answers_SNA, instances.answer_NA)
    if (strange := (answers_SNA < 0) | (answers_SNA >= MOST_TOKENS)).any():
        raise HardtailError(f"the canvases have the token {answers_SNA[strange][0]}; ids are 0 to {MOST_TOKENS - 1:,}")
    if (hidden := (answers_SNA[-1] == mask_id) & maskable_NA).any():
        row, cell = (int(places[0]) for places in np.nonzero(hidden))
        raise HardtailError(f"the last canvas is not a whole answer: cell {cell} of problem {row + 1} is still hidden")
    start_NA, end_NA = np.where(maskable_NA, np.int64(mask_id), instances.answer_NA), answers_SNA[-1]
    if (answers_SNA[0] == start_NA).all():
        answers_SNA = answers_SNA[1:]
    before_SNA = np.concatenate([start_NA[None], answers_SNA[:-1]])
    row_K, step_K, cell_K = np.nonzero((answers_SNA != before_SNA).transpose(1, 0, 2))  # by row, then in time
    used_N = np.bincount(row_K, minlength=len(instances))
    event_K = np.arange(len(row_K)) - np.repeat(np.cumsum(used_N) - used_N, used_N)
    shape = len(instances), int(used_N.max(initial=0))
    wanted = token_dtype(int(max(answers_SNA.max(initial=0), mask_id)) + 1)
    kind = np.promote_types(instances.tokens_NL.dtype, wanted)

    def events(name: str, values_K: Array | float, dtype: Any) -> Array:
        made = np.full(shape, NO_EVENT.get(name, 0), dtype=dtype)
        made[row_K, event_K] = values_K
        return made

    return Trace(
        instances,
        mask_id,
        end_NA.astype(kind),
        cell_NT=events("cell_NT", cell_K, np.int16),
        step_NT=events("step_NT", step_K, np.int16),
        token_NT=events("token_NT", answers_SNA[step_K, row_K, cell_K], kind),
        prob_NT=events("prob_NT", np.nan, np.float32),
        gold_prob_NT=events("gold_prob_NT", np.nan, np.float32),
        gold_rank_NT=events("gold_rank_NT", UNKNOWN_RANK, np.int32),
        runner_up_NT=events("runner_up_NT", -1, np.int16),
        margin_NT=events("margin_NT", np.nan, np.float32),
        about=dict(about or {}),
    )


def canvases_of(trace: Trace) -> Tokens:
    """The answer after every step of a trace, [S, N, A]; what `trace_of_canvases` reads."""
    steps = steps_of(trace)
    kind = trace.answer_NA.dtype
    start_NA = np.where(trace.instances.maskable_NA, np.int64(trace.mask_id), trace.instances.answer_NA)
    answer_NA = start_NA.astype(kind)
    found = np.empty((steps, *answer_NA.shape), dtype=kind)
    for step in range(steps):
        row_K, event_K = np.nonzero(trace.happened_NT & (trace.step_NT == step))
        answer_NA[row_K, trace.cell_NT[row_K, event_K]] = trace.token_NT[row_K, event_K]
        found[step] = answer_NA
    return found


def _answers(instances: Instances, canvas: Array, step: int) -> Array:
    """The answers in a canvas of whole sequences or of answers."""
    n, length = instances.tokens_NL.shape
    if canvas.shape == (n, instances.answer_len) and np.issubdtype(canvas.dtype, np.integer):
        return canvas
    if canvas.shape != (n, length) or not np.issubdtype(canvas.dtype, np.integer):
        raise HardtailError(
            f"canvas {step} is {list(canvas.shape)} of {canvas.dtype}; for these {n} instances it must be token ids "
            f"[{n}, {length}] (whole sequences) or [{n}, {instances.answer_len}] (answers)"
        )
    return np.take_along_axis(canvas, instances.answer_at_NA, axis=1)
