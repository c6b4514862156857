"""The recorded results: the index is read with care, and what the repository holds is whole."""

import json
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.core.files import read_records
from hardtail.study.store import COPIED, Store


def test_a_damaged_index_is_named(tmp_path: Path) -> None:
    (tmp_path / "index.jsonl").write_text('{"name": "x"}\n')
    with pytest.raises(HardtailError, match="line 1: the key 'arm' is missing"):
        Store(tmp_path).index()
    good = {"name": "x", "arm": "x", "task": "t", "seed": 1, "steps": 1, "commit": "c", "device": "d", "wall": 1.0}
    for change, told in (
        ({"name": ["x"]}, r"line 2: name is \['x'\]"),
        ({"name": "../x"}, "line 2: '../x' is not the name of a folder"),
        ({"seed": True}, "line 2: seed is True"),
        ({"wall": "long"}, "line 2: wall is 'long'"),
        ({"name": "y", "steps": 0}, "line 2: steps is 0"),
        ({}, "line 2: there is a run 'x' above"),
    ):
        lines = [json.dumps(good), json.dumps(good | change)]
        (tmp_path / "index.jsonl").write_text("\n".join(lines) + "\n")
        with pytest.raises(HardtailError, match=told):
            Store(tmp_path).names()
    (tmp_path / "index.jsonl").write_text('{"name": "x"\n')
    with pytest.raises(HardtailError, match="line 1: not JSON"):
        Store(tmp_path).index()


RECORDED = pytest.mark.parametrize(
    "folder", [Path(__file__).parents[1] / name for name in ("results", "results-small")]
)


@RECORDED
def test_the_recorded_results_are_whole(folder: Path) -> None:
    """What the repository holds: every run has its recipe, log and records, and every record says where it is from."""
    store = Store(folder)
    assert {path.name for path in folder.iterdir() if path.is_dir()} == store.names()
    measured: dict[str, set[tuple[str, str]]] = {name: set() for name in store.names()}
    for file in ("evaluations.jsonl", "diagnoses.jsonl"):
        for record in store.records(file):
            whose = record["run"], record["kind"], record["policy"]
            assert {"task", "checkpoint", "step", "commit", "device", "decode_precision"} <= record.keys(), whose
            measured[record["run"]].add((record["checkpoint"], file))
            if record["kind"] == "accuracy":
                assert 0 <= record["low"] <= record["exact_match"] <= record["high"] <= 1, whose
    for line in store.index():
        name = line["name"]
        recipe = json.loads((folder / name / "recipe.json").read_bytes())["fields"]
        assert (recipe["seed"], recipe["name"]) == (line["seed"], line["arm"].removesuffix("-first")), name
        assert store.log(name)[-1]["step"] == line["steps"], name
        assert store.coverage(name) is not None, name
        if "patience" in line:  # only its best weights, and the probes show that its patience had run out
            best = min(
                (entry for entry in store.log(name) if "probe_nll" in entry), key=lambda entry: entry["probe_nll"]
            )
            assert best["step"] + line["patience"] <= line["steps"] < recipe["steps"], name
            assert measured[name] == {("best_probe", "evaluations.jsonl"), ("best_probe", "diagnoses.jsonl")}, name
        else:
            assert line["steps"] == recipe["steps"], name
            assert measured[name] >= {("last", "evaluations.jsonl"), ("last", "diagnoses.jsonl")}, name
        for path in (folder / name).iterdir():
            assert path.name in (*COPIED, "log.jsonl"), path
            assert path.stat().st_size < 1_000_000, path


@RECORDED
def test_records_in_results_are_of_the_run_they_stand_with(folder: Path) -> None:
    """A file copied into another run's folder would pass for that run's figures in the ledger."""
    for line in Store(folder).index():
        for file in ("evaluations.jsonl", "diagnoses.jsonl"):
            for record in read_records(folder / line["name"] / file):
                said = record["recipe"], record["seed"], record["task"]
                assert said == (line["arm"].removesuffix("-first"), line["seed"], line["task"]), (line["name"], file)
                assert record["checkpoint"] != "last" or record["step"] == line["steps"], (line["name"], file)
                assert record["step"] <= line["steps"], (line["name"], file)
