"""`hardtail view`: what a person sees of a decode, in a terminal (a pseudo-terminal here) and in a pipe.

Shapes: N instances, A answer cells, S steps.
"""

import contextlib
import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import hardtail
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis.prerequisites import prerequisites
from hardtail.policies.named import policy_named
from hardtail.show.theatre import Theatre, open_theatre
from hardtail.show.theatre.keyboard import Keyboard, keyboard
from hardtail.show.theatre.replay import Replay
from hardtail.show.theatre.watch import HIDDEN, _scene, frame
from hardtail.traces.commits import first_in_time, wrong_cells
from hardtail.traces.states import hidden_before, standing
from tests.conftest import Command
from tests.diagnose_toys import SMALL, remasked_trace, small
from tests.planted_other import reciting
from tests.report_toys import TASK, addition_traces

TASKS = ("addition", "maze", "listops", "countdown", "sudoku")
WAIT = 20
"""Seconds after which a program that shows nothing new has failed."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The planted shortcut on hard sums by confidence: some are solved, some fail."""
    trace = next(held for held in addition_traces(12, {"puma": 2})[2:] if held.about["policy"] == "top1")
    instances = TASK.sample(3, hardtail.Streams(8).named("easy"), "chain=0-1")
    easy = decode(
        reciting(TASK, instances, instances.answer_NA, np.full((3, 13), 0.9)), instances, policy_named("top1")
    )
    both = Trace.concat([replace(easy, about=trace.about), trace])
    path = tmp_path_factory.mktemp("traces") / "trace.npz"
    save_trace(path, both)
    return path


@pytest.fixture(scope="module")
def decoded() -> Callable[[str], Trace]:
    """Three instances of a task, wrong in one scored cell of the first two."""

    def make(name: str) -> Trace:
        task = hardtail.task(name)
        instances = task.sample(3, hardtail.Streams(5).named(name), task.gallery()[0])
        answer_NA, rng = instances.answer_NA.copy(), np.random.default_rng(0)
        sure_NA = rng.uniform(0.5, 0.99, answer_NA.shape)
        for row in range(2):
            cell = np.flatnonzero(instances.scored_NA[row] & instances.maskable_NA[row])[row]
            answer_NA[row, cell] = next(token for token in task.answer_tokens if token != answer_NA[row, cell])
        about = {"task": name, "config": task.config(), "policy": "top1", "model": "planted"}
        return decode(reciting(task, instances, answer_NA, sure_NA), instances, policy_named("top1"), about=about)

    return make


# -- in a terminal ----------------------------------------------------------------------------------------------------


