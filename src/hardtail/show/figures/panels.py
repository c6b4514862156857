"""Charts on paper: small panels under one legend. Colour is the training scheme, stroke is whatever else differs."""

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import count, zip_longest
from math import ceil, log10, nan
from typing import TYPE_CHECKING, Any

from hardtail.show.charts.chart import Axis, Chart, Line, Point, Series
from hardtail.show.charts.colours import colours, titles
from hardtail.show.figures.style import COLUMN, MARKERS, PAGE, SOFT, STROKES, sheet, style
from hardtail.show.words import stratum_words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL_HEIGHT, LEGEND_HEIGHT = 1.3, 0.16
"""Heights in inches of a row of panels and of a line of the legend."""
SLANT = 0.4
"""What names of places that are written aslant add to the height of a panel."""
MOST_IN_A_COLUMN = 4
"""A figure with more panels than this is as wide as the page."""
MOST_SIDE_BY_SIDE = 5
"""On an axis with at most this many places, series are drawn side by side."""
_OPEN_MARK = {"linestyle": "none", "marker": "o", "markerfacecolor": "none"}
_CONDITION = re.compile(r"(\w+)(>=|=)(\d+)")


@style()
def charts_figure(charts: Sequence[Chart]) -> "Figure":
    """Draw charts as panels. A style has the same stroke and meaning in all of them."""
    charts = [_distinct(chart) for chart in charts]
    series = [one for chart in charts for one in chart.series]
    hues = [one.hue for one in series]
    styles = dict.fromkeys(one.style for one in series if not one.printed)
    strokes = dict(zip(styles, count(), strict=False))
    width, columns = (PAGE, 3) if len(charts) > MOST_IN_A_COLUMN else (COLUMN, min(2, len(charts)))
    rows = ceil(len(charts) / columns)
    marks, printed = any(chart.marks for chart in charts), any(one.printed for one in series)
    entries, across = _packed(_legend(hues, strokes, marks, printed), width)
    aslant = any(_aslant(chart, width / columns) for chart in charts)
    height = (PANEL_HEIGHT * (1.3 if columns == 1 else 1) + SLANT * aslant) * rows
    figure = sheet(width, height + LEGEND_HEIGHT * (len(entries) // across) + 0.05)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for place, (axes, chart) in enumerate(zip(panels, charts, strict=False)):
        _panel(axes, chart, colours(hues), strokes, aslant=_aslant(chart, width / columns))
        below = place + columns < len(charts) and charts[place + columns].x == chart.x
        axes.set_xlabel("" if below else axes.get_xlabel())
    for axes in panels[len(charts) :]:
        axes.remove()
    figure.legend(*zip(*entries, strict=True), loc="outside upper center", ncols=across)
    return figure


def _distinct(chart: Chart) -> Chart:
    """Give series of the same colour and style a style of their own, under their names."""
    looks = [(one.hue, one.style, one.printed) for one in chart.series]
    series = (
        one if looks.count(look) == 1 else replace(one, style=_named(one))
        for one, look in zip(chart.series, looks, strict=True)
    )
    return replace(chart, series=tuple(series))


def _named(one: Series) -> str:
    """What a series is called in the legend, the same in every panel: its name, and its style once."""
    name = one.name.removesuffix(one.style).rstrip(" ·")
    return " · ".join(filter(None, (name, one.style)))


def _legend(hues: Sequence[str], strokes: dict[str, int], marks: bool, printed: bool) -> list[list[tuple[Any, str]]]:
    """Handles with their labels: first what colours mean, then what strokes mean."""
    from matplotlib.lines import Line2D

    colour = colours(hues)
    first = [(Line2D([], [], color=colour[hue], linewidth=2), title) for hue, title in titles(hues).items()]
    second = []
    for name, place in strokes.items() if len(strokes) > 1 else ():
        marker = MARKERS[place % len(MARKERS)] if marks else None
        if name:  # without one, colour says it all
            second.append((Line2D([], [], color=SOFT, linestyle=STROKES[place % len(STROKES)], marker=marker), name))
    if printed:
        second.append((Line2D([], [], **_OPEN_MARK, markeredgecolor=SOFT), "printed in the paper"))
    return [row for row in (first, second) if row]


def _packed(rows: list[list[tuple[Any, str]]], width: float) -> tuple[list[tuple[Any, str]], int]:
    """Order entries column by column, as matplotlib's legend wants them, in as few lines as fit; count the columns."""
    from matplotlib.lines import Line2D

    blank = (Line2D([], [], linestyle="none"), "")
    for across in range(max(map(len, rows)), 0, -1):
        lines = [row[at : at + across] for row in rows for at in range(0, len(row), across)]
        columns = list(zip_longest(*lines, fillvalue=blank))
        if across == 1 or sum(max(0.42 + 0.058 * len(name) for _, name in column) for column in columns) <= width:
            break
    return [entry for column in columns for entry in column], across


# -- one panel --------------------------------------------------------------------------------------------------------


def _aslant(chart: Chart, width: float) -> bool:
    """Whether the names of a chart's places would touch in a panel of this width in inches."""
    names = chart.x.categories or ()
    return max(map(len, names), default=0) * 0.058 + 0.05 > (width - 0.4) / max(len(names), 1)


def _panel(axes: "Axes", chart: Chart, colour: dict[str, str], strokes: dict[str, int], *, aslant: bool) -> None:
    axes.set_title(chart.panel)
    axes.set_xlabel(chart.x.label if chart.x.label_on_paper is None else chart.x.label_on_paper)
    log = chart.y.log or chart.y.log_on_paper
    if log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(_power)
        axes.yaxis.set_minor_formatter("")
    lines = sum(len(one.lines) for one in chart.series)
    apart = chart.marks and chart.x.categories is not None and len(chart.x.categories) <= MOST_SIDE_BY_SIDE
    place = count()
    for one in chart.series:
        for line in one.lines:
            shift = (next(place) - (lines - 1) / 2) * min(0.12, 0.5 / lines) if apart else 0.0
            points = [point._replace(x=point.x + shift) for point in line.points if point.y > 0 or not log]
            if one.printed:
                open_mark = _OPEN_MARK | {"markeredgecolor": colour[one.hue], "markersize": 4.4, "markeredgewidth": 0.8}
                axes.plot([x for x, *_ in points], [y for _, y, *_ in points], clip_on=False, **open_mark)
            else:
                strata = chart.x.categories is not None
                _line(axes, points, colour[one.hue], strokes[one.style], chart.marks, joined=not apart, strata=strata)
    _limits(axes, chart)
    if log and axes.get_ylim()[1] < 30 * axes.get_ylim()[0]:  # powers of ten alone would be one or none
        axes.yaxis.set_minor_formatter(lambda value, _: f"{value:g}" if f"{value:e}"[0] in "25" else "")
    if chart.x.categories:
        turned: Any = {"rotation": 35, "ha": "right", "rotation_mode": "anchor"} if aslant else {}
        axes.set_xticks(range(len(chart.x.categories)), map(stratum_words, chart.x.categories), **turned)
        axes.set_xlim(-0.5, len(chart.x.categories) - 0.5)
        axes.grid(visible=False, axis="x")
    else:
        axes.xaxis.set_major_formatter(_thousands)
        axes.xaxis.get_major_locator().set_params(nbins=4)


def _line(
    axes: "Axes", points: Sequence[Point], colour: str, stroke: int, marks: bool, *, joined: bool, strata: bool
) -> None:
    if not points:
        return
    marker = MARKERS[stroke % len(MARKERS)] if marks else None
    dashes = STROKES[stroke % len(STROKES)] if joined else "none"
    drawn: list[tuple[float, float]] = []
    for x, y, *_ in points:
        if strata and drawn and x - drawn[-1][0] > 1.5:  # a stratum was left out
            drawn.append((nan, nan))
        drawn.append((x, y))
    look: Any = {"marker": marker, "markeredgewidth": 0, "clip_on": not marks, "zorder": 3}
    axes.plot(*zip(*drawn, strict=True), color=colour, linestyle=dashes, **look)
    sure = [(x, y, y - low, high - y) for x, y, low, high in points if low is not None and high is not None]
    if sure:
        at, middle, below, above = zip(*sure, strict=True)
        bars = {"elinewidth": 0.8, "capsize": 1.3, "capthick": 0.8, "clip_on": False}
        axes.errorbar(at, middle, yerr=(below, above), fmt="none", ecolor=colour, zorder=2, **bars)


def _limits(axes: "Axes", chart: Chart) -> None:
    """Set the ends of the y axis; if all shares are at least 0.5, show only the upper part."""
    points = (point for one in chart.series for line in one.lines for point in line.points)
    lowest = min((value for point in points for value in point[1:3] if value is not None), default=0.0)
    if (chart.y.low, chart.y.high) == (0.0, 1.0):
        low = 0.0 if lowest < 0.5 else min(lowest // 0.1 * 0.1, 0.9)
        axes.set_ylim(low - 0.02 * (1 - low), 1 + 0.03 * (1 - low))
    elif not (chart.y.log or chart.y.log_on_paper):
        axes.set_ylim(bottom=chart.y.low)


# -- strata -----------------------------------------------------------------------------------------------------------


def by_policy(chart: Chart) -> list[Chart]:
    """Split a chart of accuracy into one panel for each policy, with strata placed by difficulty."""
    axis, place = difficulty(chart.x.categories or ())

    def placed(line: Line) -> Line:
        return Line(line.label, tuple(sorted(point._replace(x=place[int(point.x)]) for point in line.points)))

    panels: dict[str, list[Series]] = {}
    for one in chart.series:
        name = one.name.removesuffix(f" · {one.style}")  # the panel's title says it
        panels.setdefault(one.style, []).append(replace(one, name=name, style="", lines=tuple(map(placed, one.lines))))
    return [replace(chart, panel=policy, x=axis, series=tuple(series)) for policy, series in panels.items()]


def difficulty(strata: Sequence[str]) -> tuple[Axis, list[float]]:
    """Place strata at their numbers if all are conditions on one axis (natural at 0), otherwise in a row."""
    matches = [_CONDITION.fullmatch(stratum) for stratum in strata if stratum != "natural"]
    heads = {(match[1], match[2]) for match in matches if match}
    if not all(matches) or len(heads) != 1:
        return Axis("stratum", tuple(strata)), [float(place) for place in range(len(strata))]
    ((axis, relation),) = heads
    natural = " (0: natural)" if "natural" in strata else ""
    label = f"{axis} {'≥' if relation == '>=' else '='} …{natural}"
    return Axis(label), [float(stratum.rpartition("=")[2]) if "=" in stratum else 0.0 for stratum in strata]


# -- numbers ----------------------------------------------------------------------------------------------------------


def _thousands(value: float, place: int | None = None) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"


def _power(value: float, place: int | None = None) -> str:
    """Write a power of ten in plain characters, as figures never parse text as mathematics."""
    return "10" + str(round(log10(value))).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
