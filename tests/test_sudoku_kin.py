"""Sudokus that are relatives are all trained or all measured on."""

from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from hardtail.core.seeds import Streams
from hardtail.tasks.base import Part
from hardtail.tasks.datasets import draw, measured_on
from hardtail.tasks.sudoku.solver.generate import START_P81, disguise, rated_many, state_of
from hardtail.tasks.sudoku.solver.kin import shapes_many
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.tasks.sudoku.task import Sudoku

TASK = Sudoku()
Boards = NDArray[np.uint8]


@pytest.fixture(scope="module")
def solutions() -> Boards:
    return rated_many(Streams(4).named("kin").keys(60), 0, 100_000)[1]


def cycle_lengths(one: list[int], other: list[int]) -> tuple[int, ...]:
    over, lengths = dict(zip(one, other, strict=True)), []
    while over:
        first, length = next(iter(over)), 0
        digit = first
        while digit in over:
            digit = over.pop(digit)
            length += 1
        lengths.append(length)
    return tuple(sorted(lengths))


def slow_shape(grid_81: Boards) -> object:
    """Sorted cycle lengths of the pairs of lines of every band, in both directions, sorted at every level."""
    grid_99 = grid_81.reshape(9, 9)

    def direction(lines: list[list[int]]) -> tuple[object, ...]:
        bands = [lines[start : start + 3] for start in (0, 3, 6)]
        return tuple(sorted(tuple(sorted(cycle_lengths(*pair) for pair in combinations(band, 2))) for band in bands))

    return tuple(sorted([direction(grid_99.tolist()), direction(grid_99.T.tolist())]))


def test_shapes_are_those_of_a_slow_reference(solutions: Boards) -> None:
    """Two grids have the same numbers exactly where their cycle lengths are the same."""
    disguised = np.empty_like(solutions)
    for i, grid in enumerate(solutions):
        disguise(state_of(np.uint64(i)), grid, disguised[i])
    grids = np.concatenate([solutions, disguised])
    fast = [shape.tobytes() for shape in shapes_many(grids)]
    slow = [slow_shape(grid) for grid in grids]
    for i, j in combinations(range(len(grids)), 2):
        assert (fast[i] == fast[j]) == (slow[i] == slow[j])


def test_a_disguise_changes_the_grid_and_not_its_kin(solutions: Boards) -> None:
    disguised = np.empty_like(solutions)
    for i, grid in enumerate(solutions):
        disguise(state_of(np.uint64(i)), grid, disguised[i])
    assert (disguised != solutions).any(axis=1).all()
    assert (shapes_many(disguised) == shapes_many(solutions)).all()
    assert len(np.unique(shapes_many(solutions), axis=0)) > 55


@pytest.mark.parametrize("tier", ["medium", "hard"])
def test_no_solution_is_trained_and_measured_on(tier: str) -> None:
    """Walks begin at the same library on both sides, and never at the same puzzle."""
    stratum = f"tier={tier},tl4>=0.95"
    drawn = TASK.sample(150, stratum, seed=1)
    kin = TASK.kin(drawn)
    assert {measured_on(value) for value in kin} == {True, False}
    by_solution = {grid.tobytes(): value for grid, value in zip(drawn.answer_NA, kin, strict=True)}
    assert len(set(by_solution.values())) < len(by_solution)  # disguises of one solution are relatives
    train, test = (draw(TASK, split, Part(stratum, 20), seed=0) for split in ("train", "test"))
    assert not any(measured_on(value) for value in TASK.kin(train))
    assert all(measured_on(value) for value in TASK.kin(test))


def test_the_two_sides_of_the_library_are_not_related() -> None:
    """Relatives differ by swaps of clues, so they share most of them; unrelated puzzles share a few by chance."""
    measured_P = np.array([measured_on(shape.tobytes()) for shape in shapes_many(solve_many(START_P81)[1])])
    assert measured_P.sum() >= 15
    assert (~measured_P).sum() >= 20
    for puzzle_81 in START_P81[measured_P]:
        shared_P = ((START_P81[~measured_P] == puzzle_81) & (puzzle_81 > 0)).sum(axis=1)
        assert shared_P.max() < 6
