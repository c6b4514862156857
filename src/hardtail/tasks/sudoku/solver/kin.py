"""What a solution has in common with all its disguises.

Between two lines of a band every digit of the one lies over a digit of the other. That is a permutation of the digits,
and the lengths of its cycles stay the same when digits are renamed and lines are moved or mirrored. The lengths of
all pairs of lines, sorted where a disguise can change their order, are the same for all disguises of a grid, and differ
between nearly all other grids.

Shapes: N grids, K = 18 pairs of lines.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import Board

Shapes = NDArray[np.int16]


@jit
def _cycles(solution_81: Board, one: int, other: int, stride: int) -> int:
    """The cycle lengths between two lines that begin at cells `one` and `other`, as one number.

    It is the sum of their cubes, which tells apart all ways to cut nine digits into cycles of two or more.
    """
    over_10 = np.zeros(10, np.int64)
    for i in range(9):
        over_10[solution_81[one + i * stride]] = solution_81[other + i * stride]
    total = 0
    for first in range(1, 10):
        length, digit = 0, first
        while over_10[digit] != 0:
            following = over_10[digit]
            over_10[digit] = 0
            digit = following
            length += 1
        total += length**3
    return total


@jit
def _shape(solution_81: Board, across: int, stride: int) -> Shapes:
    """Nine numbers of the lines in one direction: three of each band, sorted, and the bands sorted too."""
    shape_33 = np.empty((3, 3), np.int16)
    for band in range(3):
        for pair in range(3):
            one, other = 3 * band + pair // 2, 3 * band + 1 + (pair + 1) // 2  # 0-1, 0-2, 1-2
            shape_33[band, pair] = _cycles(solution_81, one * across, other * across, stride)
        shape_33[band] = np.sort(shape_33[band])
    wide_33 = shape_33.astype(np.int64)
    return shape_33[np.argsort(wide_33[:, 0] * 1_000_000 + wide_33[:, 1] * 1_000 + wide_33[:, 2])].ravel()


@jit
def shapes_many(solution_N81: Board) -> Shapes:
    """For each solved grid 18 numbers that are the same for all its disguises."""
    shape_NK = np.empty((len(solution_N81), 18), np.int16)
    for i in range(len(solution_N81)):
        rows, columns = _shape(solution_N81[i], 9, 1), _shape(solution_N81[i], 1, 9)
        swap = False
        for k in range(9):
            if rows[k] != columns[k]:
                swap = rows[k] > columns[k]
                break
        shape_NK[i, :9], shape_NK[i, 9:] = (columns, rows) if swap else (rows, columns)
    return shape_NK
