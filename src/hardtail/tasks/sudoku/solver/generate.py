"""Puzzles with exactly one solution, over the whole range of difficulty; each one is a function of its key.

Easy ones are random minimal puzzles. Hard ones are *beyond technique*: at least 95 % of their blanks need search (TL4).
Random puzzles are almost never like that, published hard puzzles nearly always. So a walk begins at a puzzle of
`hard_puzzles.txt` in a random disguise. A disguise does not change the logic, but it changes the rating (the solver's
choices depend on the order of digits and lines), so disguises are tried until one is in the wanted range. Then a step
removes one or two clues, puts others back until the solution is unique again, and drops clues that are not needed; it
is kept if the puzzle is still in the range and beyond technique.

A model can learn what the disguises and neighbours of one puzzle have in common. So the library has two sides that are
not related: the puzzles whose solutions are for measuring (`Task.kin`) come first and are of two families, those for
training are of ten. A puzzle that is added must keep them apart. Five families began with published puzzles (Inkala's
of 2012, AI Escargot, Golden Nugget, Easter Monster, Inkala's of 2010) and grew by swaps of clues, chosen for high
ratings; the others are single puzzles that annealing found from random minimal ones.

Shapes: N puzzles, P starting points, D search depth, G words of a grid (see `search`).
"""

from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks import rng
from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import Board
from hardtail.tasks.sudoku.solver.minimal import Cells, drop_needless, give_back, minimal_puzzle, other_solution
from hardtail.tasks.sudoku.solver.rating import rate
from hardtail.tasks.sudoku.solver.search import DEPTH, GRID, Words, open_grid, search
from hardtail.tasks.sudoku.solver.techniques import SEARCH, level_boards

Keys = NDArray[np.uint64]

COMMON = 8
"""Ranges that begin up to this rating are drawn from minimal puzzles, 3 in 1,000 of which reach it; higher ones need
walks among puzzles beyond technique."""
MOST = 100_000
"""The upper end of a range without a highest rating."""
BEYOND = 0.95
"""The share of blanks at TL4 from which a puzzle counts as beyond technique."""
MOVES = 3
"""Steps that a walk keeps before it ends."""
PATIENCE = 40
"""Steps that a walk tries before it ends, however many it has kept."""


def _read_starts() -> Board:
    lines = (files(__package__) / "hard_puzzles.txt").read_text().split()
    return np.array([[int(sign) for sign in line.replace(".", "0")] for line in lines], dtype=np.uint8)


START_P81 = _read_starts()


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
    """An equivalent puzzle: digits renamed, rows and columns moved, perhaps transposed."""
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
    """Change to another minimal puzzle with the same solution, without one or two of the clues."""
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
def _is_beyond(puzzle_81: Board) -> bool:
    level_1C, _ = level_boards(puzzle_81.reshape(1, 81), True)
    return (level_1C == SEARCH).sum() >= BEYOND * (puzzle_81 == 0).sum()


@jit
def _walk(
    state: rng.State, low: int, high: int, rating: int, stack_DG: Words, puzzle_81: Board, solution_81: Board
) -> int:
    """Move a puzzle to another one beyond technique rated `low` to `high`; returns its rating."""
    trial_81 = np.empty(81, np.uint8)
    moves = 0
    for _ in range(PATIENCE):
        if moves == MOVES or not low <= rating <= high:
            break
        trial_81[:] = puzzle_81
        _step(state, stack_DG, trial_81, solution_81)
        if np.all(trial_81 == puzzle_81) or not _is_beyond(trial_81):
            continue
        trial = rate(trial_81)
        if low <= trial <= high:
            puzzle_81[:] = trial_81
            rating = trial
            moves += 1
    return rating


@jit
def _thicken(state: rng.State, low: int, extra: int, puzzle_81: Board, solution_81: Board) -> int:
    """Put `extra` clues back into a puzzle so that it stays beyond technique and rated `low` or more if possible;
    returns its rating.

    Most clues would make such a puzzle easy, so the blanks are tried in a random order. If too few are suitable, others
    are put back, and the rating may be below `low`.
    """
    blank_B = np.flatnonzero(puzzle_81 == 0)
    rng.shuffle(state, blank_B)
    given = 0
    for cell in blank_B:
        if given == extra:
            break
        puzzle_81[cell] = solution_81[cell]
        if rate(puzzle_81) >= low and _is_beyond(puzzle_81):
            given += 1
        else:
            puzzle_81[cell] = 0
    give_back(state, extra - given, puzzle_81, solution_81)
    return rate(puzzle_81)


@jit
def state_of(key: np.uint64) -> rng.State:
    state = np.empty(1, np.uint64)
    state[0] = key
    return state


@jit
def rated_many(
    key_N: Keys, low: int, high: int, max_tries: int = 20_000, walked: float = 0.0, extra: int = 0
) -> tuple[Board, Board, NDArray[np.int32]]:
    """For each key a puzzle rated `low` to `high`, its solution and its rating.

    The share `walked` of the keys, or all if minimal puzzles hardly reach the range, give puzzles beyond technique.
    The puzzles are minimal except for `extra` clues put back. After `max_tries` (at least 1) draws or disguises the
    last puzzle is returned even if its rating is outside the range.
    """
    stack_DG = np.empty((DEPTH, GRID), np.int32)
    puzzle_N81 = np.zeros((len(key_N), 81), np.uint8)
    solution_N81 = np.zeros((len(key_N), 81), np.uint8)
    rating_N = np.zeros(len(key_N), np.int32)
    for i in range(len(key_N)):
        state, puzzle_81, solution_81 = state_of(key_N[i]), puzzle_N81[i], solution_N81[i]
        drawn = low <= COMMON and rng.unit(state_of(~key_N[i])) >= walked
        top = high if drawn or extra == 0 else MOST  # clues put back later nearly always lower the rating
        rating = -1
        for _ in range(max_tries):
            if drawn:
                minimal_puzzle(state, stack_DG, puzzle_81, solution_81)
                give_back(state, extra, puzzle_81, solution_81)
            else:
                disguise(state, START_P81[rng.below(state, len(START_P81))], puzzle_81)
            rating = rate(puzzle_81)
            if low <= rating <= top:
                break
        if not drawn:
            open_grid(puzzle_81, stack_DG[0])
            search(stack_DG, 1, solution_81)
            rating = _walk(state, low, top, rating, stack_DG, puzzle_81, solution_81)
            if extra > 0:
                rating = _thicken(state, low, extra, puzzle_81, solution_81)
        rating_N[i] = rating
    return puzzle_N81, solution_N81, rating_N
