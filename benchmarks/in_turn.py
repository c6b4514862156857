"""Measurements that are prepared side by side and taken one after another.

Compiling a model takes half a minute of one processor core and leaves the GPU idle, so several do it at once, each in a
process of its own; nothing is timed before all are ready.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Protocol, TypeVar

QUIET = 3.0
"""Seconds until a GPU has worked off what a process had handed to it."""
Found = TypeVar("Found", covariant=True)


class Row(Protocol[Found]):
    """One measurement; it travels to another process, so it is small."""

    def ready(self) -> Callable[[], Found]:
        """Prepare everything; calling what this returns measures."""


def in_turn(rows: Sequence[Row[Found]], jobs: int, held: Sequence[int] = ()) -> Iterator[tuple[int, Found]]:
    """Each row's place and what it found, `jobs` getting ready at a time.

    With several jobs a row whose process ends early is named and left out. The processes `held` stand still while
    measurements are taken.
    """
    if jobs == 1:
        for place, row in enumerate(rows):
            measure = row.ready()
            with standing_still(held):
                yield place, measure()
        return
    context = get_context("spawn")
    preparing: dict[Connection, int] = {}
    ready: dict[int, Connection] = {}
    waiting = list(reversed(range(len(rows))))
    while waiting or preparing:
        while waiting and len(preparing) < jobs:
            place = waiting.pop()
            mine, theirs = context.Pipe()
            context.Process(target=_child, args=(rows[place], theirs), daemon=True).start()
            theirs.close()
            preparing[mine] = place
        for connection in wait(list(preparing)):
            assert isinstance(connection, Connection)
            place = preparing.pop(connection)
            try:
                connection.recv()
            except EOFError:
                _left_out(rows[place])
            else:
                ready[place] = connection
    with standing_still(held):
        for place, connection in sorted(ready.items()):
            try:
                connection.send("go")
                found = connection.recv()
            except (EOFError, BrokenPipeError):
                _left_out(rows[place])
            else:
                yield place, found


def _left_out(row: object) -> None:
    print(f"{row} could not be measured; its process has said why", flush=True)


@contextmanager
def standing_still(processes: Sequence[int]) -> Iterator[None]:
    """Other processes wait meanwhile."""
    try:
        for process in processes:
            os.kill(process, signal.SIGSTOP)
        if processes:
            time.sleep(QUIET)
        yield
    finally:
        for process in processes:
            os.kill(process, signal.SIGCONT)


def _child(row: Row[Found], parent: Connection) -> None:
    """Get ready, say so, wait to be asked, and measure."""
    measure = row.ready()
    parent.send("ready")
    parent.recv()
    parent.send(measure())
