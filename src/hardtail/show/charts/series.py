"""Points, lines and series: what charts are made of."""

from dataclasses import dataclass
from typing import NamedTuple


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
    `group`   the arm or model that it is about, which the page's chooser shows and hides
    `seeds`   single seeds behind a mean: small marks on the page, not on paper
    """

    name: str
    hue: str
    style: str
    lines: tuple[Line, ...] = ()
    variant: str = ""
    shown: bool = True
    printed: bool = False
    group: str = ""
    seeds: tuple[Line, ...] = ()


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
