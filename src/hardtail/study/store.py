"""Recorded runs: under `results/` one folder for each run, with small text files only, and an index; never rewritten.

`index.jsonl`              one line for each run: name, arm, seed, task, steps, commit, device, wall seconds; its
                           patience, where that ran out before the last step; a caveat, where somebody wrote one
`NAME/recipe.json`         what was trained
`NAME/log.jsonl`           what the run measured during training, thinned
`NAME/coverage.json`       the mask states it was trained on
`NAME/evaluations.jsonl`   accuracy records (`hardtail eval`)
`NAME/diagnoses.jsonl`     wrong commits, readiness, coverage (`hardtail diagnose`)
`facts.jsonl`              numbers about data, or about models outside a run (`tools/facts.py`)
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

import msgspec

from hardtail.core.depots import Depot, FolderDepot, place_at
from hardtail.core.errors import HardtailError
from hardtail.core.files import read_regular
from hardtail.core.records import (
    FINISHED,
    Finished,
    LogLine,
    Positive,
    RunEntry,
    lines_of,
    parsed_lines,
    read_json,
    read_jsonl,
)
from hardtail.study.leases import Leases
from hardtail.study.runs import Run

COPIED = ("recipe.json", "coverage.json", "evaluations.jsonl", "diagnoses.jsonl")
FILES = (*COPIED, "log.jsonl")
INDEX = "index.jsonl"
FACTS = "facts.jsonl"
LOG_LINES = 150
"""A thinned log has about this many lines."""
HOW_TO_REWRITE = "move finished.json away and run the same command to write the files again from the saved state"


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """A number that belongs to no run."""

    fact: str
    about: str
    """What was looked at."""
    seed: int
    value: float
    n: Positive | None = None
    commit: str
    device: str


@dataclass(frozen=True)
class Store:
    """Recorded runs: in a folder, or in object storage."""

    place: Path | Depot

    @property
    def depot(self) -> Depot:
        return FolderDepot(self.place) if isinstance(self.place, Path) else self.place

    @property
    def folder(self) -> Path:
        """The folder of results that are in one."""
        assert isinstance(self.place, Path)
        return self.place

    def from_anywhere(self) -> "Store":
        """The same for a process in another folder."""
        return Store(self.place.absolute()) if isinstance(self.place, Path) else self

    def facts(self) -> list[Fact]:
        return read_jsonl(self.depot.local([FACTS]) / FACTS, Fact)

    def index(self) -> list[RunEntry]:
        """One entry for each run, in the order in which they were recorded."""
        where = f"{self.depot.place}/{INDEX}"
        held = self.depot.read(INDEX)
        entries = parsed_lines(held.content, RunEntry, where) if held else []
        name, count = max(Counter(entry.name for entry in entries).items(), key=itemgetter(1), default=("", 0))
        if count > 1:
            raise HardtailError(f"{where}: there are two runs {name!r}; results are never rewritten")
        return entries

    def names(self) -> set[str]:
        return {entry.name for entry in self.index()}

    def runs(self) -> list[Run]:
        """Every run that is recorded here."""
        entries = self.index()
        folder = self.depot.local(f"{entry.name}/{file}" for entry in entries for file in FILES)
        runs = [Run(entry, folder / entry.name) for entry in entries]
        if gone := [run.folder for run in runs if not (run.folder / "log.jsonl").is_file()]:
            raise HardtailError(f"{gone[0]} has no log.jsonl, although index.jsonl names the run; restore its folder")
        return runs

    @property
    def leases(self) -> Leases:
        """Who works on which run."""
        return Leases(self.depot.prompt)

    def refuse_unwritable(self) -> None:
        """Raise HardtailError before hours of work whose results could not be recorded here."""
        self.depot.refuse_unwritable(INDEX)

    def add(self, name: str, arm: str, run: Path) -> None:
        """Record a finished run: copy its small files, thin its log and add a line to the index.

        The line comes last: until it is there, nothing of the run counts, and the files are written again.
        """
        self._refuse_recorded(name)
        line = lines_of([_entry(name, arm, run)])
        files = {f"{name}/{file}": content for file, content in _files(run).items()}  # all read before any is written

        def added(index: bytes) -> bytes:
            if index and not index.endswith(b"\n"):
                where = f"{self.depot.place}/{INDEX}"
                raise HardtailError(f"{where} ends in the middle of a line; fix or move it, then try again")
            self._refuse_recorded(name)  # while nobody else can write: its files are not replaced either
            return index + line

        try:
            self.depot.publish(files, INDEX, added)
        except OSError as error:  # most often a full disk
            state = f"{name} is not recorded yet, and nothing of it is lost"
            raise HardtailError(f"{self.depot.place} cannot be written: {error.strerror or error}; {state}") from error

    def _refuse_recorded(self, name: str) -> None:
        if name in self.names():
            raise HardtailError(f"{self.depot.place} already has a run {name!r}; results are never rewritten")


def recorded(text: str | Path) -> Store:
    """The recorded runs at a place that a user names; raise HardtailError if there are none."""
    store = Store(place_at(text))
    if store.depot.read(INDEX) is None:
        raise HardtailError(
            f"{text} is not a folder of recorded runs: it has no index.jsonl; `hardtail study` records them"
        )
    return store


def default_results(new: Path | None = None) -> Path:
    """The folder `results` here, or else in the checkout that this package runs from; if neither has runs, `new`."""
    here, checkout = Path("results"), Path(__file__).resolve().parents[3] / "results"
    for folder in (here, checkout):
        if (folder / "index.jsonl").is_file():
            return folder
    if new is not None:
        return new
    looked = " and ".join(dict.fromkeys(str(folder.resolve()) for folder in (here, checkout)))
    raise HardtailError(f"there are no recorded runs (looked for an index.jsonl in {looked}); name a folder of results")


def finished_of(folder: Path) -> Finished | None:
    """How a run ended; None if it has not."""
    try:
        return read_json(folder / FINISHED, Finished)
    except HardtailError as error:
        raise HardtailError(f"{error}; {HOW_TO_REWRITE}") from error


def _entry(name: str, arm: str, folder: Path) -> RunEntry:
    """The line of the index for a finished run."""
    finished = finished_of(folder)
    if finished is None:
        raise HardtailError(f"{folder / FINISHED} is missing; only a finished run is recorded")
    run = Run.of_folder(folder)
    _ = run.coverage, run.evaluations, run.diagnoses  # refuse now what could not be read back
    if not run.log or run.log[-1].step != finished.step:
        raise HardtailError(
            f"{folder / 'log.jsonl'} does not end at step {finished.step:,}, as the run does; {HOW_TO_REWRITE}"
        )
    return msgspec.structs.replace(run.entry, name=name, arm=arm, steps=finished.step)


def _files(run: Path) -> dict[str, bytes]:
    """The files that are recorded of a run, by name."""
    if not (run / "coverage.json").exists():
        raise HardtailError(f"{run / 'coverage.json'} is missing; {HOW_TO_REWRITE}")
    held = {file: read_regular(run / file) for file in COPIED if (run / file).exists()}
    return held | {"log.jsonl": lines_of(_thinned(read_jsonl(run / "log.jsonl", LogLine)))}


def _thinned(lines: Sequence[LogLine]) -> list[LogLine]:
    """The first line, the last, the best, every line with a decode or where a session began, and enough of the
    others for a readable curve."""
    every = max(len(lines) // LOG_LINES, 1)
    probed = [math.inf if line.probe_nll is None else line.probe_nll for line in lines]
    always = {0, probed.index(min(probed)) if probed else 0, len(lines) - 1}
    always |= {place for place, line in enumerate(lines) if line.hard is not None or line.commit is not None}
    return [line for place, line in enumerate(lines) if place in always or place % every == 0]
