"""What becomes of one unit of a grid, whatever its training and measuring answer; neither really happens here."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.records import LogLine
from hardtail.study import advance as moving
from hardtail.study.leases import Lease
from hardtail.study.store import Store
from hardtail.study.unit import Inline, Limits, Unit, UnitResult, Watching
from hardtail.study.workplaces import FolderRuns
from hardtail.training.run import Outcome
from tests.test_drive import ONE, TWO, units


@dataclass
class Life:
    """What training and measuring do, and what was asked of them."""

    finished: bool = True
    patience: int | None = None
    measured: bool = True
    trains: Callable[[dict[str, Any]], None] = lambda given: None
    asked: list[dict[str, Any]] = field(default_factory=list)
    added: list[tuple[Any, ...]] = field(default_factory=list)

    def train(self, recipe: Any, folder: Path, **given: Any) -> Outcome:
        self.asked.append({"recipe": recipe, "folder": folder, **given})
        self.trains(given)
        return Outcome(7, self.finished, folder, "eager", self.patience)

    def measure(self, folder: Path, **given: Any) -> bool:
        self.asked.append({"folder": folder, **given})
        given["progress"](3, 9)
        return self.measured


@pytest.fixture
def life(monkeypatch: pytest.MonkeyPatch) -> Life:
    made = Life()
    monkeypatch.setattr(moving, "train", lambda *given, **how: made.train(*given, **how))
    monkeypatch.setattr(moving, "measure", lambda *given, **how: made.measure(*given, **how))
    monkeypatch.setattr(Store, "add", lambda store, *given: made.added.append(given))
    return made


def worked(unit: Unit, over: Callable[[], bool] = lambda: False, watching: Watching = Watching()) -> UnitResult:  # noqa: B008
    return moving.work(unit, over, watching, "its owner")


def test_a_unit_is_trained_measured_and_recorded_as_it_says(life: Life, tmp_path: Path) -> None:
    told = list[Any]()
    watching = Watching(
        lambda entry, line: told.append((entry.name, line.step)),
        lambda entry, what, done, total: told.append((entry.name, what, done, total)),
    )
    unit = replace(units(tmp_path, [1])[0], patience=5, precision="tf32", ledger_only=True, data_file=None)

    def trains(given: dict[str, Any]) -> None:
        given["report"](LogLine(step=3))
        given["progress"](4)
        assert not given["should_stop"]()

    life.trains, life.patience = trains, 5
    assert worked(unit, watching=watching) == UnitResult(
        ONE, "recorded", ("out of patience at step 7 of 12", "recorded")
    )
    trained, measured = life.asked
    folder = tmp_path / "runs" / ONE
    assert (trained["folder"], trained["device"], trained["patience"], trained["data_file"]) == (folder, "cpu", 5, None)
    assert {name: measured[name] for name in ("folder", "device", "n", "precision", "ledger_only")} == {
        "folder": folder,
        "device": "cpu",
        "n": 5,
        "precision": "tf32",
        "ledger_only": True,
    }
    assert told == [(ONE, 3), (ONE, "step", 4, 12), (ONE, "measuring", 3, 9)]
    assert life.added == [(ONE, unit.entry.arm, folder)]
    assert unit.store.leases.held() == {}


@pytest.mark.parametrize(
    ("finished", "measured", "said"),
    [(False, True, "saved at step 7 of 12"), (True, False, "trained; measuring continues at the next call")],
)
def test_a_unit_that_is_stopped_goes_on_another_time(
    finished: bool, measured: bool, said: str, life: Life, tmp_path: Path
) -> None:
    life.finished, life.measured = finished, measured
    assert worked(units(tmp_path, [1])[0]) == UnitResult(ONE, "stopped", (said,))
    assert life.added == []


@pytest.mark.parametrize("over", [True, False])
def test_training_stops_when_time_is_up(over: bool, life: Life, tmp_path: Path) -> None:
    found = list[bool]()
    life.trains = lambda given: found.append(given["should_stop"]())
    worked(units(tmp_path, [1])[0], lambda: over)
    assert found == [over]


@pytest.mark.parametrize(("finished", "measured"), [(False, True), (True, False), (True, True)])
def test_a_unit_whose_lease_is_lost_stops_and_records_nothing(
    finished: bool, measured: bool, life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may have gone on from what was saved; whatever this one has, it leaves to that one."""
    stops = list[bool]()
    monkeypatch.setattr(Lease, "lost", property(lambda lease: True))
    life.finished, life.measured = finished, measured
    life.trains = lambda given: stops.append(given["should_stop"]())
    found = worked(units(tmp_path, [1])[0])
    assert found.state == "busy"
    assert "its lease ran out while it was worked on" in found.said[0]
    assert (stops, life.added) == ([True], [])


