"""The zoo: what it says of its models is what was recorded, and nothing else than what was shipped is loaded."""

import json
import shutil
from pathlib import Path

import pytest

from hardtail import HardtailError, zoo
from hardtail.study.store import Store
from tests.conftest import Command


@pytest.fixture
def copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The zoo in a folder of its own."""
    shutil.copytree(zoo.FOLDER, tmp_path / "zoo")
    monkeypatch.setattr(zoo, "FOLDER", tmp_path / "zoo")
    return tmp_path / "zoo"


def test_accuracies_are_those_of_the_record() -> None:
    store = Store(Path(__file__).parent.parent / "results")
    recorded = {
        (run.name, record.checkpoint, record.stratum, record.policy): record
        for run in store.runs()
        for record in run.accuracies
    }
    for model in zoo.models():
        zoo.find(model.name)  # the file that is listed
        for stratum, of in model.accuracy.items():
            held = {policy: recorded[model.run, model.kind, stratum, policy] for policy in of}
            assert {policy: record.exact_match for policy, record in held.items()} == of
            assert {policy: record.n for policy, record in held.items()} == model.n[stratum]
            assert {record.decode_precision for record in held.values()} == {model.decode_precision}
            assert {record.data_seed for record in held.values()} <= {None, 42}


def test_models_of_a_task_are_listed_with_the_same_problems() -> None:
    listed = {(model.task, tuple(model.accuracy)) for model in zoo.models()}
    assert len(listed) == len({task for task, _ in listed})


def test_the_zoo_stays_small_enough_to_ship() -> None:
    assert sum(model.path.stat().st_size for model in zoo.models()) < 30_000_000


def test_altered_weights_are_refused(copy: Path) -> None:
    path = copy / "addition-puma.safetensors"
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 1
    path.write_bytes(raw)
    with pytest.raises(HardtailError, match="the checksums differ"):
        zoo.find("addition-puma")
    path.unlink()
    with pytest.raises(HardtailError, match="is missing"):
        zoo.find("addition-puma")


@pytest.mark.parametrize("listed", ["x", "[]", json.dumps({"addition-puma": {"run": 3}}), json.dumps({"a": 1})])
def test_a_damaged_list_is_one_sentence(copy: Path, listed: str) -> None:
    (copy / "zoo.json").write_text(listed)
    with pytest.raises(HardtailError, match="not the file that was shipped"):
        zoo.models()


@pytest.mark.parametrize(
    ("name", "told"), [("addition-pumo", "did you mean 'addition-puma'"), ("../x", "'../x'; it has addition-random")]
)
def test_an_unknown_name_is_told_what_there_is(name: str, told: str) -> None:
    with pytest.raises(HardtailError, match=told):
        zoo.find(name)


def test_the_list_is_json_too(hardtail_command: Command) -> None:
    code, out, err = hardtail_command("zoo", "--json")
    assert (code, err) == (0, "")
    held = {model["name"]: model for model in json.loads(out)}
    assert list(held) == [model.name for model in zoo.models()]
    assert held["addition-puma"]["rounded"]["to"] == "float16"
