"""Recorded profiles of any age are read under today's names, as their task's type, and lose nothing."""

import json
from pathlib import Path

import msgspec
import pytest

from hardtail.core.registry import TASKS
from hardtail.tasks.named import profile_of_file

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("path", sorted(ROOT.glob("results*/*/diagnoses.jsonl")), ids=lambda path: path.parent.name)
def test_what_is_recorded_is_of_its_tasks_type(path: Path) -> None:
    for line in path.read_text().splitlines():
        record = json.loads(line)
        held = profile_of_file(record["task"], record["profile"])
        held.pop("paper", None)  # what older profiles said of the paper; today's do not
        profile = msgspec.convert(held, TASKS.load(record["task"]).profile_type())
        assert json.loads(msgspec.json.encode(profile)) == held


@pytest.mark.parametrize(
    ("task", "old", "new"),
    [
        ("addition", {"examples": {"top": [], "first": []}}, {"examples": {"lowest_index": [], "first_in_time": []}}),
        ("listops", {"position": {"first_in_trace": 1}}, {"position": {"lowest_index": 1}}),
        ("countdown", {"inexact": {"kind": {"first_in_position": 1}}}, {"inexact": {"kind": {"lowest_index": 1}}}),
        ("maze", {"wrong_neighbours": {"0": 1, "4": 2}}, {"wrong_neighbours": {"none": 1, "four": 2}}),
        ("listops", {"height": {"all": {"1": 2}}}, {"height": {"all": {"1": 2}}}),
        ("chess", {"top": 1}, {"top": 1}),
    ],
)
def test_old_names_are_read(task: str, old: object, new: object) -> None:
    assert profile_of_file(task, old) == new
