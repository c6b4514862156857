"""Exact search: how many solutions a board has, in microseconds.

For each digit the cells where it may still go are 81 bits, kept as three words of 27 (a word is a band of three rows,
bit `9 * row + column` inside it), so that one operation handles nine cells or nine units. Propagation covers naked
singles, hidden singles and locked candidates; then the search branches on the cell with the fewest candidates.

Shapes: N boards. A grid is `int32[57]`: word `3 * digit + band` of candidates (digits 0 to 8), the same words at the
time that digit was last narrowed, and the three words of the filled cells.
"""

from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import Board

Words = NDArray[np.int32]

GRID = 57
DEPTH = 82
"""Every branch fills a cell, so a search is at most 81 deep."""
_SEEN, _FILLED = 27, 54
_FULL = (1 << 27) - 1
_BOX = 0o007007007


def _word(cells: list[int]) -> int:
    return sum(1 << cell for cell in cells)


def _spread_word(cell: int) -> int:
    """The cells of the band that stay possible for a digit once it is placed at `cell`."""
    row, column = divmod(cell, 9)
    sees = [c for c in range(27) if c // 9 == row or c % 9 == column or c % 9 // 3 == column // 3]
    return _FULL & ~_word([c for c in sees if c != cell])


def _locked_word(pattern: int) -> int:
    """The minirows of a band that a digit can still use, if those in `pattern` (bit 3 * row + box) are open.

    It goes into the three rows in three different boxes, so an open minirow that is in no such choice is closed.
    """
    kept = 0
    for boxes in permutations(range(3)):
        choice = _word([3 * row + box for row, box in enumerate(boxes)])
        if choice & ~pattern == 0:
            kept |= choice
    return kept


# Powers of two are all different modulo 37, which makes a perfect hash of single bits.
_BIT = np.array([0] + [next(bit for bit in range(36) if 2**bit % 37 == rest) for rest in range(1, 37)], dtype=np.int32)
_SPREAD = np.array([_spread_word(cell) for cell in range(27)], dtype=np.int32)
_LOCKED = np.array([_locked_word(pattern) for pattern in range(512)], dtype=np.int32)
_OPEN3 = np.array([_word([k for k in range(3) if row >> 3 * k & 7]) for row in range(512)], dtype=np.int32)
_WIDE3 = np.array([sum(7 << 3 * k for k in range(3) if bits >> k & 1) for bits in range(8)], dtype=np.int32)


@jit
def place(grid: Words, digit: int, band: int, cell: int) -> None:
    """Fill a cell: the digit leaves its peers, the other digits leave the cell."""
    bit = 1 << cell
    for other in range(9):
        grid[3 * other + band] &= ~bit
    grid[3 * digit + band] = (grid[3 * digit + band] | bit) & _SPREAD[cell]
    column = ~(0o001001001 << cell % 9)
    for other_band in range(3):
        if other_band != band:
            grid[3 * digit + other_band] &= column
    grid[_FILLED + band] |= bit


@jit
def open_grid(board_81: Board, grid: Words) -> bool:
    """Write the grid of a board; False if two givens contradict each other."""
    grid[:_SEEN] = _FULL
    grid[_SEEN:] = 0
    for cell in range(81):
        if board_81[cell] != 0:
            digit, band, at = int(board_81[cell]) - 1, cell // 27, cell % 27
            if not grid[3 * digit + band] >> at & 1:
                return False
            place(grid, digit, band, at)
    return True


@jit
def _lowest(word: int) -> int:
    """The index of the lowest bit."""
    return int(_BIT[(word & -word) % 37])


@jit
def _place_all(grid: Words, digit: int, band: int, found: int) -> bool:
    """Place a digit in every cell of `found`; False if one of them forbids another."""
    while found:
        bit = found & -found
        found ^= bit
        if not grid[3 * digit + band] & bit:
            return False
        place(grid, digit, band, _lowest(bit))
    return True


@jit
def _narrow(grid: Words, digit: int) -> bool:
    """Locked candidates and hidden singles of one digit; False if it has no place left in a unit."""
    base = 3 * digit
    # Minicolumns: the transposed pattern of each stack, bit 3 * column + band.
    stack_0, stack_1, stack_2 = 0, 0, 0
    for band in range(3):
        word = int(grid[base + band])
        pattern = _OPEN3[word & 511] | _OPEN3[word >> 9 & 511] << 3 | _OPEN3[word >> 18] << 6
        kept = _LOCKED[pattern]
        if kept == 0:
            return False
        word &= _WIDE3[kept & 7] | _WIDE3[kept >> 3 & 7] << 9 | _WIDE3[kept >> 6] << 18
        grid[base + band] = word
        columns = (word | word >> 9 | word >> 18) & 511
        stack_0 |= (columns & 7) << 3 * band
        stack_1 |= (columns >> 3 & 7) << 3 * band
        stack_2 |= (columns >> 6) << 3 * band
    stack_0, stack_1, stack_2 = _LOCKED[stack_0], _LOCKED[stack_1], _LOCKED[stack_2]
    if stack_0 == 0 or stack_1 == 0 or stack_2 == 0:
        return False
    once, twice = 0, 0
    for band in range(3):
        row = (stack_0 >> 3 * band & 7) | (stack_1 >> 3 * band & 7) << 3 | (stack_2 >> 3 * band & 7) << 6
        word = int(grid[base + band]) & (row | row << 9 | row << 18)
        grid[base + band] = word
        for shift in range(0, 27, 9):
            row = word >> shift & 511
            twice |= once & row
            once |= row
    if once != 511:
        return False
    single = once & ~twice
    for band in range(3):
        word = int(grid[base + band])
        found = word & (single | single << 9 | single << 18)
        for k in range(3):
            row = word & 511 << 9 * k
            box = word & _BOX << 3 * k
            if row == 0 or box == 0:
                return False
            if row & (row - 1) == 0:
                found |= row
            if box & (box - 1) == 0:
                found |= box
        found &= ~int(grid[_FILLED + band])
        if found and not _place_all(grid, digit, band, found):
            return False
    return True


@jit
def _naked(grid: Words, band: int) -> bool:
    """Fill the cells of a band that have one candidate; False if a cell has none."""
    once, twice = 0, 0
    for digit in range(9):
        word = int(grid[3 * digit + band])
        twice |= once & word
        once |= word
    if once != _FULL:
        return False
    found = once & ~twice & ~int(grid[_FILLED + band])
    if found:
        for digit in range(9):
            here = found & int(grid[3 * digit + band])
            if here and not _place_all(grid, digit, band, here):
                return False
    return True


@jit
def propagate(grid: Words) -> bool:
    """Propagate to the fixpoint; False on a contradiction."""
    again = True
    while again:
        again = False
        for band in range(3):
            if not _naked(grid, band):
                return False
        for digit in range(9):
            changed = False
            for at in range(3 * digit, 3 * digit + 3):
                changed |= grid[at] != grid[_SEEN + at]
                grid[_SEEN + at] = grid[at]
            if changed:
                again = True
                if not _narrow(grid, digit):
                    return False
    return True


@jit
def fewest(grid: Words) -> tuple[int, int]:
    """The band and place in it of the first cell with the fewest candidates; band -1 if every cell is filled."""
    best, at_band, at_cell = 10, -1, 0
    for band in range(3):
        left = _FULL & ~int(grid[_FILLED + band])
        if left == 0:
            continue
        once, twice, thrice = 0, 0, 0
        for digit in range(9):
            word = int(grid[3 * digit + band])
            thrice |= twice & word
            twice |= once & word
            once |= word
        pairs = left & ~thrice
        if pairs:
            return band, _lowest(pairs)
        for cell in range(27):
            if left >> cell & 1:
                count = 0
                for digit in range(9):
                    count += grid[3 * digit + band] >> cell & 1
                if count < best:
                    best, at_band, at_cell = count, band, cell
    return at_band, at_cell


@jit
def read_grid(grid: Words, board_81: Board) -> None:
    """The digits of a filled grid."""
    for cell in range(81):
        for digit in range(9):
            if grid[3 * digit + cell // 27] >> cell % 27 & 1:
                board_81[cell] = digit + 1


@jit
def search(stack_DG: Words, limit: int, solution_81: Board) -> int:
    """Solutions of the grid `stack_DG[0]`, counted up to `limit`; the first one is written into `solution_81`."""
    count, top = 0, 0
    while top >= 0:
        grid = stack_DG[top]
        if not propagate(grid):
            top -= 1
            continue
        band, cell = fewest(grid)
        if band < 0:
            if count == 0:
                read_grid(grid, solution_81)
            count += 1
            if count >= limit:
                return count
            top -= 1
            continue
        digit = 0
        while not grid[3 * digit + band] >> cell & 1:
            digit += 1
        stack_DG[top + 1] = grid
        place(stack_DG[top + 1], digit, band, cell)
        grid[3 * digit + band] &= ~(1 << cell)  # the grid left on the stack is the other branch
        top += 1
    return count


@jit
def solve_many(board_N81: Board, limit: int = 2) -> tuple[NDArray[np.int64], Board]:
    """For each board the number of its solutions, counted up to `limit`, and the first one (zeros without any)."""
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    count_N = np.zeros(len(board_N81), np.int64)
    solution_N81 = np.zeros(board_N81.shape, np.uint8)
    for i in range(len(board_N81)):
        if open_grid(board_N81[i], stack_DG[0]):
            count_N[i] = search(stack_DG, limit, solution_N81[i])
    return count_N, solution_N81
