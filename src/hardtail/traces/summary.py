"""Means and shares that are None for no values, since JSON has no NaN."""

from typing import Any

import numpy as np

from hardtail.core.types import Array


def mean(values: Array) -> float | None:
    return float(np.mean(values, dtype=np.float64)) if values.size else None


def median(values: Array) -> float | None:
    return float(np.median(values)) if values.size else None


def share(part: Any, whole: Any) -> float | None:
    """`part / whole`, both counts."""
    return float(part) / float(whole) if whole else None
