"""The uncertainty of a share, whether two decoders differ, and how well a score separates two kinds."""

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Z = 1.959963984540054
"""Two-sided 95 %."""


class Interval(NamedTuple):
    low: float
    high: float


def wilson(right: int, n: int) -> Interval:
    """Wilson's 95 % score interval of a share (Wilson 1927); it never leaves [0, 1] and does not vanish at 0 or 1."""
    low, high = _wilson(right / n, n) if n else (0.0, 1.0)
    return Interval(0.0 if right == 0 else low, 1.0 if right == n else high)


def _wilson(share: float, n: int) -> Interval:
    middle = share + Z * Z / (2 * n)
    half = Z * sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    low, high = ((middle + sign * half) / (1 + Z * Z / n) for sign in (-1, 1))
    return Interval(max(low, 0.0), min(high, 1.0))


class PairedTest(NamedTuple):
    """Two decoders on the same instances: how many only the first got right, only the second, and McNemar's p."""

    only_first: int
    only_second: int
    p: float


def mcnemar(first_N: NDArray[np.bool_], second_N: NDArray[np.bool_]) -> PairedTest:
    """The exact, two-sided test: under no difference, discordant pairs fall either way like a fair coin."""
    only_first = int((first_N & ~second_N).sum())
    only_second = int((~first_N & second_N).sum())
    n, k = only_first + only_second, min(only_first, only_second)
    return PairedTest(only_first, only_second, min(1.0, 2 * _tail(n, k)))


def _tail(n: int, k: int) -> float:
    """P(at most k heads in n fair tosses), in integers until the end: no float holds the binomials of a large n."""
    total = term = 1
    for i in range(1, k + 1):
        term = term * (n - i + 1) // i
        total += term
    return total / 2**n


class Area(NamedTuple):
    """The area under a ROC curve, with a 95 % interval; None where there is only one kind."""

    auroc: float | None
    low: float | None
    high: float | None


def auroc(score_N: NDArray[Any], positive_N: NDArray[np.bool_]) -> Area:
    """The chance that a positive has a higher score than a negative, ties counted half (Mann & Whitney).

    The interval is Wilson's for as many cases as there are of the rarer kind: wide, but not empty at 0 and 1.
    """
    positives, negatives = int(positive_N.sum()), int((~positive_N).sum())
    if not positives or not negatives:
        return Area(None, None, None)
    below = np.sort(score_N[~positive_N])
    wins = np.searchsorted(below, score_N[positive_N], "left").sum()
    wins_and_ties = np.searchsorted(below, score_N[positive_N], "right").sum()
    area = float(wins + wins_and_ties) / (2 * positives * negatives)
    return Area(area, *_wilson(area, min(positives, negatives)))


def t_interval(values: Sequence[float]) -> Interval | None:
    """Student's 95 % interval of a mean over seeds; None for fewer than two values."""
    n = len(values)
    if n < 2:
        return None
    mean = sum(values) / n
    deviation = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    half = _T[min(n - 1, len(_T)) - 1] * deviation / sqrt(n)
    return Interval(mean - half, mean + half)


_T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)
"""Student's 97.5 % quantiles for 1, 2, … degrees of freedom; the last also serves for more (too wide)."""
