"""A Sudoku board as candidate masks, and constraint propagation on it (Norvig, "Solving Every Sudoku Puzzle").

Boards are uint8[81], row by row, 0 where blank. Candidates are int16[81]; bit d-1 is set while digit d is possible.

Propagation is driven by events. When a cell loses a candidate, (1) a cell with one digit left takes it from its peers,
and (2) a digit with one place left in a unit goes there. The result does not depend on the order of the events. From an
empty board every event is seen, and the result is complete. A candidate that was deleted silently beforehand causes no
event; the released technique levels depend on that.

Shapes: N boards, C = 81 cells, U = 27 units (rows, columns, boxes), D depths of a search.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.jit import jit

Board = NDArray[np.uint8]
Masks = NDArray[np.int16]
Ranks = NDArray[np.int8]

ALL = 511
_ROW_C, _COLUMN_C = np.divmod(np.arange(81), 9)
UNITS_OF = np.stack([_ROW_C, 9 + _COLUMN_C, 18 + _ROW_C // 3 * 3 + _COLUMN_C // 3], axis=1)
UNITS = np.array([np.flatnonzero(np.equal(UNITS_OF, unit).any(axis=1)) for unit in range(27)])
SEES = (UNITS_OF[:, None] == UNITS_OF[None]).any(axis=2) & ~np.eye(81, dtype=np.bool_)
PEERS = np.array([np.flatnonzero(SEES[cell]) for cell in range(81)])
COUNT = np.array([mask.bit_count() for mask in range(512)], dtype=np.int8)

# Pending events, in one array: digits each unit lost a place for, then a stack of cells left with one digit.
_STACK, _TOP = 27, 27 + 81
WORK = _TOP + 1


@jit
def copy(source_C: Masks, target_C: Masks) -> None:
    """Copy item by item: a slice assignment takes numba longer to compile than the rest of this module."""
    for cell in range(81):
        target_C[cell] = source_C[cell]


@jit
def remove(cand_C: Masks, cell: int, bits: int, work: Masks) -> bool:
    """Remove candidates from a cell and record the events; False if none is left."""
    gone = cand_C[cell] & bits
    if gone == 0:
        return True
    left = cand_C[cell] ^ gone
    cand_C[cell] = left
    if left & (left - 1) == 0:
        if left == 0:
            return False
        work[_STACK + work[_TOP]] = cell
        work[_TOP] += 1
    for kind in range(3):
        work[UNITS_OF[cell, kind]] |= gone
    return True


@jit
def _naked(cand_C: Masks, work: Masks) -> bool:
    """Remove the digit of every cell with one candidate from the cell's peers."""
    while work[_TOP] > 0:
        work[_TOP] -= 1
        cell = work[_STACK + work[_TOP]]
        bit = cand_C[cell]
        for i in range(20):
            peer = PEERS[cell, i]
            if cand_C[peer] & bit and not remove(cand_C, peer, bit, work):
                return False
    return True


@jit
def single_places(cand_C: Masks, unit: int) -> tuple[int, int]:
    """The digits that have at least one place in a unit, and those that have exactly one."""
    once, twice = 0, 0
    for i in range(9):
        mask = cand_C[UNITS[unit, i]]
        twice |= once & mask
        once |= mask
    return once, once & ~twice


@jit
def _hidden(cand_C: Masks, unit: int, work: Masks) -> bool:
    """Put digits that lost places in the unit into the only place left."""
    lost = work[unit]
    work[unit] = 0
    placed, single = single_places(cand_C, unit)
    if lost & ~placed:
        return False
    lost &= single
    if lost == 0:
        return True
    for i in range(9):
        cell = UNITS[unit, i]
        mine = cand_C[cell] & lost
        if mine:
            if mine & (mine - 1):  # this is the only place of two digits
                return False
            remove(cand_C, cell, ALL ^ mine, work)
    return True


@jit
def propagate(cand_C: Masks, work: Masks) -> bool:
    """Process all pending events; False on a contradiction. Nothing is pending afterwards."""
    again = True
    while again:
        again = False
        for unit in range(27):
            if not _naked(cand_C, work):
                work[:] = 0
                return False
            if work[unit]:
                again = True
                if not _hidden(cand_C, unit, work):
                    work[:] = 0
                    return False
    return True


@jit
def assign(cand_C: Masks, cell: int, bit: int, work: Masks) -> bool:
    """Give a cell its digit: remove all others from it and propagate; False on a contradiction."""
    remove(cand_C, cell, ALL ^ bit, work)
    return propagate(cand_C, work)


@jit
def read(board_C: Board, cand_C: Masks, work: Masks) -> bool:
    """Write the candidates that propagation of the givens leaves; False on a contradiction."""
    cand_C[:] = ALL
    work[:] = 0
    for cell in range(81):
        if board_C[cell]:
            remove(cand_C, cell, ALL ^ (1 << (board_C[cell] - 1)), work)
    return propagate(cand_C, work)


