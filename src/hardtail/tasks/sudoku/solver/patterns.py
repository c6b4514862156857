"""The eliminations people use between singles and guessing: subsets, intersections, fish and wings.

Each function deletes candidates in place, silently (nothing is propagated), and says whether it deleted any.

Naked subsets, hidden subsets and fish are one pattern on a 9×9 table of marks: `size` lines whose marks lie in `size`
columns use these columns up, so no other line has a mark there. The lines are the cells of a unit and the columns its
digits (naked); digits and cells (hidden); rows and columns of the board that can hold a digit (fish), or the reverse.

Shapes: C = 81 cells, I = 54 intersections of a box with a line.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import BOX_C, COUNT, PEERS, SEES, UNITS, UNITS_OF, Masks

ROWS, COLUMNS = 0, 1


def _intersection(box: int, line: int) -> list[int]:
    """3 common cells of a box and a line, 6 others of the box, 6 others of the line; nothing where they do not meet."""
    in_box, in_line = box == BOX_C, np.equal(UNITS_OF, line).any(axis=1)
    parts = (in_box & in_line, in_box & ~in_line, in_line & ~in_box)
    return [int(cell) for part in parts for cell in np.flatnonzero(part)] if parts[0].any() else []


_BY_BOX_I = np.array([cells for box in range(9) for line in range(18) if (cells := _intersection(box, line))])
_BY_LINE_I = np.array([cells for line in range(18) for box in range(9) if (cells := _intersection(box, line))])


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
def _transposed(line_9: Masks, out_9: Masks) -> None:
    for column in range(9):
        marks = 0
        for i in range(9):
            marks |= ((line_9[i] >> column) & 1) << i
        out_9[column] = marks


@jit
def naked(cand_C: Masks, unit: int, size: int) -> bool:
    """`size` cells of a unit with `size` digits between them: the other cells lose these digits."""
    line_9 = np.empty(9, dtype=np.int16)
    for i in range(9):
        line_9[i] = cand_C[UNITS[unit, i]]
    changed = _use_up(line_9, size)
    if changed:
        for i in range(9):
            cand_C[UNITS[unit, i]] = line_9[i]
    return changed


@jit
def hidden(cand_C: Masks, unit: int, size: int) -> bool:
    """`size` digits of a unit with `size` cells between them: these cells lose all other digits."""
    cell_9, digit_9 = np.empty(9, dtype=np.int16), np.empty(9, dtype=np.int16)
    for i in range(9):
        cell_9[i] = cand_C[UNITS[unit, i]]
    _transposed(cell_9, digit_9)
    changed = _use_up(digit_9, size)
    if changed:
        _transposed(digit_9, cell_9)
        for i in range(9):
            cand_C[UNITS[unit, i]] = cell_9[i]
    return changed


@jit
def fish(cand_C: Masks, size: int) -> bool:
    """X-wing (2) and swordfish (3): `size` rows that hold a digit in `size` columns only, and the reverse."""
    line_9 = np.empty(9, dtype=np.int16)
    changed = False
    for digit in range(9):
        for kind in (ROWS, COLUMNS):
            for i in range(9):
                marks = 0
                for j in range(9):
                    marks |= ((cand_C[UNITS[9 * kind + i, j]] >> digit) & 1) << j
                line_9[i] = marks
            if not _use_up(line_9, size):
                continue
            changed = True
            for i in range(9):
                for j in range(9):
                    if not (line_9[i] >> j) & 1:
                        cand_C[UNITS[9 * kind + i, j]] &= ~(1 << digit)
    return changed


@jit
def _locked(cand_C: Masks, cells: NDArray[np.int64], source: int, target: int) -> bool:
    """Digits with two or three places at an intersection and none in `source` cannot be in `target`."""
    a, b, c = cand_C[cells[0]], cand_C[cells[1]], cand_C[cells[2]]
    digits = (a & b) | (a & c) | (b & c)
    for i in range(source, source + 6):
        digits &= ~cand_C[cells[i]]
    changed = False
    if digits:
        for i in range(target, target + 6):
            if cand_C[cells[i]] & digits:
                cand_C[cells[i]] &= ~digits
                changed = True
    return changed


@jit
def pointing(cand_C: Masks) -> bool:
    """A digit whose places in a box lie in one line leaves the rest of that line."""
    changed = False
    for i in range(54):
        changed |= _locked(cand_C, _BY_BOX_I[i], 3, 9)
    return changed


@jit
def box_line(cand_C: Masks) -> bool:
    """A digit whose places in a line lie in one box leaves the rest of that box."""
    changed = False
    for i in range(54):
        changed |= _locked(cand_C, _BY_LINE_I[i], 9, 3)
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
