"""Puzzles of a wanted rating, up to the rarest.

What is common is drawn until it fits. What is rare is reached by a walk that begins at one of the hard puzzles below
(found by long walks of the same kind from random minimal puzzles), in a random disguise: a step takes one or two clues
away, puts others back until the solution is the only one again, drops what is not needed, and is kept if the rating
has come no further from the wanted range. The walk goes on inside the range for a while, away from where it began.

Shapes: N puzzles, P starting points, D search depth, G words of a grid (see `search`).
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.solvers import rng
from hardtail.solvers.jit import jit
from hardtail.solvers.sudoku.generate import Cells, Keys, drop_needless, minimal_puzzle, other_solution, state_of
from hardtail.solvers.sudoku.rating import rate
from hardtail.solvers.sudoku.search import DEPTH, GRID, Board, Words, open_grid, search

COMMON = 8
"""Up to this rating, puzzles are drawn at random; 3 in 1,000 minimal ones reach it."""
MOVES = 12
"""Steps that a walk keeps before it may end."""
PATIENCE = 300
"""Steps without a kept one after which a walk begins again elsewhere."""

_STARTS = """
030052000500001600000900800000060001026000070800000200305004000070100095000000300
020000900004000706090050010000000078002100000030009000001800300000004560000605000
000010008060000005010940302000002003209700000000050080600020001590000000300006500
000009850004000000000000093060050001401603080080000000006005000020070010508030700
000800000700594200040072000020000600000700803500000004001050000008360012000000090
800000000000510000500000347000040050008000200030008060009003000000020005260090470
080020100004000000900008007203000041047009000000000000005030600000800400600010050
000000005605074030000000470000201800008060047000040000080002000067090004120000000
024700000389400000000000040000000002800610000000000350900870000000002509036900700
000400007428000600000000020300600940000007000009008005001300090500000400000050002
035000400000000709040800000000000010100007600006003072000180000080030200002000005
100080000400310800390000020720400050000006000010000003000005700000000069030700010
080000400100400300003089000007002100000100020000040807060305200030000070200004600
032000010008000900760000005400900000000530400005008002000306000000400530000120806
009000410004138000000070005000050600600003009010000050300040006090060000840007500
000007400000900000006040008040002903937060000000000000700050801200000030010003205
"""
_START_P81 = np.array([[int(digit) for digit in line] for line in _STARTS.split()], dtype=np.uint8)


@jit
def _shuffled_lines(state: rng.State, line_9: Cells) -> None:
    """The nine rows (or columns) in an order that keeps bands together."""
    band_3, inside_3 = np.arange(3), np.arange(3)
    rng.shuffle(state, band_3)
    for band in range(3):
        rng.shuffle(state, inside_3)
        for i in range(3):
            line_9[3 * band + i] = 3 * band_3[band] + inside_3[i]


@jit
def disguise(state: rng.State, board_81: Board, disguised_81: Board) -> None:
    """The same puzzle to the eye of logic: digits renamed, rows and columns moved, perhaps mirrored."""
    row_9, column_9, digit_9 = np.empty(9, np.int64), np.empty(9, np.int64), np.arange(1, 10)
    _shuffled_lines(state, row_9)
    _shuffled_lines(state, column_9)
    rng.shuffle(state, digit_9)
    mirrored = rng.below(state, 2) == 1
    for row in range(9):
        for column in range(9):
            down, across = (column, row) if mirrored else (row, column)
            digit = int(board_81[9 * row_9[down] + column_9[across]])
            disguised_81[9 * row + column] = digit_9[digit - 1] if digit else 0


@jit
def _step(state: rng.State, stack_DG: Words, puzzle_81: Board, solution_81: Board) -> None:
    """Another minimal puzzle with the same solution, one or two clues away."""
    clue_M = np.flatnonzero(puzzle_81)
    rng.shuffle(state, clue_M)
    taken = clue_M[: 1 + rng.below(state, 2)]
    puzzle_81[taken] = 0
    other_81 = np.empty(81, np.uint8)
    for cell in taken:
        digit = int(solution_81[cell])
        while puzzle_81[cell] == 0 and other_solution(puzzle_81, cell, digit, stack_DG, other_81):
            differs = np.flatnonzero(other_81 != solution_81)
            at = differs[rng.below(state, differs.size)]
            puzzle_81[at] = solution_81[at]
    clue_M = np.flatnonzero(puzzle_81)
    rng.shuffle(state, clue_M)
    drop_needless(puzzle_81, clue_M, stack_DG, other_81)


@jit
def _begin(state: rng.State, stack_DG: Words, puzzle_81: Board, solution_81: Board) -> None:
    """A random starting point in a random disguise."""
    disguise(state, _START_P81[rng.below(state, len(_START_P81))], puzzle_81)
    open_grid(puzzle_81, stack_DG[0])
    search(stack_DG, 1, solution_81)


@jit
def _walk(
    state: rng.State, low: int, high: int, tries: int, stack_DG: Words, puzzle_81: Board, solution_81: Board
) -> int:
    """Walk into the range; the rating where the walk ends."""
    trial_81 = np.empty(81, np.uint8)
    rating, moves, idle = 0, 0, PATIENCE
    for _ in range(tries):
        if idle == PATIENCE:
            _begin(state, stack_DG, puzzle_81, solution_81)
            rating, moves, idle = rate(puzzle_81), 0, 0
        trial_81[:] = puzzle_81
        _step(state, stack_DG, trial_81, solution_81)
        trial = rate(trial_81)
        idle += 1
        if max(low - trial, trial - high, 0) <= max(low - rating, rating - high, 0):
            puzzle_81[:] = trial_81
            rating, moves, idle = trial, moves + 1, 0
            if moves >= MOVES and low <= rating <= high:
                break
    return rating


@jit
def _draw(
    state: rng.State, low: int, high: int, tries: int, stack_DG: Words, puzzle_81: Board, solution_81: Board
) -> int:
    """Minimal puzzles until one lies in the range; the rating of the last."""
    rating = -1
    for _ in range(tries):
        minimal_puzzle(state, stack_DG, puzzle_81, solution_81)
        rating = rate(puzzle_81)
        if low <= rating <= high:
            break
    return rating


@jit
def rated_many(key_N: Keys, low: int, high: int, max_tries: int) -> tuple[Board, Board, NDArray[np.int32]]:
    """For each key a minimal puzzle rated `low` to `high`, its solution and its rating.

    After `max_tries` (at least 1) draws or steps the last puzzle is given as it is: its rating tells that it missed.
    """
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    puzzle_N81 = np.zeros((len(key_N), 81), np.uint8)
    solution_N81 = np.zeros((len(key_N), 81), np.uint8)
    rating_N = np.zeros(len(key_N), np.int32)
    for i in range(len(key_N)):
        state = state_of(key_N[i])
        if low <= COMMON:
            rating_N[i] = _draw(state, low, high, max_tries, stack_DG, puzzle_N81[i], solution_N81[i])
        else:
            rating_N[i] = _walk(state, low, high, max_tries, stack_DG, puzzle_N81[i], solution_N81[i])
    return puzzle_N81, solution_N81, rating_N
