"""A unit of work: one run of a grid, from its first step to its line in the index; and what decides where it runs.

docs/scale.md says how units, leases and records fit together.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from msgspec.json import encode

from hardtail.core.depots import Depot
from hardtail.core.errors import HardtailError
from hardtail.core.files import file_hash, local_data
from hardtail.core.hub import HF
from hardtail.core.records import LogLine
from hardtail.measuring.given import problems_beside
from hardtail.models.precision import Precision
from hardtail.study.grids import Entry
from hardtail.study.store import Store
from hardtail.study.workplaces import Runs, runs_at

State = Literal["recorded", "stopped", "busy", "failed", "refused", "unwritable", "full"]
"""How work on a unit ended. `stopped`: it is saved and continues another time; `busy`: someone else works on it;
`failed`: by its own fault; `refused`: a file could not be written; `unwritable`: results could not be recorded at all;
`full`: there is no space left."""


@dataclass(frozen=True)
class Unit:
    """One run of a grid: what is trained and measured, and where it is kept."""

    entry: Entry
    runs: Path | Depot
    store: Store
    n: int
    device: str | None
    """None is the GPU of the machine that it runs on, if that has one."""
    patience: int | None = None
    data_file: Path | None = None
    precision: Precision = "fp32"
    """Of the measurements."""
    ledger_only: bool = False

    @property
    def name(self) -> str:
        return self.entry.name

    @property
    def kept(self) -> Runs:
        """Where it is while it is in progress."""
        return runs_at(self.runs)

    def from_anywhere(self) -> "Unit":
        """The same with absolute paths, for a process in another folder."""
        runs = self.runs.absolute() if isinstance(self.runs, Path) else self.runs
        data_file = self.data_file
        if data_file is not None and not str(data_file).startswith(HF):
            data_file = data_file.absolute()
        return replace(self, runs=runs, store=self.store.from_anywhere(), data_file=data_file)

    @cached_property
    def identity(self) -> str:
        """A hash of everything that its results depend on, except for the code."""
        data = " ".join(data_hashes(self.data_file).values())
        measured = [self.n, self.precision, self.ledger_only]
        content = [self.name, self.entry.recipe.as_json(), measured, self.patience, data]
        return hashlib.sha256(encode(content)).hexdigest()


def data_hashes(data_file: Path | None) -> dict[str, str]:
    """The hashes of the file that runs are trained on and of the test file next to it, by name, as far as there are."""
    try:
        files = [local_data(data_file)] if data_file else []
        files += [test] if (test := problems_beside(data_file)) else []
        return {file.name: file_hash(file) for file in files}
    except OSError as error:
        raise HardtailError(f"--data {data_file} cannot be read: {error.strerror or error}") from error


@dataclass(frozen=True)
class UnitResult:
    """How work on a unit ended, in words for the user."""

    name: str
    state: State
    said: tuple[str, ...] = ()
    """What happened, apart from a failure."""
    failure: str = ""
    log: tuple[str, ...] = ()
    """The end of a failed run's log."""
    trace: str = ""
    """Where in the code an error occurred that has no sentence of its own."""


@dataclass(frozen=True)
class Limits:
    """When work has to stop."""

    over: Callable[[], bool]
    """Whether it has to stop now: time is up, or the user wants it."""
    seconds: Callable[[], float]
    """Seconds that are left."""


Report = Callable[[Entry, LogLine], None]
Progress = Callable[[Entry, str, int, int], None]
"""Called with a run, what is done with it (`step`, `measuring`, or what comes before the first step), how far that has
come, and how far it goes."""


@dataclass(frozen=True)
class Watching:
    """Who is told how work in this process goes on."""

    report: Report = lambda entry, line: None
    progress: Progress = lambda entry, what, done, total: None


Work = Callable[[Unit, Callable[[], bool], Watching, str | None], UnitResult]
"""Works on a unit until it is recorded or time is over; under the lease of this owner, if one is given."""


@dataclass(frozen=True)
class Seen:
    """A line of the table of a grid that is under way."""

    name: str
    state: str
    step: int
    steps: int
    where: str = ""


class Launcher(ABC):
    """Decides where units run; what is done with each is the same everywhere."""

    @abstractmethod
    def launch(
        self, units: Sequence[Unit], work: Work, limits: Limits, say: Callable[[str], None], watching: Watching
    ) -> dict[str, str]:
        """Work on the units, the first ones first, until all are done or time is over; return the failures by name."""


class Inline(Launcher):
    """One after the other, in this process. A run that does not end in time is the last."""

    def launch(
        self, units: Sequence[Unit], work: Work, limits: Limits, say: Callable[[str], None], watching: Watching
    ) -> dict[str, str]:
        failures: dict[str, str] = {}
        for unit in units:
            if limits.over():
                break
            if unit.name in unit.store.names():
                continue
            result = work(unit, limits.over, watching, None)
            for words in result.said:
                say(f"{unit.name}: {words}")
            raise_if_hopeless(result)
            if result.failure:
                say(f"{unit.name}: {result.failure}{indented(result.trace)}")
                failures[unit.name] = result.failure
            if result.state == "stopped":
                break
        return failures


def raise_if_hopeless(result: UnitResult) -> None:
    """Raise HardtailError where the next unit would meet the same: a full disk, or results that cannot be written."""
    if result.state in ("full", "unwritable"):
        raise HardtailError(result.failure)


def indented(text: str) -> str:
    return "".join(f"\n    {line}" for line in text.splitlines())
