"""The commands as a person types them: what they print, and what they say when the person errs."""

import gzip
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hardtail import cli
from hardtail.core.files import load_instances

PAPER_SUDOKU = "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79"
PAPER_SOLUTION = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
MAZE = ["#######", "#S..#.#", "###.#.#", "#...#.#", "#.###.#", "#....E#", "#######"]


class Shell:
    """Runs a command in this process and keeps what it printed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys
        self.out = self.err = ""

    def __call__(self, *words: str, stdin: str = "") -> int:
        self.monkeypatch.setattr(sys, "argv", ["hardtail", *words])
        self.monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("latin-1"))))
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        self.out, self.err = self.capsys.readouterr()
        return int(code or 0)

    def json(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("task", "prompt", "answer", "stratum"),
    [
        ("addition", "47+38", "085", ("chain", 0)),
        ("addition", "0047+0038", "00085", ("chain", 0)),
        ("listops", "[X 3 [N 2 5] 7]", "27", ("depth", 2)),
        ("listops", "[X3[N25]7]", "27", ("depth", 2)),
        ("countdown", "86,28,13,31,96", "86+28=114,31-13=18,114-18=96", ("m", 18)),
        ("sudoku", PAPER_SUDOKU, PAPER_SOLUTION, ("rating", 0)),
        ("maze", "".join(MAZE), "########S11#0####1#0##111#0##1###0##1111E########", ("corridor", 11)),
    ],
)
def test_solve(shell: Shell, task: str, prompt: str, answer: str, stratum: tuple[str, int]) -> None:
    assert shell("solve", task, prompt, "--json") == 0
    (solved,) = shell.json()
    assert solved["answer"] == answer
    assert solved["strata"][stratum[0]] == stratum[1]
    for ranks in solved["orders"].values():
        assert len(ranks) == len(answer)
    assert shell("solve", task, prompt) == 0
    assert answer in shell.out
    assert shell("check", task, prompt, answer) == 0
    assert shell.out == "valid\n"


def test_solve_many_from_standard_input(shell: Shell) -> None:
    assert shell("solve", "addition", "-", "--json", stdin="1+2\n\n123+4567\n3+4\n") == 0
    assert [item["answer"] for item in shell.json()] == ["03", "04690", "07"]


def test_input_that_is_no_text(shell: Shell, tmp_path: Path) -> None:
    assert shell("solve", "addition", "-", stdin="\xff\xfe") == 2
    assert "standard input is not a text file" in shell.err
    damaged = tmp_path / "rows.jsonl.gz"
    damaged.write_bytes(bytearray(gzip.compress(b"86,28,13,31,96\n" * 50))[:20] + b"\x00" * 40)
    assert shell("solve", "countdown", str(damaged)) == 2
    assert "Traceback" not in shell.err


def test_what_reads_as_a_problem_is_one(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file may be called 85 or 47+38 without anyone noticing; a pipe is a file."""
    monkeypatch.chdir(tmp_path)
    for name in ("85", "47+38"):
        (tmp_path / name).write_text("hello")
    assert shell("check", "addition", "47+38", "85") == 0
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=lambda: (tmp_path / "pipe").write_text("1+2\n"))
    writer.start()
    assert shell("solve", "addition", "pipe", "--json") == 0
    writer.join()
    assert shell.json()[0]["answer"] == "03"


def test_set_fields_are_kept(shell: Shell) -> None:
    for words in (("addition", "1+2", "--set", "digits=8"), ("addition,digits=8", "1+2")):
        assert shell("solve", *words, "--json") == 0
        assert shell.json()[0]["answer"] == "000000003"


