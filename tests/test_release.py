"""What a release promises: the same bytes wherever it is built, and the models that were listed."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from hardtail import HardtailError, zoo

ROOT = Path(__file__).parents[1]
SOURCES = ("pyproject.toml", "README.md", "LICENSE")


def _built(folder: Path, umask: int, when: int) -> Path:
    """The wheel of a copy of the sources with other times and permissions, in a folder of another name."""
    folder.mkdir(parents=True)
    for name in SOURCES:
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__", ".*"))
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~umask)
        os.utime(path, (when, when))
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder / "dist")]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, umask=umask)
    (wheel,) = (folder / "dist").iterdir()
    return wheel


def test_wheels_are_the_same_bytes_wherever_they_are_built(tmp_path: Path) -> None:
    one = _built(tmp_path / "one", 0o022, 1_000_000_000)
    two = _built(tmp_path / "a" / "deeper" / "place", 0o077, 1_700_000_000)
    assert one.name == two.name
    assert one.read_bytes() == two.read_bytes()
    with zipfile.ZipFile(one) as wheel:
        listed = json.loads(wheel.read("hardtail/zoo/zoo.json"))
        for name, entry in listed.items():
            weights = wheel.read(f"hardtail/zoo/{name}.safetensors")
            assert hashlib.sha256(weights).hexdigest() == entry["sha256"]


def test_altered_weights_are_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hardtail.measuring.subject import load_subject

    model = zoo.find("addition-random")
    for name in ("zoo.json", model.path.name):
        shutil.copy(zoo.FOLDER / name, tmp_path / name)
    monkeypatch.setattr(zoo, "FOLDER", tmp_path)
    assert load_subject("zoo:addition-random").name == "addition-random"
    raw = bytearray((tmp_path / model.path.name).read_bytes())
    raw[-1] ^= 1
    (tmp_path / model.path.name).write_bytes(raw)
    with pytest.raises(HardtailError, match=r"is not the file that was shipped \(the checksums differ\)"):
        load_subject("zoo:addition-random")
