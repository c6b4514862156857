"""What each commit was waiting for when it was made: direct parents, and everything they wait for in turn.

Shapes: N instances, S steps, A answer cells, C cells that can be hidden, E parents a cell can have, K edges.
"""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Trace
from hardtail.tasks.base import Task
from hardtail.traces.states import Standing, blocks, hidden_before, standing, wrong_before


@dataclass(frozen=True)
class Missing:
    """The prerequisites of one kind of each cell's standing commit; cells that are never hidden do not count."""

    needed_NA: NDArray[np.int64]
    """How many there are."""
    missing_NA: NDArray[np.int64]
    """How many of them were hidden in the state that the commit's step saw."""
    wait_NA: NDArray[np.int64]
    """Steps from the commit until the last of those got its final token: 0 is the same step. A cell that stays hidden
    counts as committed in the step after the instance's last."""


@dataclass(frozen=True)
class Prerequisites:
    """The standing commits of a trace and what they were waiting for."""

    standing: Standing
    ready_NA: NDArray[np.bool_]
    """Whether the cell was ready in the state that the commit's step saw."""
    sound_NA: NDArray[np.bool_]
    """Whether it was ready by the right tokens of that state alone: a wrong one counts as hidden."""
    dependent_NA: NDArray[np.bool_]
    """Whether the cell waits for anything: it is not ready while everything is hidden."""
    parents: Missing
    ancestors: Missing


def prerequisites(task: Task, trace: Trace) -> Prerequisites:
    """Every standing commit with its prerequisites; commits of one step do not see each other."""
    if trace.instances.parents_NAE is None:
        raise HardtailError(f"{task.name}: the trace's instances have no parents; decode instances that are not bare")
    whole: Prerequisites = _joined([_of_block(task, block) for block in blocks(trace)])
    return whole


def _of_block(task: Task, trace: Trace) -> Prerequisites:
    instances, held = trace.instances, standing(trace)
    hidden_NSA, wrong_NSA = hidden_before(trace), wrong_before(trace)
    assert instances.parents_NAE is not None
    nothing_NA = np.zeros_like(instances.maskable_NA)
    dependent_NA = ~task.ready(instances, nothing_NA)
    if instances.parents_NAE.shape[2] and hidden_NSA.shape[1]:
        parents, ancestors = _missing(trace, held, hidden_NSA)
        ready_NA = held.there_NA & (parents.missing_NA == 0)
        parents_NAE, row_N11 = instances.parents_NAE, np.arange(len(trace))[:, None, None]
        wrong_NAE = (parents_NAE >= 0) & wrong_NSA[row_N11, held.step_NA[:, :, None], parents_NAE]
        return Prerequisites(held, ready_NA, ready_NA & ~wrong_NAE.any(axis=2), dependent_NA, parents, ancestors)
    ready_NA, sound_NA = nothing_NA.copy(), nothing_NA.copy()
    for step in range(hidden_NSA.shape[1]):  # no static parents: what a cell waits for depends on what else is known
        now_NA = held.there_NA & (held.step_NA == step)
        ready_NA |= now_NA & task.ready(instances, ~hidden_NSA[:, step])
        sound_NA |= now_NA & task.ready(instances, ~hidden_NSA[:, step] & ~wrong_NSA[:, step])
    none = Missing(*(np.zeros(nothing_NA.shape, dtype=np.int64) for _ in range(3)))
    return Prerequisites(held, ready_NA, ready_NA & sound_NA, dependent_NA, none, none)


