"""One instance's decode, step by step: the answer after every step, and each commit.

Shapes: A answer cells, S steps.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Instances, Tokens, Trace
from hardtail.tasks.base import Task


class Event(NamedTuple):
    """One token that was written; fields are named after the arrays of a trace, steps count from 0."""

    step: int
    cell: int
    token: int
    gold: int
    prob: float
    gold_prob: float
    gold_rank: int
    runner_up: int
    margin: float


@dataclass(frozen=True)
class Replay:
    """The decode of one instance; state s is the answer after s steps."""

    task: Task
    one: Instances
    mask_id: int
    events: tuple[Event, ...]
    exact: bool

    @classmethod
    def of(cls, task: Task, trace: Trace, row: int) -> "Replay":
        happened_T = trace.happened_NT[row]
        columns = (getattr(trace, f"{name}_NT")[row][happened_T].tolist() for name in Event._fields)
        events = tuple(map(Event, *columns))
        return cls(task, trace.instances.take(np.array([row])), trace.mask_id, events, bool(trace.exact_N[row]))

    @property
    def steps(self) -> int:
        return self.events[-1].step + 1 if self.events else 0

    @property
    def token_SA(self) -> Tokens:
        """The answer in each state; in the first, every maskable cell is hidden."""
        return self._states[0]

    @property
    def since_SA(self) -> NDArray[np.int64]:
        """The step that wrote each cell's current token; -1 if nothing was written."""
        return self._states[1]

    @cached_property
    def _states(self) -> tuple[Tokens, NDArray[np.int64]]:
        start_A = np.where(self.one.maskable_NA[0], np.int64(self.mask_id), self.one.answer(0))
        token_SA = np.tile(start_A, (self.steps + 1, 1))
        since_SA = np.full(token_SA.shape, -1, dtype=np.int64)
        for event in self.events:  # in the order of writing, each into all later states
            token_SA[event.step + 1 :, event.cell] = event.token
            since_SA[event.step + 1 :, event.cell] = -1 if event.token == self.mask_id else event.step
        return token_SA, since_SA

    def events_of(self, step: int) -> list[Event]:
        return [event for event in self.events if event.step == step]

    def wrong(self, event: Event) -> bool:
        return event.token not in (event.gold, self.mask_id)

    @property
    def first_wrong(self) -> int | None:
        """The step of the first wrong commit in a scored cell that was never overwritten, as in the diagnosis."""
        last = {event.cell: event for event in self.events if self.one.scored_NA[0, event.cell]}
        return min((event.step for event in last.values() if self.wrong(event)), default=None)

    def missing(self, event: Event) -> list[str] | None:
        """The hidden cells that a commit should have waited for, by name; None if it was ready or nothing is known."""
        if self.one.parents_NAE is None:
            return None
        hidden_A = self.token_SA[event.step] == self.mask_id
        if self.task.ready(self.one, ~hidden_A[None])[0, event.cell]:
            return None
        parents = self.one.parents_NAE[0, event.cell]
        return [self.task.cell_name(int(parent)) for parent in parents if parent >= 0 and hidden_A[parent]]

    def misled(self, event: Event) -> bool:
        """Whether a commit that was ready would not have been by the right tokens alone."""
        right_A = self.token_SA[event.step] == self.one.answer(0)
        return not self.task.ready(self.one, right_A[None])[0, event.cell]
