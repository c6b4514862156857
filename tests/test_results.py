"""The recorded results: the index is read with care, and what the repository holds is whole."""

import json
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.core.records import Accuracy
from hardtail.study.store import COPIED, Store


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.jsonl").write_text('{"name": "x"}\n')
    with pytest.raises(HardtailError, match="line 1: object missing required field `arm`"):
        Store(tmp_path).index()
    good = {"name": "x", "arm": "x", "task": "t", "seed": 1, "steps": 1, "commit": "c", "device": "d", "wall": 1.0}
    for change, told in (
        ({"name": ["x"]}, r"line 2: name: expected `str`, got `array`"),
        ({"name": "../x"}, "line 2: '../x' is not the name of a folder"),
        ({"seed": True}, "line 2: seed: expected `int`, got `bool`"),
        ({"wall": "long"}, "line 2: wall: expected `float"),
        ({"name": "y", "steps": 0}, "line 2: steps: expected `int` >= 1"),
        ({}, "there are two runs 'x'"),
    ):
        lines = [json.dumps(good), json.dumps(good | change)]
        (tmp_path / "index.jsonl").write_text("\n".join(lines) + "\n")
        with pytest.raises(HardtailError, match=told):
            Store(tmp_path).names()
    (tmp_path / "index.jsonl").write_text('{"name": "x"\n')
    with pytest.raises(HardtailError, match="line 1: this is not valid JSON"):
        Store(tmp_path).index()


def test_a_run_whose_folder_is_gone_is_named(tmp_path: Path) -> None:
    """It must not pass for a run that was never measured."""
    good = {"name": "x", "arm": "x", "task": "t", "seed": 1, "steps": 1, "commit": "c", "device": "d", "wall": 1.0}
    (tmp_path / "index.jsonl").write_text(json.dumps(good) + "\n")
    with pytest.raises(HardtailError, match=r"x has no log.jsonl, although index.jsonl names the run"):
        Store(tmp_path).runs()


RECORDED = pytest.mark.parametrize(
    "folder", [Path(__file__).parents[1] / name for name in ("results", "results-small")]
)


ONLY_ITS_BEST = "countdown-random-s42"
"""All that is left of this run is the weights that its probe chose."""


@RECORDED
def test_the_recorded_results_are_whole(folder: Path) -> None:
    """What the repository holds: every run has its recipe, log and records, and every record says where it is from."""
    store = Store(folder)
    assert {path.name for path in folder.iterdir() if path.is_dir()} == store.names()
    for run in store.runs():
        name, entry = run.name, run.entry
        for record in (*run.evaluations, *run.diagnoses):
            said = record.task, record.checkpoint, record.step, record.commit, record.device
            assert None not in said, (name, record.policy)
            if isinstance(record, Accuracy):
                assert record.low is not None
                assert record.high is not None
                assert record.low <= record.exact_match <= record.high, (name, record.policy)
        recipe = json.loads((folder / name / "recipe.json").read_bytes())["fields"]
        assert (recipe["seed"], recipe["name"]) == (run.seed, entry.arm.removesuffix("-first")), name
        assert run.log[-1].step == entry.steps, name
        assert run.coverage is not None, name
        kinds = [{record.checkpoint for record in records} for records in (run.evaluations, run.diagnoses)]
        if entry.patience:  # only its best weights, and the probes show that its patience had run out
            probed = [(line.probe_nll, line.step) for line in run.log if line.probe_nll is not None]
            assert min(probed)[1] + entry.patience <= entry.steps < recipe["steps"], name
            assert kinds == [{"best_probe"}] * 2, name
        elif name == ONLY_ITS_BEST:
            assert entry.caveat, name
            assert kinds[0] == {"best_probe"}, name
        else:
            assert entry.steps == recipe["steps"], name
            measured_steps = {record.step for record in run.evaluations}
            assert entry.steps in measured_steps, name  # the last weights, which may be those of the best probe
            assert not run.diagnoses or "last" in kinds[1], name
        for path in run.folder.iterdir():
            assert path.name in (*COPIED, "log.jsonl"), path
            assert path.stat().st_size < 1_000_000, path


@RECORDED
def test_records_in_results_are_of_the_run_they_stand_with(folder: Path) -> None:
    """A file copied into another run's folder would pass for that run's figures in the ledger."""
    for run in Store(folder).runs():
        for record in (*run.evaluations, *run.diagnoses):
            said = record.recipe, record.seed, record.task
            assert said == (run.entry.arm.removesuffix("-first"), run.seed, run.task), run.name
            assert record.checkpoint != "last" or record.step == run.entry.steps, run.name
            assert record.step is not None
            assert record.step <= run.entry.steps, run.name