def test_solve_files(shell: Shell, tmp_path: Path) -> None:
    drawn = tmp_path / "maze.txt"
    drawn.write_text("\n".join([*MAZE, "", *MAZE]))
    assert shell("solve", "maze", str(drawn), "--json") == 0
    assert len(shell.json()) == 2
    rows = tmp_path / "rated.csv"
    rows.write_text(f"source,question,answer,rating\nx,{PAPER_SUDOKU},{PAPER_SOLUTION},0\n")
    assert shell("solve", "sudoku", str(rows), "--json") == 0
    assert shell.json()[0]["strata"]["tier"] == "easy"
    chains = tmp_path / "cd4.jsonl"
    chains.write_text('{"input": "86,28,13,31,96", "output": "86+28=114,31-13=18,114-18=96"}\n')
    assert shell("solve", "countdown", str(chains), "--json") == 0
    assert shell.json()[0]["strata"]["m"] == 18


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["addition", "47+38", "084"], "10^0"),
        (["addition", "47+38", "eighty"], "at most 3 digits"),
        (["listops", "[X 3 [N 2 5] 7]", "37"], "[N 2 5]"),
        (["countdown", "86,28,13,31,96", "86+28=114,31-13=17,114-18=96"], "equation 2"),
        (["countdown", "86,28,13,31,96", "86+28=114,86-13=73,114-18=96"], "86"),
        (["sudoku", PAPER_SUDOKU, "5" + PAPER_SOLUTION[:-1]], "row 1"),
        (["maze", "".join(MAZE), "".join(MAZE).replace(".", "1")], "row 2, column 6"),
    ],
)
def test_check_says_why_not(shell: Shell, words: list[str], sentence: str) -> None:
    assert shell("check", *words) == 1
    assert shell.out.startswith("not valid: ")
    assert sentence in shell.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["solve", "adition", "1+1"], "did you mean 'addition'?"),
        (["solve", "addition", "47plus38"], "e.g. '47+38'"),
        (["solve", "addition", "nothere.txt"], "no such file"),
        (["solve", "countdown", "86,28,13"], "4 numbers and a target"),
        (["solve", "countdown", "1,1,1,1,100"], "no solution"),
        (["solve", "countdown", "a,28,13,31,96"], "countdown"),
        (["solve", "listops", "[X 3 [N 2 5] 7"], "bracket"),
        (["solve", "listops", "[Q 3 4]"], "Q"),
        (["solve", "sudoku", "123"], "81"),
        (["solve", "sudoku", "x" + PAPER_SUDOKU[1:]], "'x'"),
        (["solve", "sudoku", "55" + PAPER_SUDOKU[2:]], "row 1"),
        (["solve", "sudoku", "." * 81], "solution"),
        (["solve", "maze", "".join(MAZE).replace("S..", "S#.")], "no path"),
        (["sample", "maze", "--stratum", "depth=3"], "corridor"),
        (["sample", "addition", "-n", "0"], "at least 1"),
        (["sample", "addition", "-n", "1" + 30 * "0"], "at most 100,000,000"),
        (["sample", "addition", "--stratum", "chain>=inf"], "not a stratum"),
        (["sample", "addition", "--stratum", "chain=easy"], "chain must be a number"),
        (["sample", "addition", "--stratum", "chain>=5,chain<=3"], "empty"),
        (["sample", "sudoku", "--stratum", "tier=brutal"], "one of easy, medium"),
        (["sample", "os:path"], "is not a task"),
        (["sample", "hardtail.tasks.base:Task"], "is not a task"),
        (["solve", "maze", "nosuchfile"], "there is no file of that name either"),
        (["solve", "maze", "/"], "is a folder"),
        (["solve", "addition", ""], "the argument is empty"),
        (["check", "countdown", "", ""], "the argument is empty"),
        (["check", "addition", "47+38", " "], "the answer is empty; give an answer, or the name of a file"),
        (["check", "addition", "47+38", "nofile.txt"], "no such file"),
        (["data", "addition", "--out", "/proc/x.npz"], "cannot be written"),
        (["inspect", "absent.npz"], "is not a file; give an .npz or .parquet"),
        (["sample", "addition", "--seed", "-1"], "seed is -1; it must be at least 0"),
        (["sample", "addition", "--set", "digits=many"], "number"),
        (["sample", "addition", "--set", "digits"], "FIELD=VALUE"),
        (["sample", "addition", "--set", "sum=partial"], "'modulo'"),
        (["sample", "addition", "--preset", "draft"], "release, paper"),
        (["data", "addition", "--out", "x.csv"], ".npz"),
        (["data", "addition", "--out", "x.npz", "--split", "dev"], "train, test"),
        (["data", "sudoku", "--out", "x.npz", "--from", "absent.csv"], "cannot be read"),
        (
            ["data", "sudoku", "--out", "x.npz", "--from", "a.csv", "--keep-overlap"],
            "--keep-overlap has no use with",
        ),
        (["data", "sudoku", "--out", "x.npz", "--limit", "2"], "--limit has no use without --from"),
        (["train", "--steps", "5", "addition-puma-smoke"], "--steps must follow a recipe"),
        (["study", "prepare", "addition", "-n", "0"], "at least 1"),
        (["frobnicate"], "frobnicate"),
    ],
)
def test_mistakes_get_one_sentence(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shell(*words) == 2
    assert sentence in shell.err
    assert "Traceback" not in shell.err
    assert shell.out == ""
    assert not list(tmp_path.iterdir())


def test_a_wrong_line_is_named(shell: Shell) -> None:
    assert shell("solve", "addition", "-", "--json", stdin="1+2\n3*4\n") == 2
    assert "problem 2" in shell.err
    assert shell.out == ""
    assert shell("solve", "addition", "-", stdin="\n") == 2
    assert "no problem" in shell.err


def test_sample_is_seeded(shell: Shell) -> None:
    drawn = []
    for seed in ("1", "1", "2"):
        assert shell("sample", "addition", "--stratum", "chain>=28", "-n", "3", "--seed", seed, "--json") == 0
        drawn.append(shell.json())
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 3
    assert all(item["strata"]["chain"] >= 28 for item in drawn[0])


def test_data_builds_saves_and_will_not_overwrite(shell: Shell, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "listops.npz"
    assert shell("data", "listops", "--split", "test", "-n", "50", "--out", str(out), "--preset", "paper") == 0
    instances, manifest = load_instances(out)
    assert len(instances) == 50
    assert isinstance(manifest.task, dict)
    assert (manifest.task["name"], manifest.preset, manifest.split) == ("listops", "paper", "test")
    assert shell("data", "listops", "--split", "test", "-n", "50", "--out", str(out)) == 2
    assert "--force" in shell.err
    assert shell("data", "listops", "--split", "test", "-n", "60", "--out", str(out), "--force", "--bare") == 0
    instances, _ = load_instances(out)
    assert len(instances) == 60
    assert not instances.orders
    overlapping = ("data", "listops", "-n", "1", "--out", str(out), "--force", "--keep-overlap")
    assert shell(*overlapping) == 0
    assert "listops.npz: 1 instance, 1 distinct" in shell.out
    assert shell.out.endswith("train and test are not kept apart\n")
    assert sorted(path.name for path in out.parent.iterdir()) == ["listops.json", "listops.npz"]
    assert shell("inspect", str(out)) == 0
    assert "not kept apart" in shell.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_build_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hardtail", "data", "maze", "-n", "2000000", "--out", str(tmp_path / "maze.npz")]
    building = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list(tmp_path.iterdir()):  # the lock: the build has begun
        time.sleep(0.05)
    refused = subprocess.run(command, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "another process" in refused.stderr
    building.send_signal(number)
    _, said = building.communicate(timeout=60)
    assert building.returncode in (130, 143)
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_a_wrong_line_of_a_file_for_data_is_named(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "sums.txt"
    source.write_text("1+2\n\n3*4\n")
    assert shell("data", "addition", "--from", str(source), "--out", str(tmp_path / "out.npz")) == 2
    assert f"{source}: problem 2: addition: '3*4' is not a sum" in shell.err


def test_data_from_a_file(shell: Shell, tmp_path: Path) -> None:
    source = tmp_path / "puzzles.txt"
    source.write_text(f"{PAPER_SUDOKU}\n{PAPER_SUDOKU.replace('.', '0')}\n")
    out = tmp_path / "out.npz"
    assert shell("data", "sudoku", "--from", str(source), "--out", str(out)) == 0
    instances, manifest = load_instances(out)
    assert len(instances) == 2
    assert manifest.file == "puzzles.txt"
    assert manifest.distinct == 1


def test_tasks_and_help(shell: Shell) -> None:
    assert shell("tasks") == 0
    for name in ("addition", "maze", "listops", "countdown", "sudoku"):
        assert name in shell.out
    assert shell() == 0
    assert "solve" in shell.out
    assert shell("--version") == 0


def test_a_closed_pipe_is_no_error() -> None:
    command = f"{sys.executable} -m hardtail sample addition -n 3000 --json | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
