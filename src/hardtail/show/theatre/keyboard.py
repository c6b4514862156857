"""Read single keys from a terminal without waiting for Enter; the terminal is always restored afterwards."""

import os
import re
import select
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager

_KEY = re.compile(rb"\x1b\[[0-9;?]*[@-~]|\x1bO[@-~]|[^\x1b]", re.DOTALL)
_NAMES = {b"A": "up", b"B": "down", b"C": "right", b"D": "left", b"H": "home", b"F": "end"}
_NUMBERED = {b"1": "home", b"7": "home", b"4": "end", b"8": "end"}
_PATIENCE = 0.05
"""Seconds to wait for the rest of a key's sequence, which may arrive in pieces over a network."""


class Keyboard:
    """The keys that were pressed, by name; an unknown key has an empty name."""

    def __init__(self, file: int) -> None:
        self.file = file
        self.held = b""

    def next(self, timeout: float) -> str | None:
        """Return the next key, or None if none is pressed in `timeout` seconds; a closed terminal counts as `q`."""
        if not self.held and not self._read(timeout):
            return None
        while (match := _KEY.match(self.held)) is None:
            if not self.held or not self._read(_PATIENCE):  # a lone Escape
                self.held = self.held[1:]
                return ""
        self.held = self.held[match.end() :]
        return _name(match[0])

    def _read(self, timeout: float) -> bool:
        ready, _, _ = select.select([self.file], [], [], timeout)
        if not ready:
            return False
        self.held += os.read(self.file, 1024) or b"q"
        return True


def _name(key: bytes) -> str:
    if not key.startswith(b"\x1b"):
        return "q" if key == b"\x04" else key.decode("ascii", errors="ignore")
    if key.endswith(b"~"):
        return _NUMBERED.get(key[2:-1], "")
    return _NAMES.get(key[-1:], "")


@contextmanager
def keyboard(file: int) -> Iterator[Keyboard]:
    """Read single keys from the terminal `file` within this context; Ctrl-C still interrupts."""
    before = termios.tcgetattr(file)
    try:
        tty.setcbreak(file)
        now = termios.tcgetattr(file)
        now[6][termios.VSUSP] = b"\x00"  # Ctrl-Z would leave the terminal in this mode
        termios.tcsetattr(file, termios.TCSANOW, now)
        yield Keyboard(file)
    finally:
        termios.tcsetattr(file, termios.TCSAFLUSH, before)
