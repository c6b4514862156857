"""Rank correlation: how well the order of commits agrees with a logical order, ties on either side allowed.

Shapes: N instances, A answer cells, C cells that count in the row with most of them.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array


def rank_correlation(
    x_NA: Array, y_NA: Array, counts_NA: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Kendall's τ_b and Goodman and Kruskal's γ of each row, over pairs of the cells that count.

    τ_b = (concordant − discordant) / √(untied in x · untied in y)
    γ   = (concordant − discordant) / (concordant + discordant)
    If x agrees with y on all pairs that y does not tie, γ is 1; τ_b is less if y has ties that x breaks. NaN without
    such pairs.
    """
    most = int(counts_NA.sum(axis=1).max(initial=0))
    chosen_NC = np.argsort(~counts_NA, axis=1, kind="stable")[:, :most]
    absent_NC = ~np.take_along_axis(counts_NA, chosen_NC, axis=1)
    above_x_NCC, above_y_NCC = (
        _above(np.take_along_axis(array, chosen_NC, axis=1), absent_NC) for array in (x_NA, y_NA)
    )
    concordant_N = np.count_nonzero(above_x_NCC & above_y_NCC, axis=(1, 2))
    discordant_N = np.count_nonzero(above_x_NCC & above_y_NCC.swapaxes(1, 2), axis=(1, 2))
    untied_N = np.sqrt(np.count_nonzero(above_x_NCC, axis=(1, 2)) * np.count_nonzero(above_y_NCC, axis=(1, 2)))
    either_N = concordant_N + discordant_N
    return _ratio(concordant_N - discordant_N, untied_N), _ratio(concordant_N - discordant_N, either_N)


def _ratio(over_N: Array, under_N: Array) -> NDArray[np.float64]:
    return np.divide(over_N, under_N, out=np.full(len(over_N), np.nan), where=under_N > 0)


def _above(value_NC: Array, absent_NC: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Which cells have a larger value than which others [N, C, C]; an absent one is neither larger nor smaller."""
    number_NC = value_NC.astype(np.float32)
    number_NC[absent_NC] = np.nan  # compares false with everything
    return number_NC[:, :, None] > number_NC[:, None, :]
