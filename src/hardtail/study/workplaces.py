"""Where runs in progress are kept: in a folder, in which they are also trained, or in object storage.

A run in object storage is trained in a copy on its worker's machine. Its files are sent whenever it has saved its state
or measured something, in an order in which a folder could also have them when a worker is killed, and fetched in the
reverse order. A worker that has lost its lease sends nothing. Each file is replaced only by whoever sent or read its
latest version: a worker that was taken for dead cannot undo what the next one did.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from hardtail.core.buckets import BucketDepot
from hardtail.core.depots import Depot
from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic, read_regular
from hardtail.core.records import FINISHED, LOG_FILE, Finished, parse
from hardtail.study.leases import Lease
from hardtail.training.checkpoint import STATE, header_step, state_step
from hardtail.training.keeper import BEST

LOG_TAIL = 5
"""Lines of its log that the report of a failed run repeats."""
MEASURED = ("evaluations.jsonl", "diagnoses.jsonl")
LEADING = (STATE, *MEASURED, FINISHED)
"""A change of one of these is a reason to send what has changed."""
FIRST = (BEST, LOG_FILE, STATE)
"""Sent in this order, after what is never changed: a state that is newer than its best weights would lose those."""
HEADER = 1 << 20
"""Bytes from the beginning of a state in which its header is looked for."""
MOST_STATE = 5 << 30
"""The most bytes of an object that is written at once."""


class Desk(ABC):
    """One run that is being worked on."""

    folder: Path

    @abstractmethod
    def keep(self) -> None:
        """Called between steps and measurements: keep what the run has saved since the last call."""


class Runs(ABC):
    """Runs in progress, by name."""

    @abstractmethod
    @contextmanager
    def opened(self, name: str, lease: Lease) -> Iterator[Desk]:
        """A run to work on, as long as its lease is not lost."""

    @abstractmethod
    def files(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        """The files of these runs and their bytes, by name of the run."""

    @abstractmethod
    def read(self, name: str, file: str) -> bytes:
        """A file of a run; empty if there is none."""

    @abstractmethod
    def step(self, name: str) -> int:
        """The step of a run's saved state; 0 if there is none."""

    def stages(self, names: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Whether each run is `trained`, `started` or `missing`, and at which step; -1 if that cannot be read."""
        held = self.files(names)

        def of(name: str) -> tuple[str, int]:
            if FINISHED in held[name]:
                with suppress(HardtailError):  # `advance` reports a record that cannot be read
                    return "trained", parse(self.read(name, FINISHED), Finished, name).step
                return "trained", -1
            return ("started", self.step(name)) if STATE in held[name] else ("missing", 0)

        return {name: of(name) for name in names}

    def gained(self, name: str) -> tuple[int, int]:
        """How far a run has come: its saved step, and the bytes of what was measured."""
        held = self.files([name])[name]
        return self.step(name), sum(held.get(file, 0) for file in (FINISHED, *MEASURED))

    def log_tail(self, name: str) -> tuple[str, ...]:
        """The last lines of a run's log, as they are in the file; none if it has no log."""
        try:
            return tuple(self.read(name, LOG_FILE).decode(errors="replace").splitlines()[-LOG_TAIL:])
        except (OSError, HardtailError):
            return ()


def runs_at(place: Path | Depot) -> Runs:
    if isinstance(place, Path):
        return FolderRuns(place)
    assert isinstance(place, BucketDepot)  # a folder is given as a path
    return BucketRuns(place)


# -- a folder ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Inside(Desk):
    """A run that is worked on where it is kept."""

    folder: Path

    def keep(self) -> None:
        return


@dataclass(frozen=True)
class FolderRuns(Runs):
    """A folder with one folder for each run."""

    root: Path

    @contextmanager
    def opened(self, name: str, lease: Lease) -> Iterator[Desk]:
        yield _Inside(self.root / name)

    def files(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        return {name: _sizes(self.root / name) for name in names}

    def read(self, name: str, file: str) -> bytes:
        path = self.root / name / file
        return read_regular(path) if path.exists() else b""

    def step(self, name: str) -> int:
        return state_step(self.root / name)


def _sizes(folder: Path) -> dict[str, int]:
    found: dict[str, int] = {}
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in os.scandir(folder):
            with suppress(FileNotFoundError):  # a temporary file that has taken its name meanwhile
                found[entry.name] = entry.stat().st_size
    return found


# -- object storage ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class BucketRuns(Runs):
    """Objects `NAME/FILE` below an address."""

    depot: BucketDepot

    @contextmanager
    def opened(self, name: str, lease: Lease) -> Iterator[Desk]:
        self.depot.refuse_unwritable(name)
        with TemporaryDirectory(prefix="hardtail-") as place:
            copy = _Copy(self.depot, name, Path(place) / name, lease)
            copy.fetch()
            try:
                yield copy
            except Exception:
                with suppress(OSError, HardtailError):  # the first error is the one to report
                    copy.send()
                raise
            copy.send()

    def files(self, names: Sequence[str]) -> dict[str, dict[str, int]]:
        found: dict[str, dict[str, int]] = {name: {} for name in names}
        for key, size in self.depot.sizes(names[0] if len(names) == 1 else "").items():
            name, _, file = key.partition("/")
            if name in found:
                found[name][file] = size
        return found

    def read(self, name: str, file: str) -> bytes:
        held = self.depot.read(f"{name}/{file}")
        return held.content if held else b""

    def step(self, name: str) -> int:
        return header_step(self.depot.head(f"{name}/{STATE}", HEADER) or b"")


Signature = tuple[int, int, int]
"""What changes when a file is written: its time, size and number."""


@dataclass
class _Copy(Desk):
    """A run from object storage in a folder of this machine."""

    depot: BucketDepot
    name: str
    folder: Path
    lease: Lease
    versions: dict[str, str] = field(default_factory=dict)
    """By file: the version that was read or sent last."""
    sent: dict[str, Signature] = field(default_factory=dict)

    def fetch(self) -> None:
        self.folder.mkdir()
        files = [key.removeprefix(f"{self.name}/") for key in self.depot.keys(self.name)]
        # The last that is sent is read first: what was sent before it is then at least as new.
        for file in sorted(files, key=turn, reverse=True):
            if (held := self.depot.read(self._key(file))) is not None:
                with atomic(self.folder / file) as into:
                    into.write(held.content)
                self.versions[file] = held.version
        self.sent = self._signatures()

    def keep(self) -> None:
        for file in LEADING:
            if _signature(self.folder / file) != self.sent.get(file):
                self.send()
                return

    def send(self) -> None:
        """Send every file that has changed; raise BusyError if the lease is lost."""
        held = self._signatures()
        gone = [file for file in self.versions if file not in held]  # a run that continues is not finished
        changed = [file for file in sorted(held, key=turn) if self.sent.get(file) != held[file]]
        if gone or changed:
            self.lease.refuse_lost()
        for file in gone:
            self.depot.remove(self._key(file), self.versions[file])
            del self.versions[file]
            self.sent.pop(file, None)
        for file in changed:
            content = read_regular(self.folder / file, MOST_STATE)
            if self.lease.lost:  # large files take long
                self.lease.refuse_lost()
            self.versions[file] = self.depot.swap(self._key(file), content, self.versions.get(file))
            self.sent[file] = held[file]

    def _key(self, file: str) -> str:
        return f"{self.name}/{file}"

    def _signatures(self) -> dict[str, Signature]:
        names = [entry.name for entry in os.scandir(self.folder) if not entry.name.startswith(".")]
        found = {name: _signature(self.folder / name) for name in names if name != "lock"}
        return {name: signature for name, signature in found.items() if signature is not None}


def _signature(path: Path) -> Signature | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def turn(file: str) -> int:
    """When a file of a run is sent or unpacked: `recipe.json` first, `finished.json` last."""
    if file == FINISHED:
        return len(FIRST) + 2
    return FIRST.index(file) + 1 if file in FIRST else 0 if file == "recipe.json" else len(FIRST) + 1
