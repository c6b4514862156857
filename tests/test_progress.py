"""Progress in a pipe: plain lines with what is done so far; and threads that do not spin."""

import os
import subprocess
import sys
from collections.abc import Callable

import pytest

from hardtail.cli import progress
from hardtail.show.words import duration


class _Soon:
    """In place of an event: the time of a line has come as often as asked, then the work has ended."""

    def __init__(self, lines: int) -> None:
        self.left = lines
        self.waited: list[float] = []

    def __call__(self) -> "_Soon":
        return self

    def wait(self, seconds: float) -> bool:
        self.left -= 1
        self.waited.append(seconds)
        return self.left < 0

    def set(self) -> None:
        pass


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(progress.SWITCH)
    monkeypatch.setattr(progress, "Event", _Soon(2))


def test_long_work_does_not_fill_a_log(
    lines: None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    event, clock = _Soon(4), iter([0.0, 1.0, 30.0, 500.0, 510.0])
    monkeypatch.setattr(progress, "Event", event)
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with progress.plain_lines(lambda: "training"):
        pass
    assert event.waited == [1, 1, 3, 10, 10]
    assert capsys.readouterr().err.splitlines()[-1] == "training, 510 s"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.1, "1 second"),
        (119, "119 seconds"),
        (120, "2 minutes"),
        (2322, "39 minutes"),
        (9000, "2.5 hours"),
        (35_999, "10 hours"),
        (172_800, "2 days"),
        (9e6, "104 days"),
        (86_400 * 17.3e6, "17,300,000 days"),
    ],
)
def test_a_time_is_said_in_a_unit_that_it_has_two_of(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_lines_say_what_is_done_and_go_to_standard_error(lines: None, capsys: pytest.CaptureFixture[str]) -> None:
    with progress.counted_lines("decoding a model", 1200):
        pass
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "decoding a model: 0 of 1,200, 0 s\n" * 2


def test_what_was_counted_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Shown:
        def __init__(self, words: object, left: Callable[[float], str]) -> None:
            self.words, self.left = words, left

        def __enter__(self) -> None:
            pass

        def __exit__(self, *error: object) -> None:
            assert callable(self.words)
            shown.append(self.words() + self.left(30.0))

    monkeypatch.setattr(progress, "plain_lines", Shown)
    with progress.counted_lines("drawing", None) as advance:
        advance(1000)
        advance(500)
    with progress.counted_lines("decoding", 6000) as advance:
        advance(1500)
    assert shown == ["drawing: 1,500", "decoding: 1,500 of 6,000, about 90 seconds left"]


def test_the_lines_can_be_turned_off(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "Event", _Soon(2))
    assert os.environ[progress.SWITCH] == "off"
    with progress.plain_lines(lambda: "decoding"):
        pass
    assert capsys.readouterr().err == ""


def _waiting(**settings: str) -> str:
    """What OpenMP says about its threads when torch is imported after hardtail."""
    names = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    usual = {name: value for name, value in os.environ.items() if name not in names}
    command = [sys.executable, "-c", "import hardtail, torch; torch.ones(1).sum()"]
    done = subprocess.run(
        command, env=usual | {"OMP_DISPLAY_ENV": "true"} | settings, capture_output=True, text=True, check=True
    )
    return next(line for line in done.stderr.splitlines() if "OMP_WAIT_POLICY" in line)


def test_torchs_threads_wait_asleep_unless_the_user_says_otherwise() -> None:
    assert "PASSIVE" in _waiting()
    assert "ACTIVE" in _waiting(OMP_WAIT_POLICY="active")
