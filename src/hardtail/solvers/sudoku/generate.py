"""Puzzles with exactly one solution, over the whole range of difficulty; each one is a function of its key.

Shapes: N puzzles, D search depth, G words of a grid (see `search`).
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.solvers import rng
from hardtail.solvers.jit import jit
from hardtail.solvers.sudoku.beyond import walk
from hardtail.solvers.sudoku.minimal import Cells, give_back, minimal_puzzle
from hardtail.solvers.sudoku.rating import rate
from hardtail.solvers.sudoku.search import DEPTH, GRID, Board, Words

Keys = NDArray[np.uint64]

COMMON = 8
"""Ranges that begin up to this rating are met by drawing minimal puzzles, 3 in 1,000 of which reach it; the others by
walks among puzzles beyond technique."""


@jit
def state_of(key: np.uint64) -> rng.State:
    """The random state that begins at a key."""
    state = np.empty(1, np.uint64)
    state[0] = key
    return state


@jit
def minimal_many(key_N: Keys) -> tuple[Board, Board]:
    """For each key a minimal puzzle and its solution."""
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    puzzle_N81 = np.zeros((len(key_N), 81), np.uint8)
    solution_N81 = np.zeros((len(key_N), 81), np.uint8)
    for i in range(len(key_N)):
        minimal_puzzle(state_of(key_N[i]), stack_DG, puzzle_N81[i], solution_N81[i])
    return puzzle_N81, solution_N81


@jit
def with_clues_many(key_N: Keys, extra_N: Cells) -> tuple[Board, Board]:
    """For each key the puzzle of `minimal_many` with `extra` clues of its solution put back."""
    puzzle_N81, solution_N81 = minimal_many(key_N)
    for i in range(len(key_N)):
        give_back(state_of(~key_N[i]), extra_N[i], puzzle_N81[i], solution_N81[i])
    return puzzle_N81, solution_N81


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
def rated_many(
    key_N: Keys, low: int, high: int, max_tries: int = 20_000, beyond: bool = False
) -> tuple[Board, Board, NDArray[np.int32]]:
    """For each key a minimal puzzle rated `low` to `high`, its solution and its rating.

    With `beyond`, none that technique could solve. After `max_tries` (at least 1) draws or disguises the last puzzle is
    given as it is: its rating tells that it missed.
    """
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    puzzle_N81 = np.zeros((len(key_N), 81), np.uint8)
    solution_N81 = np.zeros((len(key_N), 81), np.uint8)
    rating_N = np.zeros(len(key_N), np.int32)
    for i in range(len(key_N)):
        state = state_of(key_N[i])
        if low <= COMMON and not beyond:
            rating_N[i] = _draw(state, low, high, max_tries, stack_DG, puzzle_N81[i], solution_N81[i])
        else:
            rating_N[i] = walk(state, low, high, max_tries, stack_DG, puzzle_N81[i], solution_N81[i])
    return puzzle_N81, solution_N81, rating_N
