"""The eliminations people use between singles and guessing: subsets, intersections, fish and wings.

Each function deletes candidates in place without propagation, and returns whether it deleted any.

Naked subsets, hidden subsets and fish are one pattern on a 9×9 table of marks: `size` lines whose marks lie in `size`
columns use these columns up, so no other line has a mark there. The lines are the cells of a unit and the columns its
digits (naked); digits and cells (hidden); rows and columns of the board that can hold a digit (fish), or columns and
rows.

Shapes: C = 81 cells, I = 54 intersections of a box with a line.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import COUNT, PEERS, SEES, UNITS, Masks


def _intersections(firsts: range, seconds: range) -> NDArray[np.int64]:
    """For two units that meet in three cells: these cells, the 6 others of the first, the 6 others of the second."""
    pairs = ((set(UNITS[first].tolist()), set(UNITS[second].tolist())) for first in firsts for second in seconds)
    return np.array([[*sorted(a & b), *sorted(a - b), *sorted(b - a)] for a, b in pairs if len(a & b) == 3])


_BOXES, _LINES = range(18, 27), range(18)
POINTING = _intersections(_BOXES, _LINES)
"""A digit whose places in a box lie in one line leaves the rest of that line."""
BOX_LINE = _intersections(_LINES, _BOXES)
"""A digit whose places in a line lie in one box leaves the rest of that box."""


@jit
def _use_up(line_9: Masks, size: int) -> bool:
    """Find lines with 2 … `size` marks that share `size` columns, and clear these columns in all other lines."""
    changed = False
    for i in range(9):
        if not 2 <= COUNT[line_9[i]] <= size:
            continue
        for j in range(i + 1, 9):
            if not 2 <= COUNT[line_9[j]] <= size or COUNT[line_9[i] | line_9[j]] > size:
                continue
            if size == 2:
                changed |= _clear_others(line_9, line_9[i], i, j, j)
                continue
            for k in range(j + 1, 9):
                columns = line_9[i] | line_9[j] | line_9[k]
                if COUNT[line_9[k]] >= 2 and COUNT[columns] <= size:
                    changed |= _clear_others(line_9, columns, i, j, k)
    return changed


@jit
def _clear_others(line_9: Masks, columns: int, i: int, j: int, k: int) -> bool:
    changed = False
    for other in range(9):
        if other not in (i, j, k) and line_9[other] & columns:
            line_9[other] &= ~columns
            changed = True
    return changed


@jit
def _transposed(line_9: Masks) -> Masks:
    out_9 = np.zeros(9, dtype=np.int16)
    for column in range(9):
        for i in range(9):
            out_9[column] |= ((line_9[i] >> column) & 1) << i
    return out_9


@jit
def subset(cand_C: Masks, unit: int, size: int, hidden: bool) -> bool:
    """Naked: `size` cells of a unit that share `size` digits take these digits from the other cells.

    Hidden: `size` digits that share `size` cells of a unit take all other digits from these cells.
    """
    line_9 = np.empty(9, dtype=np.int16)
    for i in range(9):
        line_9[i] = cand_C[UNITS[unit, i]]
    if hidden:
        line_9 = _transposed(line_9)
    changed = _use_up(line_9, size)
    if changed:
        if hidden:
            line_9 = _transposed(line_9)
        for i in range(9):
            cand_C[UNITS[unit, i]] = line_9[i]
    return changed


@jit
def fish(cand_C: Masks, size: int) -> bool:
    """X-wing (2) and swordfish (3): `size` rows that hold a digit in `size` columns only, and the reverse."""
    line_9 = np.empty(9, dtype=np.int16)
    changed = False
    for digit in range(9):
        for first in (0, 9):  # rows, columns
            for i in range(9):
                line_9[i] = 0
                for j in range(9):
                    line_9[i] |= ((cand_C[UNITS[first + i, j]] >> digit) & 1) << j
            if not _use_up(line_9, size):
                continue
            changed = True
            for i in range(9):
                for j in range(9):
                    if not (line_9[i] >> j) & 1:
                        cand_C[UNITS[first + i, j]] &= ~(1 << digit)
    return changed


@jit
def intersections(cand_C: Masks, kind_I: NDArray[np.int64]) -> bool:
    """Delete the digits that have two or three places at an intersection and none in the rest of the first unit from
    the rest of the second unit."""
    changed = False
    for cells in kind_I:
        a, b, c = cand_C[cells[0]], cand_C[cells[1]], cand_C[cells[2]]
        digits = (a & b) | (a & c) | (b & c)
        for i in range(3, 9):
            digits &= ~cand_C[cells[i]]
        if digits:
            for i in range(9, 15):
                if cand_C[cells[i]] & digits:
                    cand_C[cells[i]] &= ~digits
                    changed = True
    return changed


@jit
def xy_wing(cand_C: Masks) -> bool:
    """A pivot xy that sees pincers xz and yz, which do not see each other: what sees both pincers is not z."""
    changed = False
    for pivot in range(81):
        xy = cand_C[pivot]
        if COUNT[xy] != 2:
            continue
        for i in range(20):
            one = PEERS[pivot, i]
            if COUNT[cand_C[one]] != 2 or COUNT[cand_C[one] & xy] != 1:
                continue
            for j in range(i + 1, 20):
                other = PEERS[pivot, j]
                z = cand_C[one] & ~xy
                is_wing = cand_C[other] == (z | (xy & ~cand_C[one])) and z != 0
                if not is_wing or SEES[one, other]:
                    continue
                for k in range(20):
                    cell = PEERS[one, k]
                    if SEES[cell, other] and cand_C[cell] & z:
                        cand_C[cell] &= ~z
                        changed = True
    return changed
