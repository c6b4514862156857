"""Files of traces: their format, their manifest, and the parts that these must agree on."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardtail import HardtailError, Streams
from hardtail.core.files import file_hash, manifest_path
from hardtail.core.records import SCHEMA
from hardtail.core.trace_files import load_trace, save_trace, trace_writer
from hardtail.decoding.loop import decode
from hardtail.policies.named import policy_named
from hardtail.tasks.addition.task import Addition
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


def test_a_trace_without_parts_is_no_trace(tmp_path: Path) -> None:
    with trace_writer(tmp_path / "trace.npz"):
        pass
    with pytest.raises(HardtailError, match="contains no part of a trace; decode it again"):
        load_trace(tmp_path / "trace.npz")


@pytest.mark.parametrize(("parts", "count"), [(2, 3), (0, 3), (1, 4)])
def test_a_trace_has_the_parts_and_instances_that_its_manifest_says(parts: int, count: int, tmp_path: Path) -> None:
    task = Addition(digits=4)
    path = tmp_path / "trace.npz"
    save_trace(path, decode(adder(task), task.sample(3, Streams(0).named("edges")), policy_named("top1")))
    said = json.loads(manifest_path(path).read_bytes())
    assert (said["parts"], said["count"]) == (1, 3)
    assert len(load_trace(path)) == 3
    manifest_path(path).write_text(json.dumps(said | {"parts": parts, "count": count, "sha256": file_hash(path)}))
    with pytest.raises(HardtailError, match="its manifest says"):
        load_trace(path)


def test_the_parts_of_a_trace_are_numbered_from_0(tmp_path: Path) -> None:
    task = Addition(digits=4)
    path = tmp_path / "trace.npz"
    save_trace(path, decode(adder(task), task.sample(3, Streams(0).named("edges")), policy_named("top1")))
    with np.load(path) as held:
        renamed = {name.replace("000000/", "000001/"): held[name] for name in held.files}
    np.savez(path, allow_pickle=False, **renamed)
    said = json.loads(manifest_path(path).read_bytes())
    manifest_path(path).write_text(json.dumps(said | {"sha256": file_hash(path)}))
    with pytest.raises(HardtailError, match="it does not have the 1 parts that its manifest says"):
        load_trace(path)