@jit
def _solver_order(board_C: Board, work: Masks, cand_DC: Masks, rank_C: Ranks) -> None:
    cell_D = np.empty(82, dtype=np.int64)
    untried_D = np.empty(82, dtype=np.int64)
    depth = 0
    if not read(board_C, cand_DC[0], work):
        return
    while True:
        cell, fewest = -1, 10
        for i in range(81):
            count = COUNT[cand_DC[depth, i]]
            if 1 < count < fewest:
                cell, fewest = i, count
        if cell < 0:
            break
        cell_D[depth], untried_D[depth] = cell, cand_DC[depth, cell]
        while True:
            while untried_D[depth] == 0:
                depth -= 1
                if depth < 0:
                    return
            bit = untried_D[depth] & -untried_D[depth]
            untried_D[depth] ^= bit
            copy(cand_DC[depth], cand_DC[depth + 1])
            if assign(cand_DC[depth + 1], cell_D[depth], bit, work):
                depth += 1
                break
    rank = 0
    for level in range(depth + 1):
        for cell in range(81):
            if board_C[cell] == 0 and rank_C[cell] < 0 and COUNT[cand_DC[level, cell]] == 1:
                rank_C[cell] = rank
                rank += 1


@jit
def solver_order_many(board_NC: Board) -> Ranks:
    """The order in which a backtracking solver fills the blanks on its way to the first solution (docs/study.md §6.1).

    The cells that the givens determine come first, row by row. Then the search guesses at the first cell with the
    fewest candidates, lowest digit first, and each correct guess adds the cells that it determines, row by row. Ranks
    are -1 at givens, and everywhere on boards without a solution.
    """
    rank_NC = np.full(board_NC.shape, -1, dtype=np.int8)
    work = np.zeros(WORK, dtype=np.int16)
    cand_DC = np.empty((82, 81), dtype=np.int16)
    for n in range(len(board_NC)):
        _solver_order(board_NC[n], work, cand_DC, rank_NC[n])
    return rank_NC


@jit
def candidates_many(board_NC: Board) -> Masks:
    """The candidates that propagation leaves on each board."""
    cand_NC = np.empty(board_NC.shape, dtype=np.int16)
    work = np.zeros(WORK, dtype=np.int16)
    for n in range(len(board_NC)):
        read(board_NC[n], cand_NC[n], work)
    return cand_NC


def digit_masks(board_NC: Board) -> Masks:
    """The digit that each cell holds as a bit, 0 at blanks."""
    return (1 << board_NC.astype(np.int16) >> 1).astype(np.int16)


def once_and_twice(mask_NC: Masks) -> tuple[Masks, Masks]:
    """The digits that occur at least once, and at least twice, among the masks of each unit."""
    once_NU = np.zeros((len(mask_NC), 27), dtype=np.int16)
    twice_NU = np.zeros_like(once_NU)
    for cell_U in UNITS.T:
        mask_NU = mask_NC[:, cell_U]
        twice_NU |= once_NU & mask_NU
        once_NU |= mask_NU
    return once_NU, twice_NU


def raw_candidates(board_NC: Board) -> Masks:
    """The digits that no cell in the same row, column or box holds; 0 at filled cells. Plain numpy."""
    used_NC = np.bitwise_or.reduce(once_and_twice(digit_masks(board_NC))[0][:, UNITS_OF], axis=2)
    return np.where(board_NC > 0, 0, ALL & ~used_NC).astype(np.int16)


def singles(board_NC: Board) -> NDArray[np.bool_]:
    """The blanks that a naked or hidden single determines now. Plain numpy."""
    cand_NC = raw_candidates(board_NC)
    once_NU, twice_NU = once_and_twice(cand_NC)
    alone_NC = np.bitwise_or.reduce((once_NU & ~twice_NU)[:, UNITS_OF], axis=2)
    return (COUNT[cand_NC] == 1) | (cand_NC & alone_NC > 0)


def candidate_count_many(board_NC: Board) -> Ranks:
    """Blanks by their number of candidates after propagation, ties row by row; -1 at givens.

    A cell that propagation determines counts with its candidates before propagation (docs/study.md §6.3).
    """
    left_NC = COUNT[candidates_many(board_NC)]
    count_NC = np.where(left_NC == 1, COUNT[raw_candidates(board_NC)], left_NC)
    return ranked(count_NC, board_NC == 0)


def ranked(key_NC: NDArray[np.integer], blank_NC: NDArray[np.bool_]) -> Ranks:
    """Ranks 0, 1, 2 … of the blanks by ascending key, ties row by row; -1 elsewhere."""
    last = np.iinfo(key_NC.dtype).max
    order_NC = np.argsort(np.where(blank_NC, key_NC, last), axis=1, kind="stable")
    rank_NC = np.empty(key_NC.shape, dtype=np.int8)
    np.put_along_axis(rank_NC, order_NC, np.arange(81, dtype=np.int8)[None], axis=1)
    return np.where(blank_NC, rank_NC, np.int8(-1))
