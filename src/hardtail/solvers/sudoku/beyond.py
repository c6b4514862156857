"""Puzzles beyond technique: at least 95 % of their blanks are TL4, which random puzzles practically never are.

A puzzle begins at one of the puzzles below in a random disguise and walks away from it: a step swaps one or two clues,
perhaps for those of another solution, and is kept if the puzzle is still beyond technique. Logic does not see a
disguise but the rating does (the solver's choices hang on the order of digits and lines), so a wanted rating is reached
by changing the disguise.

Shapes: N puzzles, P starting points, D search depth, G words of a grid (see `search`).
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.solvers import rng
from hardtail.solvers.jit import jit
from hardtail.solvers.sudoku.generate import Keys, drop_needless, other_solution, state_of
from hardtail.solvers.sudoku.hard import disguise
from hardtail.solvers.sudoku.rating import rate
from hardtail.solvers.sudoku.search import DEPTH, GRID, Board, Words, open_grid, search
from hardtail.solvers.sudoku.techniques import SEARCH, level_boards

STEPS = 4
"""Steps that a walk tries between two sets of disguises."""
DISGUISES = 12

# Published hard puzzles, and puzzles that long walks from them reached.
_STARTS = """
800000000003600000070090200050007000000045700000100030001000068008500010090000400
100007090030020008009600500005300900010080002600004000300000010040000007007000300
000000039000001005003050800008090006070002000100400000009080050020000600400700000
100000002090400050006000700050903000000070000000850040700000600030009080002000001
"""
_START_P81 = np.array([[int(digit) for digit in line] for line in _STARTS.split()], dtype=np.uint8)


@jit
def is_beyond(board_81: Board) -> bool:
    """Whether techniques short of search determine at most 5 % of the blanks (by the closure, hence in any reading)."""
    level_81 = level_boards(board_81.reshape((1, 81)), True)[0][0]
    return np.sum(level_81 == SEARCH) >= 0.95 * np.sum(board_81 == 0)


@jit
def _swap(state: rng.State, stack_DG: Words, puzzle_81: Board, solution_81: Board) -> None:
    """Another minimal puzzle, one or two clues away, with the same solution or another one."""
    other_81 = np.empty(81, np.uint8)
    clue_M = np.flatnonzero(puzzle_81)
    rng.shuffle(state, clue_M)
    for cell in clue_M[: 1 + rng.below(state, 2)]:
        puzzle_81[cell] = 0
        differs = other_solution(puzzle_81, cell, int(solution_81[cell]), stack_DG, other_81)
        if differs and rng.below(state, 2) == 0:
            solution_81[:] = other_81
    for cell in np.flatnonzero(puzzle_81 == 0):
        while puzzle_81[cell] == 0 and other_solution(puzzle_81, cell, int(solution_81[cell]), stack_DG, other_81):
            differing = np.flatnonzero(other_81 != solution_81)
            at = differing[rng.below(state, differing.size)]
            puzzle_81[at] = solution_81[at]
    clue_M = np.flatnonzero(puzzle_81)
    rng.shuffle(state, clue_M)
    drop_needless(puzzle_81, clue_M, stack_DG, other_81)


@jit
def _walk(state: rng.State, stack_DG: Words, puzzle_81: Board, solution_81: Board) -> None:
    """Swap clues while the puzzle stays beyond technique."""
    puzzle, solution = puzzle_81.copy(), solution_81.copy()
    for _ in range(STEPS):
        _swap(state, stack_DG, puzzle, solution)
        if is_beyond(puzzle):
            puzzle_81[:], solution_81[:] = puzzle, solution
        else:
            puzzle[:], solution[:] = puzzle_81, solution_81


@jit
def _reach(state: rng.State, low: int, high: int, tries: int, stack_DG: Words, puzzle_81: Board) -> int:
    """Walk and disguise until the rating lies in the range; the rating in the end."""
    bare_81 = _START_P81[rng.below(state, len(_START_P81))].copy()
    solution_81 = np.empty(81, np.uint8)
    open_grid(bare_81, stack_DG[0])
    search(stack_DG, 1, solution_81)
    rating = -1
    for _ in range(tries):
        _walk(state, stack_DG, bare_81, solution_81)
        for _ in range(DISGUISES):
            disguise(state, bare_81, puzzle_81)
            rating = rate(puzzle_81)
            if low <= rating <= high:
                return rating
    return rating


@jit
def beyond_many(key_N: Keys, low: int, high: int, tries: int) -> tuple[Board, Board, NDArray[np.int32]]:
    """For each key a minimal puzzle beyond technique, its solution and its rating.

    After `tries` walks without a rating from `low` to `high` the last puzzle is given: its rating tells that it missed.
    """
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    puzzle_N81 = np.zeros((len(key_N), 81), np.uint8)
    solution_N81 = np.zeros((len(key_N), 81), np.uint8)
    rating_N = np.zeros(len(key_N), np.int32)
    for i in range(len(key_N)):
        rating_N[i] = _reach(state_of(key_N[i]), low, high, tries, stack_DG, puzzle_N81[i])
        open_grid(puzzle_N81[i], stack_DG[0])
        search(stack_DG, 1, solution_N81[i])
    return puzzle_N81, solution_N81, rating_N
