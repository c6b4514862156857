"""Accuracy by policy and stratum, with intervals and paired comparisons; a whole evaluation.

Shapes: N instances, A answer cells.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from time import monotonic
from types import MappingProxyType

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from hardtail.core.files import sole_writer
from hardtail.core.records import (
    REVEALED,
    Accuracy,
    Head,
    Measurement,
    Paired,
    Probe,
    Reveal,
    Trust,
    append_jsonl,
)
from hardtail.core.trace_files import trace_writer
from hardtail.core.types import Array, Instances, Trace, concatenated
from hardtail.decoding.loop import decode_stream
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import Progress
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.influence import with_groups
from hardtail.measuring.one_pass import half_reveal, probe, reveal
from hardtail.measuring.passes import HERE, Passes
from hardtail.measuring.problems import chosen_problems
from hardtail.measuring.provenance import about_of, head_of
from hardtail.measuring.statistics import mcnemar, wilson
from hardtail.measuring.subject import Subject
from hardtail.measuring.trace_folder import HALF, refuse_other_traces, trace_path
from hardtail.measuring.trust import SCORES, trust_records
from hardtail.policies.base import Policy
from hardtail.tasks.base import Task


@dataclass(frozen=True)
class Outcome:
    """One policy on one stratum."""

    record: Accuracy
    exact_N: NDArray[np.bool_]
    failures: Trace | None
    """The first few instances that went wrong."""
    trust: tuple[Trust, ...] = ()
    """How well each score tells its wrong answers from right ones, if that was asked for."""


MOST_IN_PAIRS = 4
"""The most policies of which every pair is compared."""
Found = Outcome | Probe | Reveal | Paired
"""One thing that an evaluation measures."""


@dataclass(frozen=True)
class Evaluating:
    """How an evaluation is made, and what it finds in addition to accuracies."""

    passes: Passes = HERE
    """Where the model computes (`Passes` says when results are the same)."""
    progress: Progress = lambda done: None
    failures: int = 0
    """How many instances that went wrong are kept of each outcome."""
    trust: bool = False
    """Whether every score of trust is measured too, and goes into the traces."""


USUALLY = Evaluating()


def evaluate(
    subject: Subject,
    name: str,
    policy: Policy,
    instances: Instances,
    stratum: str,
    decoding: Decoding,
    how: Evaluating = USUALLY,
    *,
    trace: Path | None = None,
    calibrated: int | None = None,
) -> Outcome:
    """Decode `instances` of one stratum under one policy and measure it.

    `calibrated` is how many problems set the policy's limit, as records say it.
    """
    inside = {stratum: np.ones(len(instances), dtype=np.bool_)}
    traces = {stratum: trace} if trace else {}
    found = evaluate_strata(
        subject, name, policy, instances, inside, decoding, how, traces=traces, calibrated=calibrated
    )
    return found[stratum]


def evaluate_strata(
    subject: Subject,
    name: str,
    policy: Policy,
    instances: Instances,
    inside: Mapping[str, NDArray[np.bool_]],
    decoding: Decoding,
    how: Evaluating,
    *,
    traces: Mapping[str, Path],
    calibrated: int | None,
) -> dict[str, Outcome]:
    """Decode `instances` once under one policy and measure each stratum, holding one part of the trace at a time.

    `inside` says which instances are in a stratum, `traces` where its trace is written. The `passes` and `wall` of
    records count the decode, of which each stratum has its share.
    """
    began, aside, at = monotonic(), 0.0, 0
    rows: list[dict[str, Array]] = []
    wrong: dict[str, list[Trace]] = {stratum: [] for stratum in inside}
    head = head_of(subject, name, decoding, how.passes, calibrated)
    with ExitStack() as opened:
        writers = {stratum: opened.enter_context(trace_writer(path)) for stratum, path in traces.items()}
        chosen, about = with_groups(policy, subject), about_of(subject, head, "")
        decoded = how.passes.traces(subject, chosen, instances, decoding, about, trust=how.trust, progress=how.progress)
        for part, asking in opened.enter_context(closing(decoded)):
            aside += asking if how.trust else 0.0
            rows.append(_numbers(subject.task, part, trust=how.trust))
            for stratum, inside_N in inside.items():
                own = replace(part.take(inside_N[at : at + len(part)]), about={**part.about, "stratum": stratum})
                if stratum in writers and len(own):
                    writers[stratum].add(own)
                lacking = how.failures - len(wrong[stratum])
                wrong[stratum] += [own.take(slice(i, i + 1)) for i in np.flatnonzero(~own.exact_N)[:lacking]]
            at += len(part)
    every, wall = concatenated(rows), monotonic() - began - aside
    found = {}
    for stratum, inside_N in inside.items():
        held = {key: array[inside_N] for key, array in every.items()}
        record = _accuracy(head, stratum, held, wall / len(instances))
        trusts = trust_records(head, stratum, held["exact"], held) if how.trust else ()
        shown = Trace.concat(wrong[stratum]) if wrong[stratum] else None
        found[stratum] = Outcome(record, held["exact"], shown, tuple(trusts))
    return found


def _numbers(task: Task, trace: Trace, *, trust: bool) -> dict[str, Array]:
    """What is counted of each instance; with `trust` also its scores."""
    judged_NA = trace.instances.maskable_NA & trace.instances.scored_NA
    assert trace.passes_N is not None  # every decode counts them
    return {
        "exact": trace.exact_N,
        "right": (judged_NA & (trace.answer_NA == trace.instances.answer_NA)).sum(axis=1),
        "cells": judged_NA.sum(axis=1),
        "valid": task.check(trace.instances, trace.answer_NA),
        "steps": trace.steps_N,
        "passes": trace.passes_N,
    } | {score: trace.notes[score] for score in SCORES if trust}


def _accuracy(head: Head, stratum: str, held: Mapping[str, Array], wall: float) -> Accuracy:
    """The record of some instances' `_numbers`, of which each took `wall` seconds."""
    n, right, cells = len(held["exact"]), int(held["exact"].sum()), int(held["cells"].sum())
    return Accuracy(
        **structs.asdict(head),
        stratum=stratum,
        n=n,
        exact_match=right / n,
        **wilson(right, n)._asdict(),
        cell_accuracy=int(held["right"].sum()) / cells if cells else None,
        valid=int(held["valid"].sum()) / n,
        steps=int(held["steps"].max()),
        passes=int(held["passes"].sum()) / n,
        wall=round(wall * n, 3),
    )


