"""Means and shares of what is known; None if nothing is, since JSON has no NaN."""

from typing import Any

import numpy as np

from hardtail.core.types import Array


def mean(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.mean(known, dtype=np.float64)) if known.size else None


def median(values: Array) -> float | None:
    known = values[~np.isnan(values)]
    return float(np.median(known)) if known.size else None


def share(part: Any, whole: Any) -> float | None:
    """`part / whole`, both counts."""
    return float(part) / float(whole) if whole else None
