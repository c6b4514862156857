"""Carries of long addition, read off the operands.

A position whose digits sum to 9 *propagates* its carry-in (p); above 9 it *generates* a carry (g), below 9 it *kills*
one (k). So a carry is decided at the nearest lower position that is not p.

Shapes: N instances, D digit positions (index 0 is the least significant), S = D + 1 positions of the sum.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

ROLES = ("k", "g", "p_above_g", "p_above_k", "p_above_p", "p_bottom", "carry_out")
K, G, P_ABOVE_G, P_ABOVE_K, P_ABOVE_P, P_BOTTOM, CARRY_OUT = range(7)
Digits = NDArray[np.int8]


@dataclass(frozen=True)
class Sum:
    """A sum and where its carries come from."""

    digit_NS: Digits
    """The true sum; position D is the carry-out."""
    carry_in_NS: NDArray[np.bool_]
    role_NS: Digits
    """Index into `ROLES`, which distinguishes p positions by the role directly below them."""
    chain_N: NDArray[np.int16]
    """Length of the longest run of p positions."""
    chain_top_N: NDArray[np.int16]
    """Most significant position of that run (of the lowest one where several are longest); -1 without a run."""


def add(a_ND: Digits, b_ND: Digits) -> Sum:
    """Add digit by digit and find where every position's carry comes from."""
    total_ND = a_ND + b_ND
    propagates_ND = total_ND == 9
    position_D = np.arange(a_ND.shape[1], dtype=np.int16)

    decided_at_ND = np.maximum.accumulate(np.where(propagates_ND, np.int16(-1), position_D), axis=1)
    left_pad = (0, 0), (1, 0)
    generated_NS = np.pad(total_ND > 9, left_pad)  # column 0: nothing is carried into the lowest digit
    carry_in_NS = np.pad(np.take_along_axis(generated_NS, decided_at_ND.astype(np.int64) + 1, axis=1), left_pad)
    digit_NS = (np.pad(total_ND, ((0, 0), (0, 1))) + carry_in_NS) % np.int8(10)
    run_ND = position_D - decided_at_ND
    chain_N = run_ND.max(axis=1)
    chain_top_N = np.where(chain_N > 0, run_ND.argmax(axis=1), -1).astype(np.int16)
    return Sum(digit_NS, carry_in_NS, _roles(total_ND), chain_N, chain_top_N)


def _roles(total_ND: Digits) -> Digits:
    kind_ND = 1 + np.sign(total_ND - np.int8(9))  # k, p, g
    above_ND = np.array([P_ABOVE_K, P_ABOVE_P, P_ABOVE_G], dtype=np.int8)[kind_ND]
    above_ND = np.pad(above_ND[:, :-1], ((0, 0), (1, 0)), constant_values=P_BOTTOM)
    role_ND = np.where(kind_ND == 1, above_ND, np.array([K, -1, G], dtype=np.int8)[kind_ND])
    return np.pad(role_ND, ((0, 0), (0, 1)), constant_values=CARRY_OUT)
