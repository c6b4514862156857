"""Plots as data: titles, axes, series. The page draws them; anything else that plots can take them too."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Point = tuple[float, float, float | None, float | None]
"""Where, how much, and the ends of the 95 % interval where there is one."""


@dataclass(frozen=True)
class Line:
    """One curve of a series, such as one seed."""

    label: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Series:
    """What one entry of the legend shows and hides.

    `hue`    what its colour stands for, the training scheme as a rule: equal hues have equal colours in all plots
    `style`  what its stroke stands for: equal within a plot, solid first
    """

    name: str
    hue: str
    style: str
    lines: Sequence[Line]
    shown: bool = True
    """Whether it is there before anyone has asked for it."""


@dataclass(frozen=True)
class Axis:
    label: str
    categories: tuple[str, ...] | None = None
    """Names at 0, 1, 2 … instead of numbers."""
    log: bool = False
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Chart:
    """A plot of one task."""

    task: str
    section: Literal["training", "accuracy", "readiness", "coverage"]
    title: str
    note: str
    x: Axis
    y: Axis
    series: Sequence[Series]
    marks: bool = False
    """Whether points are marked: few of them, each a measurement of its own."""

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


SHARE = Axis("share", low=0.0, high=1.0)


@dataclass
class SeriesList:
    """Series that grow line by line, in the order in which their names first came."""

    held: dict[str, tuple[str, str, list[Line], bool]] = field(default_factory=dict)

    def add(self, name: str, hue: str, style: str, line: Line, *, shown: bool = True) -> None:
        if line.points:
            self.held.setdefault(name, (hue, style, [], shown))[2].append(line)

    def series(self) -> list[Series]:
        return [Series(name, *rest) for name, rest in self.held.items()]
