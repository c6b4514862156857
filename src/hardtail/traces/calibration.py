"""Calibration: is the decoder right as often as it is sure?

Shapes: K commits.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array
from hardtail.traces.summary import mean

EDGES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99, 0.999, 1.0)
"""Tenths; the last one is split in three, as it has nearly all commits of a trained model. Bins include upper edges."""


@dataclass(frozen=True)
class Bin:
    """The commits whose probability is above `low` and at most `high`."""

    low: float
    high: float
    commits: int
    confidence: float
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Mean confidence against accuracy of some commits."""

    commits: int
    confidence: float | None
    accuracy: float | None
    ece: float | None
    """Expected calibration error: Σ_bins share · |accuracy − confidence| (Naeini et al. 2015)."""
    bins: tuple[Bin, ...]
    """The bins that have commits."""


def calibration(prob_K: Array, right_K: NDArray[np.bool_]) -> Calibration:
    """Return the calibration of the commits whose probability is known; it is that of the committed token."""
    known_K = ~np.isnan(prob_K)
    prob_K, right_K = prob_K[known_K].astype(np.float64), right_K[known_K]
    bin_K = np.clip(np.searchsorted(EDGES, prob_K, side="left") - 1, 0, len(EDGES) - 2)
    bins: list[Bin] = []
    error = 0.0
    for place, (low, high) in enumerate(pairwise(EDGES)):
        inside_K = bin_K == place
        if inside_K.any():
            confidence, accuracy = float(prob_K[inside_K].mean()), float(right_K[inside_K].mean())
            bins.append(Bin(low, high, int(inside_K.sum()), confidence, accuracy))
            error += float(inside_K.mean()) * abs(accuracy - confidence)
    ece = error if bins else None
    return Calibration(prob_K.size, mean(prob_K), mean(right_K), ece, tuple(bins))
