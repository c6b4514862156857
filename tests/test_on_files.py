"""Runs of the study on a file of problems: their names, what they are measured on, and where they are listed."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from hardtail.core.files import save_instances
from hardtail.core.records import Accuracy, read_measurements
from hardtail.measuring.given import problems_beside
from hardtail.study.advance import advance
from hardtail.study.measure import measure, study_policies
from hardtail.study.store import Store
from hardtail.study.unit import Unit
from hardtail.tasks import datasets as data
from hardtail.tasks.named import make_task
from tests.conftest import Command
from tests.study_toys import entry, measure_little


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_little(monkeypatch)


def test_runs_on_other_training_data_have_names_of_their_own(tmp_path: Path) -> None:
    plain, file = entry(), tmp_path / "my sums.npz"
    built = data.build(plain.recipe.task, n=40)
    save_instances(file, built.instances, built.manifest)
    on_file, store = plain.on(file), Store(tmp_path / "results")
    assert on_file.name == "addition-random-smoke-on-my-sums-s42"
    assert on_file.recipe.name == on_file.arm
    found = advance([on_file], tmp_path / "runs", store, minutes=5, n=5, data_file=file, say=lambda words: None)
    assert [item.state for item in found] == ["recorded"]
    trained_on = store.runs()[0].log[0].data
    assert trained_on is not None
    assert (trained_on.file, trained_on.count) == ("my sums.npz", 40)


def test_runs_on_a_file_are_measured_on_the_test_file_beside_it(tmp_path: Path) -> None:
    """Every problem in every order, with both kinds of weights; what is there is not measured again."""
    plain, file = entry(), tmp_path / "my_sums.npz"
    for split, name in (("train", "my_sums.npz"), ("sweep", "my_sums-test.npz")):
        built = data.build(plain.recipe.task, split, n=40 if split == "train" else 12)
        save_instances(tmp_path / name, built.instances, built.manifest)
    assert problems_beside(file) == tmp_path / "my_sums-test.npz"
    assert problems_beside(tmp_path / "others.npz") is None
    store = Store(tmp_path / "results")
    on_file = plain.on(file)
    unit = Unit(on_file, tmp_path / "runs", store, 5, "cpu", data_file=file)
    identity = unit.identity
    (tmp_path / "my_sums-test.npz").rename(tmp_path / "away.npz")
    assert replace(unit).identity != identity
    (tmp_path / "away.npz").rename(tmp_path / "my_sums-test.npz")
    advance([on_file], tmp_path / "runs", store, minutes=5, n=5, data_file=file, say=lambda words: None)
    (run,) = store.runs()
    filed = [record for record in run.evaluations if isinstance(record, Accuracy) and record.data]
    assert {(record.data.file, record.n) for record in filed if record.data and record.stratum == "natural"} == {
        ("my_sums-test.npz", 12)
    }
    orders = set(study_policies(plain.recipe.task))
    assert {(record.checkpoint, record.policy) for record in filed} == set(product(("last", "best_probe"), orders))
    assert run.log[0].watched == filed[0].data
    assert run.accuracies
    assert all(record.data and record.stratum != "natural" for record in run.accuracies)
    folder = tmp_path / "runs" / on_file.name
    before = (folder / "evaluations.jsonl").read_bytes()
    assert measure(folder, device="cpu", n=5, test_file=problems_beside(file))
    assert (folder / "evaluations.jsonl").read_bytes() == before
    lines = [line for line in before.splitlines(keepends=True) if b"my_sums-test" not in line or b"top1" in line]
    (folder / "evaluations.jsonl").write_bytes(b"".join(lines))  # as if it had been evaluated in one order before
    assert measure(folder, device="cpu", n=5, test_file=problems_beside(file))
    again = [record for record in read_measurements(folder / "evaluations.jsonl") if record.data]
    assert {record.policy for record in again if isinstance(record, Accuracy)} == orders


def test_a_test_file_that_cannot_be_measured_on_is_refused_before_training(tmp_path: Path) -> None:
    plain, file = entry(), tmp_path / "my_sums.npz"
    task = plain.recipe.task
    built, sweep, trees = (
        data.build(task, n=40),
        data.build(task, "sweep", n=12),
        data.build(make_task("listops"), "test", n=9),
    )
    save_instances(file, built.instances, built.manifest)
    on_file, store = plain.on(file), Store(tmp_path / "results")
    others = ((trees.instances, trees.manifest, "listops"), (sweep.instances.bare(), sweep.manifest, "--bare"))
    for instances, manifest, why in others:
        save_instances(tmp_path / "my_sums-test.npz", instances, manifest)
        (found,) = advance([on_file], tmp_path / "runs", store, minutes=5, n=5, data_file=file, say=lambda words: None)
        assert (found.state, found.step) == ("missing", 0)
        assert "my_sums-test.npz" in found.failure
        assert why in found.failure


@pytest.mark.parametrize("launcher", ["inline", "ray"])
def test_missing_data_is_refused_once_and_before_any_run(
    launcher: str, tmp_path: Path, hardtail_command: Command
) -> None:
    places = ("--runs", str(tmp_path / "runs"), "--results", str(tmp_path / "results"), "--launcher", launcher)
    code, out, err = hardtail_command("study", "advance", "addition-smoke", "--data", "missing.npz", *places)
    assert (code, out) == (2, "")
    assert err == "hardtail: --data missing.npz: there is no such file; `hardtail data` builds one\n"
    assert not list(tmp_path.iterdir())


def test_runs_on_files_are_listed_beside_those_of_their_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    run, other = entry(), entry("addition-puma-smoke")
    on_file = run.on(Path("my puzzles.npz"))
    runs, store = tmp_path / "runs", Store(tmp_path / "results")
    (found,) = advance([replace(on_file, recipe=run.recipe)], runs, store, minutes=5, n=5, say=lambda text: None)
    assert found.state == "recorded"
    assert [[kept.name for kept in each.on_files(store.index())] for each in (run, other, on_file)] == [
        [on_file.name],
        [],
        [],
    ]
    where = "--runs", str(runs), "--results", str(store.folder)
    monkeypatch.setattr("hardtail.study.grids.entries_named", lambda names: [run, other])
    _, out, _ = hardtail_command("study", "both", *where)
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("addition-")] == [
        [run.name, "missing"],
        [on_file.name, "recorded"],
        [other.name, "missing"],
    ]
    _, out, _ = hardtail_command("study", *where)
    [row] = [line.split() for line in out.splitlines() if line.startswith("addition-smoke ")]
    assert row == ["addition-smoke", "3", "0", "0", "0", "3", "1"]
    for state in ("trained", "started", "on files"):
        assert f"{state}: " in out, "what a column counts"
