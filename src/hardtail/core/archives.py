"""Arrays in `.npz` archives: what their headers say is checked before anything is unpacked. No pickle."""

import math
import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, NamedTuple

import numpy as np

from hardtail.core.errors import HardtailError, quoted
from hardtail.core.types import Array

ALWAYS_UNPACKED = 256 << 20
"""Archives of this many bytes or fewer are unpacked whatever their ratio."""
LARGEST_RATIO = 200
"""How many times its own size a larger archive may unpack to; annotated data of our tasks stays below 20."""
LONGEST_HEADER = 4096
LONGEST_LABEL = 64
"""The most characters of a string in an array."""


class Header(NamedTuple):
    """What an archive says about one array."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"{list(self.shape)}, {self.dtype}"


@dataclass(frozen=True)
class Archive:
    """An open archive whose headers have been read."""

    headers: Mapping[str, Header]
    _held: zipfile.ZipFile

    def array(self, name: str) -> Array:
        with self._held.open(f"{name}.npy") as entry:
            return np.lib.format.read_array(entry, allow_pickle=False)


@contextmanager
def open_archive(file: IO[bytes], fault: str) -> Iterator[Archive]:
    """An archive of plain arrays; `fault` is the sentence for a damaged one, with `{}` for what is wrong."""
    try:
        with zipfile.ZipFile(file) as held:
            yield Archive(_headers(held, file), held)
    except MemoryError:
        raise
    except Exception as error:  # a damaged archive fails in a dozen ways, from zlib's to "encrypted"
        raise HardtailError(fault.replace("{}", str(error))) from error


def _headers(held: zipfile.ZipFile, file: IO[bytes]) -> dict[str, Header]:
    headers: dict[str, Header] = {}
    unpacked = 0
    for info in held.infolist():
        name = info.filename.removesuffix(".npy")
        if name == info.filename or name in headers:
            raise HardtailError(f"{quoted(info.filename)} is not an array, or is in it twice")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise HardtailError(f"the array {quoted(name)} is compressed in a way that hardtail does not use")
        with held.open(info) as entry:
            headers[name] = header = _header(entry, name)
            size = entry.tell() + math.prod(header.shape) * header.dtype.itemsize
        if size != info.file_size:
            raise HardtailError(f"the array {quoted(name)} ({header}) does not have the size of its entry")
        unpacked += size
    refuse_bomb(os.fstat(file.fileno()).st_size, unpacked)
    return headers


def refuse_bomb(packed: int, unpacked: int) -> None:
    """Refuse a file of `packed` bytes that would take far more memory than data do."""
    if unpacked > max(ALWAYS_UNPACKED, LARGEST_RATIO * packed):
        raise HardtailError(
            f"its {packed:,} bytes unpack to {unpacked:,}, more than {LARGEST_RATIO} times as many; data does not"
        )


def _header(entry: IO[bytes], name: str) -> Header:
    if np.lib.format.read_magic(entry) != (1, 0):
        raise HardtailError(f"the array {quoted(name)} has a format that hardtail does not write")
    shape, _, dtype = np.lib.format.read_array_header_1_0(entry, max_header_size=LONGEST_HEADER)
    refuse_strange(name, Header(dtype, shape))
    return Header(dtype, shape)


def refuse_strange(name: str, header: Header) -> None:
    """Refuse an array that is not plain numbers or short texts."""
    dtype, shape = header
    # Torch reads arrays in the machine's own order of bytes only.
    plain = dtype.kind in "biuf" or (dtype.kind == "U" and dtype.itemsize <= 4 * LONGEST_LABEL)
    if not plain or not dtype.isnative or any(type(length) is not int or length < 0 for length in shape):
        raise HardtailError(f"the array {quoted(name)} ({list(shape)}, {quoted(str(dtype))}) is not plain numbers")
