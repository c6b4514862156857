"""The store of results: what is recorded is whole, and stays as it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.core.depots import FolderDepot
from hardtail.core.records import LogLine
from hardtail.study.advance import advance
from hardtail.study.store import Store
from hardtail.training.run import train
from tests.conftest import Command
from tests.study_toys import entry, full_disk, measure_little


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_little(monkeypatch)


def test_the_best_probe_stays_in_a_thinned_log(tmp_path: Path) -> None:
    """The ledger takes its weights, so that their step must be seen."""
    train(entry().recipe, tmp_path / "run")
    log = [{"step": step, "probe_nll": 1.0 + (step != 777)} for step in range(2003)] + [{"step": 12}]
    (tmp_path / "run" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    store = Store(tmp_path / "results")
    store.add("long", "addition-random", tmp_path / "run")
    kept = [line.step for line in store.runs()[0].log]
    assert {0, 777} <= set(kept)
    assert kept[-1] == 12
    assert len(kept) < 500


def test_every_session_of_a_run_stays_in_a_thinned_log(tmp_path: Path) -> None:
    """Each may have run on another commit and machine, and the index names the last one's alone."""
    train(entry().recipe, tmp_path / "run")
    log: list[dict[str, Any]] = [{"step": step, "loss": 1.0} for step in range(2000)] + [{"step": 12}]
    log[501] |= {"how": "compiled", "commit": "abc", "device": "gpu"}
    (tmp_path / "run" / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log))
    store = Store(tmp_path / "results")
    store.add("long", "addition-random", tmp_path / "run")
    assert LogLine(**log[501]) in store.runs()[0].log
    assert LogLine(**log[502]) not in store.runs()[0].log


def test_results_are_never_rewritten(tmp_path: Path) -> None:
    store = Store(tmp_path / "results")
    advance([entry()], tmp_path / "runs", store, minutes=5, n=5, say=lambda words: None)
    with pytest.raises(HardtailError, match="never rewritten"):
        store.add(entry().name, entry().arm, tmp_path / "runs" / entry().name)
    with pytest.raises(HardtailError, match="only a finished run"):
        store.add("other", "other", tmp_path)


def test_a_slow_writer_does_not_replace_the_files_of_a_recorded_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It looked before the other recorded the run, and writes afterwards."""
    store, run = Store(tmp_path / "results"), tmp_path / "runs" / entry().name
    advance([entry()], tmp_path / "runs", store, minutes=5, n=5, say=lambda words: None)
    files = {path: path.read_bytes() for path in (store.folder / entry().name).iterdir()}
    (run / "evaluations.jsonl").write_text((run / "evaluations.jsonl").read_text().replace("lsb", "LSB"))
    recorded = store.names()
    looks = iter([set[str](), recorded])
    monkeypatch.setattr(Store, "names", lambda self: next(looks))
    with pytest.raises(HardtailError, match="never rewritten"):
        store.add(entry().name, entry().arm, run)
    assert {path: path.read_bytes() for path in (store.folder / entry().name).iterdir()} == files


@pytest.mark.parametrize(
    ("file", "content", "told"),
    [
        ("finished.json", "{}", "missing required field `step`; the record is damaged; move finished.json away"),
        ("finished.json", '{"step": 12}', "missing required field `wall`"),
        ("log.jsonl", "", "log.jsonl does not end at step 12"),
        ("log.jsonl", '{"step": 4}\n', "log.jsonl does not end at step 12"),
        ("coverage.json", None, "coverage.json is missing"),
        ("best_probe.safetensors", None, "best_probe.safetensors is missing; put it back, or move finished.json away"),
    ],
)
def test_a_run_whose_files_are_damaged_is_not_recorded_before_they_are_mended(
    tmp_path: Path, file: str, content: str | None, told: str
) -> None:
    """What is recorded stays as it is, so that it must be whole."""
    run, store = entry(), Store(tmp_path / "results")
    folder = tmp_path / "runs" / run.name
    train(run.recipe, folder)
    weights = (folder / "last.safetensors").read_bytes()
    (folder / file).unlink() if content is None else (folder / file).write_text(content)
    (found,) = advance([run], tmp_path / "runs", store, minutes=5, n=5)
    assert told in found.failure
    assert not (tmp_path / "results" / run.name).exists()
    (folder / "finished.json").unlink()
    (found,) = advance([run], tmp_path / "runs", store, minutes=5, n=5)
    assert (found.state, found.failure) == ("recorded", "")
    (kept,) = store.runs()
    assert kept.log[-1].step == 12
    assert kept.coverage is not None
    assert (folder / "last.safetensors").read_bytes() == weights


def test_a_full_disk_records_nothing_and_names_the_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, store = entry(), Store(tmp_path / "results")
    real = FolderDepot.write

    def write(depot: FolderDepot, key: str, content: bytes) -> None:
        (full_disk if key.startswith(f"{run.name}/") else real)(depot, key, content)

    with monkeypatch.context() as patch:
        patch.setattr(FolderDepot, "write", write)
        with pytest.raises(HardtailError, match=r"results cannot be written: No space left.*is not recorded yet"):
            advance([run], tmp_path / "runs", store, minutes=5, n=5)
    assert store.names() == set()
    (found,) = advance([run], tmp_path / "runs", store, minutes=5, n=5)
    assert found.state == "recorded"


@pytest.mark.parametrize("patience", [0, True, "5"])
def test_a_damaged_patience_in_the_index_is_named(tmp_path: Path, patience: Any) -> None:
    line = {
        "name": "a",
        "arm": "a",
        "task": "addition",
        "seed": 1,
        "steps": 5,
        "commit": "c",
        "device": "d",
        "wall": 1.0,
    }
    (tmp_path / "index.jsonl").write_text(json.dumps(line | {"patience": patience}) + "\n")
    with pytest.raises(HardtailError, match=r"line 1: patience: expected `int"):
        Store(tmp_path).index()


@pytest.mark.parametrize("words", [(), ("addition-smoke",)])
def test_a_folder_without_results_is_said(tmp_path: Path, hardtail_command: Command, words: tuple[str, ...]) -> None:
    """A wrong name shows as a study that has not begun."""
    given = ("study", *words, "--runs", str(tmp_path), "--results")
    told = "no runs are recorded in"
    code, out, _ = hardtail_command(*given, str(tmp_path / "typo"))
    assert (code, f"{told} {tmp_path / 'typo'};" in out) == (0, True)
    code, out, _ = hardtail_command(*given, str(Path(__file__).parents[1] / "results-small"))
    assert (code, told in out) == (0, False)
