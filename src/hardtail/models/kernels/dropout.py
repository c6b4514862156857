# mypy: ignore-errors
"""Dropout that is drawn inside other kernels.

Each row has a random number generator of its own, a multiplicative congruential one modulo 2³². Its state is first a
hash of seed and row, and after j steps that hash times the multiplier to the power of j: the word of the cell in column
j. So a cell costs a product and a comparison, any of them can be computed alone, and nothing is stored: the backward
pass draws the same cells again.

Shapes: I rows, J columns of a tile.
"""

import triton
import triton.language as tl

MULTIPLIER = tl.constexpr(0x93D765DD)
"""From Steele & Vigna, "Computationally easy, spectrally good multipliers" (2021)."""
BITS = tl.constexpr(31)
"""Bits of a column's number."""


@triton.jit
def _mixed(x):
    """A 32-bit word with its bits mixed (the `lowbias32` constants of Wellons' hash prospector)."""
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def row_words(seed, row_I):
    """The word of each row's first column: random, and odd, so that products with it never lose bits."""
    return _mixed(_mixed(row_I.to(tl.uint32)) ^ tl.load(seed).to(tl.uint32)) | 1


@triton.jit
def powers(j_J):
    """The multiplier to the power of j."""
    power_J = tl.full(j_J.shape, 1, tl.uint32)
    square = tl.full((1,), MULTIPLIER, tl.uint32)
    for bit in tl.static_range(BITS):
        power_J *= tl.where((j_J >> bit) & 1 == 1, square, 1)
        square *= square
    return power_J


@triton.jit
def words(row_I, j_J):
    """The words of cells, from those of rows.

    In attention a thread holds cells of a few columns modulo 8 only, so the first of these products are few, and what
    the second ones multiply by is known when they are compiled.
    """
    return row_I[:, None] * powers(j_J % 8)[None, :] * powers(j_J // 8 * 8)[None, :]


@triton.jit
def keep(x_IJ, word_IJ, dropped: tl.constexpr, zero=0.0):
    """x where dropout keeps it, else 0."""
    threshold: tl.constexpr = int(dropped * 2**32)
    return tl.where(word_IJ >= threshold, x_IJ, zero)


@triton.jit
def dropout(x_IJ, seed, row_I, j_J, dropped: tl.constexpr):
    """Cells of a matrix, dropped with probability `dropped` or divided by 1 - `dropped`."""
    return keep(x_IJ * (1.0 / (1.0 - dropped)), words(row_words(seed, row_I), j_J), dropped)
