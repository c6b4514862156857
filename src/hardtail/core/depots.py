"""Files that several machines share: each is written whole, and replaced only by who has seen its latest version.

Keys are paths with `/` below the depot's root.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from hardtail.core.errors import BusyError
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

    @abstractmethod
    def read(self, key: str) -> Held | None:
        """A file; None if there is none."""

    @abstractmethod
    def write(self, key: str, content: bytes) -> None:
        """Write a file, whatever was there; its caller must be the only one who writes it."""

    @abstractmethod
    def swap(self, key: str, content: bytes, expected: str | None) -> str:
        """Replace a file only if its version is the expected one (None: only if there is no file).

        Return the new version; raise ConflictError if someone else was faster.
        """

    @abstractmethod
    def update(self, key: str, change: Callable[[bytes], bytes]) -> None:
        """Replace a file by a function of its content, empty if there is none; nobody else writes it in between."""

    @abstractmethod
    def remove(self, key: str, expected: str) -> None:
        """Remove a file if its version is the expected one; otherwise do nothing."""

    @abstractmethod
    def keys(self, folder: str) -> list[str]:
        """The keys of the files directly in a folder, sorted."""

    @abstractmethod
    def refuse_unwritable(self, key: str) -> None:
        """Raise HardtailError if this file could not be written."""


@dataclass(frozen=True)
class FolderDepot(Depot):
    """A folder on one machine, or on a file system that machines share and whose locks (`flock`) work between them."""

    root: Path

    @property
    def place(self) -> str:
        return str(self.root)

    def read(self, key: str) -> Held | None:
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

    def update(self, key: str, change: Callable[[bytes], bytes]) -> None:
        with sole_writer(self.root / key, wait=LOCK_WAIT):
            held = self.read(key)
            self.write(key, change(held.content if held else b""))

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


def _version(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
