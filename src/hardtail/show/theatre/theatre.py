"""What the theatre shows now: which instance, after how many steps, and what a key changes."""

from pathlib import Path

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.show.stages import stages
from hardtail.show.theatre.replay import Replay
from hardtail.tasks.base import Task

STEPS_OF_A_LEAP = 10
MOST_LISTED = 10
"""The most instances that an error lists."""
_MOVES = {"right": 1, "l": 1, "left": -1, "h": -1, "up": -STEPS_OF_A_LEAP, "down": STEPS_OF_A_LEAP}


def open_theatre(trace: Trace, path: str | Path, instance: int | None = None, *, failures: bool = False) -> "Theatre":
    """Open a trace, which errors call `path`; with `failures`, only the instances that were not solved."""
    (stage,) = stages([trace])
    trace = stage.decoders[0].trace
    failing = np.flatnonzero(~trace.exact_N).tolist()
    if instance is not None and instance >= len(trace):
        raise HardtailError(f"--instance {instance}: the last instance of {path} is {len(trace) - 1}")
    if failures and not failing:
        raise HardtailError(f"{path} has no failure: all {len(trace)} instances are right; leave out --failures")
    if failures and instance is not None and instance not in failing:
        few = ", ".join(map(str, failing[:MOST_LISTED])) + (" …" if len(failing) > MOST_LISTED else "")
        raise HardtailError(f"--instance {instance} of {path} is right; leave out --failures or give one of {few}")
    return Theatre(stage.task, trace, failing if failures else list(range(len(trace))), instance)


class Theatre:
    """One instance of a trace after some of its steps; keys move to other steps and instances."""

    def __init__(self, task: Task, trace: Trace, rows: list[int], row: int | None = None) -> None:
        self.task, self.trace, self.rows = task, trace, rows
        self.failing = set(np.flatnonzero(~trace.exact_N).tolist()).intersection(rows)
        self.playing = False
        self._show(rows[0] if row is None else row)

    def _show(self, row: int) -> None:
        self.row, self.now = row, 0
        self.replay = Replay.of(self.task, self.trace, row)

    def press(self, key: str) -> bool:
        """Do what a key asks for; return False to quit."""
        if key == " ":
            self.playing = not self.playing
            self.now = 0 if self.playing and self.now >= self.replay.steps else self.now
            return True
        self.playing = False
        if key in _MOVES:
            self.now = min(max(self.now + _MOVES[key], 0), self.replay.steps)
        elif key in ("home", "g"):
            self.now = 0
        elif key in ("end", "G"):
            self.now = self.replay.steps
        elif key in ("n", "p"):
            at = self.rows.index(self.row) + (1 if key == "n" else -1)
            self._show(self.rows[at % len(self.rows)])
        elif key == "f":
            self._next_failure()
        return key != "q"

    def tick(self) -> None:
        """Advance one step while playing."""
        self.now = min(self.now + 1, self.replay.steps)
        self.playing = self.now < self.replay.steps

    def _next_failure(self) -> None:
        """Go to this instance's first wrong commit if it is still ahead, otherwise to the next failing instance's."""
        if (wrong := self.replay.first_wrong) is None or self.now > wrong:
            at = self.rows.index(self.row)
            following = [row for row in (*self.rows[at + 1 :], *self.rows[: at + 1]) if row in self.failing]
            if not following:
                return
            self._show(following[0])
        if (wrong := self.replay.first_wrong) is not None:
            self.now = wrong + 1
