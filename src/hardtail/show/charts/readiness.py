"""Readiness at commit: how many commits came before their prerequisites, and how many were right.

Shapes: N instances, T events, P portions of a decode.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from hardtail.core.types import Array, Trace
from hardtail.measuring.diagnosis.readiness import Readiness, readiness
from hardtail.measuring.statistics import wilson
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, described
from hardtail.show.charts.legend import arm_series, decoder_series
from hardtail.show.stages import Stage, ready_events
from hardtail.study.runs import Run

GROUPS = ("free", "ready", "unready")
SPLIT_GROUPS = ("free", "ready", "misled", "unready")
"""With the ready commits apart that were based on a wrong token; older records do not know these."""
PORTIONS = 20
"""Portions of a decode, from its first to its last step, in which the page counts commits."""


def recorded_readiness(
    task: str, runs: Sequence[Run], kind: str | None = None, at_first: Collection[str] = ()
) -> list[Chart]:
    """The diagnoses of runs, for one kind of weights or for all."""
    found = []
    for run in runs:
        for record in run.explained.values():
            if kind in (None, record.checkpoint):
                label = f"seed {run.seed}, {record.checkpoint or 'weights'}"
                series = arm_series(run, record.policy, at_first)
                found.append((series, label, record.readiness))
    return _charts(task, "recorded runs", found)


def decoded_readiness(stage: Stage) -> list[Chart]:
    """The decodes of a stage, if its problems are annotated with what each cell waits for."""
    if stage.problems.parents_NAE is None:
        return []
    found = [
        (replace(series, name=decoder.model), "", readiness(stage.task, decoder.trace))
        for decoder, series in decoder_series(stage)
    ]
    return _charts(stage.task.name, "these decodes", found)


def _charts(task: str, of: str, found: Sequence[tuple[Series, str, Readiness]]) -> list[Chart]:
    """The charts of several decodes: each has its series, named after the arm or model, a label and its readiness."""
    policies = tuple(dict.fromkeys(series.style for series, _, _ in found))
    kinds = SPLIT_GROUPS if all(held.ready for _, _, held in found) else GROUPS
    early, right = [], []
    for series, label, held in found:
        points = _share(policies.index(series.style), held.premature, held.dependent)
        early.append((series, Line(label or series.style, points)))
        right.append((replace(series, name=f"{series.name} · {series.style}"), Line(label, _right(held, kinds))))
    groups = Axis("the cell was", kinds, label_on_paper="cell at commit")
    orders = Axis("decoding order", policies, label_on_paper="")
    charts = [
        described("premature", task, orders, SHARE, early, of=of, marks=True),
        described("right", task, groups, SHARE, right, of=of, marks=True),
    ]
    return [chart for chart in charts if chart.series]


def _right(held: Readiness, kinds: Sequence[str]) -> tuple[Point, ...]:
    groups = dict(held.accuracy)
    if held.ready and kinds is SPLIT_GROUPS:
        groups |= {"ready": held.ready.prerequisites_right, "misled": held.ready.prerequisite_wrong}
    places = [(place, groups[name]) for place, name in enumerate(kinds) if name in groups]
    return tuple(point for place, of in places for point in _share(place, of.right, of.commits))


def _share(place: int, part: int, whole: int) -> tuple[Point, ...]:
    """A share with Wilson's interval; no point if `whole` is 0."""
    return (Point(place, part / whole, *wilson(part, whole)),) if whole else ()


# -- along a decode ---------------------------------------------------------------------------------------------------


def unready_along(stage: Stage, portions: int | None = PORTIONS) -> Chart:
    """Commits before their prerequisites, by portions of the decode or, with None, by its steps."""
    decoders = decoder_series(stage) if stage.problems.parents_NAE is not None else []
    lines = (
        (series, Line("", _along(decoder.trace, ~ready_events(stage.task, decoder.trace), portions)))
        for decoder, series in decoders
    )
    x = Axis("decoding step") if portions is None else Axis("part of the decode", low=0.0, high=1.0)
    return described("premature-along", stage.task.name, x, SHARE, lines)


def wrong_along(stage: Stage) -> Chart:
    """Wrong commits by portions of the decode."""
    lines = (
        (series, Line("", _along(decoder.trace, decoder.trace.wrong_NT, PORTIONS)))
        for decoder, series in decoder_series(stage)
    )
    x = Axis("part of the decode", low=0.0, high=1.0)
    return described("wrong-along", stage.task.name, x, Axis("share", low=0.0), lines)


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
