"""Advancing a grid: train the next unfinished run for as long as there is time, then measure and record it."""

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from traceback import format_exception

from hardtail.core.depots import Depot
from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.files import sole_writer
from hardtail.core.records import LogLine
from hardtail.measuring.given import GivenProblems, problems_beside
from hardtail.models.precision import Precision
from hardtail.study.grids import Entry
from hardtail.study.leases import Lease
from hardtail.study.measure import drawn_parts, measure
from hardtail.study.store import Store
from hardtail.study.unit import (
    Inline,
    Launcher,
    Limits,
    Progress,
    Report,
    State,
    Unit,
    UnitResult,
    Watching,
)
from hardtail.study.workplaces import Desk, runs_at
from hardtail.tasks import datasets as data
from hardtail.training.run import refuse_no_patience, train, usual_device

SPARE = 20.0
"""Seconds that are kept for saving."""
INLINE = Inline()


@dataclass(frozen=True)
class Status:
    """How far a run of a grid has come."""

    entry: Entry
    state: str
    """`recorded`, `trained`, `started` or `missing`."""
    step: int
    failure: str = ""
    """Why `advance` failed on it."""


def status(entries: Sequence[Entry], runs: Path | Depot, store: Store) -> list[Status]:
    """The state of every entry, from the files alone."""
    recorded = {entry.name: entry.steps for entry in store.index()}
    stages = runs_at(runs).stages([entry.name for entry in entries if entry.name not in recorded])

    def of(entry: Entry) -> Status:
        if entry.name in recorded:
            return Status(entry, "recorded", recorded[entry.name])
        stage, step = stages[entry.name]
        return Status(entry, stage, entry.recipe.steps if step < 0 else step)

    return [of(entry) for entry in entries]


def advance(
    entries: Sequence[Entry],
    runs: Path | Depot,
    store: Store,
    *,
    minutes: float,
    device: str | None = None,
    n: int = 500,
    precision: Precision = "fp32",
    ledger_only: bool = False,
    patience: int | None = None,
    data_file: Path | None = None,
    say: Callable[[str], None] = print,
    report: Report = lambda entry, line: None,
    progress: Progress = lambda entry, what, done, total: None,
    should_stop: Callable[[], bool] = lambda: False,
    launcher: Launcher = INLINE,
) -> list[Status]:
    """Work through the entries for this many minutes. Unfinished work is saved in time and continues at the next call.

    Several processes may work on one grid: each takes a run that no other is working on. A run that fails does not hold
    up the others, except if the disk is full or results cannot be written. `patience` and `data_file` are `train`'s,
    `precision` and `ledger_only` are `measure`'s; entries on a data file are those of `Entry.on`. The launcher decides
    where runs are worked on: by default here.
    """
    refuse_no_patience(patience)
    deadline = time.monotonic() + 60 * minutes - SPARE

    def left() -> float:
        return deadline - time.monotonic()

    units = [Unit(entry, runs, store, n, device, patience, data_file, precision, ledger_only) for entry in entries]
    limits = Limits(lambda: should_stop() or left() <= 0, left)
    failures = launcher.launch(units, work, limits, say, Watching(report, progress))
    return [replace(item, failure=failures.get(item.entry.name, "")) for item in status(entries, runs, store)]


def work(unit: Unit, over: Callable[[], bool], watching: Watching, owner: str | None = None) -> UnitResult:
    """Train, measure and record one run under its lease; whatever happens to it is in the result."""
    try:
        unit.store.refuse_unwritable()
    except BusyError as error:
        return UnitResult(unit.name, "busy", (str(error),))
    except HardtailError as error:
        return UnitResult(unit.name, "unwritable", failure=str(error))
    try:
        with (
            unit.store.leases.take(unit.name, unit.identity, owner) as lease,
            unit.kept.opened(unit.name, lease) as desk,
        ):
            return _work(unit, desk, lease, over, watching)
    except BusyError as error:
        return UnitResult(unit.name, "busy", (str(error),))
    except BrokenPipeError:  # from the reader of the reports
        raise
    except Exception as error:
        trace = "" if isinstance(error, HardtailError | OSError) else "".join(format_exception(error))
        return UnitResult(unit.name, _fault(error), (), _sentence(error), unit.kept.log_tail(unit.name), trace)


def _work(unit: Unit, desk: Desk, lease: Lease, over: Callable[[], bool], watching: Watching) -> UnitResult:
    entry, folder, said = unit.entry, desk.folder, []
    device = unit.device or usual_device()

    def stop() -> bool:
        if lease.lost:  # another process may have gone on from what was sent before
            return True
        desk.keep()
        return over()

    def reported(line: LogLine) -> None:
        lease.note("training", line.step)
        watching.report(entry, line)

    def stepped(step: int) -> None:
        watching.progress(entry, "step", step, entry.recipe.steps)

    if entry.name in unit.store.names():  # recorded by someone else since it was looked for
        return UnitResult(entry.name, "recorded")
    if test_file := problems_beside(unit.data_file):
        GivenProblems.read(entry.recipe.task, test_file).refuse_unmeasurable()  # before anything is trained
    outcome = train(
        entry.recipe,
        folder,
        device=device,
        data_file=unit.data_file,
        patience=unit.patience,
        report=reported,
        progress=stepped,
        preparing=lambda what: watching.progress(entry, what, 0, 0),
        should_stop=stop,
    )
    if not outcome.finished:
        lease.refuse_lost()
        return UnitResult(entry.name, "stopped", (f"saved at step {outcome.step:,} of {entry.recipe.steps:,}",))
    if outcome.patience:
        said.append(f"out of patience at step {outcome.step:,} of {entry.recipe.steps:,}")
    with sole_writer(folder):
        lease.note("measuring", outcome.step)
        if not measure(
            folder,
            device=device,
            n=unit.n,
            precision=unit.precision,
            ledger_only=unit.ledger_only,
            test_file=test_file,
            over=stop,
            progress=partial(watching.progress, entry, "measuring"),
        ):
            lease.refuse_lost()
            return UnitResult(entry.name, "stopped", (*said, "trained; measuring continues at the next call"))
        desk.keep()
        lease.refuse_lost()
        unit.store.add(entry.name, entry.arm, folder)
    return UnitResult(entry.name, "recorded", (*said, "recorded"))


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'} cannot be written or read: {error.strerror or error}"
    return str(error) if isinstance(error, HardtailError) else f"{type(error).__name__}: {error}"


def _fault(error: Exception) -> State:
    """Whether a run failed by its own fault, or because something could not be written."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if not isinstance(cause, OSError):
        return "failed"
    return "full" if cause.errno in (errno.ENOSPC, errno.EDQUOT) else "refused"


def prepare(entries: Sequence[Entry], *, n: int = 500) -> int:
    """Draw all sets of instances that training and measuring these runs needs, and return how many there are.

    The folder that the environment variable `data.KEPT` names keeps them, for a machine that cannot draw.
    """
    made = 0
    for task, seed, size, watch in dict.fromkeys(
        (entry.recipe.task, entry.recipe.seed, entry.recipe.train_size, entry.recipe.watch) for entry in entries
    ):
        data.build(task, data.TRAIN, seed, size)
        parts = [*watch.parts(task).values(), *drawn_parts(task, n)]
        for split, part in parts:
            data.draw(task, split, part, seed)
        made += 1 + len(parts)
    return made
