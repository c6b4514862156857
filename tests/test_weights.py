"""Files of weights whose headers say little or too much."""

import json
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.models.weights import read_tensors


def test_a_file_of_no_tensors_is_read_as_one(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {"a": "b"}}).encode()
    path = tmp_path / "none.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    assert read_tensors(path) == ({}, {"a": "b"})
    path.write_bytes((len(header) + 1).to_bytes(8, "little") + header)
    with pytest.raises(HardtailError, match="its header is longer than the file"):
        read_tensors(path)
    path.write_bytes(len(header).to_bytes(8, "little") + header + b"x")
    with pytest.raises(HardtailError, match="its header describes another number of bytes"):
        read_tensors(path)
