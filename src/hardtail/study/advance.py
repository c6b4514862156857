"""Moving a grid on: take the next unfinished run, train it as far as the time goes, measure and record what is done."""

import errno
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hardtail.core.errors import BusyError, HardtailError
from hardtail.core.files import sole_writer
from hardtail.core.records import FINISHED, Accuracy, Finished, Head, LogLine, read_measurements
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis import Diagnosis, read_diagnoses
from hardtail.measuring.evaluate import (
    chosen_policies,
    chosen_strata,
    evaluate_all,
    keep,
    measured_split,
    records_of,
)
from hardtail.measuring.explain import diagnosed, explain_model
from hardtail.measuring.subject import Kind, Subject, load_subject
from hardtail.study.grids import Entry
from hardtail.study.store import ANEW, Store, finished_of
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task
from hardtail.training.checkpoint import STATE, state_step
from hardtail.training.run import refuse_no_patience, train, usual_device

SPARE = 20.0
"""Seconds kept back for saving."""
ONWARD = f"move {FINISHED} away, and the same command trains on from the run's saved state, the next probe the best"
CONFIDENCE = ("top1", "max-logit", "margin", "entropy")


@dataclass(frozen=True)
class Status:
    """Where a run of a grid stands."""

    entry: Entry
    state: str
    """`recorded`, `trained`, `started` or `missing`."""
    step: int
    failure: str = ""
    """Why `advance` could not move it on."""


def status(entries: Sequence[Entry], runs: Path, store: Store) -> list[Status]:
    """Every entry's state, from the folders alone."""
    recorded = {entry.name: entry.steps for entry in store.index()}
    found: list[Status] = []
    for entry in entries:
        folder = runs / entry.name
        if entry.name in recorded:
            found.append(Status(entry, "recorded", recorded[entry.name]))
        elif (folder / FINISHED).exists():
            found.append(Status(entry, "trained", _ended_at(folder) or entry.recipe.steps))
        else:
            started = (folder / STATE).exists()
            found.append(Status(entry, "started" if started else "missing", state_step(folder)))
    return found


def _ended_at(folder: Path) -> int | None:
    """The step that a run ended at, as it says itself; None where that cannot be read."""
    try:
        finished = finished_of(folder)
    except HardtailError:  # whoever moves it on is told
        return None
    return None if finished is None else finished.step


def advance(
    entries: Sequence[Entry],
    runs: Path,
    store: Store,
    *,
    minutes: float,
    device: str | None = None,
    n: int = 500,
    patience: int | None = None,
    say: Callable[[str], None] = print,
    report: Callable[[Entry, LogLine], None] = lambda entry, line: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> list[Status]:
    """Work through the entries for so long. Whatever is begun is saved in time and goes on at the next call.

    Several processes may work on one grid: each takes a run that no other is at. A run that fails holds up no other,
    but for a full disk or results that cannot be written, where the next would fail too. `patience` is `train`'s.
    """
    refuse_no_patience(patience)
    deadline = time.monotonic() + 60 * minutes - SPARE

    def over() -> bool:
        return should_stop() or time.monotonic() >= deadline

    device = device or usual_device()
    failures: dict[str, str] = {}
    for entry in entries:
        if over():
            break
        if entry.name in store.names():
            continue
        store.refuse_unwritable()
        folder = runs / entry.name

        def tell(line: LogLine, entry: Entry = entry) -> None:
            report(entry, line)

        try:
            outcome = train(entry.recipe, folder, device=device, patience=patience, report=tell, should_stop=over)
            if not outcome.finished:
                say(f"{entry.name}: saved at step {outcome.step:,} of {entry.recipe.steps:,}")
                break
            if outcome.patience:
                say(f"{entry.name}: out of patience at step {outcome.step:,} of {entry.recipe.steps:,}")
            with sole_writer(folder):
                if entry.name in store.names():
                    continue
                if not measure(folder, device=device, n=n, over=over):
                    say(f"{entry.name}: trained; measuring goes on at the next call")
                    break
                store.add(entry.name, entry.arm, folder)
                say(f"{entry.name}: recorded")
        except BusyError:
            say(f"{entry.name}: another process is at it")
        except HardtailError as error:  # the others need not wait for whoever looks into it
            if _full_disk(error):
                raise
            say(f"{entry.name}: {error}")
            failures[entry.name] = str(error)
    return [replace(item, failure=failures.get(item.entry.name, "")) for item in status(entries, runs, store)]


def _full_disk(error: HardtailError) -> bool:
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.ENOSPC, errno.EDQUOT)


