"""Text that people and files give: long lines, slow patterns, foreign digits, and codes that a terminal would obey."""

import io
import json
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from rich.text import Text

import hardtail
from hardtail import HardtailError
from hardtail.core import terminal
from hardtail.core.errors import quoted
from hardtail.core.files import manifest_path
from hardtail.core.tables import plain
from hardtail.core.terminal import visible
from hardtail.tasks import reading
from tests.conftest import Command
from tests.hostile import ESCAPES, data_set, small_addition, trace_file, untrained_run
from tests.report_toys import results as planted_results

# -- long and slow ----------------------------------------------------------------------------------------------------

N = 20_000
"""A pattern that is quadratic takes seconds at ten times this length; tests count steps instead of time."""
LONG = {
    "addition": ("1+2" + " " * N + "x", "1" * N + "x", "1" + " " * N + "+", " " * N + "1", "1+" + "1" * N),
    "listops": ("[X" + "1" * N + "]", "[" * N, "[X " * N, "[X" + " " * N, "[X 1" + "]" * N, "[X " + "12 " * N),
    "countdown": (" " * N + "1", "1" + " " * N + "x", "," * N, "1," * N, "9" * N, '{"input": ' + "[" * N, "{" * N),
    "maze": ("#" * N, "S" * N, " " * N + "#", "#\n" * N),
    "sudoku": ("." * N, " " * N + ".", '"' * N, "," * N),
}


@pytest.mark.parametrize("name", LONG)
def test_long_text_is_refused_in_a_short_sentence(name: str) -> None:
    task = hardtail.task(name)
    for text in LONG[name]:
        with pytest.raises(HardtailError) as refused:
            list(reading.problems(task, text, fit=True))
        assert len(str(refused.value)) < 500
        with pytest.raises(HardtailError) as refused:
            reading.solve(task, task.prompts(text.split("\n")))
        assert len(str(refused.value)) < 500


CALL = r're\.(?:compile|sub|split|\w*match|search)\(\s*rb?"((?:[^"\\]|\\.)+)"'


def test_no_pattern_tries_a_text_in_more_than_linear_many_ways() -> None:
    """Two repetitions side by side that match the same characters try every split of a text between them."""
    parser = import_module("re._parser")
    root = Path(hardtail.__file__).parent
    literals = [(path, match[1]) for path in root.rglob("*.py") for match in re.finditer(CALL, path.read_text())]
    assert len(literals) > 8
    for path, pattern in literals:
        _refuse_neighbours(parser.parse(pattern), f"{path.name}: {pattern}")


def _refuse_neighbours(items: Any, where: str) -> None:
    """Fail for `\\s*=?\\s*` and its like: repetitions with only optional parts in between."""
    waiting: list[Any] = []
    for operator, argument in items:
        name = str(operator)
        if name in ("MAX_REPEAT", "MIN_REPEAT"):
            low, high, inner = argument
            _refuse_neighbours(inner, where)
            if high > 100:
                assert str(list(inner)) not in waiting, f"{where} repeats the same twice in a row"
                waiting.append(str(list(inner)))
            if low == 0:
                continue
            waiting = waiting[-1:] if high > 100 else []
        elif name in ("SUBPATTERN", "ATOMIC_GROUP"):
            _refuse_neighbours(argument[-1], where)
            waiting = []
        elif name == "BRANCH":
            for branch in argument[1]:
                _refuse_neighbours(branch, where)
            waiting = []
        elif name not in ("AT", "ASSERT", "ASSERT_NOT"):
            waiting = []


def test_the_check_of_patterns_finds_the_old_one() -> None:
    parser = import_module("re._parser")
    with pytest.raises(AssertionError, match="twice in a row"):
        _refuse_neighbours(parser.parse(r"\s*([0-9]+)\s*\+\s*([0-9]+)\s*=?\s*"), "addition")


