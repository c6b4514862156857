"""Measuring a finished run: every order on every stratum, for both kinds of weights, and why it fails."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import torch
from msgspec.structs import replace as replace_fields

from hardtail.core.errors import HardtailError
from hardtail.core.records import FINISHED, Accuracy, Head, Measurement, read_measurements
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies, chosen_strata, measured_split
from hardtail.measuring.diagnosis import Diagnosis, read_diagnoses
from hardtail.measuring.evaluate import USUALLY, Evaluating, evaluate_all, keep, records_of
from hardtail.measuring.explain import diagnosed, explain_model, to_decode
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.subject import Kind, Subject, load_subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.precision import Precision
from hardtail.study.claims.ledger import judged_orders
from hardtail.study.store import HOW_TO_REWRITE, finished_of
from hardtail.tasks.base import Part, Task

R = TypeVar("R", bound=Head)
EVALUATIONS, DIAGNOSES = "evaluations.jsonl", "diagnoses.jsonl"
CONFIDENCE = ("top1", "max-logit", "margin", "entropy")


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
    them in every order. If the best weights are the last, they are measured once. If the run ran out of patience, its
    last weights are not those of its whole training: only the best are measured.

    Each stratum is kept once it is measured and not measured again, the file as a whole. False if time was `over`
    before all was done. `progress` gets the number of decodes that are done, and of all there are.
    """
    kinds = _kinds(folder)
    count = _Count(progress)
    measured: Subject | None = None
    for kind in kinds:
        subject = load_subject(
            str(folder), kind=kind, device=device, precision=precision, compiled=torch.device(device).type == "cuda"
        )
        _refuse_older(folder, subject)
        given = GivenProblems.read(subject.task, test_file) if test_file else None
        parts = study_parts(subject.task, n, ledger_only=ledger_only)
        jobs = _jobs(folder, subject, parts, given, Decoding(device=device), count)
        decodes = sum(job.decodes for job in jobs)
        count.total = len(kinds) * decodes
        if measured is not None and _same_weights(measured, subject):
            _copy(folder, given, measured, subject)
            count(decodes)
            continue
        for job in jobs:
            if job.done:
                count(job.decodes)
            elif over():
                return False
            else:
                job.run()
        measured = subject
    return True


def _kinds(folder: Path) -> list[Kind]:
    """The kinds of weights to measure; raise HardtailError if a file of them is missing."""
    finished = finished_of(folder)
    remedies: dict[Kind, str] = {
        "last": HOW_TO_REWRITE,
        "best_probe": f"{HOW_TO_REWRITE}, with the last weights as the best",
    }
    if finished is not None and finished.patience is not None:
        onward = "the same command continues training from the saved state; the next probe is then the best"
        remedies = {"best_probe": f"move {FINISHED} away, and {onward}"}
    for kind, remedy in remedies.items():
        if not (weights := folder / f"{kind}.safetensors").exists():
            raise HardtailError(f"{weights} is missing; put it back, or {remedy}")
    return list(remedies)


def _refuse_older(folder: Path, subject: Subject) -> None:
    """Raise HardtailError if older weights were put in the place of the last."""
    finished, step = finished_of(folder), subject.origin.step
    ended = finished and finished.step
    if subject.origin.checkpoint == "last" and step != ended:
        steps = f"is of step {step}, and {FINISHED} says that the run ended at step {ended}"
        raise HardtailError(f"{folder / 'last.safetensors'} {steps}; {HOW_TO_REWRITE}")


class _Job(NamedTuple):
    """A piece of a measurement, which is kept as a whole."""

    decodes: int
    done: bool
    """Whether an earlier call has measured it."""
    run: Callable[[], None]
    """Measures and keeps it, and counts its decodes."""


