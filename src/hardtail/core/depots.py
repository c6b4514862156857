"""Files that several machines share: each is written whole, and replaced only by a writer that has seen its latest
version.

Keys are paths with `/` below the depot's root. `core.buckets` has the depot in object storage.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.files import atomic, read_regular, sole_writer

LOCK_WAIT = 30.0
"""Seconds to wait for another process that is writing the same file; that takes it a moment."""


class ConflictError(BusyError):
    """Someone else has written the file since it was read."""


@dataclass(frozen=True)
class Held:
    """The content of a file, and what identifies this version of it."""

    content: bytes
    version: str


class Depot(ABC):
    """Shared files. Readers see an old file or the whole new one, never a part."""

    @property
    @abstractmethod
    def place(self) -> str:
        """Where it is, for messages."""

    @property
    def prompt(self) -> "Depot":
        """The same files, for requests that are useless after a few seconds."""
        return self

    @abstractmethod
    def read(self, key: str) -> Held | None:
        """A file; None if there is none."""

    @abstractmethod
    def swap(self, key: str, content: bytes, expected: str | None) -> str:
        """Replace a file only if its version is the expected one (None: only if there is no file).

        Return the new version; raise ConflictError if someone else was faster.
        """

    @abstractmethod
    def publish(self, files: Mapping[str, bytes], key: str, change: Callable[[bytes], bytes]) -> None:
        """Write files, then update the index that lists them by a function of its content.

        That content is empty if there is no file, and is only ever added to. Nobody else changes it in between;
        `change` may raise an error, and then nothing is written. Raise BusyError if someone else is writing the same
        files.
        """

    @abstractmethod
    def remove(self, key: str, expected: str) -> None:
        """Remove a file if its version is the expected one; otherwise do nothing."""

    @abstractmethod
    def keys(self, folder: str) -> list[str]:
        """The keys of the files directly in a folder, sorted."""

    @abstractmethod
    def refuse_unwritable(self, key: str) -> None:
        """Raise HardtailError if this file could not be written."""

    @abstractmethod
    def local(self, keys: Iterable[str]) -> Path:
        """A folder of this machine in which these files can be read, as far as they exist, under their keys."""


@dataclass(frozen=True)
class FolderDepot(Depot):
    """A folder on one machine, or on a file system that machines share and whose locks (`flock`) work between them."""

    root: Path

    @property
    def place(self) -> str:
        return str(self.root)

    def read(self, key: str) -> Held | None:
        if not (self.root / key).exists():  # also if the root is no folder
            return None
        try:
            content = read_regular(self.root / key)
        except FileNotFoundError:
            return None
        return Held(content, _version(content))

    def write(self, key: str, content: bytes) -> None:
        with atomic(self.root / key) as file:
            file.write(content)

    def swap(self, key: str, content: bytes, expected: str | None) -> str:
        with sole_writer(self.root / key, wait=LOCK_WAIT):
            held = self.read(key)
            if (held.version if held else None) != expected:
                raise ConflictError(f"{self.root / key} was written by another process meanwhile; try again")
            self.write(key, content)
        return _version(content)

    def publish(self, files: Mapping[str, bytes], key: str, change: Callable[[bytes], bytes]) -> None:
        with sole_writer(self.root / key, wait=LOCK_WAIT):
            held = self.read(key)
            changed = change(held.content if held else b"")
            for file, content in files.items():
                self.write(file, content)
            self.write(key, changed)

    def remove(self, key: str, expected: str) -> None:
        with sole_writer(self.root / key, wait=LOCK_WAIT):
            held = self.read(key)
            if held is not None and held.version == expected:
                (self.root / key).unlink()

    def keys(self, folder: str) -> list[str]:
        where = self.root / folder
        if not where.is_dir():
            return []
        return sorted(f"{folder}/{path.name}" for path in where.iterdir() if not path.name.startswith("."))

    def refuse_unwritable(self, key: str) -> None:
        with sole_writer(self.root / key, wait=LOCK_WAIT):
            pass

    def local(self, keys: Iterable[str]) -> Path:
        return self.root


def place_at(text: str | Path) -> Path | Depot:
    """What a user means by a folder or an address such as `s3://bucket/prefix`."""
    scheme, separator, _ = str(text).partition("://")
    if isinstance(text, Path) or not separator:
        return Path(text)
    if scheme != "s3":
        raise HardtailError(f"{text} is neither a folder nor in object storage; give a folder or s3://BUCKET/PREFIX")
    from hardtail.core.buckets import BucketDepot

    return BucketDepot(str(text))


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
