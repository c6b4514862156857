# mypy: ignore-errors
"""Dropout that is drawn inside other kernels, from a hash of seed, row and column.

Nothing is stored: the backward pass draws the same cells again.

Shapes: I rows, J columns of a tile.
"""

import triton
import triton.language as tl


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
    """A random word for each row."""
    return _mixed(_mixed(row_I.to(tl.uint32)) ^ tl.load(seed).to(tl.uint32))


@triton.jit
def column_words(j_J):
    """A word for each column. It is cheap: what follows mixes its sum with a row's word."""
    return j_J.to(tl.uint32) * 0x9E3779B1


@triton.jit
def kept(word_IJ, dropped: tl.constexpr):
    """Which cells dropout keeps, from the sums of their rows' and columns' words."""
    word_IJ = (word_IJ ^ (word_IJ >> 13)) * 0x846CA68B
    threshold: tl.constexpr = int(dropped * 2**32)
    return word_IJ >= threshold


@triton.jit
def dropout(x_IJ, seed, row_I, j_J, dropped: tl.constexpr):
    """Cells of a matrix, dropped with probability `dropped` or divided by 1 - `dropped`."""
    word_IJ = row_words(seed, row_I)[:, None] + column_words(j_J)[None, :]
    return tl.where(kept(word_IJ, dropped), x_IJ * (1.0 / (1.0 - dropped)), 0.0)
