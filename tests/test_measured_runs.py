"""Finished runs are measured: each kind of weights once, on what is missing, and never as another run's."""

import json
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.models.weights import load_weights, save_model
from hardtail.study import measure as measuring
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.study.measure import measure
from hardtail.study.measure import study_parts as whole_study
from hardtail.tasks.named import task_named
from hardtail.training.run import train
from tests.study_toys import entry, measure_little, read_records


@pytest.fixture(autouse=True)
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    measure_little(monkeypatch)


def test_measuring_stops_in_time_and_repeats_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_same_weights", lambda one, two: False)
    run = entry()
    train(run.recipe, tmp_path)
    late = iter([False] * 4 + [True])  # three parts, one diagnosis, then it is late
    seen: list[tuple[int, int]] = []
    assert not measure(tmp_path, device="cpu", n=5, over=lambda: next(late), progress=lambda *at: seen.append(at))
    assert 2 * seen[-1][0] == seen[-1][1]  # one of two kinds of weights
    first = (tmp_path / "evaluations.jsonl").read_bytes()
    assert {record["checkpoint"] for record in read_records(tmp_path / "evaluations.jsonl")} == {"last"}
    assert measure(tmp_path, device="cpu", n=5, progress=lambda *at: seen.append(at))
    assert seen[-1][0] == seen[-1][1] == seen[0][1]
    assert (tmp_path / "evaluations.jsonl").read_bytes().startswith(first)
    found = [
        (record["checkpoint"], record["stratum"], record["n"], record["policy"])
        for record in read_records(tmp_path / "evaluations.jsonl")
        if record["kind"] == "accuracy"
    ]
    assert len(found) == len(set(found)) == 2 * (2 * 2 + 1)
    assert [record["checkpoint"] for record in read_records(tmp_path / "diagnoses.jsonl")] == ["last", "best_probe"]


def test_weights_that_are_the_last_and_the_best_are_measured_once(tmp_path: Path) -> None:
    train(entry().recipe, tmp_path)
    looks = iter([False] * 4)  # three parts, one diagnosis
    assert measure(tmp_path, device="cpu", n=5, over=lambda: next(looks))
    for name in ("evaluations.jsonl", "diagnoses.jsonl"):
        records = read_records(tmp_path / name)
        last, best = (
            [record | {"checkpoint": None} for record in records if record["checkpoint"] == kind]
            for kind in ("last", "best_probe")
        )
        assert last == best
        assert last
    assert measure(tmp_path, device="cpu", n=5)
    assert read_records(tmp_path / "diagnoses.jsonl") == records


def test_weights_of_the_same_step_that_differ_are_measured_apart(tmp_path: Path) -> None:
    train(entry().recipe, tmp_path)
    path = tmp_path / "best_probe.safetensors"
    model, about = load_weights(path)
    held = {name: tensor + 1e-3 for name, tensor in model.state_dict().items()}
    save_model(path, model, held, about)
    looks = iter([False] * 8)
    assert measure(tmp_path, device="cpu", n=5, over=lambda: next(looks))
    assert next(looks, True)  # it asked eight times


def test_the_ledger_alone_asks_for_less() -> None:
    """Every figure of the paper that is an accuracy is still measured."""
    for task in map(task_named, ("addition", "maze", "listops", "countdown", "sudoku")):
        every = {(part.stratum, part.n): set(orders) for part, orders in whole_study(task, 50)}
        few = {(part.stratum, part.n): set(orders) for part, orders in whole_study(task, 50, ledger_only=True)}
        assert all(orders <= every[at] for at, orders in few.items())
        assert sum(map(len, few.values())) < sum(map(len, every.values()))
        for (of, _, policy), strata in printed_accuracy().items():
            if of == task.name:
                assert all(policy in few[stratum, 50] | {"one pass, half revealed"} for stratum in strata)
        assert "top1" in few["natural", 50]


def test_what_was_measured_of_other_weights_or_of_less_is_measured_again(tmp_path: Path) -> None:
    """Whoever looks into a run before it has ended leaves records of weights that are gone."""
    train(entry().recipe, tmp_path)
    assert measure(tmp_path, device="cpu", n=5)
    files = [tmp_path / name for name in ("evaluations.jsonl", "diagnoses.jsonl")]
    whole = [read_records(path) for path in files]
    for other in ({"step": 8}, {"decode_precision": "bf16"}, {"result": {"instances": 9}, "n": 3}):
        for path, records in zip(files, whole, strict=True):
            path.write_text("".join(json.dumps(record | other) + "\n" for record in records))
        assert measure(tmp_path, device="cpu", n=5)
        assert [len(read_records(path)) for path in files] == [2 * len(records) for records in whole], other


def test_weights_of_another_run_or_step_are_not_measured_as_this_one(tmp_path: Path) -> None:
    run, other = entry(), entry("addition-puma-smoke")
    train(run.recipe, tmp_path / "run")
    train(other.recipe, tmp_path / "other")
    path = tmp_path / "run" / "last.safetensors"
    own = path.read_bytes()
    path.write_bytes((tmp_path / "other" / "last.safetensors").read_bytes())
    with pytest.raises(HardtailError, match=r"is from a different run than the recipe.json next to it"):
        measure(tmp_path / "run", device="cpu", n=5)
    path.write_bytes(own)
    (tmp_path / "run" / "finished.json").write_text('{"step": 20, "wall": 1, "commit": "c", "device": "d"}')
    with pytest.raises(HardtailError, match=r"is of step 12, and finished.json says that the run ended at step 20"):
        measure(tmp_path / "run", device="cpu", n=5)
    assert not (tmp_path / "run" / "evaluations.jsonl").exists()


@pytest.mark.parametrize("file", ["evaluations.jsonl", "diagnoses.jsonl"])
@pytest.mark.parametrize("key", ["kind", "stratum", "policy", "n", "strata", "result"])
def test_a_damaged_record_of_a_run_is_named(tmp_path: Path, file: str, key: str) -> None:
    train(entry().recipe, tmp_path)
    assert measure(tmp_path, device="cpu", n=5)
    first = read_records(tmp_path / file)[0]
    wanted = ("policy", "strata", "result") if file == "diagnoses.jsonl" else ("kind", "stratum", "policy", "n")
    (tmp_path / file).write_text(json.dumps({name: first[name] for name in first if name != key}) + "\n")
    if key in wanted:
        with pytest.raises(HardtailError, match=rf"{file}, line 1: .*`{key}`"):
            measure(tmp_path, device="cpu", n=5)
    else:
        assert measure(tmp_path, device="cpu", n=5)
