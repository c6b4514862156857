"""The page's charts: which there are, and how JSON holds them for `web/chart.js`."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, replace
from typing import Any

from hardtail.show.charts.accuracy import decoded_accuracy, kinds_of_weights, recorded_accuracy
from hardtail.show.charts.chart import Axis, Chart, Line, Series
from hardtail.show.charts.colours import colours
from hardtail.show.charts.legend import arms_at_first
from hardtail.show.charts.readiness import decoded_readiness, recorded_readiness, unready_along, wrong_along
from hardtail.show.charts.states import count_chart, rank_chart, trained_states, visited_states
from hardtail.show.charts.training import training
from hardtail.show.stages import Stage
from hardtail.study.runs import Run

MOST_POINTS = 400
"""A line is thinned to about this many points."""


def run_charts(runs: Sequence[Run], asked: Collection[str] = ()) -> list[Chart]:
    """Every chart that the runs have data for, task by task.

    Shown at first are the arms of runs `asked` for by name and those that the ledger reads; all, where there are none.
    """
    found: list[Chart] = []
    for task in dict.fromkeys(run.task for run in runs):
        held = [run for run in runs if run.task == task]
        first = arms_at_first(task, held, asked)
        trained = trained_states(held, first)
        found += training(task, held, first)
        found += [recorded_accuracy(task, held, kind, first) for kind in kinds_of_weights(held)]
        found += recorded_readiness(task, held, at_first=first)
        found += [count_chart(task, trained), rank_chart(task, "training", trained)]
    return [chart for chart in found if chart.series]


def decode_charts(stage: Stage) -> list[Chart]:
    """What the decoders of a stage did, in numbers."""
    charts = [
        decoded_accuracy(stage),
        unready_along(stage),
        wrong_along(stage),
        *decoded_readiness(stage),
        rank_chart(stage.task.name, "these decodes", visited_states(stage)),
    ]
    return [chart for chart in charts if chart.series]


def charts_as_json(charts: Sequence[Chart]) -> list[dict[str, Any]]:
    """Charts for the browser, their colours chosen over all charts of a task."""
    hues: dict[str, list[str]] = {}
    for chart in charts:
        hues.setdefault(chart.task, []).extend(one.hue for one in chart.series)
    colour = {task: colours(names) for task, names in hues.items()}
    return [
        {
            "task": chart.task,
            "section": chart.section,
            "title": chart.title,
            "note": chart.note,
            "x": _axis(chart.x),
            "y": _axis(chart.y),
            "series": [
                {
                    "name": one.name,
                    "colour": colour[chart.task][one.hue],
                    "style": f"{one.style} {one.variant}",
                    "lines": [{"label": line.label, "points": _thinned(line)} for line in one.lines],
                    "shown": one.shown,
                }
                for one in _by_name(one for one in chart.series if not one.printed)
            ],
            "marks": chart.marks,
        }
        for chart in charts
    ]


def _axis(axis: Axis) -> dict[str, Any]:
    return {key: value for key, value in asdict(axis).items() if not key.endswith("_on_paper")}


def _by_name(series: Iterable[Series]) -> list[Series]:
    """One entry of the legend for a name; where its series differ in style, none of the styles is its own."""
    held: dict[str, Series] = {}
    for one in series:
        if before := held.get(one.name):
            one = replace(before, style="", lines=before.lines + one.lines)
        held[one.name] = one
    return list(held.values())


def _thinned(line: Line) -> Sequence[Sequence[float | None]]:
    every = max(1, len(line.points) // MOST_POINTS)
    return line.points if every == 1 else [*line.points[::every], line.points[-1]]