def measure(folder: Path, *, device: str, n: int, over: Callable[[], bool] = lambda: False) -> bool:
    """Evaluate and diagnose a finished run: every order, every stratum, both kinds of weights; whether all is done.

    The last weights of a run that ran out of patience are not those of its whole training: only the best are measured.
    Each stratum is kept once it is measured, and is not measured again; what is left when time is `over` is left.
    """
    evaluations, diagnoses = folder / "evaluations.jsonl", folder / "diagnoses.jsonl"
    finished = finished_of(folder)
    whole = finished is None or finished.patience is None
    kinds: tuple[Kind, ...] = ("last", "best_probe") if whole else ("best_probe",)
    decoding = Decoding(device=device)
    for kind in kinds:
        if not (weights := folder / f"{kind}.safetensors").exists():
            if not whole:
                raise HardtailError(f"{weights} is missing; put it back, or {ONWARD}")
            stand_in = "" if kind == "last" else ", the last weights as the best"
            raise HardtailError(f"{weights} is missing; put it back, or {ANEW}{stand_in}")
    for kind in kinds:
        subject = load_subject(str(folder), kind=kind, device=device)
        _refuse_other_step(folder, subject, finished)
        done = [
            (record.stratum, record.policy, record.n)
            for record in read_measurements(evaluations)
            if isinstance(record, Accuracy) and _counts(record, subject)
        ]
        for part, names in study_parts(subject.task, n):
            if all((part.stratum, name, part.n) in done for name in names):
                continue
            if over():
                return False
            policies = chosen_policies(subject.task, names)
            found = evaluate_all(subject, policies, [part.stratum], part.n, decoding, data_seed=subject.seed)
            keep(evaluations, records_of(list(found)))
        wanted = diagnosed(subject.task, (), None)
        explained = [record for record in read_diagnoses(diagnoses) if _counts(record, subject)]
        if not any(_explains(record, wanted) for record in explained):
            if over():
                return False
            keep(diagnoses, explain_model(subject, (), (), None, decoding))
    return True


def _refuse_other_step(folder: Path, subject: Subject, finished: Finished | None) -> None:
    """The last weights of a finished run are those of its last step, not older ones that were put in their place."""
    ended, step = finished and finished.step, subject.origin.step
    if subject.origin.checkpoint == "last" and step != ended:
        raise HardtailError(
            f"{folder / 'last.safetensors'} is of step {step}, and {FINISHED} says that the run ended at step {ended}; "
            + ANEW
        )


def _counts(record: Head, subject: Subject) -> bool:
    """Whether a record is about these very weights, not about those of an earlier step, and the ledger counts it."""
    origin = subject.origin
    alike = (record.checkpoint, record.step, record.decode_precision)
    return alike == (origin.checkpoint, origin.step, origin.decode_precision) and record.plainly_decoded


def _explains(record: Diagnosis, wanted: Sequence[Part]) -> bool:
    """Whether a diagnosis is of confidence, and of as many instances of every stratum as the study's."""
    enough = record.result.instances >= sum(part.n for part in wanted)
    return record.policy == CONFIDENCE[0] and enough and all(part.stratum in record.strata for part in wanted)


def prepare(entries: Sequence[Entry], *, n: int = 500) -> int:
    """Draw everything that training and measuring these runs needs, so that it is kept; how many sets that is.

    They are kept in the folder that the environment variable `data.KEPT` names, for a machine that cannot draw.
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


def study_parts(task: Task, n: int) -> list[tuple[Part, tuple[str, ...]]]:
    """What every run is measured on, and the orders it is decoded in.

    Every stratum in all orders; and the natural problems of the study's own test set by top-1 confidence, as it takes
    many to tell a rare failure from none.
    """
    natural = [part for part in task.splits()["test"] if part.stratum == "natural" and part.n > n]
    everything = [(Part(name, n), study_policies(task)) for name in chosen_strata(task, ())]
    return everything + [(part, CONFIDENCE[:1]) for part in natural]


def study_policies(task: Task) -> tuple[str, ...]:
    """The confidence family, the task's logical orders, random order."""
    return (*CONFIDENCE, *task.order_names, "random")
