"""Archives of arrays from both sides of what is accepted: kinds of entries, ways of packing, and sizes."""

import io
import zipfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from hardtail import HardtailError
from hardtail.core import archives
from hardtail.core.archives import open_archive
from hardtail.core.types import Array


def archived(path: Path, entries: list[tuple[str, bytes]], method: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", method) as held:
        for name, content in entries:
            held.writestr(name, content)
    return path


def npy(array: Array, version: tuple[int, int] = (1, 0)) -> bytes:
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=version, allow_pickle=False)
    return buffer.getvalue()


def headers_of(path: Path) -> dict[str, tuple[int, ...]]:
    with path.open("rb") as file, open_archive(file, "bad: {}") as held:
        return {name: header.shape for name, header in held.headers.items()}


def test_an_archive_of_plain_arrays_is_read(tmp_path: Path) -> None:
    kinds = ["b1", "i1", "i8", "u1", "f4", "f8", f"U{archives.LONGEST_LABEL}"]
    path = archived(tmp_path / "a.npz", [(f"{kind}.npy", npy(np.zeros((2, 3), kind))) for kind in kinds])
    assert headers_of(path) == dict.fromkeys(kinds, (2, 3))
    with path.open("rb") as file, open_archive(file, "{}") as held:
        assert held.array("i8").dtype == np.int64


@pytest.mark.parametrize(
    ("entries", "fault"),
    [
        ([("a", npy(np.zeros(2)))], "'a' is not an array"),
        ([("a.npy", npy(np.zeros(2))), ("a.npy", npy(np.zeros(2)))], "is in it twice"),
        ([("a.npy", npy(np.zeros(2), (2, 0)))], "has a format that hardtail does not write"),
        ([("a.npy", npy(np.zeros(2, ">f8")))], "is not plain numbers"),
        ([("a.npy", npy(np.zeros(2, "c8")))], "is not plain numbers"),
        ([("a.npy", npy(np.zeros(2, f"U{archives.LONGEST_LABEL + 1}")))], "is not plain numbers"),
        ([("a.npy", npy(np.zeros(2)) + b"x")], "does not have the size of its entry"),
        ([("a.npy", npy(np.zeros(2))[:-1])], "does not have the size of its entry"),
        ([("a.npy", b"\x93NUMPY\x01\x00\x10\x27" + b" " * 10_000)], "bad: "),
    ],
)
def test_any_other_archive_is_refused(entries: list[tuple[str, bytes]], fault: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="Duplicate") if "twice" in fault else nullcontext():
        path = archived(tmp_path / "a.npz", entries)
    with pytest.raises(HardtailError, match=fault):
        headers_of(path)


def test_only_two_ways_of_packing_are_known(tmp_path: Path) -> None:
    held = [("a.npy", npy(np.zeros(1000)))]
    assert headers_of(archived(tmp_path / "a.npz", held, zipfile.ZIP_DEFLATED))
    with pytest.raises(HardtailError, match="compressed in a way"):
        headers_of(archived(tmp_path / "b.npz", held, zipfile.ZIP_BZIP2))


def test_what_unpacks_to_too_much_is_refused_unless_it_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = npy(np.zeros(100_000, "u1"))
    path = archived(tmp_path / "a.npz", [("a.npy", array), ("b.npy", array)], zipfile.ZIP_DEFLATED)
    assert (archives.ALWAYS_UNPACKED, archives.LARGEST_RATIO) == (256 << 20, 200)
    whole, packed = 2 * len(array), path.stat().st_size
    assert whole > archives.LARGEST_RATIO * packed
    for most, ratio, accepted in (
        (whole, 1, True),
        (whole - 1, 1, False),
        (0, whole / packed, True),
        (0, whole / packed - 0.01, False),
    ):
        monkeypatch.setattr(archives, "ALWAYS_UNPACKED", most)
        monkeypatch.setattr(archives, "LARGEST_RATIO", ratio)
        if accepted:
            headers_of(path)
        else:
            with pytest.raises(HardtailError, match=f"its {packed:,} bytes unpack to {whole:,}"):
                headers_of(path)
