"""The one place that touches files: atomic writes, text in, `Instances` in and out. No pickle anywhere."""

import fcntl
import glob
import gzip
import hashlib
import json
import os
import secrets
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.types import Array, Instances

FORMAT = 1


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Write `path` through a temporary file next to it: readers see the old file or the whole new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def clear_parts(path: Path) -> None:
    """Remove the temporary files of writers of `path` that were killed; only its sole writer may call this."""
    for part in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * 8}"):
        part.unlink(missing_ok=True)


@contextmanager
def sole_writer(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the right to write `path` (a file or a folder).

    A second process waits for up to `wait` seconds; if the first still holds it then, BusyError is raised.
    """
    lock = path / "lock" if path.is_dir() else path.with_name(f".{path.name}.lock")
    until = time.monotonic() + wait
    while (held := _locked(lock, path)) is None:
        if time.monotonic() >= until:
            raise BusyError(f"{path} is being written by another process; wait for it or give another name")
        time.sleep(0.1)
    with held:
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _locked(lock: Path, path: Path) -> IO[str] | None:
    """The lock file, locked; None while another process holds it or has just removed it."""
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = lock.open("w")
    except OSError as error:
        raise HardtailError(f"{path} cannot be written: {error.strerror or error}") from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.samestat(os.fstat(held.fileno()), lock.stat()):
            return held
    except OSError:
        pass
    held.close()
    return None


def append_bytes(path: Path, lines: bytes) -> None:
    """Add lines to a file: all of them or, if that fails, none."""
    held = path.read_bytes() if path.exists() else b""
    if held and not held.endswith(b"\n"):
        raise HardtailError(f"{path} ends in the middle of a line; fix or move it, then try again")
    with atomic(path) as file:
        file.write(held + lines)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, which is gzipped if its name ends in `.gz`; blank lines are dropped."""
    try:
        raw = path.read_bytes()
        text = (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8-sig")
    except OSError as error:  # gzip's "not a gzipped file" is one too
        raise HardtailError(f"{path} cannot be read: {error.strerror or error}") from error
    except (EOFError, zlib.error, UnicodeDecodeError) as error:
        raise HardtailError(f"{path} is not a text file: {error}") from error
    return text_lines(text)


def text_lines(text: str) -> list[str]:
    """The lines that are not blank; messages about a file count these."""
    return [line for line in text.splitlines() if line.strip()]


def file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def content_hash(arrays: dict[str, Array]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def manifest_path(path: Path) -> Path:
    return path.with_suffix(".json")


def save_instances(path: Path, instances: Instances, manifest: dict[str, Any]) -> None:
    """Write `path` (`.npz`) and, next to it, its manifest (`.json`), which holds the hash of the arrays."""
    if path.suffix != ".npz":
        raise HardtailError(f"{path} must end in .npz; its manifest is written next to it as .json")
    arrays = instances.arrays()
    full = {"format": FORMAT, **manifest, "count": len(instances), "sha256": content_hash(arrays)}
    with atomic(path) as file, atomic(manifest_path(path)) as side:  # both are whole before either takes its name
        np.savez_compressed(file, allow_pickle=False, **arrays)
        side.write(json.dumps(full, indent=1).encode() + b"\n")


def load_instances(path: Path) -> tuple[Instances, dict[str, Any]]:
    """The instances in a file, and its manifest; refuses a file that is truncated, altered or something else."""
    try:
        manifest = json.loads(manifest_path(path).read_bytes())
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileNotFoundError as error:
        raise HardtailError(f"{error.filename} is missing; data is an .npz file and its .json next to it") from error
    except Exception as error:  # a damaged archive fails in a dozen ways, from zlib's to "encrypted"
        raise HardtailError(
            f"{path} or its manifest is damaged or not hardtail data ({error}); build it again"
        ) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise HardtailError(f"{manifest_path(path)} is not a manifest of format {FORMAT}; build the data again")
    if content_hash(arrays) != manifest.get("sha256"):
        raise HardtailError(f"{path} does not match its manifest (the hashes differ); build it again")
    return Instances.from_arrays(arrays), manifest
