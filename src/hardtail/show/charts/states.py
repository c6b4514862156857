"""Mask states that training saw and that decoders visit, by hidden count and by logical rank.

Shapes: K hidden counts, R logical ranks.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from hardtail.measuring.diagnosis.coverage import Histogram, visits
from hardtail.show.charts.chart import Axis, Chart, Line, Point, Series, described
from hardtail.show.charts.legend import arm_series, decoder_series, variant_of
from hardtail.show.stages import Stage
from hardtail.study.runs import Run

TRAINED = "trained"
"""The style of states that training saw; the style of visited states is the policy's name."""


@dataclass(frozen=True)
class States:
    """The mask states of a run or a decoder."""

    series: Series
    label: str
    histogram: Histogram


def trained_states(runs: Sequence[Run], at_first: Collection[str] = ()) -> list[States]:
    """The states that runs counted in training."""
    found = []
    for run in runs:
        if run.coverage is not None and any(run.coverage.by_count):  # all zeros if it was stopped before its first step
            series = arm_series(run, TRAINED, at_first, variant=variant_of(run.arm))
            counted = Histogram.of(run.coverage, f"{run.name}/coverage.json")
            found.append(States(series, f"seed {run.seed}", counted))
    return found


def visited_states(stage: Stage) -> list[States]:
    """The states that the decoders of a stage visited."""
    order = next((name for name in stage.task.order_names if name in stage.problems.orders), None)
    return [States(series, "", visits(decoder.trace, order)) for decoder, series in decoder_series(stage)]


def trained_and_visited(task: str, runs: Sequence[Run], stage: Stage | None) -> list[States]:
    """The states of training, the seeds of an arm together; then those that decoders of the same size visited."""
    found: dict[tuple[Series, int], States] = {}
    for one in trained_states([run for run in runs if run.task == task]):
        alike = one.series, (counts := len(one.histogram.count_K))
        if stage is None or counts == stage.task.answer_len + 1:
            found[alike] = _sum(found[alike], one) if alike in found else one
    return [*found.values(), *(visited_states(stage) if stage else ())]


def _sum(one: States, other: States) -> States:
    """The states of both, whose data may end at different ranks; without ranks if one was counted without an order."""
    ranks = [held.histogram.rank_KR.shape[1] for held in (one, other)]
    first, second = (held.histogram.with_ranks(1 if 1 in ranks else max(ranks)) for held in (one, other))
    return States(one.series, "", Histogram(first.count_K + second.count_K, first.rank_KR + second.rank_KR))


def count_chart(task: str, found: Sequence[States]) -> Chart:
    lines = ((one.series, Line(one.label, _by_count(one.histogram))) for one in found)
    return described("hidden-count", task, Axis("hidden cells"), Axis("share of states", log=True), lines)


def _by_count(histogram: Histogram) -> tuple[Point, ...]:
    share_K, _ = histogram.shares()
    return tuple(Point(count, float(share)) for count, share in enumerate(share_K) if share)


def rank_chart(task: str, where: str, found: Sequence[States]) -> Chart:
    lines = ((one.series, Line(one.label, _mean_ranks(one.histogram))) for one in found)
    y = Axis("mean rank", low=0.0, high=1.0)
    return described("hidden-rank", task, Axis("hidden cells"), y, lines, of=where)


def _mean_ranks(histogram: Histogram) -> tuple[Point, ...]:
    """The mean logical rank of hidden cells by their number, from 0 (first in the order) to 1 (last)."""
    ranks = histogram.rank_KR.shape[1]
    if ranks == 1:  # counted without an order
        return ()
    cells_K = histogram.rank_KR.sum(axis=1)
    mean_K = histogram.rank_KR @ (np.arange(ranks) / (ranks - 1)) / np.maximum(cells_K, 1)
    return tuple(Point(int(count), float(mean_K[count])) for count in np.flatnonzero(cells_K) if count)
