"""The page's charts, and their JSON for `web/chart.js`."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hardtail.show.charts.accuracy import decoded_accuracy, recorded_accuracy
from hardtail.show.charts.chart import Axis, Chart, Line, Series
from hardtail.show.charts.colours import colours, shaded
from hardtail.show.charts.legend import arms_at_first, kinds_of_weights
from hardtail.show.charts.passes import decoded_passes, recorded_passes
from hardtail.show.charts.readiness import decoded_readiness, recorded_readiness, unready_along, wrong_along
from hardtail.show.charts.states import count_chart, rank_chart, trained_states, visited_states
from hardtail.show.charts.training import training
from hardtail.show.stages import Stage
from hardtail.study.runs import Run

MOST_POINTS = 400
"""A line is thinned to about this many points."""


def run_charts(runs: Sequence[Run], asked: Collection[str] = ()) -> list[Chart]:
    """Every chart that the runs have data for, task by task; `asked` are the names of runs to show at first."""
    found: list[Chart] = []
    for task in dict.fromkeys(run.task for run in runs):
        held = [run for run in runs if run.task == task]
        first = arms_at_first(task, held, asked)
        trained = trained_states(held, first)
        found += training(task, held, first)
        found += [recorded_accuracy(task, held, kind, first) for kind in kinds_of_weights(held)]
        found += [chart for kind in kinds_of_weights(held) for chart in recorded_passes(task, held, kind, first)]
        found += recorded_readiness(task, held, at_first=first)
        found += [count_chart(task, trained), rank_chart(task, "training", trained)]
    return [chart for chart in found if chart.series]


def decode_charts(stage: Stage) -> list[Chart]:
    """The charts of what the decoders of a stage did."""
    charts = [
        decoded_accuracy(stage),
        *(chart for chart in [decoded_passes(stage)] if chart),
        unready_along(stage),
        wrong_along(stage),
        *decoded_readiness(stage),
        rank_chart(stage.task.name, "these decodes", visited_states(stage)),
    ]
    return [chart for chart in charts if chart.series]


def charts_as_json(charts: Sequence[Chart], of: str) -> list[dict[str, Any]]:
    """Charts for the browser, which shows those `of` the same things together; a group has one colour in them."""
    groups: dict[str, dict[str, str]] = {}
    for chart in charts:
        groups.setdefault(chart.task, {}).update({one.group: one.hue for one in chart.series if not one.printed})
    colour = {task: _shades(held) for task, held in groups.items()}
    plain = ("section", "title", "answer", "note", "marks")
    return [
        {"of": of}
        | {key: getattr(chart, key) for key in plain}
        | {"x": _axis(chart.x), "y": _axis(chart.y)}
        | {"series": [_series(one, colour[chart.task]) for one in chart.series if not one.printed]}
        for chart in charts
    ]


def _shades(hue_of: Mapping[str, str]) -> dict[str, str]:
    """A colour for every group: that of its hue, darker or lighter for each further group of the same hue."""
    hues, seen = colours(list(hue_of.values())), Counter[str]()
    found = {}
    for group, hue in hue_of.items():
        found[group] = shaded(hues[hue], seen[hue])
        seen[hue] += 1
    return found


def _axis(axis: Axis) -> dict[str, Any]:
    return {key: value for key, value in asdict(axis).items() if not key.endswith("_on_paper")}


def _series(one: Series, colour: Mapping[str, str]) -> dict[str, Any]:
    plain = {key: getattr(one, key) for key in ("name", "group", "style", "shown")}
    return plain | {"colour": colour[one.group], "lines": _lines(one.lines), "seeds": _lines(one.seeds)}


def _lines(lines: Iterable[Line]) -> list[dict[str, Any]]:
    return [{"label": line.label, "points": _thinned(line)} for line in lines]


def _thinned(line: Line) -> Sequence[Sequence[float | None]]:
    every = max(1, len(line.points) // MOST_POINTS)
    return line.points if every == 1 else [*line.points[::every], line.points[-1]]
