"""How text reaches a terminal: control characters from files are shown, never obeyed.

A name in a file can hold codes that clear the screen, retitle the window or hide the rest of a line. While a command
runs, `Screen` replaces standard output and standard error and writes such characters as `\\u001b`, which is also how
JSON writes them. Colours come from consoles (`console`) only: they clean each piece of text before they style it.
"""

import codecs
import io
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from textwrap import TextWrapper
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

MOST_OF_AN_ERROR = 2000
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters except tab and line feed
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # direction, width 0
    "\ud800-\udfff]"  # bytes of a file name that are not text
)
_COLOUR = re.compile("(\x1b\\[[0-9;]{0,40}m)")
_HANGING = re.compile(r"usage: [^\[{]*|\s*(?:[-•] )?")
"""The indent of a wrapped line's continuation."""


def visible(text: str) -> str:
    """The text with every character that a terminal would obey, or not show, as `\\uXXXX`."""
    return _UNSEEN.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + ((code - 0x10000) >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"


def _unwritable(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)  # only writing meets it
    return re.sub(".", _escaped, error.object[error.start : error.end]), error.end


codecs.register_error("hardtail", _unwritable)


def shortened(sentence: str) -> str:
    """An error that repeats too much of what it is about, without its middle."""
    if len(sentence) <= MOST_OF_AN_ERROR:
        return sentence
    half = MOST_OF_AN_ERROR // 2
    return f"{sentence[:half]} … {sentence[-half:]}"


class _AtWordsAndCommas(TextWrapper):
    """Breaks lines between words and, where words are joined by commas alone, after a comma."""

    wordsep_simple_re = re.compile(r"(\s+|(?<=,)(?=\S))")


def wrapped(text: str, width: int) -> str:
    """The text with each line broken that is wider than `width` without its colours.

    What follows is indented like the line; in a list like the item's words, in usage like what comes after the command.
    """
    return "\n".join(_broken(line, width) for line in text.split("\n"))


def _broken(line: str, width: int) -> str:
    pieces = _COLOUR.split(line)  # every second piece is a colour, which takes no room
    plain = "".join(pieces[::2])
    if len(plain) <= width:
        return line
    found = _HANGING.match(plain)
    assert found is not None  # it may be empty
    indent = " " * min(found.end(), width // 2)
    wrapper = _AtWordsAndCommas(width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    filled, shown = wrapper.fill(plain), ""
    for place, piece in enumerate(pieces):
        for letter in () if place % 2 else "".join(piece.split()):  # spaces differ, everything else is the same
            after = filled.index(letter) + 1
            shown, filled = shown + filled[:after], filled[after:]
        shown += piece if place % 2 else ""
    return shown


class Screen:
    """A text stream that writes what is `visible`.

    Until `guard` is called, the parser writes help and usage: colours pass, and lines are wrapped to the terminal, as
    the parser itself does not wrap descriptions.
    """

    def __init__(self, stream: IO[str]) -> None:
        self.stream, self.guarding, self.wrapping = stream, False, True

    def write(self, text: str) -> int:
        shown = wrapped(text, shutil.get_terminal_size().columns) if self.wrapping else text
        pieces = [shown] if self.guarding else _COLOUR.split(shown)  # every second piece is a colour
        self.stream.write("".join(piece if place % 2 else visible(piece) for place, piece in enumerate(pieces)))
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def screens() -> Iterator[None]:
    """Put screens before standard output and standard error; what they get is help until `guard` is called.

    A character that the encoding of a stream lacks is also written as `\\uXXXX`.
    """
    before = sys.stdout, sys.stderr
    for stream in before:
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="hardtail")
    sys.stdout, sys.stderr = Screen(before[0]), Screen(before[1])
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def guard(*, colours: bool = False) -> None:
    """From now on, a command prints what comes from files and users: lines stay as they are, and no colours pass.

    With `colours` they still do, for a command that has its own parser.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Screen):
            stream.guarding, stream.wrapping = not colours, False


def console(*, stderr: bool = False, width: int | None = None) -> "Console":
    """A console that cleans every piece of text and adds its own colours afterwards."""
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

    class CleanConsole(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else Segment(visible(segment.text), segment.style)

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # for `main`, as when `print` meets one

    stream = sys.stderr if stderr else sys.stdout
    return CleanConsole(
        file=stream.stream if isinstance(stream, Screen) else stream, stderr=stderr, width=width, highlight=False
    )
