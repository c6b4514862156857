"""What reaches a terminal: codes are shown instead of obeyed, and messages have an end."""

import io
import sys

import pytest

from hardtail import HardtailError
from hardtail.core.errors import LONGEST, MOST_QUOTED, quoted
from hardtail.core.terminal import MOST_OF_AN_ERROR, Screen, console, screens, shortened, visible, wrapped


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert visible("a\tb\n\x1b[31mc\x7f\u202e\ud800") == "a\tb\n\\u001b[31mc\\u007f\\u202e\\ud800"
    assert visible("\U000e0041é🧨") == "\\udb40\\udc41é🧨"
    stream = io.StringIO()
    screen = Screen(stream)
    assert screen.write("\x1b[1mbold\x1b[0m\x1b[2J") == 16
    screen.guarding, screen.wrapping = True, False
    screen.writelines(["\x1b[1mplain", "\n"])
    assert stream.getvalue() == "\x1b[1mbold\x1b[0m\\u001b[2J\\u001b[1mplain\n"


def test_a_terminal_of_few_characters_shows_the_others_as_json_does(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="latin-1", write_through=True))
    with screens():
        print("α × 2")
        console(width=20).print("━━ ¹")
    assert written.getvalue().decode("latin-1") == "\\u03b1 × 2\n\\u2501\\u2501 ¹\n"


def test_messages_have_an_end() -> None:
    assert shortened("x" * MOST_OF_AN_ERROR) == "x" * MOST_OF_AN_ERROR
    long = "a" * 1500 + "b" * 1500
    assert shortened(long) == "a" * 1000 + " … " + "b" * 1000
    assert MOST_OF_AN_ERROR == 2000
    assert str(HardtailError("x" * LONGEST)) == "x" * LONGEST
    assert str(HardtailError("a" * LONGEST + "b")) == "a" * 2000 + " … " + "a" * 1999 + "b"
    assert quoted("'" * MOST_QUOTED) == repr("'" * MOST_QUOTED)
    assert quoted("x" * 1081) == f"'{'x' * 80}'… (1,081 characters)"


def test_lines_break_between_words_and_after_commas() -> None:
    assert wrapped("one two three\n\n  four", 8) == "one two\nthree\n\n  four"
    assert wrapped("{eval,diagnose,demo}", 10) == "{eval,\ndiagnose,\ndemo}"
    assert wrapped("\x1b[1m│ a box │\x1b[0m", 9) == "\x1b[1m│ a box │\x1b[0m"  # colours take no room
    assert wrapped("averylongword", 5) == "averylongword"


def test_what_follows_a_break_is_indented_like_what_came_before() -> None:
    assert wrapped("  four five six", 8) == "  four\n  five\n  six"
    assert wrapped("- an item of a list", 10) == "- an item\n  of a\n  list"
    assert wrapped("usage: me eval [-h] [--out FILE] MODEL", 26) == (
        "usage: me eval [-h] [--out\n             FILE] MODEL"  # at most half of the width
    )
    assert wrapped("usage: me [-h] {eval,view}", 22) == "usage: me [-h] {eval,\n          view}"
    bold, plain = "\x1b[1m", "\x1b[0m"
    assert wrapped(f"{bold}usage:{plain} me {bold}[-h]{plain} MODEL", 16) == (
        f"{bold}usage:{plain} me{bold} [-h]{plain}\n        MODEL"  # a space has no colour
    )