def test_a_unit_that_someone_has_recorded_meanwhile_is_left_alone(
    life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Store, "names", lambda store: {ONE})
    assert worked(units(tmp_path, [1])[0]) == UnitResult(ONE, "recorded")
    assert life.asked == []


@pytest.mark.parametrize(
    ("error", "state", "failure", "traced"),
    [
        (HardtailError("the loss is no longer finite"), "failed", "the loss is no longer finite", False),
        (ValueError("a mistake"), "failed", "ValueError: a mistake", True),
        (OSError(errno.ENOSPC, "No space left", "log.jsonl"), "full", "log.jsonl cannot be written or read", False),
        (OSError(errno.EDQUOT, "Quota exceeded", "log.jsonl"), "full", "Quota exceeded", False),
        (OSError(errno.EIO, "Input/output error"), "refused", "a file cannot be written or read: Input/output", False),
    ],
)
def test_what_a_unit_raises_is_its_result(
    error: Exception,
    state: str,
    failure: str,
    traced: bool,
    life: Life,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trains(given: dict[str, Any]) -> None:
        raise error

    life.trains = trains
    monkeypatch.setattr(FolderRuns, "log_tail", lambda runs, name: ("the last line",))
    found = worked(units(tmp_path, [1])[0])
    assert (found.name, found.state, found.said, found.log) == (ONE, state, (), ("the last line",))
    assert failure in found.failure
    assert ("Traceback" in found.trace) == traced


def test_a_full_disk_is_one_also_where_a_sentence_says_so(life: Life, tmp_path: Path) -> None:
    def trains(given: dict[str, Any]) -> None:
        raise HardtailError("it cannot be written") from OSError(errno.ENOSPC, "No space left")

    life.trains = trains
    assert (found := worked(units(tmp_path, [1])[0])).state == "full"
    assert found.failure == "it cannot be written"


def test_a_reader_of_reports_that_has_gone_ends_the_command(life: Life, tmp_path: Path) -> None:
    def trains(given: dict[str, Any]) -> None:
        raise BrokenPipeError

    life.trains = trains
    with pytest.raises(BrokenPipeError):
        worked(units(tmp_path, [1])[0])


@pytest.mark.parametrize(("error", "state"), [(BusyError("busy"), "busy"), (HardtailError("read-only"), "unwritable")])
def test_results_that_cannot_be_written_are_known_before_training(
    error: Exception, state: str, life: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(store: Store) -> None:
        raise error

    monkeypatch.setattr(Store, "refuse_unwritable", refuse)
    found = worked(units(tmp_path, [1])[0])
    assert found.state == state
    assert (found.said, found.failure) == (("busy",), "") if state == "busy" else ((), "read-only")
    assert life.asked == []


# -- one after the other ----------------------------------------------------------------------------------------------


def launched(answers: dict[str, UnitResult], folder: Path, over: Callable[[], bool] = lambda: False) -> tuple[Any, ...]:
    said, done = list[str](), list[str]()

    def work(unit: Unit, asked: Callable[[], bool], watching: Watching, owner: str | None) -> UnitResult:
        assert asked is over
        assert owner is None
        done.append(unit.name)
        return answers[unit.name]

    limits = Limits(over, lambda: 60.0)
    failures = Inline().launch(units(folder, (1, 2)), work, limits, said.append, Watching())
    return failures, said, done


def test_units_one_after_the_other(tmp_path: Path) -> None:
    failed = UnitResult(ONE, "failed", ("begun",), "it diverged", (), "line 1\nline 2")
    found = launched({ONE: failed, TWO: UnitResult(TWO, "recorded", ("recorded",))}, tmp_path)
    assert found == (
        {ONE: "it diverged"},
        [f"{ONE}: begun", f"{ONE}: it diverged\n    line 1\n    line 2", f"{TWO}: recorded"],
        [ONE, TWO],
    )


def test_a_unit_that_is_stopped_is_the_last(tmp_path: Path) -> None:
    assert launched({ONE: UnitResult(ONE, "stopped", ("saved",))}, tmp_path) == ({}, [f"{ONE}: saved"], [ONE])
    assert launched({}, tmp_path, lambda: True) == ({}, [], [])


def test_a_unit_that_is_recorded_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Store, "names", lambda store: {ONE})
    assert launched({TWO: UnitResult(TWO, "recorded")}, tmp_path)[2] == [TWO]


@pytest.mark.parametrize("state", ["full", "unwritable"])
def test_what_the_next_unit_would_meet_too_ends_the_grid(state: Any, tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="no space"):
        launched({ONE: UnitResult(ONE, state, ("begun",), "no space")}, tmp_path)
