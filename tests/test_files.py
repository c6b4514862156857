"""Saved data: it comes back bit for bit, or not at all and with a sentence."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.files import atomic, load_instances, manifest_path, read_lines, save_instances
from hardtail.core.manifest import Manifest
from hardtail.testing import same


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    instances = hardtail.task("addition", digits=4).sample(50, Streams(0).named("files"))
    path = tmp_path / "set.npz"
    save_instances(path, instances, Manifest(task="addition"))
    return path


def test_round_trip(saved: Path) -> None:
    instances, manifest = load_instances(saved)
    assert same(instances, hardtail.task("addition", digits=4).sample(50, Streams(0).named("files")))
    assert manifest.count == 50
    assert manifest.task == "addition"


@pytest.mark.parametrize("name", ["set.npz", "set.json"])
@pytest.mark.parametrize("keep", [0, 0.5, 0.99])
def test_truncated(saved: Path, name: str, keep: float) -> None:
    path = saved.with_name(name)
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    with pytest.raises(HardtailError, match=r"build (it|the data) again"):
        load_instances(saved)


@pytest.mark.parametrize("name", ["set.npz", "set.json"])
def test_missing_half(saved: Path, name: str) -> None:
    saved.with_name(name).unlink()
    with pytest.raises(HardtailError, match="next to it"):
        load_instances(saved)


def test_tampered(saved: Path) -> None:
    instances, _ = load_instances(saved)
    arrays = instances.arrays()
    arrays["tokens_NL"][3, 0] ^= 1
    with saved.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    with pytest.raises(HardtailError, match="hashes differ"):
        load_instances(saved)


def test_any_damaged_byte_is_noticed(saved: Path) -> None:
    """Whatever byte is hit, either the content is still whole or a sentence says that it is not."""
    whole, _ = load_instances(saved)
    raw = saved.read_bytes()
    for place in np.random.default_rng(0).integers(0, len(raw), 400):
        broken = bytearray(raw)
        broken[place] ^= 0xFF
        saved.write_bytes(broken)
        try:
            loaded, _ = load_instances(saved)
        except HardtailError:
            continue
        assert same(loaded, whole)


def test_pickle_is_refused(saved: Path) -> None:
    with saved.open("wb") as file:
        np.savez(file, tokens_NL=np.array([{"a": 1}], dtype=object))
    with pytest.raises(HardtailError, match="damaged or not hardtail data"):
        load_instances(saved)


@pytest.mark.parametrize("manifest", ["[]", "{}", '{"format": 99}', "null", "no json"])
def test_foreign_manifest(saved: Path, manifest: str) -> None:
    manifest_path(saved).write_text(manifest)
    with pytest.raises(HardtailError):
        load_instances(saved)


def test_foreign_arrays_with_a_right_hash(saved: Path) -> None:
    from hardtail.core.files import content_hash

    arrays = {"x": np.arange(3)}
    with saved.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    manifest = json.loads(manifest_path(saved).read_text())
    manifest_path(saved).write_text(json.dumps({**manifest, "sha256": content_hash(arrays)}))
    with pytest.raises(HardtailError, match="tokens_NL"):
        load_instances(saved)


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with atomic(path) as file:
            file.write(b"half of the ne")
            raise OSError(28, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_unreadable_text_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt.gz").write_bytes(b"not gzip at all")
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00binary")
    for name, sentence in [("a.txt.gz", "cannot be read"), ("b.txt", "not a text file"), ("c.txt", "cannot be read")]:
        with pytest.raises(HardtailError, match=sentence):
            read_lines(tmp_path / name)


def test_loads_and_judges_without_numba(saved: Path) -> None:
    """The machine that trains may have no numba: data, vocabularies, checks and readiness work there."""
    program = f"""
import sys
sys.modules["numba"] = None
from pathlib import Path
import numpy as np
import hardtail
from hardtail.core.files import load_instances
for name in hardtail.TASKS.names():
    assert hardtail.task(name).vocabulary.size > 2
task = hardtail.task("addition", digits=4)
instances, _ = load_instances(Path({str(saved)!r}))
assert task.check(instances, instances.answer_NA).all()
assert task.ready(instances, np.ones_like(instances.maskable_NA)).all()
try:
    hardtail.task("maze").sample(1, hardtail.Streams(0).named("x"))
except hardtail.HardtailError as error:
    assert "pip install numba" in str(error)
else:
    raise AssertionError("sampling a maze worked without numba")
"""
    subprocess.run([sys.executable, "-c", program], check=True)
