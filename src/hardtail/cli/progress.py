"""Progress where nobody sees a bar: plain lines on standard error, one every second, less often in long work."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread
from time import monotonic

from hardtail.show.words import duration

SWITCH = "HARDTAIL_PROGRESS"
"""The environment variable that turns the lines off with the value `off`."""
EVERY, SELDOM, SHARE = 1.0, 10.0, 0.1
"""Seconds between two lines, at first and at most, and as a share of the time so far; shorter work prints none."""


@contextmanager
def plain_lines(words: Callable[[], str], left: Callable[[float], str] = lambda so_far: "") -> Iterator[None]:
    """Print what `words` returns and the time so far again and again, however long the work itself is silent.

    `left` gets the seconds so far and says what is left, if it knows.
    """
    if os.environ.get(SWITCH) == "off":
        yield
        return
    ended, began = Event(), monotonic()

    def talk() -> None:
        with suppress(OSError, ValueError):  # nobody reads standard error any longer
            so_far = 0.0
            while not ended.wait(min(max(EVERY, SHARE * so_far), SELDOM)):
                so_far = monotonic() - began
                print(f"{words()}, {so_far:.0f} s{left(so_far)}", file=sys.stderr, flush=True)

    thread = Thread(target=talk, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@contextmanager
def counted_lines(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Print how many of `total` are done, and give the function that counts them."""
    done = 0

    def advance(made: int) -> None:
        nonlocal done
        done += made

    def left(so_far: float) -> str:
        return f", about {duration(so_far * (total - done) / done)} left" if total and 0 < done < total else ""

    of = "" if total is None else f" of {total:,}"
    with plain_lines(lambda: f"{words}: {done:,}{of}", left):
        yield advance