def _jobs(
    folder: Path,
    subject: Subject,
    parts: Sequence[tuple[Part, tuple[str, ...]]],
    given: GivenProblems | None,
    decoding: Decoding,
    count: "_Count",
) -> list[_Job]:
    """What the measurement of some weights consists of: drawn problems, those of a file, the diagnosis."""
    task, orders = subject.task, study_policies(subject.task)
    recorded = _recorded(folder, given).of(subject)
    done = [(record.stratum, record.policy, record.n) for record in recorded.drawn if isinstance(record, Accuracy)]

    def evaluate(
        names: Sequence[str],
        strata: Sequence[str],
        n: int | None,
        how: Evaluating = USUALLY,
        given: GivenProblems | None = None,
    ) -> None:
        policies = chosen_policies(task, names)
        found = evaluate_all(subject, policies, strata, n, decoding, how, data_seed=subject.seed, given=given)
        keep(folder / EVALUATIONS, records_of(list(found)))

    def evaluate_file(given: GivenProblems, decodes: int) -> None:
        evaluate(orders, given.strata(chosen_strata(task, ())), None, given=given)
        count(decodes)

    def explain() -> None:
        keep(folder / DIAGNOSES, explain_model(subject, (), (), None, decoding, progress=count))

    jobs = [
        _Job(
            _decodes(task, part, names),
            all((part.stratum, name, part.n) in done for name in names),
            partial(evaluate, names, [part.stratum], part.n, Evaluating(progress=count)),
        )
        for part, names in parts
    ]
    if given is not None:
        decodes = _decodes_of_file(given)
        jobs.append(_Job(decodes, _is_measured(given, orders, recorded.filed), partial(evaluate_file, given, decodes)))
    wanted = diagnosed(task, (), None)
    known = any(_explains(record, wanted) for record in recorded.explained)
    return [*jobs, _Job(to_decode(task, (), (), None), known, explain)]


class _Recorded(NamedTuple):
    """The plain decodes that are recorded of a run: of drawn problems, of the given ones, and their diagnoses."""

    drawn: list[Measurement]
    filed: list[Measurement]
    explained: list[Diagnosis]

    def of(self, subject: Subject) -> "_Recorded":
        """Those of one kind of weights."""
        drawn, filed = ([record for record in held if _is_of(record, subject)] for held in (self.drawn, self.filed))
        return _Recorded(drawn, filed, [record for record in self.explained if _is_of(record, subject)])


def _recorded(folder: Path, given: GivenProblems | None) -> _Recorded:
    records = read_measurements(folder / EVALUATIONS)
    return _Recorded(
        [record for record in records if record.plainly_decoded],
        [record for record in records if given and record.data == given.file and record.plainly_decoded_from],
        [record for record in read_diagnoses(folder / DIAGNOSES) if record.plainly_decoded],
    )


def _copy(folder: Path, given: GivenProblems | None, source: Subject, target: Subject) -> None:
    """Keep the records of some weights as those of the other kind, too."""
    recorded = _recorded(folder, given)
    keep(folder / EVALUATIONS, _copied(recorded.drawn + recorded.filed, source, target))
    keep(folder / DIAGNOSES, _copied(recorded.explained, source, target))


def _is_measured(given: GivenProblems, orders: Sequence[str], records: Sequence[Measurement]) -> bool:
    """Whether every stratum of the given problems was decoded in every order."""
    done = {(record.stratum, record.policy, record.n) for record in records if isinstance(record, Accuracy)}
    strata = given.strata(chosen_strata(given.task, ()))
    return done >= {(stratum, order, given.count(stratum)) for stratum in strata for order in orders}


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


def decodes_of_weights(task: Task, n: int, given: GivenProblems | None = None, *, ledger_only: bool = False) -> int:
    """How many decodes `measure` makes of one kind of weights."""
    drawn = sum(_decodes(task, part, names) for part, names in study_parts(task, n, ledger_only=ledger_only))
    return drawn + (_decodes_of_file(given) if given else 0) + to_decode(task, (), (), None)


def _decodes(task: Task, part: Part, orders: Sequence[str]) -> int:
    """Those of drawn problems: every order, and half-revealed answers where the task has them."""
    return part.n * (len(orders) + task.reveals)


def _decodes_of_file(given: GivenProblems) -> int:
    return len(given.instances) * len(study_policies(given.task))


def drawn_parts(task: Task, n: int) -> list[tuple[str, Part]]:
    """Split and part of every set of instances that measuring a run draws."""
    parts = [part for part, _ in study_parts(task, n)] + diagnosed(task, (), None)
    return [(measured_split(task, part.stratum), part) for part in parts]


def study_policies(task: Task) -> tuple[str, ...]:
    """The confidence family, the task's logical orders, random order."""
    return (*CONFIDENCE, *task.order_names, "random")
