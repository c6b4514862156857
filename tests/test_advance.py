"""Advancing grids."""

import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.cli import main
from hardtail.core.files import sole_writer
from hardtail.core.provenance import origin
from hardtail.core.records import LogLine
from hardtail.study import advance as moving
from hardtail.study.advance import advance, prepare, status
from hardtail.study.runs import Run
from hardtail.study.store import Store
from hardtail.tasks import datasets as data
from hardtail.training import checkpoint
from hardtail.training.probe import Probe, Probed
from hardtail.training.run import train
from tests.conftest import Command
from tests.study_toys import entry, full_disk, measure_little


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_little(monkeypatch)


def test_a_grid_moves_on_and_is_recorded(tmp_path: Path) -> None:
    entries = [entry(), entry("addition-puma-smoke")]
    store = Store(tmp_path / "results")
    assert [item.state for item in status(entries, tmp_path / "runs", store)] == ["missing", "missing"]
    found = advance(entries, tmp_path / "runs", store, minutes=5, n=5, say=lambda words: None)
    assert [item.state for item in found] == ["recorded", "recorded"]
    runs = store.runs()
    assert [(run.name, run.entry.arm) for run in runs] == [(item.name, item.arm) for item in entries]
    kinds = {(record.checkpoint, record.policy) for run in runs for record in run.accuracies}
    assert kinds == {(kind, policy) for kind in ("last", "best_probe") for policy in ("top1", "lsb")}
    assert runs[0].log[-1].step == 12
    before = (tmp_path / "results" / "index.jsonl").read_bytes()
    advance(entries, tmp_path / "runs", store, minutes=5, n=5, say=lambda words: None)
    assert (tmp_path / "results" / "index.jsonl").read_bytes() == before


def test_a_file_that_is_gone_once_it_is_looked_at_hides_no_run(tmp_path: Path) -> None:
    """A run that is being trained writes and renames temporary files all the time; a dangling link is one for ever."""
    folder, store = tmp_path / "runs" / entry().name, Store(tmp_path / "results")
    train(entry().recipe, folder, device="cpu")
    (folder / ".log.jsonl.01234567.part").symlink_to("gone")
    (found,) = status([entry()], tmp_path / "runs", store)
    assert (found.state, found.step) == ("trained", entry().recipe.steps)


def test_time_runs_out_and_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that moves a second at every look: the run is cut, saved, and ends as an uncut one does."""
    entries = [entry()]
    store = Store(tmp_path / "results")
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        return now

    with monkeypatch.context() as patch:
        patch.setattr(moving, "time", SimpleNamespace(monotonic=clock))
        (found,) = advance(entries, tmp_path / "runs", store, minutes=0.5, n=5, say=lambda words: None)
    assert found.state == "started"
    assert 0 < found.step < 12
    (found,) = advance(entries, tmp_path / "runs", store, minutes=5, n=5, say=lambda words: None)
    assert found.state == "recorded"
    train(entries[0].recipe, tmp_path / "whole")
    cut = tmp_path / "runs" / entries[0].name
    assert (cut / "last.safetensors").read_bytes() == (tmp_path / "whole" / "last.safetensors").read_bytes()


def test_what_is_prepared_is_all_that_a_run_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that cannot draw trains and measures; nothing is drawn there, not even to see that it can be."""
    run = entry()
    monkeypatch.setenv(data.KEPT, str(tmp_path / "data"))
    prepare([run], n=5)
    monkeypatch.setattr(data, "_draw", lambda *given: pytest.fail(f"it was to be drawn: {given[1:4]}"))
    (found,) = advance([run], tmp_path / "runs", Store(tmp_path / "results"), minutes=5, n=5)
    assert (found.state, found.failure) == ("recorded", "")


