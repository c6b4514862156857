"""Random minimal puzzles.

In a *minimal* puzzle every clue is needed. It is what remains of a random full grid after visiting the clues in a
random order and removing each one that is not needed. Such puzzles are seldom hard (3 in 1,000 are rated 8 or more),
so `generate` finds hard ones by walks.

Shapes: D search depth, G words of a grid (see `search`).
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks import rng
from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import Board
from hardtail.tasks.sudoku.solver.search import Words, fewest, open_grid, place, propagate, read_grid, search

Cells = NDArray[np.int64]


@jit
def random_grid(state: rng.State, stack_DG: Words, solution_81: Board) -> None:
    """A random full grid: the most constrained cell gets a random candidate; a dead end starts over."""
    grid = stack_DG[0]
    solution_81[:] = 0
    open_grid(solution_81, grid)
    while True:
        if not propagate(grid):
            open_grid(solution_81, grid)
            continue
        band, cell = fewest(grid)
        if band < 0:
            read_grid(grid, solution_81)
            return
        digits = [digit for digit in range(9) if grid[3 * digit + band] >> cell & 1]
        place(grid, digits[rng.below(state, len(digits))], band, cell)


@jit
def _unique_without(solution_81: Board, order_81: Cells, removed: int, stack_DG: Words, puzzle_81: Board) -> bool:
    """Whether the solution stays the only one without the first `removed` cells of the order."""
    puzzle_81[:] = solution_81
    for i in range(removed):
        puzzle_81[order_81[i]] = 0
    open_grid(puzzle_81, stack_DG[0])
    return search(stack_DG, 2, np.empty(81, np.uint8)) == 1


@jit
def other_solution(puzzle_81: Board, cell: int, digit: int, stack_DG: Words, other_81: Board) -> bool:
    """Write a solution in which a blank cell is not `digit` into `other_81`; False if there is none."""
    open_grid(puzzle_81, stack_DG[0])
    stack_DG[0, 3 * (digit - 1) + cell // 27] &= ~(1 << cell % 27)
    return search(stack_DG, 1, other_81) == 1


@jit
def drop_needless(puzzle_81: Board, order_M: Cells, stack_DG: Words, other_81: Board) -> None:
    """Visit the clues in order and remove each one without which the solution is still unique.

    The puzzle is unique with the clue, so a second solution without it differs in that cell.
    """
    for cell in order_M:
        digit = puzzle_81[cell]
        if digit != 0:
            puzzle_81[cell] = 0
            if other_solution(puzzle_81, cell, int(digit), stack_DG, other_81):
                puzzle_81[cell] = digit


@jit
def minimal_puzzle(state: rng.State, stack_DG: Words, puzzle_81: Board, solution_81: Board) -> None:
    """A random minimal puzzle and its solution.

    When cells are removed one by one, the solution is unique up to some point and never after it. Bisection finds that
    point; the rest of the order is visited clue by clue. The result has the same distribution as if every
    clue were visited.
    """
    random_grid(state, stack_DG, solution_81)
    order_81 = np.arange(81)
    rng.shuffle(state, order_81)
    unique, ambiguous = 0, 65  # no puzzle with 16 clues is unique (McGuire, Tugemann & Civario 2012)
    while ambiguous - unique > 1:
        middle = (unique + ambiguous) // 2
        if _unique_without(solution_81, order_81, middle, stack_DG, puzzle_81):
            unique = middle
        else:
            ambiguous = middle
    puzzle_81[:] = solution_81
    puzzle_81[order_81[:unique]] = 0
    drop_needless(puzzle_81, order_81[ambiguous:], stack_DG, np.empty(81, np.uint8))


@jit
def give_back(state: rng.State, extra: int, puzzle_81: Board, solution_81: Board) -> None:
    """Fill `extra` random blanks from the solution; at least one stays blank."""
    blank_B = np.flatnonzero(puzzle_81 == 0)
    rng.shuffle(state, blank_B)
    for cell in blank_B[: min(extra, blank_B.size - 1)]:
        puzzle_81[cell] = solution_81[cell]
