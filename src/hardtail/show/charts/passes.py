"""Accuracy against forward passes: what a decoder costs and what it gets right."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from hardtail.core.records import Accuracy
from hardtail.core.types import ONE_A_STEP
from hardtail.measuring.statistics import wilson
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, described
from hardtail.show.charts.legend import arm_of_run, arm_series, decoder_series
from hardtail.show.stages import Stage
from hardtail.show.words import stratum_words
from hardtail.study.runs import Run
from hardtail.tasks.named import kind_named

PASSES = Axis("forward passes of an instance, mean", low=0.0)


def costs(run: Run, stratum: str, policies: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Mean forward passes and accuracy by policy; of several records of the same data seed the largest counts."""
    found = {}
    for policy in policies:
        of_policy = (record for record in _counted(run, stratum) if record.policy == policy)
        held = {record.data_seed: record for record in sorted(of_policy, key=lambda record: record.n)}.values()
        if total := sum(record.n for record in held):
            passes = sum(record.n * (record.passes or 0.0) for record in held) / total
            found[policy] = (passes, sum(record.n * record.exact_match for record in held) / total)
    return found


def _counted(run: Run, stratum: str) -> list[Accuracy]:
    """The records of a stratum that count passes, which earlier ones do not, one cell a step."""
    records = (record for record in run.evaluations if isinstance(record, Accuracy) and record.stratum == stratum)
    return [record for record in records if record.passes is not None and record.commit_rule == ONE_A_STEP]


def recorded_passes(task: str, runs: Sequence[Run], at_first: Collection[str] = ()) -> Chart | None:
    """The hard tail of recorded runs; None if no passes were counted there."""
    kind = kind_named(task)
    if kind is None:
        return None
    hard = kind().showcase().hard

    def lines() -> Iterator[tuple[Series, Line]]:
        for run in runs:
            policies = dict.fromkeys(record.policy for record in _counted(run, hard))
            for policy, at in costs(run, hard, policies).items():
                arm = arm_of_run(run)
                series = arm_series(arm, policy, at_first, name=f"{arm} · {policy}")
                yield series, Line(f"seed {run.seed}", (Point(*at),))

    return described("recorded-passes", task, PASSES, SHARE, lines(), of=stratum_words(hard), marks=True)


def decoded_passes(stage: Stage) -> Chart | None:
    """The hard tail of the decodes of a stage; None if all of them cost the same there, or if it was not decoded."""
    hard = stage.task.showcase().hard
    found: list[tuple[Series, Line]] = []
    for decoder, series in decoder_series(stage):
        held_N = decoder.stratum_N == hard
        passes_N = decoder.trace.passes_N
        if passes_N is not None and (n := int(held_N.sum())):
            exact = int(decoder.trace.exact_N[held_N].sum())
            point = Point(float(passes_N[held_N].mean()), exact / n, *wilson(exact, n))
            found.append((series, Line("", (point,))))
    if len({line.points[0].x for _, line in found}) < 2:
        return None
    return described("decoded-passes", stage.task.name, PASSES, SHARE, found, of=stratum_words(hard), marks=True)
