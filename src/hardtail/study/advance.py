"""Advancing a grid: train the next unfinished run for as long as there is time, then measure and record it."""

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from traceback import format_exception
from typing import TypeVar

import torch
from msgspec.structs import replace as replace_fields

from hardtail.core.depots import Depot
from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.files import sole_writer
from hardtail.core.hub import HF
from hardtail.core.records import FINISHED, Accuracy, Head, LogLine, Measurement, read_measurements
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis import Diagnosis, read_diagnoses
from hardtail.measuring.evaluate import chosen_policies, chosen_strata, evaluate_all, keep, measured_split, records_of
from hardtail.measuring.explain import diagnosed, explain_model, to_decode
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.subject import Kind, Subject, load_subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.precision import Precision
from hardtail.study.claims.ledger import judged_orders
from hardtail.study.grids import Entry
from hardtail.study.leases import Lease
from hardtail.study.store import HOW_TO_REWRITE, Store, finished_of
from hardtail.study.unit import Inline, Launcher, Limits, Progress, Report, Result, State, Unit, Watching
from hardtail.study.workplaces import Desk, runs_at
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task
from hardtail.training.run import refuse_no_patience, train, usual_device

R = TypeVar("R", bound=Head)
SPARE = 20.0
"""Seconds that are kept for saving."""
INLINE = Inline()
CONFIDENCE = ("top1", "max-logit", "margin", "entropy")


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


def work(unit: Unit, over: Callable[[], bool], watching: Watching, owner: str | None = None) -> Result:
    """Train, measure and record one run under its lease; whatever happens to it is in the result."""
    try:
        unit.store.refuse_unwritable()
    except BusyError as error:
        return Result(unit.name, "busy", (str(error),))
    except HardtailError as error:
        return Result(unit.name, "unwritable", failure=str(error))
    try:
        with (
            unit.store.leases.take(unit.name, unit.identity, owner) as lease,
            unit.kept.opened(unit.name, lease) as desk,
        ):
            return _work(unit, desk, lease, over, watching)
    except BusyError as error:
        return Result(unit.name, "busy", (str(error),))
    except BrokenPipeError:  # from the reader of the reports
        raise
    except Exception as error:
        trace = "" if isinstance(error, HardtailError | OSError) else "".join(format_exception(error))
        return Result(unit.name, _fault(error), (), _sentence(error), unit.kept.log_tail(unit.name), trace)


def _work(unit: Unit, desk: Desk, lease: Lease, over: Callable[[], bool], watching: Watching) -> Result:
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
        return Result(entry.name, "recorded")
    outcome = train(
        entry.recipe,
        folder,
        device=device,
        data_file=unit.data_file,
        patience=unit.patience,
        report=reported,
        progress=stepped,
        should_stop=stop,
    )
    if not outcome.finished:
        lease.refuse_lost()
        return Result(entry.name, "stopped", (f"saved at step {outcome.step:,} of {entry.recipe.steps:,}",))
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
            test_file=measured_file(unit.data_file),
            over=stop,
            progress=partial(watching.progress, entry, "measuring"),
        ):
            lease.refuse_lost()
            return Result(entry.name, "stopped", (*said, "trained; measuring continues at the next call"))
        desk.keep()
        lease.refuse_lost()
        unit.store.add(entry.name, entry.arm, folder)
    return Result(entry.name, "recorded", (*said, "recorded"))


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


