"""Carries of long addition, read off the operands.

A digit position whose digits sum to 9 *propagates* the carry that comes in (p), above 9 it *generates* one (g), below 9
it *kills* it (k). So a carry is decided at the nearest lower position that is not p.

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
    """A sum and how its carries come about."""

    digit_NS: Digits
    """The true sum; position D is the carry-out."""
    carry_in_NS: NDArray[np.bool_]
    role_NS: Digits
    """Index into `ROLES`; p positions are told apart by what lies directly below them."""
    chain_N: NDArray[np.int16]
    """Length of the longest run of p positions."""
    chain_top_N: NDArray[np.int16]
    """Most significant position of that run (of the lowest one where several are longest); -1 without a run."""


def add(a_ND: Digits, b_ND: Digits) -> Sum:
    """Add digit by digit and say for every position where its carry comes from."""
    n, d = a_ND.shape
    total_ND = a_ND + b_ND
    propagates_ND = total_ND == 9
    position_D = np.arange(d, dtype=np.int16)

    decided_at_ND = np.maximum.accumulate(np.where(propagates_ND, np.int16(-1), position_D), axis=1)
    generated_NS = np.zeros((n, d + 1), dtype=np.bool_)  # column 0: below the lowest digit nothing is carried
    np.greater(total_ND, 9, out=generated_NS[:, 1:])
    carry_in_NS = np.zeros((n, d + 1), dtype=np.bool_)
    carry_in_NS[:, 1:] = np.take_along_axis(generated_NS, decided_at_ND.astype(np.int64) + 1, axis=1)

    digit_NS = np.empty((n, d + 1), dtype=np.int8)
    np.add(total_ND, carry_in_NS[:, :d], out=digit_NS[:, :d])
    digit_NS[:, :d] -= np.int8(10) * (digit_NS[:, :d] >= 10)
    digit_NS[:, d] = carry_in_NS[:, d]

    run_ND = position_D - decided_at_ND
    chain_N = run_ND.max(axis=1)
    chain_top_N = np.where(chain_N > 0, run_ND.argmax(axis=1), -1).astype(np.int16)
    return Sum(digit_NS, carry_in_NS, _roles(total_ND), chain_N, chain_top_N)


def _roles(total_ND: Digits) -> Digits:
    n, d = total_ND.shape
    role_NS = np.full((n, d + 1), CARRY_OUT, dtype=np.int8)
    plain_ND = np.where(total_ND > 9, np.int8(G), np.int8(K))
    above_ND = np.where(total_ND > 9, np.int8(P_ABOVE_G), np.int8(P_ABOVE_K))
    above_ND[total_ND == 9] = P_ABOVE_P
    below_ND = np.full((n, d), P_BOTTOM, dtype=np.int8)
    below_ND[:, 1:] = above_ND[:, :-1]
    role_NS[:, :d] = np.where(total_ND == 9, below_ND, plain_ND)
    return role_NS
