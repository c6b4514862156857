"""Readiness at commit: how many commits came before their prerequisites, and how many were right.

Shapes: N instances, T events, S steps, P portions of a decode.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from hardtail.core.types import Array, Trace
from hardtail.measuring.diagnosis.readiness import Readiness, readiness
from hardtail.measuring.statistics import wilson
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, grouped
from hardtail.show.charts.legend import arm_series, decoder_series
from hardtail.show.stages import Stage, ready_events
from hardtail.study.runs import Run

GROUPS = ("free", "ready", "unready")
PORTIONS = 20
"""Portions of a decode, from its first to its last step, in which the page counts commits."""


_Told = tuple[Series, str, Readiness]
"""What is known of one decode: its series, named after the arm or model; its label; its readiness."""


def recorded_readiness(
    task: str, runs: Sequence[Run], kind: str | None = None, at_first: Collection[str] = ()
) -> list[Chart]:
    """The diagnoses of runs, of one kind of weights or of all."""
    found = [
        (arm_series(run.arm, record.policy, at_first), f"seed {run.seed}, {record.checkpoint or 'weights'}", record)
        for run in runs
        for record in run.explained.values()
        if kind in (None, record.checkpoint)
    ]
    return _charts(task, "recorded runs", [(series, label, record.readiness) for series, label, record in found])


def decoded_readiness(stage: Stage) -> list[Chart]:
    """The decodes of a stage, where its problems say what cells wait for."""
    if stage.problems.parents_NAE is None:
        return []
    found = [
        (replace(series, name=decoder.model), "", readiness(stage.task, decoder.trace))
        for decoder, series in decoder_series(stage)
    ]
    return _charts(stage.task.name, "this page", found)


def _charts(task: str, of: str, found: Sequence[_Told]) -> list[Chart]:
    policies = tuple(dict.fromkeys(series.style for series, _, _ in found))
    early = [
        (series, Line(label or series.style, _share(policies.index(series.style), told.premature, told.dependent)))
        for series, label, told in found
    ]
    right = [
        (replace(series, name=f"{series.name} · {series.style}"), Line(label, _right(told)))
        for series, label, told in found
    ]
    charts = [
        Chart(
            task,
            "readiness",
            f"Commits before their prerequisites, {of}",
            "Premature commits",
            "Of the commits in cells that wait for others, those made while some of these were hidden.",
            Axis("decoding order", policies, label_on_paper=""),
            SHARE,
            grouped(early),
            marks=True,
        ),
        Chart(
            task,
            "readiness",
            f"Right commits by readiness, {of}",
            "Right commits",
            "Free cells wait for nothing; the others were ready or not when they were committed.",
            Axis("the cell was", GROUPS, label_on_paper="cell at commit"),
            SHARE,
            grouped(right),
            marks=True,
        ),
    ]
    return [chart for chart in charts if chart.series]


def _right(told: Readiness) -> tuple[Point, ...]:
    groups = [(place, told.accuracy[name]) for place, name in enumerate(GROUPS) if name in told.accuracy]
    return tuple(point for place, of in groups for point in _share(place, of.right, of.commits))


def _share(place: int, part: int, whole: int) -> tuple[Point, ...]:
    """A share with Wilson's interval; nothing where there is nothing to take it of."""
    return (Point(place, part / whole, *wilson(part, whole)),) if whole else ()


# -- along a decode ---------------------------------------------------------------------------------------------------


def unready_along(stage: Stage, portions: int | None = PORTIONS) -> Chart:
    """Commits before their prerequisites, by portions of the decode or, with None, by its steps."""

    def lines() -> Iterator[tuple[Series, Line]]:
        for decoder, series in decoder_series(stage) if stage.problems.parents_NAE is not None else ():
            unready_NT = ~ready_events(stage.task, decoder.trace)
            yield series, Line("", _along(decoder.trace, unready_NT, portions))

    return Chart(
        stage.task.name,
        "readiness",
        "Unready commits along the decode",
        "Premature commits",
        "The share of commits made before all prerequisites were revealed.",
        Axis("decoding step") if portions is None else Axis("part of the decode", low=0.0, high=1.0),
        SHARE,
        grouped(lines()),
    )


def wrong_along(stage: Stage) -> Chart:
    """Wrong commits by portions of the decode."""
    return Chart(
        stage.task.name,
        "readiness",
        "Wrong commits along the decode",
        "Wrong commits",
        "The share of commits whose token is not the gold one.",
        Axis("part of the decode", low=0.0, high=1.0),
        Axis("share", low=0.0),
        grouped(
            (series, Line("", _along(decoder.trace, decoder.trace.wrong_NT, PORTIONS)))
            for decoder, series in decoder_series(stage)
        ),
    )


def _along(trace: Trace, marked_NT: Array, portions: int | None) -> tuple[Point, ...]:
    """The share of commits that are marked, by portions of the decode's steps or by step from 1."""
    place_NT, commit_NT = trace.step_NT, trace.commit_NT
    if portions is not None:
        last_N1 = np.max(trace.step_NT, axis=1, where=trace.happened_NT, initial=0)[:, None]
        place_NT = np.minimum(trace.step_NT.astype(np.int32) * portions // (last_N1 + 1), portions - 1)
    all_P = np.bincount(place_NT[commit_NT])
    marked_P = np.bincount(place_NT[commit_NT & marked_NT], minlength=len(all_P))
    return tuple(
        Point(place + 1 if portions is None else (place + 0.5) / portions, float(marked_P[place] / all_P[place]))
        for place in np.flatnonzero(all_P).tolist()
    )
