"""The page's plots on paper: small panels with one legend, colour for the training scheme, stroke for the rest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from math import ceil
from typing import TYPE_CHECKING, Any

from hardtail.report.charts import Chart, Point
from hardtail.report.figures.style import COLUMN, MARKERS, PAGE, SOFT, STROKES, colours, sheet, styled, titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PANEL = 1.28
"""Inches that a panel is high, its labels included."""
MANY = 4
"""More panels than these take the width of the page."""
LEGEND = 0.17
"""Inches that a line of the legend takes."""


@dataclass(frozen=True)
class Look:
    """What colours stand for in all panels of a figure; strokes are each panel's own, solid first."""

    colour: dict[str, str]
    title: dict[str, str]

    @classmethod
    def of(cls, charts: Sequence[Chart]) -> "Look":
        hues = [one.hue for chart in charts for one in chart.series]
        return cls(colours(hues), titles(hues))


def strokes_of(chart: Chart) -> dict[str, int]:
    """The place of each style of a plot among the strokes."""
    return {name: place for place, name in enumerate(dict.fromkeys(one.style for one in chart.series))}


def stroke_names(charts: Sequence[Chart]) -> list[str]:
    """What each stroke stands for in the panels that have several; words that all of a panel share are left out."""
    held: list[dict[str, None]] = []
    for chart in charts:
        names = [name.split() for name in strokes_of(chart)]
        while len(names) > 1 and len({tuple(words[-1:]) for words in names}) == 1 and all(len(w) > 1 for w in names):
            names = [words[:-1] for words in names]
        for place, words in enumerate(names if len(names) > 1 else []):
            held += [{}] if place == len(held) else []
            held[place][" ".join(words)] = None
    return [" / ".join(names) for names in held]


@styled
def charts_figure(charts: Sequence[Chart], *, strokes: bool = True) -> "Figure":
    """Plots as panels. Without `strokes` the legend does not tell them apart: the panels do."""
    charts = [_told_apart(chart) for chart in charts]
    look = Look.of(charts)
    width, columns = (PAGE, 3) if len(charts) > MANY else (COLUMN, min(2, len(charts)))
    rows = ceil(len(charts) / columns)
    handles, labels = _legend(look, stroke_names(charts) if strokes else [], any(chart.marks for chart in charts))
    across = max(1, int(width / 1.1))
    lines = ceil(len(handles) / across)
    figure = sheet(width, PANEL * rows * (1.25 if columns == 1 else 1) + LEGEND * lines)
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    for axes, chart in zip(panels, charts, strict=False):
        _panel(axes, chart, look)
    for axes in panels[len(charts) :]:
        axes.remove()
    figure.legend(handles, labels, loc="outside upper center", ncols=min(len(handles), across))
    return figure


def _told_apart(chart: Chart) -> Chart:
    """Series of one colour and stroke get strokes of their own, under their names."""
    looks = [(one.hue, one.style) for one in chart.series]
    apart = [replace(one, style=one.name) if looks.count((one.hue, one.style)) > 1 else one for one in chart.series]
    return replace(chart, series=apart)


def _legend(look: Look, strokes: Sequence[str], marks: bool) -> tuple[list[Any], list[str]]:
    from matplotlib.lines import Line2D

    entries = [(Line2D([], [], color=look.colour[hue], linewidth=2), title) for hue, title in look.title.items()]
    for place, name in enumerate(strokes):
        marker = MARKERS[place % len(MARKERS)] if marks else None
        line = Line2D([], [], color=SOFT, linestyle=STROKES[place % len(STROKES)], marker=marker)
        entries.append((line, name))
    return [line for line, _ in entries], [name for _, name in entries]


def _panel(axes: "Axes", chart: Chart, look: Look) -> None:
    axes.set_title(chart.title)
    beside, strokes = count(), strokes_of(chart)
    for one in chart.series:
        for line in one.lines:
            points = [point for point in line.points if not (chart.y.log and point[1] <= 0)]
            shift = 0.0
            if chart.marks and chart.x.categories and len(chart.x.categories) <= MANY:
                shift = (next(beside) - (sum(len(other.lines) for other in chart.series) - 1) / 2) * 0.07
            _line(axes, points, shift, look.colour[one.hue], strokes[one.style], chart.marks)
    axes.set_xlabel(chart.x.label)
    axes.set_ylabel(chart.y.label)
    if chart.y.log:
        axes.set_yscale("log")
    _limits(axes, chart)
    if chart.x.categories:
        _categories(axes, chart.x.categories)
    else:
        axes.xaxis.set_major_formatter(_thousands)
        axes.margins(x=0.02)


def _line(axes: "Axes", points: Sequence[Point], shift: float, colour: str, stroke: int, marks: bool) -> None:
    xs, ys = [x + shift for x, *_ in points], [y for _, y, *_ in points]
    marker = MARKERS[stroke % len(MARKERS)] if marks else None
    dashes = STROKES[stroke % len(STROKES)]
    axes.plot(xs, ys, color=colour, linestyle=dashes, marker=marker, markeredgewidth=0, clip_on=not marks, zorder=3)
    sure = [(x + shift, y, y - low, high - y) for x, y, low, high in points if low is not None and high is not None]
    if sure:
        at, middle, below, above = zip(*sure, strict=True)
        axes.errorbar(
            at,
            middle,
            yerr=(below, above),
            fmt="none",
            ecolor=colour,
            elinewidth=0.8,
            capsize=1.3,
            capthick=0.8,
            zorder=2,
        )


def _limits(axes: "Axes", chart: Chart) -> None:
    """A share has its own ends, unless all of it lies near the top."""
    values = [value for one in chart.series for line in one.lines for point in line.points for value in point[1:3]]
    known = [value for value in values if value is not None]
    if chart.y.low == 0.0 and chart.y.high == 1.0 and known and min(known) > 0.5:
        step = 0.1 if min(known) < 0.9 else 0.02
        axes.set_ylim(min(known) // step * step, 1 + step * 0.1)
    elif not chart.y.log:
        high = None if chart.y.high is None else chart.y.high * 1.03
        axes.set_ylim(chart.y.low, high)


def _categories(axes: "Axes", names: Sequence[str]) -> None:
    """Names under the points; what all conditions share goes into the axis's label."""
    heads = {name.partition("=")[0] + "=" for name in names if "=" in name}
    head = heads.pop() if len(heads) == 1 else ""
    plain = [name.removeprefix(head) if head else name for name in names]
    axes.set_xticks(range(len(names)), ["nat." if name == "natural" else name for name in plain])
    axes.set_xlim(-0.4, len(names) - 0.6)
    if head:
        axes.set_xlabel(head.replace(">=", " ≥").replace("=", " ="))
    axes.grid(visible=False, axis="x")


def _thousands(value: float, place: int | None = None) -> str:
    return f"{value / 1000:g}k" if abs(value) >= 1000 else f"{value:g}"
