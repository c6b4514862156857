"""Puzzles with exactly one solution, over the whole range of difficulty; each one is a function of its key.

Shapes: N puzzles, D search depth, G words of a grid (see `search`).
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks import rng
from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.beyond import thicken, walk
from hardtail.tasks.sudoku.solver.board import Board
from hardtail.tasks.sudoku.solver.minimal import give_back, minimal_puzzle
from hardtail.tasks.sudoku.solver.rating import rate
from hardtail.tasks.sudoku.solver.search import DEPTH, GRID, Words

Keys = NDArray[np.uint64]

COMMON = 8
"""Ranges that begin up to this rating are drawn from minimal puzzles, 3 in 1,000 of which reach it; higher ones need
walks among puzzles beyond technique."""
MOST = 100_000
"""The upper end of a range without a highest rating."""


@jit
def state_of(key: np.uint64) -> rng.State:
    state = np.empty(1, np.uint64)
    state[0] = key
    return state


@jit
def _draw(
    state: rng.State, low: int, high: int, tries: int, extra: int, stack_DG: Words, puzzle_81: Board, solution_81: Board
) -> int:
    """Draw minimal puzzles with `extra` clues put back until one lies in the range; returns the last one's rating."""
    rating = -1
    for _ in range(tries):
        minimal_puzzle(state, stack_DG, puzzle_81, solution_81)
        give_back(state, extra, puzzle_81, solution_81)
        rating = rate(puzzle_81)
        if low <= rating <= high:
            break
    return rating


@jit
def rated_many(
    key_N: Keys, low: int, high: int, max_tries: int = 20_000, walked: float = 0.0, extra: int = 0
) -> tuple[Board, Board, NDArray[np.int32]]:
    """For each key a puzzle rated `low` to `high`, its solution and its rating.

    The share `walked` of the keys, or all if minimal puzzles hardly reach the range, give puzzles beyond technique.
    The puzzles are minimal except for `extra` clues put back. After `max_tries` (at least 1) draws or disguises the
    last puzzle is returned although its rating misses the range.
    """
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    puzzle_N81 = np.zeros((len(key_N), 81), np.uint8)
    solution_N81 = np.zeros((len(key_N), 81), np.uint8)
    rating_N = np.zeros(len(key_N), np.int32)
    for i in range(len(key_N)):
        state, puzzle_81, solution_81 = state_of(key_N[i]), puzzle_N81[i], solution_N81[i]
        if low <= COMMON and rng.unit(state_of(~key_N[i])) >= walked:
            rating_N[i] = _draw(state, low, high, max_tries, extra, stack_DG, puzzle_81, solution_81)
        elif extra == 0:
            rating_N[i] = walk(state, low, high, max_tries, stack_DG, puzzle_81, solution_81)
        else:  # clues nearly always lower the rating, so start without an upper bound
            walk(state, low, MOST, max_tries, stack_DG, puzzle_81, solution_81)
            rating_N[i] = thicken(state, low, extra, puzzle_81, solution_81)
    return puzzle_N81, solution_N81, rating_N
