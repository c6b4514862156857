"""A chart as data: title, axes, series. `page/curves.py` sends it to the browser, `figures/panels.py` draws it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple


class Point(NamedTuple):
    """A place, a value, and the ends of the value's 95 % interval where there is one."""

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

    `name`  its entry in the page's legend; series of equal names share one entry
    `hue`   what its colour means, usually the training scheme: equal hues have equal colours in all charts
    `style` what its stroke and its marks mean: equal styles look equal within a figure, the first is solid
    """

    name: str
    hue: str
    style: str
    lines: tuple[Line, ...] = ()
    variant: str = ""
    """What else tells series of one hue apart, such as the precision of the training."""
    shown: bool = True
    """Whether the page shows it before anyone has asked for it."""
    printed: bool = False
    """Whether it is what the paper prints: open marks on paper, not on the page."""


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
    """Where it is not the same."""


@dataclass(frozen=True)
class Chart:
    """A chart about one task."""

    task: str
    section: Literal["training", "accuracy", "readiness", "coverage"]
    title: str
    panel: str
    """Its title on paper, where it is a small panel."""
    note: str
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    marks: bool = False
    """Whether points are marked: there are few, and each is a measurement of its own."""


SHARE = Axis("share", low=0.0, high=1.0)


def grouped(lines: Iterable[tuple[Series, Line]]) -> tuple[Series, ...]:
    """Lines put together by their series, in the order in which series first came; empty lines are left out."""
    held: dict[Series, list[Line]] = {}
    for series, line in lines:
        if line.points:
            held.setdefault(series, []).append(line)
    return tuple(replace(series, lines=tuple(of)) for series, of in held.items())
