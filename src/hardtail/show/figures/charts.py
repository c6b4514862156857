"""Plots on paper: small panels under one legend, colour for the training scheme, stroke for what else differs."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count, zip_longest
from math import ceil, log10
from typing import TYPE_CHECKING, Any

from hardtail.show.figures.style import COLUMN, MARKERS, PAGE, SOFT, STROKES, colours, sheet, styled, titles
from hardtail.show.page.charts import Chart, Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER = "paper"
"""The style of series that hold what the paper prints: open marks, no line."""
PANEL, LEGEND = 1.3, 0.16
"""Inches that a row of panels takes, and a line of the legend."""
MANY = 4
"""More panels than these take the width of the page."""
FEW = 5
"""Up to so many places on an axis, series stand beside each other at each of them."""


@styled
def charts_figure(charts: Sequence[Chart]) -> "Figure":
    """Plots as panels. The styles of series have one stroke and one meaning in all of them."""
    charts = [_told_apart(chart) for chart in charts]
    hues = [one.hue for chart in charts for one in chart.series]
    strokes = _strokes(charts)
    width, columns = (PAGE, 3) if len(charts) > MANY else (COLUMN, min(2, len(charts)))
    rows = ceil(len(charts) / columns)
    printed = any(one.style == PAPER for chart in charts for one in chart.series)
    entries, across = _packed(_legend(hues, strokes, any(chart.marks for chart in charts), printed), width)
    lines = len(entries) // across
    figure = sheet(width, PANEL * rows * (1.3 if columns == 1 else 1) + LEGEND * lines + 0.05)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for place, (axes, chart) in enumerate(zip(panels, charts, strict=False)):
        _panel(axes, chart, colours(hues), strokes)
        below = place + columns < len(charts) and charts[place + columns].x == chart.x
        axes.set_xlabel("" if below else axes.get_xlabel())
    for axes in panels[len(charts) :]:
        axes.remove()
    figure.legend(*zip(*entries, strict=True), loc="outside upper center", ncols=across)
    return figure


def _told_apart(chart: Chart) -> Chart:
    """Series of one colour and style get styles of their own, under their names."""
    looks = [(one.hue, one.style) for one in chart.series]
    apart = [replace(one, style=one.name) if looks.count((one.hue, one.style)) > 1 else one for one in chart.series]
    return replace(chart, series=apart)


def _strokes(charts: Sequence[Chart]) -> dict[str, int]:
    """The place of each style among the strokes, solid first."""
    styles = dict.fromkeys(one.style for chart in charts for one in chart.series if one.style != PAPER)
    return {name: place for place, name in enumerate(styles)}


def _legend(hues: Sequence[str], strokes: dict[str, int], marks: bool, printed: bool) -> list[list[tuple[Any, str]]]:
    """Handles with their labels: first what colours mean, then what strokes mean."""
    from matplotlib.lines import Line2D

    colour = colours(hues)
    first = [(Line2D([], [], color=colour[hue], linewidth=2), title) for hue, title in titles(hues).items()]
    second = []
    for name, place in strokes.items() if len(strokes) > 1 else ():
        marker = MARKERS[place % len(MARKERS)] if marks else None
        second.append((Line2D([], [], color=SOFT, linestyle=STROKES[place % len(STROKES)], marker=marker), name))
    if printed:
        open_mark = Line2D([], [], linestyle="none", marker="o", markerfacecolor="none", markeredgecolor=SOFT)
        second.append((open_mark, "printed in the paper"))
    return [row for row in (first, second) if row]


def _packed(rows: list[list[tuple[Any, str]]], width: float) -> tuple[list[tuple[Any, str]], int]:
    """Entries in the order that a legend of so many columns takes them, row by row in as few lines as fit."""
    from matplotlib.lines import Line2D

    blank = (Line2D([], [], linestyle="none"), "")
    for across in range(max(map(len, rows)), 0, -1):
        lines = [row[at : at + across] for row in rows for at in range(0, len(row), across)]
        columns = list(zip_longest(*lines, fillvalue=blank))
        if across == 1 or sum(max(0.42 + 0.058 * len(name) for _, name in column) for column in columns) <= width:
            break
    return [entry for column in columns for entry in column], across


# -- one panel --------------------------------------------------------------------------------------------------------


def _panel(axes: "Axes", chart: Chart, colour: dict[str, str], strokes: dict[str, int]) -> None:
    axes.set_title(chart.title)
    axes.set_xlabel(chart.x.label)
    axes.set_ylabel(chart.y.label)
    if chart.y.log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_power)
        axes.yaxis.set_minor_formatter("")
    lines = sum(len(one.lines) for one in chart.series)
    apart = chart.marks and chart.x.categories is not None and len(chart.x.categories) <= FEW
    beside = count()
    for one in chart.series:
        for line in one.lines:
            shift = (next(beside) - (lines - 1) / 2) * min(0.12, 0.5 / lines) if apart else 0.0
            points: list[Point] = [
                (x + shift, y, low, high) for x, y, low, high in line.points if y > 0 or not chart.y.log
            ]
            if one.style == PAPER:
                _printed(axes, points, colour[one.hue])
            else:
                _line(axes, points, colour[one.hue], strokes[one.style], chart.marks, joined=not apart)
    _limits(axes, chart)
    if chart.x.categories:
        axes.set_xticks(range(len(chart.x.categories)), chart.x.categories)
        axes.set_xlim(-0.5, len(chart.x.categories) - 0.5)
        axes.grid(visible=False, axis="x")
    else:
        axes.xaxis.set_major_formatter(_thousands)
        axes.xaxis.get_major_locator().set_params(nbins=4)


def _line(axes: "Axes", points: Sequence[Point], colour: str, stroke: int, marks: bool, *, joined: bool) -> None:
    if not points:
        return
    marker = MARKERS[stroke % len(MARKERS)] if marks else None
    dashes = STROKES[stroke % len(STROKES)] if joined else "none"
    xs, ys = [x for x, *_ in points], [y for _, y, *_ in points]
    axes.plot(xs, ys, color=colour, linestyle=dashes, marker=marker, markeredgewidth=0, clip_on=not marks, zorder=3)
    sure = [(x, y, y - low, high - y) for x, y, low, high in points if low is not None and high is not None]
    if sure:
        at, middle, below, above = zip(*sure, strict=True)
        bars = {"elinewidth": 0.8, "capsize": 1.3, "capthick": 0.8, "clip_on": False}
        axes.errorbar(at, middle, yerr=(below, above), fmt="none", ecolor=colour, zorder=2, **bars)


def _printed(axes: "Axes", points: Sequence[Point], colour: str) -> None:
    xs, ys = [x for x, *_ in points], [y for _, y, *_ in points]
    axes.plot(
        xs, ys, "o", markersize=4.4, markerfacecolor="none", markeredgecolor=colour, markeredgewidth=0.8, clip_on=False
    )


def _limits(axes: "Axes", chart: Chart) -> None:
    """The axis's own ends; a share that lies near the top throughout is shown from nearby."""
    points = [point for one in chart.series for line in one.lines for point in line.points]
    lowest = min((value for point in points for value in point[1:3] if value is not None), default=0.0)
    if (chart.y.low, chart.y.high) == (0.0, 1.0):
        low = 0.0 if lowest < 0.5 else min(lowest // 0.1 * 0.1, 0.9)
        axes.set_ylim(low - 0.02 * (1 - low), 1 + 0.03 * (1 - low))
    elif not chart.y.log:
        axes.set_ylim(bottom=chart.y.low)


def _thousands(value: float, place: int | None = None) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def _power(value: float, place: int | None = None) -> str:
    """A power of ten in plain letters: text from data is never read as mathematics."""
    return "10" + str(round(log10(value))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