def traced(
    subject: Subject,
    name: str,
    policy: Policy,
    instances: Instances,
    stratum: str,
    decoding: Decoding,
    progress: Progress = lambda done: None,
) -> Generator[Trace, None, None]:
    """The trace of one policy, part by part; its `about` names what was decoded, and how."""
    about = about_of(subject, head_of(subject, name, decoding), stratum)
    chosen = with_groups(policy, subject)
    return decode_stream(subject.denoiser, instances, chosen, decoding, progress=progress, about=about)


def compare(
    subject: Subject,
    first: tuple[str, Outcome],
    second: tuple[str, Outcome],
    decoding: Decoding,
    passes: Passes = HERE,
) -> Paired:
    """Two policies on the same instances: how often only one of them was right, and McNemar's exact p."""
    (name, one), (other, two) = first, second
    found = mcnemar(one.exact_N, two.exact_N)
    calibrated = one.record.calibrated or two.record.calibrated
    head, n = structs.asdict(head_of(subject, name, decoding, passes, calibrated)), len(one.exact_N)
    return Paired(**head, stratum=one.record.stratum, n=n, against=other, **found._asdict())


# -- a whole evaluation -----------------------------------------------------------------------------------------------


def evaluate_all(
    subject: Subject,
    policies: Mapping[str, Policy],
    strata: Sequence[str],
    n: int | None,
    decoding: Decoding,
    how: Evaluating = USUALLY,
    *,
    data_seed: int,
    given: GivenProblems | None = None,
    traces: Path | None = None,
    calibrated: Mapping[str, int] = MappingProxyType({}),
) -> Iterator[Found]:
    """Every policy on every stratum, the probe, the partial reveal where the task has one, and paired comparisons.

    The problems are those of `chosen_problems`. `calibrated` has the number of problems that set a policy's limit, by
    its name; `traces` is the folder that every trace is written to.
    """
    task = subject.task
    if traces is not None:
        refuse_other_traces(traces, subject, strata, policies)
    problems = chosen_problems(task, n, data_seed, given)
    subject = replace(subject, origin=problems.origin(subject.origin))
    run = partial(evaluate_strata, subject, decoding=decoding, how=how)
    measured: dict[tuple[str, str], Outcome] = {}
    for together, inside, stratum in ((*held, stratum) for held in problems.together(strata) for stratum in held[1]):
        instances = together.take(inside[stratum])
        yield probe(subject, instances, stratum, decoding, how.passes)
        outcomes: dict[str, Outcome] = {}
        for name, policy in policies.items():
            if (name, stratum) not in measured:  # problems are decoded once for all strata that they are in
                paths = {of: trace_path(traces, of, name) for of in inside} if traces else {}
                found = run(name, policy, together, inside, traces=paths, calibrated=calibrated.get(name))
                measured |= {(name, of): outcome for of, outcome in found.items()}
            outcomes[name] = measured.pop((name, stratum))
            yield outcomes[name]
        for one, other in _pairs(list(outcomes.items())):
            yield compare(subject, one, other, decoding, how.passes)
        if task.reveals:
            yield reveal(subject, instances, stratum, decoding, how.passes)
            half = half_reveal(task, instances, decoding.seed)
            name, policy = next(iter(policies.items()))
            paths = {stratum: trace_path(traces, stratum, name, HALF)} if traces else {}
            alone = {stratum: np.ones(len(half), dtype=np.bool_)}
            shown = run(f"{name}{REVEALED}", policy, half, alone, traces=paths, calibrated=calibrated.get(name))
            yield shown[stratum]


def _pairs(outcomes: Sequence[tuple[str, Outcome]]) -> list[tuple[tuple[str, Outcome], tuple[str, Outcome]]]:
    """What is compared: all pairs of a few policies; of many, the first with each other one."""
    if len(outcomes) <= MOST_IN_PAIRS:
        return list(combinations(outcomes, 2))
    return [(outcomes[0], other) for other in outcomes[1:]]


# -- records ----------------------------------------------------------------------------------------------------------


def records_of(found: Sequence[Found]) -> list[Measurement]:
    records: list[Measurement] = []
    for item in found:
        records += [item.record, *item.trust] if isinstance(item, Outcome) else [item]
    return records


def keep(path: Path | None, records: Sequence[Head]) -> Path | None:
    """Add records to a file, if one is given; return it if it was written."""
    if path is None or not records:
        return None
    with sole_writer(path, wait=60.0):  # other writers take only a moment
        append_jsonl(path, records)
    return path
