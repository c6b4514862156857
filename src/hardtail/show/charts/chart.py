"""A chart as data: title, axes, series. `page/curves.py` sends it to the browser, `figures/panels.py` draws it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import Literal, NamedTuple

from msgspec import toml


class Point(NamedTuple):
    """A place, a value, and the ends of the value's 95 % interval if it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Line:
    """One curve of a series, such as one seed."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True)
class Series:
    """Lines that belong together.

    `name`    its entry in the page's legend; series with the same name share one entry
    `hue`     what its colour means, usually the training scheme: the same hue has the same colour in all charts
    `style`   what its stroke and its marks mean: the same style looks the same within a figure, the first is solid
    `variant` what else distinguishes series of one hue, such as the precision of the training
    `shown`   whether the page shows it at first
    `printed` whether it is what the paper prints: open marks on paper, not on the page
    """

    name: str
    hue: str
    style: str
    lines: tuple[Line, ...] = ()
    variant: str = ""
    shown: bool = True
    printed: bool = False


@dataclass(frozen=True)
class Axis:
    label: str
    categories: tuple[str, ...] | None = None
    """Names at 0, 1, 2 … instead of numbers."""
    log: bool = False
    low: float | None = None
    high: float | None = None
    log_on_paper: bool = False
    label_on_paper: str | None = None


@dataclass(frozen=True)
class Words:
    """What `words.toml` says about a chart."""

    section: Literal["training", "accuracy", "readiness", "coverage"]
    title: str
    panel: str
    note: str


@dataclass(frozen=True)
class Chart(Words):
    """A chart about one task."""

    task: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: bool = False
    """Whether points are marked: there are few, and each is a measurement of its own."""


SHARE = Axis("share", low=0.0, high=1.0)
_WORDS = toml.decode(files("hardtail.show.charts").joinpath("words.toml").read_bytes(), type=dict[str, Words])


def described(
    name: str, task: str, x: Axis, y: Axis, lines: Iterable[tuple[Series, Line]], *, of: str = "", marks: bool = False
) -> Chart:
    """The chart that `words.toml` describes under `name`; `of` completes its title."""
    words = _WORDS[name]
    title = words.title.format(of=of)
    return Chart(words.section, title, words.panel, words.note, task, x, y, grouped(lines), marks)


def grouped(lines: Iterable[tuple[Series, Line]]) -> tuple[Series, ...]:
    """Put lines together by series, in the order in which the series first appear; leave out empty lines."""
    held: dict[Series, list[Line]] = {}
    for series, line in lines:
        if line.points:
            held.setdefault(series, []).append(line)
    return tuple(replace(series, lines=tuple(of)) for series, of in held.items())
