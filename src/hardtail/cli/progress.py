"""Progress where nobody sees a bar: plain lines on standard error, one every second."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic

SWITCH = "HARDTAIL_PROGRESS"
"""The environment variable that turns the lines off with the value `off`."""
EVERY = 1.0
"""Seconds between two lines; shorter work prints none."""


@contextmanager
def plain_lines(words: Callable[[], str]) -> Iterator[None]:
    """Print what `words` returns, and the time so far, every second, however long the work itself is silent."""
    if os.environ.get(SWITCH) == "off":
        yield
        return
    ended, began = Event(), monotonic()

    def talk() -> None:
        with suppress(OSError, ValueError):  # nobody reads standard error any longer
            while not ended.wait(EVERY):
                print(f"{words()}, {monotonic() - began:.0f} s", file=sys.stderr, flush=True)

    thread = Thread(target=talk, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def counted_lines(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Print how many of `total` are done every second, and give the function that counts them."""
    done = 0

    def advance(made: int) -> None:
        nonlocal done
        done += made

    of = "" if total is None else f" of {total:,}"
    with plain_lines(lambda: f"{words}: {done:,}{of}"):
        yield advance
