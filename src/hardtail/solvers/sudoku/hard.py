"""Puzzles of a rating that is rare.

A walk begins at one of the hard puzzles below (found by long walks of the same kind from random minimal puzzles) in a
random disguise. A step takes one or two clues away, puts others back until the solution is the only one again, drops
what is not needed, and is kept if the rating has gone no further from the wanted range. The walk goes on inside the
range for a while, away from where it began.

Shapes: P starting points, D search depth, G words of a grid (see `search`).
"""

import numpy as np

from hardtail.solvers import rng
from hardtail.solvers.jit import jit
from hardtail.solvers.sudoku.minimal import Cells, drop_needless, other_solution
from hardtail.solvers.sudoku.rating import rate
from hardtail.solvers.sudoku.search import Board, Words, open_grid, search

MOVES = 4
"""Steps inside the range that a walk makes before it ends."""
DISGUISES = 60
"""Starting points that are looked at for one that lies in the range already."""
PATIENCE = 40
"""Steps without progress after which a walk begins again elsewhere."""

_STARTS = """
080020100004000000900008007203000041047009000000000000005030600000800400600010050
000030008001000000000009060020145039090000100000300000010000007007008000006050040
000009850004000000000000093060050001401603080080000000006005000020070010508030700
006010020010009007030800000000004075160080000000005000600000000800000209009000730
000000009000012003028000600010007000067931000000040000000000387000000000302750900
100080000400310800390000020720400050000006000010000003000005700000000069030700010
009000000070002890000000670010050000005007061004008500000600200000010000043000008
800000000000510000500000347000040050008000200030008060009003000000020005260090470
030070000000000208008906000200000300000010060040690100009000050080700000600004020
009000410004138000000070005000050600600003009010000050300040006090060000840007500
000800000700594200040072000020000600000700803500000004001050000008360012000000090
800300210100400008000006070009000003400070820020000700000060080070043000900000100
000000403008070100700050009020000300601040700007080000000509000100060000059001060
000000005605074030000000470000201800008060047000040000080002000067090004120000000
000850000000000009000009027010000000008000000062140500007006090500030010000700430
060000080100000700000640002010000024000000096000035000080300000029760000007004000
000004003000080097700001028809060000400000005100002000040000010000070900200800000
000400007428000600000000020300600940000007000009008005001300090500000400000050002
800430000000006090006008300390800100000070000058010000007300000600000408000000079
030052000500001600000900800000060001026000070800000200305004000070100095000000300
080000400100400300003089000007002100000100020000040807060305200030000070200004600
024700000389400000000000040000000002800610000000000350900870000000002509036900700
000007400000900000006040008040002903937060000000000000700050801200000030010003205
512000080700000012009000003000079000830000000000400060170045090000001500300800001
005400170040050002700800000800900300001000004007000009000060037004008000070002090
002000000470001200015000000000010090300000000007203000000950714090000050000800600
035000400000000709040800000000000010100007600006003072000180000080030200002000005
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
def _gap(rating: int, low: int, high: int) -> int:
    """How far a rating is from the range."""
    return max(low - rating, rating - high, 0)


@jit
def _begin(state: rng.State, low: int, high: int, stack_DG: Words, puzzle_81: Board, solution_81: Board) -> int:
    """A random starting point in a random disguise, the nearest to the range of several; its rating."""
    trial_81 = np.empty(81, np.uint8)
    rating = -1
    for _ in range(DISGUISES):
        disguise(state, _START_P81[rng.below(state, len(_START_P81))], trial_81)
        trial = rate(trial_81)
        if rating < 0 or _gap(trial, low, high) < _gap(rating, low, high):
            puzzle_81[:] = trial_81
            rating = trial
        if _gap(rating, low, high) == 0:
            break
    open_grid(puzzle_81, stack_DG[0])
    search(stack_DG, 1, solution_81)
    return rating


@jit
def walk(
    state: rng.State, low: int, high: int, tries: int, stack_DG: Words, puzzle_81: Board, solution_81: Board
) -> int:
    """Walk into the range and on inside it; the rating where the walk ends."""
    trial_81 = np.empty(81, np.uint8)
    rating, moves, idle = -1, 0, PATIENCE
    for _ in range(tries):
        if idle == PATIENCE:
            rating = _begin(state, low, high, stack_DG, puzzle_81, solution_81)
            moves, idle = 0, 0
        trial_81[:] = puzzle_81
        _step(state, stack_DG, trial_81, solution_81)
        idle += 1
        if np.all(trial_81 == puzzle_81):  # the clues that were taken came back
            continue
        trial = rate(trial_81)
        gap, trial_gap = _gap(rating, low, high), _gap(trial, low, high)
        if trial_gap <= gap:
            puzzle_81[:] = trial_81
            rating = trial
            if trial_gap < gap or gap == 0:
                idle = 0
            if gap == 0:
                moves += 1
                if moves == MOVES:
                    break
    return rating
