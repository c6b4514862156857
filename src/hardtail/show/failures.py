"""The failures of a decode in words: which commit was wrong first, how sure it was, and what it did not wait for.

Shapes: A answer cells, K failing instances.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.tables import probability
from hardtail.core.types import Trace
from hardtail.tasks.base import Task
from hardtail.traces.commits import Commits, first_in_time, revealed_before, wrong_cells
from hardtail.traces.states import standing


@dataclass(frozen=True)
class Failure:
    """The first wrong commit of an instance that stands at the end."""

    row: int
    cell: int
    step: int
    """From 0."""
    prob: float | None
    """None if unknown, as in a trace of another tool's canvases."""
    waiting: bool
    """Whether a cell that it waits for was still hidden or, in tasks without fixed prerequisites, it was not ready."""
    sentence: str


def failures(task: Task, trace: Trace) -> list[Failure]:
    """Every failing instance whose wrong cells were committed, in the order of the trace."""
    wrong_NA = wrong_cells(trace) & standing(trace).there_NA
    first = first_in_time(trace, wrong_NA)
    revealed_KA = revealed_before(trace, first)
    ready_K = _ready(task, trace, first, revealed_KA)
    steps_N = trace.steps_N
    found = []
    for k, (row, cell) in enumerate(zip(first.row_K.tolist(), first.cell_K.tolist(), strict=True)):
        waiting, based = False, "."
        if ready_K is not None:
            waiting = not ready_K[k]
            based = ". The cell is not ready yet." if waiting else "."
        elif trace.instances.parents_NAE is not None:
            parents = [int(parent) for parent in trace.instances.parents_NAE[row, cell] if parent >= 0]
            hidden = [parent for parent in parents if not revealed_KA[k, parent]]
            waiting, based = bool(hidden), _missing(task, hidden, len(parents))
        written, gold = (task.vocabulary.name(token) for token in (int(first.token_K[k]), int(first.gold_K[k])))
        step, ends = int(first.step_K[k]), int(wrong_NA[row].sum())
        prob = None if np.isnan(first.prob_K[k]) else float(first.prob_K[k])
        sure = "" if prob is None else f" with probability {probability(prob)}"
        sentence = (
            f"In step {step + 1} of {steps_N[row]} it writes {written} into {task.cell_name(cell)}{sure}, "
            f"where {gold} belongs{based}" + (f" In the end {ends} cells are wrong." if ends > 1 else "")
        )
        found.append(Failure(row, cell, step, prob, waiting, sentence))
    return found


def _ready(task: Task, trace: Trace, first: Commits, revealed_KA: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    """Whether each cell was ready, where its task names no fixed prerequisites that could be listed instead."""
    parents_NAE = trace.instances.parents_NAE
    if parents_NAE is None or parents_NAE.shape[2]:
        return None
    ready_KA = task.ready(trace.instances.take(first.row_K), revealed_KA)
    return ready_KA[np.arange(len(first)), first.cell_K]


def _missing(task: Task, hidden: list[int], parents: int) -> str:
    """The end of the sentence: which of the cells that the cell waits for were still hidden."""
    if not parents:
        return ". The cell waits for nothing."
    if not hidden:
        return ". Everything that the cell waits for is known."
    if parents == 1:
        return f". It waits for {task.cell_name(hidden[0])}, which is still hidden."
    return (
        f". Of the {parents} cells that it waits for, {len(hidden)} {'is' if len(hidden) == 1 else 'are'} still hidden."
    )
