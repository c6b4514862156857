"""Measurements that are prepared side by side and taken one after another.

Compiling a model takes half a minute of one processor core and leaves the GPU idle, so several do it at once, each in a
process of its own; nothing is timed while another gets ready.
"""

import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Protocol, TypeVar

QUIET = 3.0
"""Seconds until a GPU has worked off what a process had handed to it."""
Found = TypeVar("Found", covariant=True)


class Row(Protocol[Found]):
    """One measurement; it travels to another process, so it is small."""

    def ready(self) -> Callable[[], Found]:
        """Prepare everything; calling what this returns measures."""


def in_turn(rows: Sequence[Row[Found]], jobs: int, held: Sequence[int] = ()) -> Iterator[tuple[int, Found]]:
    """Each row's place and what it found. `jobs` rows get ready side by side, are measured in turn, and end.

    With several jobs a row whose process ends early is named and left out. The processes `held` are stopped while
    measurements are taken.
    """
    if jobs == 1:
        for place, row in enumerate(rows):
            measure = row.ready()
            with standing_still(held):
                yield place, measure()
        return
    for first in range(0, len(rows), jobs):
        started = {place: _started(rows[place]) for place in range(first, min(first + jobs, len(rows)))}
        for connection in started.values():
            connection.poll(None)  # ready, or at its end
        with standing_still(held):
            for place, connection in started.items():
                try:
                    connection.recv()
                    connection.send("go")
                    found = connection.recv()
                except (EOFError, ConnectionError):
                    print(f"{rows[place]} could not be measured; its process has said why", flush=True)
                else:
                    yield place, found


@contextmanager
def standing_still(processes: Sequence[int]) -> Iterator[None]:
    """Other processes wait meanwhile; one that has ended need not."""
    try:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
        if processes:
            time.sleep(QUIET)
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def _started(row: Row[Found]) -> Connection:
    """A process of its own that gets a row ready."""
    context = get_context("spawn")
    mine, theirs = context.Pipe()
    context.Process(target=_child, args=(row, theirs), daemon=True).start()
    theirs.close()
    return mine


def _child(row: Row[Found], parent: Connection) -> None:
    """Get ready, say so, wait to be asked, and measure."""
    measure = row.ready()
    parent.send("ready")
    parent.recv()
    parent.send(measure())