def measure(
    folder: Path,
    *,
    device: str,
    n: int,
    precision: Precision = "fp32",
    ledger_only: bool = False,
    test_file: Path | None = None,
    over: Callable[[], bool] = lambda: False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> bool:
    """Evaluate and diagnose a finished run, in every order, on every stratum, for both kinds of weights.

    `ledger_only` leaves out what no claim is about. The problems of a `test_file` are measured on in addition, all of
    them in every order. If the best weights are the last, they are measured once.
    If the run ran out of patience, its last weights are not those of its whole training: only the best are measured.
    Each stratum is kept once it is measured and not measured again. False if time was `over` before all was done.
    `progress` gets the number of decodes that are done, and of all there are.
    """
    evaluations, diagnoses = folder / "evaluations.jsonl", folder / "diagnoses.jsonl"
    finished = finished_of(folder)
    remedies: dict[Kind, str] = {
        "last": HOW_TO_REWRITE,
        "best_probe": f"{HOW_TO_REWRITE}, with the last weights as the best",
    }
    if finished is not None and finished.patience is not None:
        onward = "the same command continues training from the saved state; the next probe is then the best"
        remedies = {"best_probe": f"move {FINISHED} away, and {onward}"}
    decoding = Decoding(device=device)
    for kind, remedy in remedies.items():
        if not (weights := folder / f"{kind}.safetensors").exists():
            raise HardtailError(f"{weights} is missing; put it back, or {remedy}")
    count = _Count(progress)
    measured: Subject | None = None
    for kind in remedies:
        subject = load_subject(
            str(folder), kind=kind, device=device, precision=precision, compiled=torch.device(device).type == "cuda"
        )
        parts = study_parts(subject.task, n, ledger_only=ledger_only)
        decodes = {part: part.n * (len(names) + subject.task.reveals) for part, names in parts}
        explaining = to_decode(subject.task, (), (), None)
        given = GivenProblems.read(subject.task, test_file) if test_file else None
        orders = study_policies(subject.task)
        from_file = len(given.instances) * len(orders) if given else 0
        count.total = len(remedies) * (sum(decodes.values()) + from_file + explaining)
        ended, step = finished and finished.step, subject.origin.step
        if kind == "last" and step != ended:  # older weights may have been put in their place
            steps = f"is of step {step}, and {FINISHED} says that the run ended at step {ended}"
            raise HardtailError(f"{folder / 'last.safetensors'} {steps}; {HOW_TO_REWRITE}")
        drawn, filed = _plain(read_measurements(evaluations), given)
        explained = [record for record in read_diagnoses(diagnoses) if record.plainly_decoded]
        if measured is not None and _same_weights(measured, subject):
            keep(evaluations, _copied(drawn + filed, measured, subject))
            keep(diagnoses, _copied(explained, measured, subject))
            count(count.total // len(remedies))
            continue
        done = [
            (record.stratum, record.policy, record.n)
            for record in drawn
            if isinstance(record, Accuracy) and _is_of(record, subject)
        ]
        for part, names in parts:
            if all((part.stratum, name, part.n) in done for name in names):
                count(decodes[part])
                continue
            if over():
                return False
            policies = chosen_policies(subject.task, names)
            seed = subject.seed
            found = evaluate_all(subject, policies, [part.stratum], part.n, decoding, data_seed=seed, progress=count)
            keep(evaluations, records_of(list(found)))
        if given is not None and not any(_is_of(record, subject) for record in filed):
            if over():
                return False
            policies, strata = chosen_policies(subject.task, orders), given.strata(chosen_strata(subject.task, ()))
            found = evaluate_all(subject, policies, strata, None, decoding, data_seed=subject.seed, given=given)
            keep(evaluations, records_of(list(found)))
        count(from_file)
        wanted = diagnosed(subject.task, (), None)
        if any(_explains(record, wanted) for record in explained if _is_of(record, subject)):
            count(explaining)
        elif over():
            return False
        else:
            keep(diagnoses, explain_model(subject, (), (), None, decoding, progress=count))
        measured = subject
    return True


def measured_file(data_file: Path | None) -> Path | None:
    """`NAME-test.npz` next to the file `NAME` that a run is trained on, if there is one."""
    if data_file is None or str(data_file).startswith(HF):
        return None
    beside = data_file.with_name(f"{data_file.stem}-test.npz")
    return beside if beside.exists() else None


def _plain(records: Sequence[Measurement], given: GivenProblems | None) -> tuple[list[Measurement], list[Measurement]]:
    """The plain decodes of drawn problems, and those of the given ones."""
    drawn = [record for record in records if record.plainly_decoded]
    filed = [record for record in records if given and record.data == given.file]
    return drawn, [record for record in filed if record.data and record.plainly_decoded_from(record.data.file)]


class _Count:
    """Counts the decodes of a measurement, also those of earlier calls."""

    def __init__(self, progress: Callable[[int, int], None]) -> None:
        self.progress, self.done, self.total = progress, 0, 0

    def __call__(self, made: int) -> None:
        self.done += made
        self.progress(self.done, self.total)


def _is_of(record: Head, subject: Subject) -> bool:
    """Whether a record is about these very weights, not those of an earlier step, in the same precision."""
    origin = subject.origin
    alike = (record.checkpoint, record.step, record.decode_precision)
    return alike == (origin.checkpoint, origin.step, origin.decode_precision)


def _same_weights(one: Subject, two: Subject) -> bool:
    """Whether the weights of two kinds are the same: the last step may also have had the best probe."""
    assert isinstance(one.denoiser, ModelDenoiser)
    assert isinstance(two.denoiser, ModelDenoiser)
    pairs = zip(one.denoiser.model.parameters(), two.denoiser.model.parameters(), strict=True)
    return one.origin.step == two.origin.step and all(torch.equal(mine, other) for mine, other in pairs)


def _copied(records: Sequence[R], source: Subject, target: Subject) -> list[R]:
    """The records of the one as records of the other, without those that it has already."""
    copies = [replace_fields(of, checkpoint=target.origin.checkpoint) for of in records if _is_of(of, source)]
    return [copy for copy in copies if copy not in records]


def _explains(record: Diagnosis, wanted: Sequence[Part]) -> bool:
    """Whether a diagnosis is of confidence and covers every stratum with as many instances as the study does."""
    enough = record.result.instances >= sum(part.n for part in wanted)
    return record.policy == CONFIDENCE[0] and enough and all(part.stratum in record.strata for part in wanted)


def prepare(entries: Sequence[Entry], *, n: int = 500) -> int:
    """Draw all sets of instances that training and measuring these runs needs, and return how many there are.

    The folder that the environment variable `data.KEPT` names keeps them, for a machine that cannot draw.
    """
    made = 0
    for task, seed, size, watch in dict.fromkeys(
        (entry.recipe.task, entry.recipe.seed, entry.recipe.train_size, entry.recipe.watch) for entry in entries
    ):
        data.build(task, data.TRAIN, seed, size)
        parts = list(watch.parts(task).values())
        measured = [part for part, _ in study_parts(task, n)] + diagnosed(task, (), None)
        parts += [(measured_split(task, part.stratum), part) for part in measured]
        for split, part in parts:
            data.draw(task, split, part, seed)
        made += 1 + len(parts)
    return made


def study_parts(task: Task, n: int, *, ledger_only: bool = False) -> list[tuple[Part, tuple[str, ...]]]:
    """What every run is measured on, with the orders it is decoded in: every stratum in all orders.

    The natural problems of the study's own test set are also decoded by top-1 confidence, since only a large number of
    them shows rare failures. `ledger_only` keeps the natural problems, confidence and what claims are about.
    """
    natural = [part for part in task.splits()["test"] if part.stratum == "natural" and part.n > n]
    orders = study_policies(task)
    everything = [(Part(name, n), orders) for name in chosen_strata(task, ())]
    if ledger_only:
        asked = {"natural": set(orders[:1])} | judged_orders(task.name)
        everything = [
            (part, tuple(name for name in orders if name in asked[part.stratum] or name == orders[0]))
            for part, _ in everything
            if part.stratum in asked
        ]
    return everything + [(part, CONFIDENCE[:1]) for part in natural]


def study_policies(task: Task) -> tuple[str, ...]:
    """The confidence family, the task's logical orders, random order."""
    return (*CONFIDENCE, *task.order_names, "random")