def test_a_run_out_of_patience_is_recorded_with_its_best_weights_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    run, whole = entry(), entry("addition-puma-smoke")
    runs, store = tmp_path / "runs", Store(tmp_path / "results")
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr(Probe, "of", lambda self, model: Probed(2.5, 0))
        assert train(run.recipe, runs / run.name, patience=5).step == 5
        (found,) = status([run], runs, store)
        assert (found.state, found.step) == ("trained", 5)
        facts = Run.of_folder(runs / run.name).entry
        assert (facts.steps, facts.commit) == (5, origin("cpu")["commit"])
        (found,) = advance([run], runs, store, minutes=5, n=5, patience=5, say=said.append)
    assert (found.state, found.step) == ("recorded", 5)
    assert said[0] == f"{run.name}: out of patience at step 5 of 12"
    (kept,) = store.runs()
    for records in (kept.evaluations, kept.diagnoses):
        assert {(record.checkpoint, record.step) for record in records} == {("best_probe", 0)}
    advance([whole], runs, store, minutes=5, n=5, patience=12, say=said.append)
    first, second = store.index()
    assert (first.steps, first.patience) == (5, 5)
    assert (second.steps, second.patience) == (12, None)
    assert store.runs()[0].log[-1].step == 5
    monkeypatch.setattr("hardtail.study.grids.entries_named", lambda names: [run, whole])
    _, out, _ = hardtail_command("study", "both", "--runs", str(runs), "--results", str(store.folder))
    assert [line.split() for line in out.splitlines() if line.startswith("addition-")] == [
        [run.name, "recorded", "5", "12"],
        [whole.name, "recorded", "12", "12"],
    ]
    assert out.endswith(f"ended by their patience: {run.name}\n")
    longer = replace(whole, recipe=replace(whole.recipe, steps=20))  # as if recorded when its schedule was shorter
    monkeypatch.setattr("hardtail.study.grids.entries_named", lambda names: [longer])
    _, out, _ = hardtail_command("study", longer.name, "--runs", str(runs), "--results", str(store.folder))
    assert "patience" not in out


def test_a_run_out_of_patience_without_its_best_weights_trains_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, runs, store = entry(), tmp_path / "runs", Store(tmp_path / "results")
    monkeypatch.setattr(Probe, "of", lambda self, model: Probed(2.5, 0))
    train(run.recipe, runs / run.name, patience=5)
    (runs / run.name / "best_probe.safetensors").unlink()
    (found,) = advance([run], runs, store, minutes=5, n=5, patience=5)
    assert "best_probe.safetensors is missing; put it back, or move finished.json away" in found.failure
    (runs / run.name / "finished.json").unlink()
    (found,) = advance([run], runs, store, minutes=5, n=5, patience=5)
    assert (found.state, found.step, found.failure) == ("recorded", 12, "")


def test_a_run_that_another_process_is_at_is_passed_over(tmp_path: Path) -> None:
    entries = [entry(), entry("addition-puma-smoke")]
    busy = tmp_path / "runs" / entries[0].name
    busy.mkdir(parents=True)
    said: list[str] = []
    with sole_writer(busy):
        found = advance(entries, tmp_path / "runs", Store(tmp_path / "results"), minutes=5, n=5, say=said.append)
    assert [item.state for item in found] == ["missing", "recorded"]
    assert "another process" in said[0]


def test_a_run_that_diverges_does_not_hold_up_the_grid(tmp_path: Path) -> None:
    lost, good = entry(), entry("addition-puma-smoke")
    rising = replace(lost.recipe.optimiser, lr=1e6, floor=0.0, warmup=0, clip=None)
    entries = [replace(lost, recipe=replace(lost.recipe, optimiser=rising)), good]
    said: list[str] = []
    found = advance(entries, tmp_path / "runs", Store(tmp_path / "results"), minutes=5, n=5, say=said.append)
    assert [item.state for item in found] == ["missing", "recorded"]
    assert "has diverged" in said[0]
    assert ["has diverged" in item.failure for item in found] == [True, False]


