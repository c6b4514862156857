"""Configurations, names, messages and files of `core`, from both sides of what is accepted."""

import io
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.core import files, registry
from hardtail.core.describe import describe, differences, registered_name, short_name
from hardtail.core.errors import LONGEST, MOST_QUOTED, quoted
from hardtail.core.fields import Bounds, check_fields, configured, read_fields
from hardtail.core.files import append_bytes, read_lines, read_regular, sole_writer
from hardtail.core.registry import Registry
from hardtail.core.tables import Table, percent, tabulate, text
from hardtail.core.terminal import MOST_OF_AN_ERROR, Screen, shortened, visible
from hardtail.tasks.addition.task import Addition

# -- configurations -----------------------------------------------------------------------------------------------


def test_bounds_from_both_sides() -> None:
    cases = [
        (Bounds(ge=1), (1, 2), (0.5,), "at least 1"),
        (Bounds(gt=1), (1.5,), (1, 0), "above 1"),
        (Bounds(le=1), (1, 0), (1.5,), "at most 1"),
        (Bounds(lt=1), (0.5,), (1, 2), "below 1"),
        (Bounds(ge=0, lt=1 << 63), (0,), (-1, 1 << 63), "at least 0 and below 2^63"),
        (Bounds(ge=1 << 20, le=3 << 30), (1 << 20,), (1,), "at least 1.04858e+06 and at most 3.22123e+09"),
    ]
    for bounds, inside, outside, words in cases:
        assert all(value in bounds for value in inside), words
        assert not any(value in bounds for value in outside), words
        assert str(bounds) == words


@dataclass(frozen=True)
class Sample:
    needed: int
    share: float | None = None
    sizes: tuple[int, ...] = (1,)
    on: bool = False
    inner: Bounds = Bounds()  # noqa: RUF009


def test_words_become_fields() -> None:
    words = ["needed=-3", "share=.5", "sizes=1,2", "on=TRUE"]
    assert configured(Sample, words, "it") == Sample(-3, 0.5, (1, 2), True)
    assert configured(Sample, ["needed=1", "share=None"], "it").share is None
    for given, fault in (
        ([], "it: needed has no default; write 'it,needed=VALUE'"),
        (["needed"], "it: 'needed' does not set a field"),
        (["other=1"], "it: 'other=1' does not set a field; write FIELD=VALUE with one of needed, share, sizes, on"),
        (["needed=1", "needed=2"], "it: needed is given twice"),
        (["needed=1.5"], "must be a number"),
        (["needed=1", "share=1_0"], "must be a number"),
        (["needed=1", "share=٣"], "must be a number"),
        (["needed=1", "on=yes"], "it must be true or false"),
        (["needed=1", "inner=2"], "a configuration with fields of its own"),
    ):
        with pytest.raises(HardtailError) as refused:
            configured(Sample, given, "it")
        assert fault in str(refused.value)
    assert read_fields(Sample, ["share=-1e3"], "it") == {"share": -1000.0}


def test_fields_have_their_types() -> None:
    check_fields(Sample(1, share=1), "it")
    for wrong, fault in (
        (Sample("x"), "needed is 'x'; it must be a value of type int"),  # type: ignore[arg-type]
        (Sample(1, share="x"), "share is 'x'; it must be a value of type float"),  # type: ignore[arg-type]
        (Sample(1, on=3), "on is 3; it must be a value of type bool"),  # type: ignore[arg-type]
    ):
        with pytest.raises(HardtailError, match=f"it: {fault}"):
            check_fields(wrong, "it")


def test_configurations_that_differ_say_where() -> None:
    task = describe(Addition(digits=4))
    assert task == {"class": "Addition", "fields": {**task["fields"], "digits": 4}}
    assert short_name("hardtail.any.place:Addition") == "Addition"
    assert short_name("mine.place:Addition") == "mine.place:Addition"
    assert registered_name(task) == "addition"
    assert registered_name({"name": "mine"}) == "mine"
    assert registered_name({"class": "mine:Own"}) == "mine:Own"
    assert registered_name({}) is None
    five = describe(Addition(digits=5))
    assert differences(task, task) == []
    assert differences(task, five) == ["digits"]
    assert differences({"class": "R", "fields": {"task": task}}, {"class": "R", "fields": {"task": five}}) == [
        "task.digits"
    ]
    assert differences(task, {"class": "Maze", "fields": {}}) == ["everything"]
    assert differences({"class": "R", "fields": {"task": task}}, {"class": "R", "fields": {"task": 3}}) == ["task"]
    assert differences({"class": "R", "fields": {"a": 1}}, {"class": "R", "fields": {}}) == ["a"]
    assert differences(1, 2) == ["everything"]
    old = {"name": "addition", "fields": task["fields"]}
    assert differences(task, old) == []
    assert differences({**old, "other": 1}, old) == ["other"]