def _missing(trace: Trace, held: Standing, hidden_NSA: NDArray[np.bool_]) -> tuple[Missing, Missing]:
    """Parents and ancestors. Pairs are formed only of the C cells that can be hidden: in a maze, less than half."""
    instances = trace.instances
    assert instances.parents_NAE is not None
    most = int(instances.maskable_NA.sum(axis=1).max(initial=0))
    order_NA = np.argsort(~instances.maskable_NA, axis=1, kind="stable")
    cell_NC, place_NA = order_NA[:, :most], np.argsort(order_NA, axis=1, kind="stable")
    there_NC, step_NC = (np.take_along_axis(array, cell_NC, axis=1) for array in (held.there_NA, held.step_NA))
    after_N1 = np.max(trace.step_NT, axis=1, where=trace.happened_NT, initial=-1)[:, None] + np.int16(1)
    final_NC = np.where(there_NC, step_NC, after_N1).astype(np.int16)
    row_N11 = np.arange(len(trace))[:, None, None]
    lacking_NCC = there_NC[:, :, None] & hidden_NSA[row_N11, step_NC[:, :, None], cell_NC[:, None, :]]
    direct_NCC = direct(instances.parents_NAE, instances.maskable_NA, place_NA, most)

    def judged(needs_NCC: NDArray[np.bool_]) -> Missing:
        lacks_NCC = needs_NCC & lacking_NCC
        last_NC = np.where(lacks_NCC, final_NC[:, None, :], np.int16(-1)).max(axis=2, initial=-1)
        wait_NC = np.where(last_NC >= 0, last_NC - step_NC, 0)
        figures = np.count_nonzero(needs_NCC, axis=2), np.count_nonzero(lacks_NCC, axis=2), wait_NC
        return Missing(*(_spread(figure_NC, cell_NC, instances.answer_len) for figure_NC in figures))

    return judged(direct_NCC), judged(closure(direct_NCC))


def _spread(figure_NC: Array, cell_NC: NDArray[np.int64], cells: int) -> NDArray[np.int64]:
    """Figures of some cells at their places among all."""
    figure_NA = np.zeros((len(figure_NC), cells), dtype=np.int64)
    np.put_along_axis(figure_NA, cell_NC, figure_NC, axis=1)
    return figure_NA


def direct(
    parents_NAE: Array, maskable_NA: NDArray[np.bool_], place_NA: NDArray[np.int64], most: int
) -> NDArray[np.bool_]:
    """Which cell (row) waits directly for which (column) [N, C, C], among the cells that can be hidden.

    `place_NA`  the index of a cell among these; there are `most`
    """
    row_K, cell_K, slot_K = np.nonzero((parents_NAE >= 0) & maskable_NA[:, :, None])
    parent_K = parents_NAE[row_K, cell_K, slot_K]
    hidden_K = maskable_NA[row_K, parent_K]
    row_K, cell_K, parent_K = row_K[hidden_K], cell_K[hidden_K], parent_K[hidden_K]
    needs_NCC = np.zeros((len(maskable_NA), most, most), dtype=np.bool_)
    needs_NCC[row_K, place_NA[row_K, cell_K], place_NA[row_K, parent_K]] = True
    return needs_NCC


def closure(needs_NCC: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What a cell waits for directly or through others. Level by level: a cell's row is done once its parents' are."""
    reached_NCC = needs_NCC.copy()
    row_K, cell_K, parent_K = np.nonzero(needs_NCC)  # one entry for every edge, sorted by cell
    done_NC = np.logical_not(np.any(needs_NCC, axis=2))
    while row_K.size:
        blocked_NC = np.zeros_like(done_NC)
        waiting_K = ~done_NC[row_K, parent_K]
        blocked_NC[row_K[waiting_K], cell_K[waiting_K]] = True
        now_K = ~blocked_NC[row_K, cell_K]
        if not now_K.any():
            break  # the rest wait for themselves
        edge_row_K, edge_cell_K, edge_parent_K = row_K[now_K], cell_K[now_K], parent_K[now_K]
        first_K = np.flatnonzero(np.diff(edge_row_K, prepend=-1) | np.diff(edge_cell_K, prepend=-1))
        inherited_KC = np.logical_or.reduceat(reached_NCC[edge_row_K, edge_parent_K], first_K, axis=0)
        reached_NCC[edge_row_K[first_K], edge_cell_K[first_K]] |= inherited_KC
        done_NC[edge_row_K, edge_cell_K] = True
        row_K, cell_K, parent_K = row_K[~now_K], cell_K[~now_K], parent_K[~now_K]
    return reached_NCC


def _joined(parts: list[Any]) -> Any:
    """Arrays, or dataclasses of arrays, one after another."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)
    kind = type(parts[0])
    return kind(**{item.name: _joined([getattr(part, item.name) for part in parts]) for item in fields(kind)})
