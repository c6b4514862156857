"""Saved data, text and records: they come back bit for bit, or not at all and with a sentence."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core import files
from hardtail.core.files import (
    append_bytes,
    atomic,
    load_instances,
    manifest_path,
    read_lines,
    read_regular,
    save_instances,
)
from hardtail.core.manifest import Manifest
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from hardtail.testing import same
from tests.decoding_toys import TOY, problems


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

    with pytest.raises(OSError, match="No space") as failed:
        write_half()
    assert failed.value.filename == str(path)  # which the system leaves out
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


def test_a_text_file_from_both_sides_of_its_limits(tmp_path: Path) -> None:
    path = tmp_path / "some.txt"
    path.write_text("\ufeff1\n\n  \n2\r\n" + "x" * files.LONGEST_LINE + "\n")
    assert read_lines(path) == ["1", "2", "x" * files.LONGEST_LINE]
    path.write_text("1\n" + "x" * (files.LONGEST_LINE + 1) + "\n")
    with pytest.raises(HardtailError, match="line 2 has more than 100,000 characters"):
        read_lines(path)
    path.write_text("1234567\n" * 10)
    assert len(read_lines(path, limit=10 * (8 + 64))) == 10
    with pytest.raises(HardtailError, match="takes more than 0 MB of memory"):
        read_lines(path, limit=10 * (8 + 64) - 1)


def test_records_from_both_sides_of_their_limit(tmp_path: Path) -> None:
    path = tmp_path / "records"
    path.write_bytes(b"12345")
    assert read_regular(path, 5) == b"12345"
    with pytest.raises(HardtailError, match="has 5 bytes; a file of this kind has at most 4"):
        read_regular(path, 4)
    append_bytes(tmp_path / "new", b"a\n")
    append_bytes(tmp_path / "new", b"b\n")
    assert (tmp_path / "new").read_bytes() == b"a\nb\n"
    with pytest.raises(HardtailError, match="ends in the middle of a line"):
        append_bytes(path, b"x\n")
    assert path.read_bytes() == b"12345"


def test_errors_of_a_file_say_why(tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="cannot be read: Is a directory"):
        read_regular(tmp_path)
    with pytest.raises(HardtailError, match="cannot be written: embedded null byte"):
        files.refuse_special(Path("a\0b"))
    with pytest.raises(HardtailError, match="cannot be written: File name too long"):
        files.refuse_special(tmp_path / ("x" * 300))


def test_a_trace_and_a_data_set_are_not_taken_for_damaged_ones_of_the_other(saved: Path) -> None:
    path = saved.with_name("trace.npz")
    save_trace(path, decode(TOY, problems(3), Top1()))
    with pytest.raises(HardtailError, match="trace, which `hardtail view`, `diagnose` and `compare` read"):
        load_instances(path)
    save_instances(path, problems(3), Manifest(task="addition"))
    with pytest.raises(HardtailError, match="data set, which `hardtail inspect` and `eval --data` read"):
        load_trace(path)
    page = saved.with_name("page.html")
    page.write_text("<html>")
    with pytest.raises(HardtailError, match=r"page.html does not end in .npz or .parquet"):
        load_instances(page)


def test_data_and_traces_have_an_ending_that_their_manifest_does_not_have(tmp_path: Path) -> None:
    instances = problems(3)
    manifest = Manifest(split="all")
    with pytest.raises(HardtailError, match=r"sums.json must end in .npz"):
        save_instances(tmp_path / "sums.json", instances, manifest)
    with pytest.raises(HardtailError, match=r"trace.json must end in .npz"):
        save_trace(tmp_path / "trace.json", decode(TOY, instances, Top1()))
    assert not list(tmp_path.iterdir())