class Terminal:
    """A pseudo-terminal in which `hardtail view` runs."""

    def __init__(self, *words: str) -> None:
        self.here, self.there = pty.openpty()
        fcntl.ioctl(self.here, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.before = termios.tcgetattr(self.there)
        env = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        self.program = subprocess.Popen(
            [sys.executable, "-m", "hardtail", "view", *words],
            stdin=self.there,
            stdout=self.there,
            stderr=self.there,
            env=env | {"TERM": "xterm-256color"},
            start_new_session=True,
        )
        self.said = b""

    def press(self, keys: str, wanted: str) -> str:
        """Press keys and wait for a screen that says `wanted`; the screen."""
        os.write(self.here, keys.encode())
        while wanted not in (screen := self.screen()):
            assert self._read(), f"after {keys!r} no {wanted!r} in:\n{screen}"
        return screen

    def screen(self) -> str:
        """The last screen that is whole."""
        whole = self.said.rpartition(b"q quit")[0]
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", whole.rpartition(b"\x1b[H")[2].decode())

    def _read(self, wait: float = WAIT) -> bool:
        ready, _, _ = select.select([self.here], [], [], wait)
        if ready:
            self.said += os.read(self.here, 65536)
        return bool(ready)

    def ended(self) -> int:
        """Its exit code, after checking that the terminal is as it was."""
        while self.program.poll() is None:
            self._read(0.05)  # it cannot end before someone has read what it says
        while self._read(0):
            pass
        code = self.program.returncode
        assert termios.tcgetattr(self.there) == self.before
        assert self.said.rfind(b"\x1b[?1049l") > self.said.rfind(b"\x1b[?1049h"), "the screen of before is back"
        assert self.said.rfind(b"\x1b[?25h") > self.said.rfind(b"\x1b[?25l"), "the cursor is back"
        return code


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def start(*words: str) -> Terminal:
        opened.append(Terminal(*words))
        return opened[-1]

    yield start
    for held in opened:
        held.program.kill()
        held.program.wait()
        os.close(held.here)
        os.close(held.there)


def test_keys_step_jump_to_failures_and_quit(terminal: Callable[..., Terminal], path: Path) -> None:
    at = terminal(str(path))
    assert "instance 0 of 0–14: solved" in at.press("", "step 0 of 13")
    at.press("\x1b[C", "step 1 of 13")
    assert "right: gold ranked 1" in at.press("\x1b[C\x1b[C", "step 3 of 13")
    at.press("\x1b[D", "step 2 of 13")
    at.press("\x1b[F", "step 13 of 13")
    at.press("\x1b[H", "step 0 of 13")
    first, second, *_ = np.flatnonzero(~load_trace(path).exact_N).tolist()
    failed = at.press("f", f"instance {first} of 0–14: failed")
    assert "WRONG" in failed
    assert "not ready: waits for 10^" in failed
    assert "WRONG" in at.press("f", f"instance {second} of 0–14: failed")
    at.press("p", "step 0 of 13")
    at.press(" ", "step 13 of 13")  # plays to the end by itself
    os.write(at.here, b"q")
    assert at.ended() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_however_it_is_stopped_the_terminal_is_put_back(
    terminal: Callable[..., Terminal], path: Path, number: int, code: int
) -> None:
    at = terminal(str(path), "--failures")
    at.press("", "step 0 of 13")
    at.press("f", "WRONG")
    at.program.send_signal(number)
    assert at.ended() == code


def test_an_exception_puts_the_terminal_back() -> None:
    here, there = pty.openpty()
    before = termios.tcgetattr(there)
    with contextlib.suppress(RuntimeError), keyboard(there):
        assert termios.tcgetattr(there) != before
        raise RuntimeError
    assert termios.tcgetattr(there) == before
    os.close(here)
    os.close(there)


def test_keys_are_told_apart_however_they_arrive() -> None:
    out, into = os.pipe()
    keys = Keyboard(out)
    os.write(into, b"\x1b[Cf\x1b[1~\x1bOF\x1b[1;5D\x1b[15~ \x1b[")
    assert [keys.next(1) for _ in range(7)] == ["right", "f", "home", "end", "left", "", " "]
    os.write(into, b"A")  # the rest of a sequence that was split
    assert keys.next(1) == "up"
    os.write(into, b"\x1b")
    assert [keys.next(1), keys.next(0)] == ["", None], "Escape alone is no key of ours"
    os.close(into)
    assert keys.next(1) == "q", "a terminal that is gone quits"
    os.close(out)


# -- what is shown ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS)
def test_hidden_cells_are_dots_and_the_end_is_the_answer(
    name: str, decoded: Callable[[str], Trace], tmp_path: Path
) -> None:
    save_trace(tmp_path / "trace.npz", decoded(name))
    theatre = open_theatre(load_trace(tmp_path / "trace.npz"), "trace.npz")
    cells = int(theatre.replay.one.maskable_NA[0].sum())
    for step in range(theatre.replay.steps + 1):
        assert (theatre.now, _scene(theatre).plain.count(HIDDEN)) == (step, cells - step)
        theatre.press("right")
    np.testing.assert_array_equal(theatre.replay.token_SA[-1], theatre.trace.answer_NA[0])
    red = [span for span in _scene(theatre).spans if "#c62f10" in str(span.style)]
    assert len(red) == 1, "the wrong cell"


@pytest.mark.parametrize("policy", ["remdm", "threshold"])
def test_states_are_those_of_the_trace_under_any_policy(policy: str) -> None:
    instances = TASK.sample(3, hardtail.Streams(4).named("any"), "natural")
    sure_NA = np.random.default_rng(1).uniform(0.5, 0.99, instances.maskable_NA.shape)
    trace = decode(reciting(TASK, instances, instances.answer_NA, sure_NA), instances, policy_named(policy))
    hidden_NSA = hidden_before(trace)
    for row in range(3):
        replay = Replay.of(TASK, trace, row)
        hidden_SA = replay.token_SA == trace.mask_id
        np.testing.assert_array_equal(hidden_SA[:-1], hidden_NSA[row, : replay.steps])
        np.testing.assert_array_equal(replay.token_SA[-1], trace.answer_NA[row])


def test_a_commit_says_what_it_did_not_wait_for(path: Path) -> None:
    theatre = open_theatre(load_trace(path), path, failures=True)
    theatre.press("f")
    (event,) = theatre.replay.events_of(theatre.now - 1)
    power = TASK.digits - event.cell
    assert theatre.replay.missing(event) == [f"10^{power - 1}"], "the digit below is the one that was hidden"
    trace = load_trace(path)
    bare = replace(trace, instances=trace.instances.bare())
    assert Replay.of(TASK, bare, theatre.row).missing(event) is None, "nothing is known of bare instances"


def test_the_words_stand_beside_the_drawing_where_there_is_room(
    decoded: Callable[[str], Trace], tmp_path: Path
) -> None:
    from rich.console import Console

    save_trace(tmp_path / "maze.npz", decoded("maze"))
    theatre = open_theatre(load_trace(tmp_path / "maze.npz"), "maze.npz")
    for width, height in ((80, 24), (60, 40)):
        console = Console(width=width, file=io.StringIO(), record=True)
        console.print(frame(theatre, width, height))
        lines = console.export_text().splitlines()
        assert len(lines) <= height
        assert any("step 0 of" in line and line.startswith("██") for line in lines) is (width == 80)
    for width, height, needed in ((40, 24, 29), (80, 20, 23), (60, 24, 29)):
        console = Console(width=80, file=io.StringIO(), record=True)
        console.print(frame(theatre, width, height))
        said = f"The window has {width} × {height} characters; this problem needs 42 × {needed}. q quits"
        assert console.export_text() == f"{said}\n"


def test_f_finds_the_wrong_commit_before_it_moves_on(path: Path) -> None:
    trace = load_trace(path)
    failing = np.flatnonzero(~trace.exact_N).tolist()
    theatre = Theatre(TASK, trace, list(range(len(trace))), failing[0])
    theatre.press("f")
    assert (theatre.row, theatre.now - 1) == (failing[0], theatre.replay.first_wrong)
    visited = []
    for _ in failing:
        theatre.press("f")
        visited.append(theatre.row)
    assert visited == [*failing[1:], failing[0]], "all of them, then round again"


# -- as text, and mistakes --------------------------------------------------------------------------------------------


@pytest.fixture
def view(hardtail_command: Command) -> Command:
    return partial(hardtail_command, "view")


def test_a_wrong_commit_that_was_taken_back_is_none_to_go_to() -> None:
    """As in the diagnosis, which answers for what stands at the end."""
    trace, _ = remasked_trace(SMALL, small(), np.random.default_rng(0))
    first = first_in_time(trace, wrong_cells(trace) & standing(trace).there_NA)
    found = {row: Replay.of(SMALL, trace, row).first_wrong for row in range(len(trace))}
    assert {row: step for row, step in found.items() if step is not None} == dict(
        zip(first.row_K.tolist(), first.step_K.tolist(), strict=True)
    )
    taken_back = trace.wrong_NT & (trace.step_NT < np.array([found[row] or 0 for row in range(len(trace))])[:, None])
    assert taken_back.any()


def test_in_a_pipe_every_commit_is_a_line(view: Command, path: Path) -> None:
    code, out, _ = view(str(path), "--failures")
    steps = [line for line in out.splitlines() if line.startswith("step")]
    assert (code, len(steps)) == (0, 13)
    assert sum("WRONG: gold" in line for line in steps) >= 1
    assert "wrong digits: " in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out
    assert "the answer is right" in view(str(path), "--instance", "0")[1]


def test_mistakes_are_sentences(view: Command, path: Path, tmp_path: Path) -> None:
    trace = load_trace(path)
    damaged, unknown, right, many = (tmp_path / f"{name}.npz" for name in ("damaged", "unknown", "right", "many"))
    save_trace(damaged, trace)
    damaged.write_bytes(damaged.read_bytes()[:-100])
    save_trace(unknown, replace(trace, about={**trace.about, "task": "chess"}))
    save_trace(right, trace.take(trace.exact_N))
    fails = int(np.flatnonzero(~trace.exact_N)[0])
    save_trace(many, trace.take(np.array([0, *[fails] * 12])))
    for words, said in {
        (str(tmp_path / "none.npz"),): "is not a file",
        (str(damaged),): "hashes differ",
        (str(unknown),): "chess",
        (str(right), "--failures"): "no failure",
        (str(path), "--instance", "99"): "trace.npz is 14",
        (str(path), "--instance", "0", "--failures"): "is right",
        (str(many), "--instance", "0", "--failures"): "give one of 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 …",
    }.items():
        code, _, err = view(*words)
        assert code == 2
        assert said in err
        assert (err.count("\n"), err.startswith("hardtail: ")) == (1, True), err


def test_a_commit_after_a_wrong_one_is_not_just_ready(view: Command, tmp_path: Path) -> None:
    instances = TASK.sample(1, hardtail.Streams(5).named("sum"), "chain>=8")
    answer_NA = (instances.answer_NA + (np.arange(13) < 9)) % 10  # the upper nine digits are wrong
    denoiser, lowest_first = reciting(TASK, instances, answer_NA, np.full((1, 13), 0.9)), policy_named("lsb", ("lsb",))
    about = {"task": "addition", "config": TASK.config(), "policy": "lsb"}
    trace = decode(denoiser, instances, lowest_first, about=about)
    save_trace(tmp_path / "wrong.npz", trace)
    lines = [line.rstrip() for line in view(str(tmp_path / "wrong.npz"))[1].splitlines()]
    known = prerequisites(TASK, trace)
    assert sum(line.endswith("  ready") for line in lines) == known.sound_NA.sum() > 0
    assert sum(line.endswith("  ready, after a wrong one") for line in lines) == (~known.sound_NA).sum() > 0
