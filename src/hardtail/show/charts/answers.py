"""What a chart shows, in a line: the title under which the page draws it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from hardtail.core.tables import percent
from hardtail.show.charts.series import Axis, Point, Series
from hardtail.show.words import stratum_words

NEARLY_ALL = 0.99
NEARLY = 0.01
"""Accuracies that differ by less are called equal."""
CONFIDENCE, LOGICAL = "confidence", "logical order"
"""The styles of charts that compare decoding by confidence with the logical order over training."""


class Drawn(Protocol):
    """What an answer reads of a chart."""

    @property
    def x(self) -> Axis: ...

    @property
    def series(self) -> tuple[Series, ...]: ...


def answer(name: str, chart: Drawn) -> str:
    """The answer of the chart `name`, from the series that the page shows at first; empty if it has none."""
    shown = [one for one in chart.series if one.shown and not one.printed]
    shown = shown or [one for one in chart.series if not one.printed]
    return _ANSWERS[name](chart, shown) if shown else ""


def _last(series: Sequence[Series]) -> dict[str, float]:
    """The mean over seeds of the last value, by group."""
    ends: dict[str, list[float]] = {}
    for one in series:
        ends.setdefault(one.group, []).extend(line.points[-1].y for line in one.lines)
    return {group: sum(values) / len(values) for group, values in ends.items()}


def _points(series: Sequence[Series]) -> Iterator[tuple[Series, Point]]:
    return ((one, point) for one in series for line in one.lines for point in line.points)


# -- over training ----------------------------------------------------------------------------------------------------


def _ends_lowest(chart: Drawn, series: Sequence[Series]) -> str:
    ends = _last(series)
    lowest = min(ends, key=lambda group: ends[group])
    return f"{lowest} ends {'' if len(ends) == 1 else 'lowest, '}at {ends[lowest]:.3g}"


def _ends(chart: Drawn, series: Sequence[Series]) -> str:
    """The losses of different schemes are not compared: their weights differ."""
    ends = [f"{group} ends at {value:.3g}" for group, value in _last(series).items()]
    return ", ".join(ends)


def _learned(chart: Drawn, series: Sequence[Series]) -> str:
    ends = _last(series)
    below = {group: value for group, value in ends.items() if value < NEARLY_ALL}
    if not below:
        return f"{'It ends' if len(ends) == 1 else 'All end'} at 99 % or more"
    worst = min(below, key=lambda group: below[group])
    left = len(ends) - len(below)
    return f"{worst} ends at {percent(below[worst])}" + (f"; {left} of {len(ends)} at 99 % or more" if left else "")


def _hard_tail(chart: Drawn, series: Sequence[Series]) -> str:
    by_way = {way: _last([one for one in series if one.style == way]) for way in (CONFIDENCE, LOGICAL)}
    both = by_way[CONFIDENCE].keys() & by_way[LOGICAL].keys()
    if not both:
        return _learned(chart, series)
    group = max(sorted(both), key=lambda name: abs(by_way[LOGICAL][name] - by_way[CONFIDENCE][name]))
    confidence, logical = by_way[CONFIDENCE][group], by_way[LOGICAL][group]
    if abs(logical - confidence) < 0.01:
        return "In the end the two orders differ by less than 1 %"
    return f"{group} ends at {percent(confidence)} by confidence, {percent(logical)} in logical order"


def _guessed(chart: Drawn, series: Sequence[Series]) -> str:
    ends = _last(series)
    most = max(ends, key=lambda group: ends[group])
    return f"{most} still guesses {ends[most]:.3g} cells at the end" if ends[most] else "No cell is guessed at the end"


# -- over strata, orders and steps ------------------------------------------------------------------------------------


def _lowest(chart: Drawn, series: Sequence[Series]) -> str:
    one, point = min(_points(series), key=lambda held: held[1].y)
    if point.y >= NEARLY_ALL:
        return "Everything shown is solved at 99 % or more"
    return f"Lowest: {one.name} solves {percent(point.y)} of {_category(chart, point)}"


def _cheapest(chart: Drawn, series: Sequence[Series]) -> str:
    """The fewest passes among what is solved best."""
    most = max(point.y for _, point in _points(series))
    best = ((one, point) for one, point in _points(series) if point.y >= most - NEARLY)
    one, point = min(best, key=lambda held: held[1].x)
    return f"{one.name} solves {percent(point.y)} in {point.x:.0f} passes"


def _category(chart: Drawn, point: Point) -> str:
    return stratum_words((chart.x.categories or ())[int(point.x)])


def _by_category(chart: Drawn, series: Sequence[Series]) -> dict[str, list[float]]:
    """The values of each category, in the order of the axis."""
    found: dict[str, list[float]] = {}
    for _, point in sorted(_points(series), key=lambda held: held[1].x):
        found.setdefault(_category(chart, point), []).append(point.y)
    return found


def _too_early(chart: Drawn, series: Sequence[Series]) -> str:
    shares = _by_category(chart, series)
    return "Too early: " + ", ".join(f"{_range(values)} under {order}" for order, values in shares.items())


def _range(values: Sequence[float]) -> str:
    low, high = percent(min(values)), percent(max(values))
    return low if low == high or low.startswith("over") else f"{low.removesuffix(' %')} to {high}"


def _right(chart: Drawn, series: Sequence[Series]) -> str:
    shares = _by_category(chart, series)
    return "Right: " + ", ".join(f"{group} {_range(values)}" for group, values in shares.items() if group != "free")


def _peak(what: str) -> Callable[[Drawn, Sequence[Series]], str]:
    def peak(chart: Drawn, series: Sequence[Series]) -> str:
        one, point = max(_points(series), key=lambda held: held[1].y)
        if not point.y:
            return f"No commit is {what}"
        return f"At worst {percent(point.y)} are {what}: {one.name}, {percent(point.x)} of the way"

    return peak


def _counts(chart: Drawn, series: Sequence[Series]) -> str:
    seen = [point.x for _, point in _points(series)]
    return f"Training saw states with {min(seen):.0f} to {max(seen):.0f} hidden cells"


def _half_way(chart: Drawn, series: Sequence[Series]) -> str:
    """Where hidden cells lie when half of them are left, lowest and highest."""
    found = {}
    for one in series:
        middle = max(line.points[-1].x for line in one.lines) / 2
        near = [min(line.points, key=lambda point: abs(point.x - middle)).y for line in one.lines]
        found[one.name] = sum(near) / len(near)
    low, high = (pick(found, key=lambda name: found[name]) for pick in (min, max))
    if low == high:
        return f"Half-way, hidden cells lie at {found[low]:.2f} of the order"
    return f"Half-way, they lie at {found[low]:.2f} ({low}) to {found[high]:.2f} ({high}) of the order"


_ANSWERS: Mapping[str, Callable[[Drawn, Sequence[Series]], str]] = {
    "loss": _ends,
    "natural": _learned,
    "hard": _hard_tail,
    "probe": _ends_lowest,
    "guessed": _guessed,
    "recorded-accuracy": _lowest,
    "decoded-accuracy": _lowest,
    "recorded-passes": _cheapest,
    "decoded-passes": _cheapest,
    "premature": _too_early,
    "right": _right,
    "premature-along": _peak("unready"),
    "wrong-along": _peak("wrong"),
    "hidden-count": _counts,
    "hidden-rank": _half_way,
}
"""The answer of every chart of `words.toml`."""
