"""The difficulty rating: how often the tdoku solver guesses before its first solution.

*sudoku-extreme*'s `rating` column is that count. tdoku (T. Dillon) does not branch on cells but on placements: in a
band of three boxes a digit goes into three different rows, in one of six ways. This search follows that description;
the details that it leaves open (the order of bands, placements and digits) are fitted to rated puzzles, see
`benchmarks/check_sudoku_ratings.py`. Placements deduce more than cells, so rating 0 includes more than "singles only".
The order of digits and rows decides what is tried first, so a relabelled puzzle has another rating.

A *triad* is the three cells that a box shares with a row or a column. Each digit is in the first, second or third cell
of a triad, or absent from it. A triad has 3 digits present and 6 absent.

Shapes: N boards. A state is `int32[117]` of digit sets (9 bits): the 81 cells box by box, then for each band (three of
rows, three of columns) and each of the six placements the digits that can still have it.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import ALL, COUNT, Board
from hardtail.tasks.sudoku.solver.search import Words

_CELLS = 81
_STATE = 117
_DEPTH = 55
"""A branch fixes one digit in one band, so at most 54 are open."""

# Placement k puts a digit into row `_PLACEMENTS[k][i]` of the band's box i. The order decides what is tried first.
_PLACEMENTS = np.array([(0, 1, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0), (0, 2, 1), (1, 0, 2)], dtype=np.int64)
# The cells of a box's six triads: three rows, then three columns.
_TRIADS = np.array([(0, 1, 2), (3, 4, 5), (6, 7, 8), (0, 3, 6), (1, 4, 7), (2, 5, 8)], dtype=np.int64)
_BOXES_OF_BAND = np.array([0o007, 0o070, 0o700, 0o111, 0o222, 0o444], dtype=np.int64)


@jit
def _read_band(state: Words, band: int, box: int, present: Words, absent: Words) -> None:
    """The digits that the placements of a band allow in the triads of its box number `box`."""
    first = 3 * (band // 3)
    for triad in range(first, first + 3):
        present[triad] = absent[triad] = 0
    for k in range(6):
        digits = state[_CELLS + 6 * band + k]
        for triad in range(first, first + 3):
            if triad == first + _PLACEMENTS[k, box]:
                present[triad] |= digits
            else:
                absent[triad] |= digits


@jit
def _write_band(state: Words, band: int, box: int, present: Words, absent: Words) -> int:
    """Drop the placements that the triads of a box rule out: 1 if there were any, else 0, -1 on contradiction."""
    first = 3 * (band // 3)
    changed, left = 0, 0
    for k in range(6):
        before = int(state[_CELLS + 6 * band + k])
        digits = before
        for triad in range(first, first + 3):
            digits &= present[triad] if triad == first + _PLACEMENTS[k, box] else absent[triad]
        left |= digits
        if digits != before:
            state[_CELLS + 6 * band + k] = digits
            changed = 1
    return changed if left == ALL else -1


@jit
def _narrow_triad(state: Words, base: int, triad: int, present: Words, absent: Words) -> int:
    """Every deduction from one triad: 1 if something changed, else 0, -1 on contradiction."""
    at_a, at_b, at_c = base + _TRIADS[triad, 0], base + _TRIADS[triad, 1], base + _TRIADS[triad, 2]
    old_a, old_b, old_c = int(state[at_a]), int(state[at_b]), int(state[at_c])
    old_in, old_out = int(present[triad]), int(absent[triad])
    a, b, c, out = old_a & old_in, old_b & old_in, old_c & old_in, old_out
    cells = a | b | c
    if cells | out != ALL:
        return -1
    # A digit with one of the four possibilities left takes it.
    once = ALL & ~(a & b | (a | b) & c | cells & out)
    inside = old_in & cells
    a = a & once if a & once else a
    b = b & once if b & once else b
    c = c & once if c & once else c
    if a == 0 or b == 0 or c == 0:
        return -1
    # A cell with one digit left takes it.
    if a & (a - 1) == 0:
        b, c, out = b & ~a, c & ~a, out & ~a
    if b & (b - 1) == 0:
        a, c, out = a & ~b, c & ~b, out & ~b
    if c & (c - 1) == 0:
        a, b, out = a & ~c, b & ~c, out & ~c
    # Six digits are absent and three present: if no others remain, it is these.
    if COUNT[out] < 6:
        return -1
    if COUNT[out] == 6:
        a, b, c, inside = a & ~out, b & ~out, c & ~out, inside & ~out
    if COUNT[inside] < 3:
        return -1
    if COUNT[inside] == 3:
        out &= ~inside
    if a == old_a and b == old_b and c == old_c and inside == old_in and out == old_out:
        return 0
    state[at_a], state[at_b], state[at_c], present[triad], absent[triad] = a, b, c, inside, out
    return 1


@jit
def _narrow_box(state: Words, box: int, present: Words, absent: Words) -> int:
    """Make a box and its two bands consistent: the boxes to visit again as bits, -1 on contradiction."""
    across, down = box // 3, box % 3
    _read_band(state, across, down, present, absent)
    _read_band(state, 3 + down, across, present, absent)
    changed = 1
    while changed:
        changed = 0
        for triad in range(6):
            verdict = _narrow_triad(state, 9 * box, triad, present, absent)
            if verdict < 0:
                return -1
            changed |= verdict
    rows = _write_band(state, across, down, present, absent)
    columns = _write_band(state, 3 + down, across, present, absent)
    if rows < 0 or columns < 0:
        return -1
    return rows * _BOXES_OF_BAND[across] | columns * _BOXES_OF_BAND[3 + down]


@jit
def _propagate(state: Words, boxes: int, present: Words, absent: Words) -> bool:
    """To the fixpoint, beginning with `boxes`; False on contradiction."""
    box = 0
    while boxes:
        if boxes >> box & 1:
            again = _narrow_box(state, box, present, absent)
            if again < 0:
                return False
            boxes = boxes & ~(1 << box) | again
        box = box + 1 if box < 8 else 0
    return True


@jit
def _choose_band(state: Words) -> int:
    """The first unsolved band with the fewest placements; -1 if all are solved."""
    best, chosen = 55, -1
    for band in range(6):
        total = 0
        for k in range(6):
            total += COUNT[state[_CELLS + 6 * band + k]]
        if 9 < total < best:
            best, chosen = total, band
    return chosen


@jit
def _choose_digit(state: Words, band: int) -> int:
    """As a bit: the lowest digit with two placements in the band, else with three, else with more."""
    once, twice, thrice, more = 0, 0, 0, 0
    for k in range(6):
        digits = int(state[_CELLS + 6 * band + k])
        more |= thrice & digits
        thrice |= twice & digits
        twice |= once & digits
        once |= digits
    digits = twice & ~thrice
    if digits == 0:
        digits = thrice & ~more
    if digits == 0:
        digits = more
    return digits & -digits


@jit
def rate(board_81: Board) -> int:
    """Guesses until the first solution; 0 if propagation alone solves the board, -1 if it has no solution."""
    stack_DS = np.empty((_DEPTH, _STATE), np.int32)
    band_D = np.empty(_DEPTH, np.int64)
    present, absent = np.empty(6, np.int32), np.empty(6, np.int32)
    state = np.full(_STATE, ALL, np.int32)
    for cell in range(81):
        if board_81[cell] != 0:
            row, column = cell // 9, cell % 9
            box, inside = 3 * (row // 3) + column // 3, 3 * (row % 3) + column % 3
            state[9 * box + inside] = 1 << int(board_81[cell]) - 1

    guesses, top, boxes = 0, 0, ALL
    while True:
        if _propagate(state, boxes, present, absent):
            band = _choose_band(state)
            if band < 0:
                return guesses
            digit = _choose_digit(state, band)
            first = _CELLS + 6 * band
            guess = first
            while not state[guess] & digit:
                guess += 1
            guesses += 1
            stack_DS[top] = state
            stack_DS[top, guess] &= ~digit  # the negation waits for its turn
            band_D[top] = band
            top += 1
            for at in range(first, first + 6):
                if at != guess:
                    state[at] &= ~digit
        elif top == 0:
            return -1
        else:
            top -= 1
            state[:] = stack_DS[top]
            band = band_D[top]
        boxes = _BOXES_OF_BAND[band]


@jit
def rate_many(board_N81: Board) -> NDArray[np.int32]:
    """`rate` of every board."""
    rating_N = np.empty(len(board_N81), np.int32)
    for i in range(len(board_N81)):
        rating_N[i] = rate(board_N81[i])
    return rating_N