def test_a_run_that_fails_is_named_and_holds_up_no_other(
    tmp_path: Path, hardtail_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost, good = entries = [entry(), entry("addition-puma-smoke")]
    monkeypatch.setattr("hardtail.study.grids.entries_named", lambda names: entries)
    (tmp_path / "runs" / lost.name).mkdir(parents=True)
    (tmp_path / "runs" / lost.name / "recipe.json").write_text("torn")
    where = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"), "--device", "cpu", "-n", "5")
    code, out, error = hardtail_command("study", "advance", "both", *where)
    assert code == 2
    assert f"{lost.name}: {tmp_path / 'runs' / lost.name / 'recipe.json'}: this is not valid JSON" in out
    assert "both: 1 of 2 runs recorded" in out
    failed = f"hardtail: failed, for the reason above: {lost.name}; run the same command to try again"
    begun = f"working on both for at most 9 minutes, recorded in {tmp_path / 'results'}; the same command continues"
    assert error.splitlines() == [begun, failed]
    assert Store(tmp_path / "results").names() == {good.name}


def test_ctrl_c_saves_the_run_that_is_being_advanced(
    tmp_path: Path, hardtail_command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*words: Any, report: Any, **others: Any) -> Any:
        def reported(line: LogLine) -> None:
            report(line)
            if line.step == 60:
                signal.raise_signal(signal.SIGINT)

        return train(*words, report=reported, **others)

    monkeypatch.setattr(moving, "train", interrupted)
    words = (
        "study",
        "advance",
        "addition-random-smoke-s42",
        "--runs",
        str(tmp_path / "runs"),
        "--device",
        "cpu",
        "-n",
        "5",
    )
    code, out, _ = hardtail_command(*words, "--results", str(tmp_path / "results"))
    assert (code, "addition-random-smoke-s42: saved at step 60 of 200" in out) == (130, True)
    assert (tmp_path / "runs" / "addition-random-smoke-s42" / "state.safetensors").exists()


def test_waiting_for_a_writer(tmp_path: Path) -> None:
    began = time.monotonic()
    with (
        sole_writer(tmp_path / "file"),
        pytest.raises(HardtailError, match="another process"),
        sole_writer(tmp_path / "file", wait=0.15),
    ):
        pass
    assert time.monotonic() - began >= 0.15


@pytest.mark.parametrize("words", [("--minutes", "nan"), ("--minutes", "0.3"), ("-n", "0")])
def test_time_or_instances_that_are_none_are_refused(
    tmp_path: Path, words: tuple[str, str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a grid that silently stays where it is, nor one that works on without end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["hardtail", "study", "advance", "addition-smoke", *words])
    monkeypatch.setattr(moving, "advance", lambda *given, **also: pytest.fail("it went on"))
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    assert words[0] in capsys.readouterr().err


def test_the_step_of_a_started_run_is_that_of_its_saved_state(tmp_path: Path) -> None:
    """The log may be ahead of it, or torn where the power went: the next call writes it anew."""
    run = entry()
    folder = tmp_path / "runs" / run.name
    steps = iter(range(100))
    train(run.recipe, folder, should_stop=lambda: next(steps) == 7)
    with (folder / "log.jsonl").open("a") as log:
        log.write('{"step": 9}\n{"st')
    (found,) = status([run], tmp_path / "runs", Store(tmp_path / "results"))
    assert (found.state, found.step) == ("started", 7)
    for damaged in (b"", b"\xff" * 8 + b"{}", b"\x02" + b"\0" * 7 + b"[]"):
        (folder / "state.safetensors").write_bytes(damaged)
        (found,) = status([run], tmp_path / "runs", Store(tmp_path / "results"))
        assert (found.state, found.step) == ("started", 0)


def test_a_full_disk_stops_the_grid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "atomic", full_disk)
    said: list[str] = []
    with pytest.raises(HardtailError, match=f"{entry().name} cannot be written: No space left"):
        advance([entry(), entry("addition-puma-smoke")], tmp_path, Store(tmp_path), minutes=5, n=5, say=said.append)
    assert not said


def test_results_that_cannot_be_written_are_named_before_training(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file, not a folder")
    with pytest.raises(HardtailError, match=r"results is a file, and a folder is needed; give another name"):
        advance([entry()], tmp_path / "runs", Store(tmp_path / "results"), minutes=5, n=5)
    assert not (tmp_path / "runs").exists()
