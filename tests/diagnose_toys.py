"""Traces for tests of the diagnosis: written event by event, of gold answers, with remasking.

Shapes: N instances, A answer cells, T events.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.seeds import Stream
from hardtail.core.types import Instances, Trace
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Task

Event = tuple[int, int, int | None]
"""A step, a cell, and the token that is written there; None hides it again."""


def trace_of(task: Task, instances: Instances, events: list[list[Event]], prob: float = 1.0) -> Trace:
    """A trace from the events of each instance."""
    mask_id = task.vocabulary.mask_id
    shape = (len(instances), max(map(len, events)))
    cell_NT, step_NT, token_NT = np.full(shape, -1, np.int16), np.zeros(shape, np.int16), np.zeros(shape, np.uint8)
    answer_NA = np.where(instances.maskable_NA, mask_id, instances.answer_NA).astype(np.uint8)
    for n, row in enumerate(events):
        for t, (step, cell, token) in enumerate(row):
            step_NT[n, t], cell_NT[n, t] = step, cell
            token_NT[n, t] = answer_NA[n, cell] = mask_id if token is None else token
    prob_NT = np.full(shape, prob, np.float32)
    zeros_NT = np.zeros(shape, np.int32)
    return Trace(
        instances, mask_id, answer_NA, cell_NT, step_NT, token_NT, prob_NT, prob_NT, zeros_NT, cell_NT, prob_NT
    )


def gold_trace(task: Task, instances: Instances, score_NA: NDArray[np.floating], each: int = 1) -> Trace:
    """The gold answers, committed from the lowest score on, so many a step."""
    events: list[list[Event]] = []
    for n in range(len(instances)):
        cells = np.flatnonzero(instances.maskable_NA[n])
        cells = cells[np.argsort(score_NA[n, cells], kind="stable")]
        events.append([(place // each, int(cell), int(instances.answer(n)[cell])) for place, cell in enumerate(cells)])
    return trace_of(task, instances, events)


def remasked_trace(task: Task, instances: Instances, rng: np.random.Generator) -> tuple[Trace, list[list[set[int]]]]:
    """A decode that commits some hidden cells and hides some others again, and what was hidden before each step."""
    events: list[list[Event]] = []
    states: list[list[set[int]]] = []
    for n in range(len(instances)):
        hidden = set(np.flatnonzero(instances.maskable_NA[n]).tolist())
        row: list[Event] = []
        seen: list[set[int]] = []
        for step in range(int(rng.integers(3, 12))):
            if not hidden:
                break
            seen.append(set(hidden))
            chosen = rng.permutation(sorted(hidden))[: rng.integers(1, 4)].tolist()
            row += [(step, cell, int(rng.integers(0, 10))) for cell in chosen]
            hidden -= set(chosen)
            shown = sorted(set(np.flatnonzero(instances.maskable_NA[n]).tolist()) - hidden)
            again = rng.permutation(shown)[: rng.integers(0, 3)].tolist()
            row += [(step, cell, None) for cell in again]
            hidden |= set(again)
        events.append(row)
        states.append(seen)
    return trace_of(task, instances, events), states


SMALL = Addition(digits=8)


def small(n: int = 30) -> Instances:
    return SMALL.sample(n, Stream("small"), "chain>=3")


def lsb_trace(sign: int = 1) -> Trace:
    """Addition from the lowest digit on, or from the highest."""
    return gold_trace(SMALL, small(), sign * small().orders["lsb"])


def profiled(task: Task, trace: Trace) -> dict[str, Any]:
    """A task's profile of a trace as plain nested objects."""
    found = task.profile(trace)
    assert found is not None
    return asdict(found)
