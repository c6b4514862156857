"""Numbers, edges and formats that every other test would take along: what mutants showed that nothing held.

A change here is a change that users see in their files, names or figures; say so in the commit.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardtail import HardtailError, Streams
from hardtail.core.fields import Checked
from hardtail.core.files import manifest_path
from hardtail.core.records import SCHEMA
from hardtail.core.registry import TASKS
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis.cells import mostly_wrong
from hardtail.policies.named import policy_named
from hardtail.tasks.addition.task import Addition
from hardtail.traces.calibration import Bin, calibration
from hardtail.traces.states import hidden_before, steps_of, visited
from tests.planted import adder


@pytest.fixture
def traced(tmp_path: Path) -> Path:
    task = Addition(digits=4)
    trace = decode(adder(task), task.sample(3, Streams(0).named("pinned")), policy_named("top1"))
    save_trace(tmp_path / "trace.npz", trace)
    return tmp_path / "trace.npz"


def test_formats_that_older_files_have(traced: Path) -> None:
    """Another number here makes every file that people have unreadable."""
    assert json.loads(manifest_path(traced).read_bytes())["format"] == 1
    assert SCHEMA == 2


@pytest.mark.parametrize("change", [{"format": 2}, {"kind": "data"}, {"kind": None}, {"format": None}])
def test_another_files_manifest_is_no_traces(traced: Path, change: dict[str, Any]) -> None:
    said = json.loads(manifest_path(traced).read_bytes()) | change
    manifest_path(traced).write_text(json.dumps(said))
    with pytest.raises(HardtailError, match="is not the manifest of a trace"):
        load_trace(traced)


def test_as_many_steps_as_were_taken(traced: Path) -> None:
    trace = load_trace(traced)
    assert steps_of(trace) == 5
    assert visited(trace).shape == (3, 5)
    assert hidden_before(trace).shape[1] == 5


DEFAULTS: dict[str, dict[str, Any]] = {
    "topk": {"k": 2},
    "threshold": {"p": 0.9},
    "factor": {"f": 1.0},
    "eb": {"gamma": 0.1},
    "klass": {"p": 0.9, "kl": 0.01, "history": 2},
    "loo": {"rounds": None},
    "remdm": {"variant": "cap", "eta": 0.008},
    "p2": {"eta": 1.0},
    "block": {"size": 8},
}


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_policys_name_alone_means_the_same_settings_for_ever(name: str) -> None:
    assert asdict(policy_named(name)) == DEFAULTS[name]


def test_a_known_name_is_admitted_as_it_is() -> None:
    """Only a path is registered; a name that were its own path could not be loaded any more."""
    before = TASKS.paths()
    assert TASKS.admit("addition") is Addition
    assert TASKS.paths() == before
    assert TASKS.load("addition") is Addition


@dataclass(frozen=True)
class Whole(Checked):
    number: int = 0


@pytest.mark.parametrize("sign", [1, -1])
def test_whole_numbers_end_below_a_tensors_half(sign: int) -> None:
    assert Whole(sign * ((1 << 62) - 1)).number
    with pytest.raises(HardtailError, match=r"between -2\^62 and 2\^62"):
        Whole(sign * (1 << 62))


def test_bins_of_calibration_include_their_upper_edges() -> None:
    prob_K = np.array([0.0, 0.05, 0.1, 0.11, 0.9, 0.95, 0.995, 0.9995, 1.0])
    found = calibration(prob_K, np.ones(len(prob_K), dtype=np.bool_))
    edges = [(0.0, 0.1, 3), (0.1, 0.2, 1), (0.8, 0.9, 1), (0.9, 0.99, 1), (0.99, 0.999, 1), (0.999, 1.0, 2)]
    assert [(item.low, item.high, item.commits) for item in found.bins] == edges
    assert isinstance(found.bins[0], Bin)


def test_a_decode_says_how_many_instances_are_done() -> None:
    task, done = Addition(digits=4), list[int]()
    decode(adder(task), task.sample(70, Streams(0).named("pinned")), policy_named("top1"), progress=done.append)
    assert sum(done) == 70


def test_the_worst_dozen_cells_are_listed_of_those_that_were_judged_often() -> None:
    """Half right is not mostly wrong; neither is a cell that was judged in 19 instances listed."""
    judged_NA, right_NA = np.ones((20, 33), dtype=np.bool_), np.zeros((20, 33), dtype=np.bool_)
    right_NA[:10, :9], judged_NA[0, 9] = True, False
    total, listed = mostly_wrong(Addition(digits=32), right_NA, judged_NA)
    assert (total, len(listed), {cell.n for cell in listed}) == (23, 12, {20})
