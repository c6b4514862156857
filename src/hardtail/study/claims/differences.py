"""Differences between figures, taken seed by seed, with their intervals."""

from math import e, log10, sqrt

from hardtail.measuring.statistics import Interval, Z, t_interval
from hardtail.study.claims.base import Cell, common_seeds
from hardtail.study.claims.evidence import UNIT, Estimate, Results, Value, hull, mean_of, pooled_wilson

Cells = tuple[Cell, ...]


def _terms(plus: Cells, minus: Cells, results: Results) -> list[tuple[int, bool, list[Value]]]:
    """For each figure its sign, whether it is a share, and its values for the seeds that have all figures."""
    seeds = common_seeds(plus + minus, results)
    signed = [(1, cell.figure) for cell in plus] + [(-1, cell.figure) for cell in minus]
    values = [figure.values(results) for _, figure in signed]
    return [(sign, of.share, [held[seed] for seed in seeds]) for (sign, of), held in zip(signed, values, strict=True)]


def contrast(plus: Cells, minus: Cells, results: Results) -> Estimate:
    """Σ plus − Σ minus over the seeds that have all figures; Newcombe's interval of all cases together."""
    terms = _terms(plus, minus, results)
    by_seed = [sum(sign * values[i].value for sign, _, values in terms) for i in range(len(terms[0][2]))]
    mean = sum(sign * mean_of(values) for sign, _, values in terms)
    down = up = 0.0
    for sign, share, values in terms:
        if share and (interval := pooled_wilson(values)):
            below, above = (mean_of(values) - interval.low) ** 2, (interval.high - mean_of(values)) ** 2
            down, up = (down + below, up + above) if sign > 0 else (down + above, up + below)
    found = _estimate(mean, by_seed, Interval(mean - sqrt(down), mean + sqrt(up)) if down or up else None)
    adds, takes = ([UNIT if cell.figure.share else cell.figure.bounds for cell in cells] for cells in (plus, minus))
    least = sum(of.low for of in adds) - sum(of.high for of in takes)
    return found.within(Interval(least, sum(of.high for of in adds) - sum(of.low for of in takes)))


def log_ratio(over: Cells, under: Cells, results: Results, *, failures: bool) -> Estimate:
    """Σ log₁₀ over − Σ log₁₀ under, of the figures or of their complements, seed by seed.

    Half a case is added to the successes and the failures behind each share, so that no logarithm is infinite; the
    variance is by the delta method.
    """
    terms = _terms(over, under, results)
    by_seed, variance = [0.0] * len(terms[0][2]), 0.0
    for sign, share, values in terms:
        for place, held in enumerate(values):
            value = 1 - held.value if failures else held.value
            if share and held.n:
                value = (value * held.n + 0.5) / (held.n + 1)
                variance += (1 - value) / (value * held.n) / len(values) ** 2
            by_seed[place] += sign * log10(value)
    mean = sum(by_seed) / len(by_seed)
    half = Z * sqrt(variance) * log10(e)
    return _estimate(mean, by_seed, Interval(mean - half, mean + half) if half else None)


def _estimate(mean: float, by_seed: list[float], pooled: Interval | None) -> Estimate:
    """The mean with the wider of two intervals: Student's over seeds, and the one of all instances together."""
    low, high = hull((t_interval(by_seed), pooled))
    return Estimate(mean, low, high, len(by_seed))
