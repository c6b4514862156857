"""Accuracy against forward passes: what a decoder costs and what it gets right."""

from collections.abc import Collection, Iterable, Iterator, Sequence

from hardtail.core.records import Accuracy
from hardtail.measuring.statistics import wilson
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, described
from hardtail.show.charts.legend import arm_series, decoder_series
from hardtail.show.stages import Stage
from hardtail.show.words import stratum_words
from hardtail.study.runs import Run

PASSES = Axis("forward passes of an instance, mean", low=0.0)


def costs(run: Run, kind: str, stratum: str, policies: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Mean forward passes and accuracy by policy; of several records of the same data seed the largest counts."""
    found = {}
    for policy in policies:
        of_policy = (record for record in _counted(run, kind, stratum) if record.policy == policy)
        held = {record.data_seed: record for record in sorted(of_policy, key=lambda record: record.n)}.values()
        if total := sum(record.n for record in held):
            passes = sum(record.n * (record.passes or 0.0) for record in held) / total
            found[policy] = (passes, sum(record.n * record.exact_match for record in held) / total)
    return found


def _counted(run: Run, kind: str, stratum: str) -> list[Accuracy]:
    """The plain decodes of a stratum by one kind of weights that count passes, which earlier ones do not."""
    records = (record for record in run.on_its_problems if isinstance(record, Accuracy) and record.checkpoint == kind)
    return [record for record in records if record.stratum == stratum and record.passes is not None]


def recorded_passes(task: str, runs: Sequence[Run], kind: str, at_first: Collection[str] = ()) -> list[Chart]:
    """A chart of each hard tail that the tasks have, of one kind of weights; none where all costs are the same."""

    def lines(hard: str) -> Iterator[tuple[Series, Line]]:
        for run in runs:
            policies = dict.fromkeys(record.policy for record in _counted(run, kind, hard) if run.hard == hard)
            for policy, at in costs(run, kind, hard, policies).items():
                series = arm_series(run, policy, at_first, kind=kind, ending=f" · {policy}")
                yield series, Line(f"seed {run.seed}", (Point(*at),))

    tails = dict.fromkeys(run.hard for run in runs if run.hard is not None)
    held = {hard: list(lines(hard)) for hard in tails}
    titles = {hard: f"{stratum_words(hard)}, {kind.replace('_', ' ')}" for hard in tails}
    return [
        described("recorded-passes", task, PASSES, SHARE, held[hard], of=title, marks=True)
        for hard, title in titles.items()
        if not _alike(held[hard])
    ]


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
    if _alike(found):
        return None
    return described("decoded-passes", stage.task.name, PASSES, SHARE, found, of=stratum_words(hard), marks=True)


def _alike(found: Sequence[tuple[Series, Line]]) -> bool:
    """Whether everything costs the same."""
    return len({line.points[0].x for _, line in found}) < 2
