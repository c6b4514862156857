"""Differences between figures, taken seed by seed, with their intervals."""

from collections.abc import Mapping
from math import e, log10, sqrt

from hardtail.measuring.statistics import Interval, Z, t_interval, wilson
from hardtail.study.claims.base import Cell, common_seeds
from hardtail.study.claims.evidence import Estimate, Results, Value, hull


def contrast(plus: tuple[Cell, ...], minus: tuple[Cell, ...], results: Results) -> Estimate:
    """Σ plus − Σ minus over the seeds that have all figures."""
    seeds = common_seeds(plus + minus, results)
    signed = [
        (sign, cell.figure, cell.figure.values(results)) for cells, sign in ((plus, 1), (minus, -1)) for cell in cells
    ]
    by_seed = [sum(sign * values[seed].value for sign, _, values in signed) for seed in seeds]
    mean = sum(by_seed) / len(by_seed)
    down = up = 0.0
    for sign, figure, values in signed:
        shares = {seed: values[seed] for seed in seeds}
        if (interval := _wilson(shares) if figure.share else None) is None:
            continue
        middle = sum(value.value for value in shares.values()) / len(seeds)
        below, above = (middle - interval.low) ** 2, (interval.high - middle) ** 2
        down, up = (down + below, up + above) if sign > 0 else (down + above, up + below)
    newcombe = Interval(mean - sqrt(down), mean + sqrt(up)) if down or up else None
    return _estimate(mean, by_seed, newcombe)


def log_ratio(over: tuple[Cell, ...], under: tuple[Cell, ...], results: Results, *, failures: bool) -> Estimate:
    """Σ log₁₀ over − Σ log₁₀ under, of the figures or of their complements, seed by seed.

    A share of n is taken with half a case more on either side, so that it is never 0; its variance is the delta
    method's.
    """
    seeds = common_seeds(over + under, results)
    by_seed, variance = [0.0] * len(seeds), 0.0
    for cells, sign in ((over, 1), (under, -1)):
        for cell in cells:
            values = cell.figure.values(results)
            for place, seed in enumerate(seeds):
                value, n = values[seed].value, values[seed].n
                value = 1 - value if failures else value
                if cell.figure.share and n:
                    value = (value * n + 0.5) / (n + 1)
                    variance += (1 - value) / (value * n) / len(seeds) ** 2
                by_seed[place] += sign * log10(value)
    mean = sum(by_seed) / len(by_seed)
    half = Z * sqrt(variance) * log10(e)
    return _estimate(mean, by_seed, Interval(mean - half, mean + half) if half else None)


def _estimate(mean: float, by_seed: list[float], pooled: Interval | None) -> Estimate:
    """With the wider of Student's interval over seeds and the one of all instances."""
    low, high = hull((t_interval(by_seed), pooled))
    return Estimate(mean, low, high, len(by_seed))


def _wilson(values: Mapping[int, Value]) -> Interval | None:
    total = sum(value.n or 0 for value in values.values())
    mean = sum(value.value for value in values.values()) / len(values)
    return wilson(round(mean * total), total) if total else None