# -- names --------------------------------------------------------------------------------------------------------


def test_a_registry_finds_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "somebodys_own.py").write_text("class Thing:\n    class Inner: ...\n")
    held: Registry[Any] = Registry(
        "thing", "hardtail.none", {"one": "math:pi", "two": 2}, lambda found: "too large" if found == 3 else None
    )
    assert held.names() == ["one", "two"]
    assert held.paths() == {"one": "math:pi"}
    assert (round(held.load("one"), 2), held.load("two")) == (3.14, 2)
    with pytest.raises(HardtailError, match=r"did you mean 'one'\? choose from one, two, or package\.module:NAME"):
        held.load("onne")
    with pytest.raises(HardtailError, match="there is no thing 'zzz'; choose from"):
        held.load("zzz")
    with pytest.raises(HardtailError, match="is not a thing: too large"):
        Registry("thing", "hardtail.none", {}, lambda found: "too large").load("math:pi")
    monkeypatch.setattr(registry, "SEARCHED", [str(tmp_path)])
    before = list(sys.path)
    assert held.admit("somebodys_own:Thing.Inner").__name__ == "Inner"
    assert sys.path == before
    assert held.names() == ["one", "two", "somebodys_own:Thing.Inner"]
    for wrong in ("..:x", ".:x", "a b:c", "math:", ":pi", "math:no_such", "no.such.module:x"):
        with pytest.raises(HardtailError, match="cannot be loaded from"):
            held.load(wrong)
    del sys.modules["somebodys_own"]


# -- text ---------------------------------------------------------------------------------------------------------


def test_what_a_terminal_would_obey_is_shown() -> None:
    assert visible("a\tb\n\x1b[31mc\x7f\u202e\ud800") == "a\tb\n\\u001b[31mc\\u007f\\u202e\\ud800"
    assert visible("\U000e0041é🧨") == "\\udb40\\udc41é🧨"
    stream = io.StringIO()
    screen = Screen(stream)
    assert screen.write("\x1b[1mbold\x1b[0m\x1b[2J") == 16
    screen.guarding = True
    screen.writelines(["\x1b[1mplain", "\n"])
    assert stream.getvalue() == "\x1b[1mbold\x1b[0m\\u001b[2J\\u001b[1mplain\n"


def test_messages_have_an_end() -> None:
    assert shortened("x" * MOST_OF_AN_ERROR) == "x" * MOST_OF_AN_ERROR
    long = "a" * 1500 + "b" * 1500
    assert shortened(long) == "a" * 1000 + " … " + "b" * 1000
    assert MOST_OF_AN_ERROR == 2000
    assert str(HardtailError("x" * LONGEST)) == "x" * LONGEST
    assert str(HardtailError("a" * LONGEST + "b")) == "a" * 2000 + " … " + "a" * 1999 + "b"
    assert quoted("'" * MOST_QUOTED) == repr("'" * MOST_QUOTED)
    assert quoted("x" * 1081) == f"'{'x' * 80}'… (1,081 characters)"


def test_cells_of_a_table() -> None:
    cells = [None, True, False, 1234567, 9999.4, 10000.6, -10000.6, 1e12, 0.123456, "a"]
    shown = ["–", "yes", "no", "1,234,567", "9999", "10,001", "-10,001", "1e+12", "0.1235", "a"]
    assert [text(cell) for cell in cells] == shown


def test_a_table_as_people_see_it() -> None:
    table = Table("things", ("name", "n | m"), (("a|b", 1), ("long", 23456)))
    assert table.markdown() == "**things**\n\n| name | n \\| m |\n| :-- | --: |\n| a\\|b | 1 |\n| long | 23,456 |\n"
    lines = [line.rstrip() for line in table.plain(40).splitlines()]
    assert lines == ["things", "name   n | m", "────────────", "a|b        1", "long  23,456"]


