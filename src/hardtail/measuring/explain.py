"""Diagnoses of trained models, which are decoded first, and of saved traces."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import Progress
from hardtail.measuring.choices import chosen_policies, chosen_strata, measured_instances
from hardtail.measuring.cost import decode_seconds
from hardtail.measuring.diagnosis import Diagnosis, diagnose
from hardtail.measuring.diagnosis.coverage import Histogram
from hardtail.measuring.diagnosis.cross import cross
from hardtail.measuring.diagnosis.record import Crossed
from hardtail.measuring.evaluate import traced
from hardtail.measuring.subject import Subject
from hardtail.policies.base import Policy
from hardtail.tasks.base import Part, Task
from hardtail.tasks.named import said_task, task_of

DEFAULT_N = 300
PATIENCE = 360.0
"""Seconds for which a diagnosis may decode if the user did not choose what to decode."""
FEWEST = 20
"""Instances that a diagnosis has at least; fewer show nothing."""


def explain_model(
    subject: Subject,
    policies: Sequence[str],
    strata: Sequence[str],
    n: int | None,
    decoding: Decoding,
    *,
    data_seed: int | None = None,
    progress: Progress = lambda done: None,
) -> list[Diagnosis]:
    """One diagnosis per policy, over all strata; by default of confidence and of the logical order.

    From the second on, each also lists which instances it and the first policy solved.
    """
    task = subject.task
    if subject.coverage is not None:
        Histogram.of(subject.coverage, str(subject.file("coverage.json")))  # refuse it before decoding
    seed = subject.seed if data_seed is None else data_seed
    subject = replace(subject, origin=replace(subject.origin, data_seed=seed))
    drawn = [
        (part.stratum, measured_instances(task, part.stratum, part.n, seed)) for part in diagnosed(task, strata, n)
    ]
    stratum_N = np.repeat(np.arange(len(drawn)), [len(instances) for _, instances in drawn])
    groups = {stratum: stratum_N == place for place, (stratum, _) in enumerate(drawn)}
    found: list[Diagnosis] = []
    first: Trace | None = None
    for name, policy in _orders(task, policies).items():
        parts: list[Trace] = []
        for stratum, instances in drawn:
            parts += traced(subject, name, policy, instances, stratum, decoding, progress)
        trace = Trace.concat(parts)
        diagnosis = diagnose(task, trace, subject.coverage, subject.order, groups)
        found.append(diagnosis if first is None else _crossed(first, trace, diagnosis, groups))
        first = trace if first is None else first
    return found


class Explained(NamedTuple):
    """The diagnoses of one model on the same instances, one for each order."""

    task: Task
    diagnoses: list[Diagnosis]


def explain_traces(traces: Iterable[tuple[str, Trace]]) -> list[Explained]:
    """The diagnoses of traces, each given with the name that errors call it by; those of one model on the same
    instances are put together, and from the second on each lists what it and the first solved."""
    by_model: dict[tuple[object, ...], list[tuple[str, Trace]]] = {}
    for name, trace in traces:
        of, tokens_NL = trace.source, trace.instances.tokens_NL
        key = (str(said_task(trace.about)), of.weights, of.stratum, tokens_NL.shape, tokens_NL.tobytes())
        by_model.setdefault(key, []).append((name, trace))
    return [_explained(held) for held in by_model.values()]


def _explained(traces: Sequence[tuple[str, Trace]]) -> Explained:
    name, first = traces[0]
    task, stratum = task_of(first.about, name), first.source.stratum
    groups = {stratum: np.ones(len(first), dtype=np.bool_)} if stratum else None
    found: list[Diagnosis] = []
    for name, trace in traces:
        try:
            diagnosis = diagnose(task, trace, groups=groups)
        except HardtailError as error:
            raise HardtailError(f"{name}: {error}") from error
        found.append(_crossed(first, trace, diagnosis, groups) if found else diagnosis)
    return Explained(task, found)


def _crossed(
    first: Trace, trace: Trace, diagnosis: Diagnosis, groups: Mapping[str, NDArray[np.bool_]] | None
) -> Diagnosis:
    """The diagnosis, and which instances it and the first decode solved."""
    solved = Crossed(first.source.policy, diagnosis.policy, cross(first, trace, groups))
    return msgspec.structs.replace(diagnosis, cross=solved)


def to_decode(task: Task, policies: Sequence[str], strata: Sequence[str], n: int | None) -> int:
    """How many decodes `explain_model` needs."""
    return len(_orders(task, policies)) * sum(part.n for part in diagnosed(task, strata, n))


def explain_seconds(subject: Subject, policies: Sequence[str], strata: Sequence[str], n: int | None) -> float | None:
    """About how long `explain_model` takes, if that is known."""
    each = sum(part.n for part in diagnosed(subject.task, strata, n))
    return decode_seconds(subject, [(policy, each) for policy in _orders(subject.task, policies).values()])


def _orders(task: Task, policies: Sequence[str]) -> dict[str, Policy]:
    """The policies that are explained; by default confidence and the logical order."""
    return chosen_policies(task, policies or ("top1", *task.order_names[:1]))


def affordable(subject: Subject, policies: Sequence[str]) -> Part | None:
    """What to explain in place of everything that the study diagnoses if that takes longer than `PATIENCE` here: its
    hardest stratum, and as many instances as fit. None if everything fits, or if it is not known how long it takes."""
    whole = explain_seconds(subject, policies, (), None)
    if whole is None or whole <= PATIENCE:
        return None
    hardest = diagnosed(subject.task, (), None)[-1]
    one = explain_seconds(subject, policies, (hardest.stratum,), 1)
    assert one is not None
    return Part(hardest.stratum, min(max(int(PATIENCE / one), FEWEST), hardest.n))


def diagnosed(task: Task, strata: Sequence[str], n: int | None) -> list[Part]:
    """What is explained: the strata of the study's diagnosis, `n` of each, or all strata if the study has no diagnosis.

    They are drawn as an evaluation draws them, so that the same problems are measured and explained.
    """
    own = task.splits().get("diagnosis")
    if strata or own is None:
        return [Part(stratum, n or DEFAULT_N) for stratum in chosen_strata(task, strata)]
    return [Part(part.stratum, n or part.n) for part in own]
