"""Damaged inputs at every door: each comes in or is refused in a sentence; `benchmarks/fuzz.py` tries a million."""

import json
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hardtail import HardtailError
from hardtail.models.weights import saved_step
from hardtail.study.store import Store
from hardtail.tasks.addition.task import Addition
from hardtail.training.checkpoint import state_step
from tests.fuzz_commands import command_doors
from tests.fuzz_doors import Door, array_doors, model_doors, record_doors, refused, text_doors
from tests.fuzz_inputs import DEEP, LONG
from tests.fuzz_newer import newer_doors
from tests.fuzz_others import other_doors

pytestmark = pytest.mark.filterwarnings("ignore")  # of numpy and torch, about what is then refused


def attack(held: Sequence[Door], inputs: int) -> None:
    """Bring a sound input to every door and this many damaged ones; all raw errors are shown, with their inputs."""
    found = []
    for door in held:
        assert not refused(door, door.sound), f"{door.name} refuses what is sound"
        for place in range(inputs):
            drawn = door.draw(Random(f"{door.name}/{place}"))
            try:
                refused(door, drawn)
            except Exception:
                found.append(f"{door.name}, input {place}:\n{traceback.format_exc(limit=-3)}")
    assert not found, "\n\n".join(found)


def test_text() -> None:
    attack(cached_text_doors(), 40)


def test_records_and_text_files(tmp_path: Path) -> None:
    attack(record_doors(tmp_path), 30)


def test_data_sets_and_traces(tmp_path: Path) -> None:
    attack(array_doors(tmp_path, Addition(digits=4)), 40)


def test_weights_and_states(tmp_path: Path) -> None:
    attack(model_doors(tmp_path, Addition(digits=4)), 25)


def test_newer_doors_and_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    array_doors(tmp_path, Addition(digits=4))
    model_doors(tmp_path / "run", Addition(digits=4))
    attack(newer_doors(tmp_path), 25)
    attack(other_doors(tmp_path), 15)
    attack(command_doors(tmp_path), 15)


def unlucky(strategy: st.SearchStrategy[Any], examples: int) -> Callable[[Any], Any]:
    """Hypothesis's own idea of what is hard to read."""
    several = settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )
    return lambda test: several(given(strategy)(test))


cached_text_doors = cache(text_doors)


@unlucky(st.tuples(st.deferred(lambda: st.sampled_from(cached_text_doors())), st.text(max_size=60)), 200)
def test_any_text(drawn: tuple[Door, str]) -> None:
    refused(*drawn)


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner), max_leaves=5
)


@unlucky(st.dictionaries(st.sampled_from(["step", "kind", "name", "schema", "fields", "policy", "n"]), VALUES), 100)
def test_any_json(json_doors: list[Door], value: dict[str, Any]) -> None:
    for door in json_doors:
        refused(door, json.dumps(value).encode())


@pytest.fixture(scope="module")
def json_doors(tmp_path_factory: pytest.TempPathFactory) -> list[Door]:
    return [door for door in record_doors(tmp_path_factory.mktemp("records")) if ".json" in door.name]


def test_endless_texts_are_refused_or_read() -> None:
    """A pattern that looks at each of 200,000 spaces from each of them never ends, and nor would this test."""
    for door in cached_text_doors():
        for sign in (" ", "1", "[", ","):
            refused(door, "1" + sign * LONG + "+")


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"fields":{"task":'])
def test_json_without_a_bottom_is_refused(opening: bytes, json_doors: list[Door]) -> None:
    for door in json_doors:
        assert refused(door, opening * DEEP), door.name


def test_a_step_of_infinity_is_no_step(tmp_path: Path) -> None:
    """Found by a long run: JSON from Python may hold Infinity."""
    said = {"progress": '{"step": Infinity}', "hardtail": '{"about": {"step": Infinity}}'}
    header = json.dumps({"__metadata__": said})
    for name in ("state.safetensors", "last.safetensors"):
        (tmp_path / name).write_bytes(len(header).to_bytes(8, "little") + header.encode())
    assert state_step(tmp_path) == 0
    assert saved_step(tmp_path / "last.safetensors") == -1


def test_a_run_whose_name_no_file_can_have_is_refused(tmp_path: Path) -> None:
    entry = {"name": "x" * 300, "arm": "a", "task": "addition", "seed": 1, "steps": 5}
    (tmp_path / "index.jsonl").write_text(json.dumps(entry))
    with pytest.raises(HardtailError, match="is not the name of a folder"):
        Store(tmp_path).runs()