def test_a_nested_result_as_tables() -> None:
    held = {
        "a_b": 1,
        "of": {"x": {"n": 1, "deep": {"k": 2}}, "y": {"n": 3, "deep": {"k": 4}}},
        "list": [{"p": 1, "q": None}, {"p": 2, "q": "z"}],
        "inner": {"only": {"one": 1.5}, "odd": {"two": 2}},
        "empty": {},
        "numbers": [1, 2],
    }
    found = [(table.title, table.columns, table.rows) for table in tabulate("t", held)]
    assert found == [
        ("t", ("", "value"), (("a b", 1),)),
        ("t: of", ("", "n"), (("x", 1), ("y", 3))),
        ("t: of, x: deep", ("", "value"), (("k", 2),)),
        ("t: of, y: deep", ("", "value"), (("k", 4),)),
        ("t: list", ("p", "q"), ((1, None), (2, "z"))),
        ("t: inner: only", ("", "value"), (("one", 1.5),)),
        ("t: inner: odd", ("", "value"), (("two", 2),)),
    ]


# -- files --------------------------------------------------------------------------------------------------------


def test_a_text_file_from_both_sides_of_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("\ufeff1\n\n  \n2\r\n" + "x" * files.LONGEST_LINE + "\n")
    assert read_lines(path) == ["1", "2", "x" * files.LONGEST_LINE]
    path.write_text("1\n" + "x" * (files.LONGEST_LINE + 1) + "\n")
    with pytest.raises(HardtailError, match="line 2 has more than 100,000 characters"):
        read_lines(path)
    path.write_text("1234567\n" * 10)
    assert len(read_lines(path, limit=10 * (8 + 64))) == 10
    with pytest.raises(HardtailError, match="takes more than 0 MB of memory"):
        read_lines(path, limit=10 * (8 + 64) - 1)


def test_records_from_both_sides_of_their_limit(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(HardtailError, match="has 5 bytes; a file of this kind has at most 4"):
        read_regular(path, 4)
    append_bytes(tmp_path / "new", b"a\n")
    append_bytes(tmp_path / "new", b"b\n")
    assert (tmp_path / "new").read_bytes() == b"a\nb\n"
    with pytest.raises(HardtailError, match="ends in the middle of a line"):
        append_bytes(path, b"x\n")


@pytest.mark.parametrize("folder", [True, False])
def test_a_lock_that_is_no_regular_file_is_neither_used_nor_removed(folder: bool, tmp_path: Path) -> None:
    path = tmp_path / "it"
    if folder:
        path.mkdir()
    lock = path / "lock" if folder else tmp_path / ".it.lock"
    os.mkfifo(lock)
    with pytest.raises(HardtailError, match="is a pipe; give a new name or a regular file"), sole_writer(path):
        pass
    assert lock.exists()


def test_errors_of_a_file_say_why(tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="cannot be read: Is a directory"):
        read_regular(tmp_path)
    with pytest.raises(HardtailError, match="cannot be written: embedded null byte"):
        files.refuse_special(Path("a\0b"))
    with pytest.raises(HardtailError, match="cannot be written: File name too long"):
        files.refuse_special(tmp_path / ("x" * 300))


def test_a_table_fits_the_screen_exactly_or_in_parts() -> None:
    """Nothing gives way while everything fits; then the widest column that can wrap does, and no word is broken."""
    table = Table("", ("name", "words", "n"), (("a", "some long words", 1),))
    assert table.width == 24
    fits, wraps = (table.plain(width).splitlines() for width in (24, 23))
    assert fits[-1] == "a     some long words  1"
    assert [line.rstrip() for line in wraps[-2:]] == ["a     some long       1", "      words"]
    assert [part.columns for part in table.parts(14)] == [("name", "words", "n")]
    assert [part.columns for part in table.parts(13)] == [("name", "words"), ("name", "n")]
    titled = Table("t", ("name", "words", "n"), (("a", "some long words", 1),))
    assert [part.title for part in titled.parts(13)] == ["t", "t, continued"]


def test_shares_in_words() -> None:
    shares = [None, 0.0, 0.001, 0.0099, 0.01, 0.5, 0.99, 0.991, 0.999, 1.0]
    said = ["–", "0 %", "under 1 %", "under 1 %", "1 %", "50 %", "99 %", "over 99 %", "over 99 %", "100 %"]
    assert [percent(share) for share in shares] == said


def test_a_first_column_of_sentences_wraps_so_that_no_number_breaks() -> None:
    sentence = "hidden cells in places that training rarely had, under random masking"
    table = Table("figures", ("figure", "ours", "seeds"), ((sentence, "0.766 [0.750, 0.782]", 1),))
    shown = table.plain(60)
    assert "continued" not in shown
    assert "0.766 [0.750, 0.782]" in shown
    assert max(map(len, shown.splitlines())) <= 60