def test_results_come_as_they_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """750,000 lines showed nothing for a minute: the first answers do not wait for the last problems."""
    task = hardtail.task("addition")
    lines = ["1+2"] * 5000 + ["no problem"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    parsed: list[int] = []
    parse = type(task).parse

    def counted(self: Any, prompts: Any) -> Any:
        parsed.append(len(prompts))
        return parse(self, prompts)

    monkeypatch.setattr(type(task), "parse", counted)
    found = reading.problems(task, "-", fit=True)
    assert next(found).i == 0
    assert parsed == [20]
    with pytest.raises(HardtailError, match="problem 5001: addition: 'no problem' is not a sum"):
        list(found)


@pytest.mark.parametrize("value", ["١", "1_0", " 8", "8 ", "0x8", "1e", "٣.٥", "𝟴", "9" * 5000, "1e99999", ""])
def test_numbers_are_written_in_ascii(value: str, hardtail_command: Command) -> None:
    for task, field, kind in (("addition", "digits", "whole number"), ("maze", "bias", "number")):
        code, _, err = hardtail_command("sample", task, "--set", f"{field}={value}")
        assert code == 2
        assert f"is {quoted(value)}; it must be a {kind}" in err


# -- codes that a terminal obeys --------------------------------------------------------------------------------------

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def test_every_control_character_is_shown() -> None:
    everything = "".join(map(chr, range(0x11_0000)))
    shown = visible(everything)
    assert not OBEYED.search(shown)
    assert visible("plain\ttext, é, 数, ✓\n") == "plain\ttext, é, 数, ✓\n"
    assert visible(ESCAPES).startswith("\\u001b[2Jgone\\u001b]0;title\\u0007\\u009b31m\\u202eback\\u007f")
    shown.encode()  # no half of a character is left
    for text in (ESCAPES, "\udcff", "\U000e0041"):
        assert json.loads(f'"{visible(text)}"') == text  # JSON that a screen shows stays the same JSON


def _hostile_files(folder: Path) -> list[tuple[str, ...]]:
    """Files with escapes in every text that they have, and the commands that read them."""
    run, task = untrained_run(folder / "run"), small_addition()
    said = json.loads((run / "recipe.json").read_text())
    said["fields"]["name"] = ESCAPES
    (run / "recipe.json").write_text(json.dumps(said))
    record = {"kind": "accuracy", "policy": ESCAPES, "model": ESCAPES, "stratum": ESCAPES, "n": 1, "exact_match": 1.0}
    (run / "evaluations.jsonl").write_text(json.dumps(record) + "\n")
    torn = folder / "torn"
    torn.mkdir()
    (torn / "recipe.json").write_text(json.dumps({"fields": {"task": {"name": ESCAPES}, "seed": 1, "steps": 1}}))
    about: dict[str, Any] = dict.fromkeys(("model", "note", "stratum", "policy", "recipe"), ESCAPES)
    trace = trace_file(folder / "trace.npz", task, None, **about)
    data = data_set(folder / "data.npz", task)
    manifest = json.loads(manifest_path(data).read_text())
    texts = dict.fromkeys(("hardtail", "preset", "split", "file", "train_and_test"), ESCAPES)
    manifest_path(data).write_text(json.dumps(manifest | texts | {"streams": [ESCAPES]}))
    other = data_set(folder / "other.npz", task)
    manifest_path(other).write_text(json.dumps(manifest | {"task": {"name": ESCAPES, "fields": {ESCAPES: ESCAPES}}}))
    problems = folder / "problems.txt"
    problems.write_text(f"1+{ESCAPES}\n")
    store = planted_results(folder / "results")
    for path in (store / "index.jsonl", *store.glob("*/evaluations.jsonl"), *store.glob("*/diagnoses.jsonl")):
        text = path.read_text().replace('"top1"', json.dumps(ESCAPES)).replace('"CPU', json.dumps(ESCAPES)[:-1])
        path.write_text(text)
    bad = folder / "bad"
    bad.mkdir()
    (bad / "index.jsonl").write_text(json.dumps({"name": ESCAPES, "kind": ESCAPES}) + "\n")
    named = folder / f"n{ESCAPES.replace('/', '')}.npz"
    out = str(folder / "page.html")
    return [
        ("eval", str(run), "-n", "1", "--strata", "natural", "--gallery", "1"),
        ("diagnose", str(run), "-n", "1", "--strata", "natural"),
        ("diagnose", str(run), "-n", "1", "--strata", "natural", "--json"),
        ("report", str(run), "-n", "1", "--out", out),
        *((command, str(torn)) for command in ("eval", "diagnose", "report")),
        ("train", "addition-random-smoke", "--out", str(torn)),
        ("train", "addition-random-smoke", "--out", str(folder / "new"), "--data", str(data)),
        ("view", str(trace)),
        ("diagnose", str(trace)),
        ("diagnose", str(trace), "--json"),
        ("report", str(trace), "--out", out),
        ("inspect", str(data)),
        ("inspect", str(data), "--json"),
        ("inspect", str(other)),
        ("inspect", str(named)),
        ("view", str(named)),
        ("solve", "addition", str(problems)),
        ("solve", "addition", ESCAPES),
        ("check", "addition", "1+2", ESCAPES),
        ("check", "countdown", "86,28,13,31,96", ESCAPES),
        ("data", "addition", "--from", str(problems), "--out", str(folder / "built.npz")),
        ("sample", ESCAPES),
        ("sample", "addition", "--set", ESCAPES),
        ("sample", "addition", "--stratum", ESCAPES),
        ("claims", "--results", str(store)),
        ("claims", "--results", str(store), "--markdown"),
        ("claims", "--results", str(bad)),
        ("claims", "--results", str(store), "--json"),
        ("study", "--results", str(bad)),
        ("study", "advance", ESCAPES),
        ("eval", f"zoo:{ESCAPES}"),
        ("eval", "zoo:addition-random", "--device", ESCAPES),
        ("--path", ESCAPES, "tasks"),
        ("eval", "run", ESCAPES),
        (ESCAPES,),
        ("train", "addition-random-smoke", f"--{ESCAPES}"),
    ]


def test_no_command_passes_codes_from_files_to_the_terminal(tmp_path: Path, hardtail_command: Command) -> None:
    shown = 0
    for words in _hostile_files(tmp_path):
        code, out, err = hardtail_command(*words)
        assert code in (0, 1, 2), words
        assert not OBEYED.search(out + err), words
        assert "Traceback" not in err
        shown += "\\u001b" in out + err or "\\x1b" in out + err
    assert shown >= 20


def test_names_of_files_that_are_no_text(tmp_path: Path, hardtail_command: Command) -> None:
    name = os.fsdecode(b"run\xff\x1b[2J")
    (tmp_path / name).mkdir()
    code, _, err = hardtail_command("eval", str(tmp_path / name))
    assert code == 2
    assert "\\udcff\\u001b[2J is not a run directory" in err


class Terminal(io.StringIO):
    """Standard output of a person who sits in front of it."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_our_colours_and_no_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hardtail import cli
    from hardtail.core.tables import Table

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for words in (("view", str(trace_file(tmp_path / "t.npz", small_addition(), model=ESCAPES))), ("tasks",)):
        screen = Terminal()
        monkeypatch.setattr(sys, "argv", ["hardtail", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        monkeypatch.setattr(sys, "stdout", screen)
        cli.main()
        assert sys.stdout is screen
        text = screen.getvalue()
        assert re.search("\x1b\\[[0-9;]*m", text), words
        assert not OBEYED.search(re.sub("\x1b\\[[0-9;]*m", "", text))
        assert ("gone\\u001b]0;title" in text) == (words[0] == "view")
    screen = Terminal()
    monkeypatch.setattr(sys, "stdout", screen)
    terminal.console(width=200).print(Table(ESCAPES, (ESCAPES,), ((ESCAPES,),)).rich())
    assert not OBEYED.search(re.sub("\x1b\\[[0-9;]*m", "", screen.getvalue()))


def test_help_keeps_its_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    from hardtail import cli

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for words in (["--help"], ["eval", "--help"], ["train", "addition-random", "--help"]):
        screen = Terminal()
        monkeypatch.setattr(sys, "argv", ["hardtail", *words])
        monkeypatch.setattr(sys, "stdout", screen)
        with pytest.raises(SystemExit):
            cli.main()
        assert "\\u001b" not in screen.getvalue()
        assert "\x1b[" in screen.getvalue()


def test_all_consoles_clean_their_text() -> None:
    """A console made in any other way would pass escapes on; `core.terminal` is the one place that makes them."""
    root = Path(hardtail.__file__).parent
    makers = [path for path in root.rglob("*.py") if re.search(r"Console\((?!Console\))", path.read_text())]
    assert {path.relative_to(root).as_posix() for path in makers} == {"core/terminal.py", "core/tables.py"}
    assert not OBEYED.search(plain(Text(ESCAPES)))  # what the second one makes is text, and clean


@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_run_in_a_folder_of_a_name_that_no_table_can_show(
    command: str, tmp_path: Path, hardtail_command: Command
) -> None:
    run = untrained_run(tmp_path / "e\x1b[2J")
    code, _, err = hardtail_command(command, str(run))
    assert code == 2
    assert "cannot name a run: tables and pages cannot show it; rename its folder" in err
    assert "\x1b" not in err


@pytest.mark.parametrize("words", [["s" + "," * 100_000], ["solve", "addition", "1" * 100_001]])
def test_a_word_without_an_end_is_refused_before_it_is_parsed(words: list[str], hardtail_command: Command) -> None:
    """Found by a long run: the parser looked for commands like it for seconds."""
    code, out, err = hardtail_command(*words)
    assert (code, out) == (2, "")
    assert err == "hardtail: a word has 100,001 characters; give long problems in a file\n"
