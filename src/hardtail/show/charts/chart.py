"""A chart as data: title, axes, series. `page/curves.py` sends it to the browser, `figures/panels.py` draws it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal

from msgspec import toml

from hardtail.show.charts.answers import answer
from hardtail.show.charts.series import Axis, Line, Point, Series

__all__ = ["SHARE", "Axis", "Chart", "Line", "Point", "Series", "described", "grouped"]


@dataclass(frozen=True)
class ChartWords:
    """What `words.toml` says about a chart."""

    section: Literal["training", "accuracy", "cost", "readiness", "coverage"]
    title: str
    panel: str
    note: str


@dataclass(frozen=True)
class Chart(ChartWords):
    """A chart about one task."""

    task: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: bool = False
    """Whether points are marked: there are few, and each is a measurement of its own."""
    answer: str = ""
    """What it shows, in a line."""


SHARE = Axis("share", low=0.0, high=1.0)
_WORDS = toml.decode(files("hardtail.show.charts").joinpath("words.toml").read_bytes(), type=dict[str, ChartWords])


def described(
    name: str,
    task: str,
    x: Axis,
    y: Axis,
    lines: Iterable[tuple[Series, Line]],
    *,
    of: str = "",
    file: str = "",
    marks: bool = False,
) -> Chart:
    """The chart that `words.toml` describes under `name`; `of` completes its title.

    `file` is that of the problems, if they are not drawn.
    """
    words = _WORDS[name]
    title, panel, note = words.title.format(of=of), words.panel, words.note
    if file:
        title, panel = f"{title}, problems of {file}", f"{panel}\n{file}"
        note = f"{note} The problems are from {file}; kinds that it lacks are drawn."
    chart = Chart(words.section, title, panel, note, task, x, y, grouped(lines), marks)
    return replace(chart, answer=answer(name, chart))


def grouped(lines: Iterable[tuple[Series, Line]]) -> tuple[Series, ...]:
    """Put lines together by series, in the order in which the series first appear; leave out empty lines."""
    held: dict[Series, list[Line]] = {}
    for series, line in lines:
        if line.points:
            held.setdefault(series, []).append(line)
    return tuple(replace(series, lines=tuple(of)) for series, of in held.items())
