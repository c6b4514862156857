"""The one place that touches files: whole writes, locks, bounded reads, `Instances` in and out. No pickle anywhere.

Only regular files are written: a device, a pipe, a folder or a symbolic link is refused, never replaced or followed.
"""

import fcntl
import gzip
import hashlib
import io
import os
import re
import secrets
import stat
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, cast

import numpy as np
from msgspec import structs

from hardtail.core.archives import open_archive
from hardtail.core.errors import BusyError, HardtailError, on_files
from hardtail.core.manifest import FORMAT, Manifest, manifest_bytes, read_manifest
from hardtail.core.schema import check_instance_headers, check_instances
from hardtail.core.types import Array, Instances

MOST_RECORDS = 256 << 20
"""The most bytes of a file of records."""
MOST_TEXT = 1 << 30
"""The most memory that a text may take, unless a user allows more (`--limit`): a small `.gz` can hold any amount."""
LONGEST_LINE = 100_000
"""The most characters of a line of text: no problem of any task is as long."""
PART = re.compile(r"\..+\.[0-9a-f]{8}\.part", re.DOTALL)
"""The name of a temporary file: that of the file it becomes, with a number of its own."""
AGAIN = "build it again"
BYTES_OF_A_LINE = 64
"""What a line takes in memory in addition to its characters."""


# -- writing ----------------------------------------------------------------------------------------------------------


