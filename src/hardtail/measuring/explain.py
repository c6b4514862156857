"""Diagnoses of trained models, which are decoded first, and of saved traces."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import Progress
from hardtail.measuring.diagnosis import Diagnosis, diagnose
from hardtail.measuring.diagnosis.coverage import Histogram
from hardtail.measuring.diagnosis.cross import cross
from hardtail.measuring.diagnosis.record import Crossed
from hardtail.measuring.evaluate import chosen_policies, chosen_strata, measured_instances, traced
from hardtail.measuring.subject import Subject
from hardtail.tasks.base import Part, Task
from hardtail.tasks.stored import stored_trace

DEFAULT_N = 300


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
    for name, policy in chosen_policies(task, policies or ("top1", *task.order_names[:1])).items():
        parts: list[Trace] = []
        for stratum, instances in drawn:
            parts += traced(subject, name, policy, instances, stratum, decoding, progress)
        trace = Trace.concat(parts)
        diagnosis = diagnose(task, trace, subject.coverage, subject.order, groups)
        if first is None:
            first = trace
        else:
            crossed = Crossed(first.about["policy"], name, cross(first, trace, groups))
            diagnosis = msgspec.structs.replace(diagnosis, cross=crossed)
        found.append(diagnosis)
    return found


def explain_trace(path: Path) -> Diagnosis:
    """The diagnosis of a trace that names its task, as the traces of `eval --traces` do."""
    task, trace = stored_trace(path)
    stratum = trace.about.get("stratum")
    groups = {str(stratum): np.ones(len(trace), dtype=np.bool_)} if stratum else None
    try:
        return diagnose(task, trace, groups=groups)
    except HardtailError as error:
        raise HardtailError(f"{path}: {error}") from error


def diagnosed(task: Task, strata: Sequence[str], n: int | None) -> list[Part]:
    """What is explained: the strata of the study's diagnosis, `n` of each, or all strata if the study has no diagnosis.

    They are drawn as an evaluation draws them, so that the same problems are measured and explained.
    """
    own = task.splits().get("diagnosis")
    if strata or own is None:
        return [Part(stratum, n or DEFAULT_N) for stratum in chosen_strata(task, strata)]
    return [Part(part.stratum, n or part.n) for part in own]