@contextmanager
def atomic(path: Path) -> Iterator[IO[bytes]]:
    """Write `path` through a temporary file next to it: readers see the old file or the whole new one, never a part.

    The temporary file is locked while its writer lives; those of writers that were killed are removed first.
    """
    refuse_special(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    clear_parts(path.parent)
    part, file = _new_part(path)
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            refuse_special(path)  # a device that took the name meanwhile stays
            part.replace(path)  # before the file is closed: without its lock it could be taken for a dead writer's
    except BaseException as error:
        part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is None:  # a full disk does not say where
            error.filename = str(path)
        raise


def _new_part(path: Path) -> tuple[Path, IO[bytes]]:
    """A new temporary file for `path`, locked; before it is, `clear_parts` may take it for a dead writer's."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            file = part.open("xb")
        except OSError as error:
            error.filename = str(path)
            raise
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            continue
        except OSError:  # a file system without locks, where nobody can remove it either
            return part, file
        if part.exists():
            return part, file
        file.close()


def clear_parts(folder: Path) -> None:
    """Remove the temporary files in a folder whose writers are dead; a living one holds a lock on its own."""
    for name in [entry.name for entry in os.scandir(folder) if PART.fullmatch(entry.name)]:
        with suppress(OSError), _opened(folder / name, os.O_WRONLY) as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            (folder / name).unlink()


def refuse_special(path: Path) -> None:
    """Raise HardtailError unless `path` is new or a regular file, without following a link."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise HardtailError(f"{path} cannot be written: {_reason(error)}") from error
    if not stat.S_ISREG(mode):
        raise HardtailError(f"{path} is {_kind(mode)}; give a new name or a regular file to write")


@contextmanager
def sole_writer(path: Path, wait: float = 0.0) -> Iterator[None]:
    """Hold the right to write `path` (a file or a folder).

    A second process waits for up to `wait` seconds; if the first still holds it then, BusyError is raised.
    """
    if path.is_dir():
        lock = path / "lock"
    else:
        refuse_special(path)
        lock = path.with_name(f".{path.name}.lock")
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


def _locked(lock: Path, path: Path) -> IO[bytes] | None:
    """The lock file, locked; None while another process holds it or has just removed it."""
    refuse_special(lock)
    try:
        lock.parent.mkdir(parents=True, exist_ok=True)
        held = _opened(lock, os.O_RDWR | os.O_CREAT)  # never truncated: its name may be another file's second one
    except FileExistsError as error:
        raise HardtailError(f"{lock.parent} is a file, and a folder is needed; give another name") from error
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
    refuse_torn(path)
    held = path.read_bytes() if path.exists() else b""
    with atomic(path) as file:
        file.write(held + lines)


def refuse_torn(path: Path) -> None:
    """Refuse to add lines to anything but a regular file, or to one that ends in the middle of a line."""
    refuse_special(path)
    if not path.exists():
        return
    with open_regular(path) as file:
        if file.seek(0, os.SEEK_END) and file.seek(-1, os.SEEK_END) >= 0 and file.read() != b"\n":
            raise HardtailError(f"{path} ends in the middle of a line; fix or move it, then try again")


def add_line(path: Path, line: bytes) -> None:
    """Add a line at the end of a file at once, without writing it anew; a kill may leave a part of the line."""
    refuse_special(path)
    with _opened(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
        file.write(line)


def _opened(path: Path, flags: int) -> IO[bytes]:
    """A file opened for writing without following a link, waiting for a pipe or removing what it holds."""
    return os.fdopen(os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666), "wb")


# -- reading ----------------------------------------------------------------------------------------------------------


def read_regular(path: Path, most: int = MOST_RECORDS) -> bytes:
    """The bytes of a regular file, or of a link to one; a device, a pipe or a larger file raises HardtailError."""
    with open_regular(path) as file:
        if (size := os.fstat(file.fileno()).st_size) > most:
            raise HardtailError(f"{path} has {size:,} bytes; a file of this kind has at most {most:,}")
        return file.read()


@contextmanager
def open_regular(path: Path) -> Iterator[io.BufferedReader]:
    """A regular file, or a link to one, open for reading; errors while it is open name it."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe without a writer does not block
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(mode := os.fstat(number).st_mode):
                raise HardtailError(f"{path} is {_kind(mode)}; give a regular file")
            yield file
    except (OSError, ValueError) as error:
        if isinstance(error, HardtailError | FileNotFoundError):
            raise
        raise HardtailError(f"{path} cannot be read: {_reason(error)}") from error


def read_lines(path: Path, limit: int = MOST_TEXT) -> list[str]:
    """The lines of a text file, which is gzipped if its name ends in `.gz`; blank lines are dropped."""
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            return text_lines(cast("IO[bytes]", file), str(path), limit)
    except HardtailError:
        raise
    except (EOFError, zlib.error) as error:
        raise HardtailError(f"{path} is not a text file: {error}") from error
    except (OSError, ValueError) as error:  # gzip's "not a gzipped file" is one too
        raise HardtailError(f"{path} cannot be read: {_reason(error)}") from error


def text_lines(file: IO[bytes], name: str, limit: int = MOST_TEXT) -> list[str]:
    """The lines that are not blank; messages about a file count these. Reading stops at the limit."""
    text, taken = io.TextIOWrapper(file, encoding="utf-8-sig"), 0
    lines: list[str] = []
    try:
        while read := text.readline(LONGEST_LINE + 2):
            if len(read.rstrip("\n")) > LONGEST_LINE:
                raise HardtailError(
                    f"{name}: line {len(lines) + 1} has more than {LONGEST_LINE:,} characters; a problem is shorter"
                )
            lines += [line for line in read.splitlines() if line.strip()]
            taken += len(read) + BYTES_OF_A_LINE
            if taken > limit:
                raise HardtailError(
                    f"{name} takes more than {limit >> 20:,} MB of memory; split it, or allow more (`--limit`)"
                )
        return lines
    except UnicodeDecodeError as error:
        raise HardtailError(f"{name} is not a text file: {error}") from error
    finally:
        text.detach()


def file_hash(path: Path) -> str:
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# -- instances --------------------------------------------------------------------------------------------------------


def content_hash(arrays: dict[str, Array]) -> str:
    """SHA-256 over names, types, shapes and bytes."""
    digest = hashlib.sha256()
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape};".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def manifest_path(path: Path) -> Path:
    if not path.name:  # such as "."
        raise HardtailError(f"{path} is a folder; give a file")
    return path.with_suffix(".json")


@on_files()
def save_instances(path: Path, instances: Instances, manifest: Manifest) -> None:
    """Write `path` (`.npz`) and, next to it, its manifest (`.json`), which holds the hash of the arrays."""
    if path.suffix != ".npz":
        raise HardtailError(f"{path} must end in .npz; its manifest is written next to it as .json")
    arrays = instances.arrays()
    full = structs.replace(manifest, format=FORMAT, count=len(instances), sha256=content_hash(arrays))
    with atomic(path) as file, atomic(manifest_path(path)) as side:  # both are whole before either takes its name
        np.savez_compressed(file, allow_pickle=False, **arrays)
        side.write(manifest_bytes(full))


def local_data(source: str | Path) -> Path:
    """The file of a data set; one on the Hub (`hf:user/name`) is downloaded."""
    from hardtail.core import hub, parquet

    return hub.data_file(source, hub.DATA, (".npz", parquet.ENDING))


@on_files()
def load_instances(source: str | Path) -> tuple[Instances, Manifest]:
    """The instances in an `.npz` or `.parquet`, or on the Hub (`hf:user/name`), and their manifest.

    A file that is truncated, altered or something else is refused.
    """
    from hardtail.core import parquet

    path = local_data(source)
    if path.suffix == parquet.ENDING:
        return parquet.load_parquet(path)
    if path.suffix != ".npz" and path.is_file():
        raise HardtailError(f"{path} does not end in .npz or .parquet; give a file that `hardtail data` wrote")
    side = manifest_path(path)
    try:
        manifest = read_manifest(read_regular(side), Manifest, str(side), "build the data again")
        with (
            open_regular(path) as file,
            open_archive(file, f"{path} is damaged or not hardtail data ({{}}); {AGAIN}") as held,
        ):
            if check_instance_headers(held.headers) != manifest.count:
                raise HardtailError(f"its manifest says {manifest.count:,} instances")
            arrays = {name: held.array(name) for name in held.headers}
            if content_hash(arrays) != manifest.sha256:
                raise HardtailError("the hashes differ: it does not match its manifest")
            instances = Instances.from_arrays(arrays)
            check_instances(instances)
    except FileNotFoundError as error:
        if not (path.is_file() or side.is_file()):
            raise HardtailError(f"{path} is not a file; give an .npz or .parquet that `hardtail data` wrote") from error
        raise HardtailError(f"{error.filename} is missing; data is an .npz file and its .json next to it") from error
    return instances, manifest


# -- words ------------------------------------------------------------------------------------------------------------


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def _kind(mode: int) -> str:
    """What is at a path, in words."""
    kinds = {
        stat.S_ISDIR: "a folder",
        stat.S_ISLNK: "a symbolic link",
        stat.S_ISCHR: "a device",
        stat.S_ISBLK: "a device",
        stat.S_ISFIFO: "a pipe",
    }
    return next((words for test, words in kinds.items() if test(mode)), "not a regular file")
