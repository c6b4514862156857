"""Propagation, technique levels and orders against slow references, and what must hold of them on any board."""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hardtail.core.seeds import Streams
from hardtail.tasks.sudoku.solver import board as boards
from hardtail.tasks.sudoku.solver import patterns
from hardtail.tasks.sudoku.solver.generate import BEYOND, MOST, START_P81, rated_many
from hardtail.tasks.sudoku.solver.rating import rate_many
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.tasks.sudoku.solver.techniques import (
    Reading,
    _refute_small,
    _released_pass,
    levels_many,
    technique_order,
)
from tests import sudoku_reference as slow

# From Norvig's essay, and Arto Inkala's puzzle of 2012, on which techniques short of search achieve nothing.
EASY = "003020600900305001001806400008102900700000008006708200002609500800203009005010300"
SPARSE = "4.....8.5.3..........7......2.....6.....8.4......1.......6.3.7.5..2.....1.4......"
INKALA = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
# Drawn here: were refutation to try cells with 4 candidates too, 35 of its cells would be determined in other passes.
FOURS = "....8.5.97.8..5..3.9....1......13..6..7..6.....152.7.8..4.....1536............4.."
READINGS: list[Reading] = ["released", "closure"]

Boards = NDArray[np.uint8]


def read(*texts: str) -> Boards:
    return np.array([[int(sign) for sign in text.replace(".", "0")] for text in texts], dtype=np.uint8)


@pytest.fixture(scope="module")
def drawn() -> tuple[Boards, Boards]:
    return rated_many(Streams(5).named("techniques").keys(400), 0, MOST)[:2]


@pytest.fixture(scope="module")
def varied(drawn: tuple[Boards, Boards]) -> Boards:
    """Some puzzles of every kind: the named ones, and drawn ones that need each of the levels."""
    puzzle_NC = drawn[0]
    level_NC = levels_many(puzzle_NC, "closure")[0]
    rows = [np.flatnonzero((level_NC == level).any(axis=1))[:3] for level in (1, 2, 3)]
    return np.concatenate([read(EASY, SPARSE, INKALA, FOURS), puzzle_NC[np.concatenate(rows)]])


def test_propagation_is_norvigs(varied: Boards) -> None:
    cand_NC = boards.candidates_many(varied)
    for board_C, cand_C in zip(varied, cand_NC, strict=True):
        expected = [sum(1 << (digit - 1) for digit in digits) for digits in slow.propagated(board_C.tolist())]
        assert cand_C.tolist() == expected


@pytest.mark.parametrize("level", [1, 2, 3])
def test_a_pass_says_whether_it_deleted_a_candidate(level: int, varied: Boards) -> None:
    """The next pass is tried only if it did."""
    trial_C, work = np.empty(81, dtype=np.int16), np.zeros(boards.WORK, dtype=np.int16)
    useful = 0
    for cand_C in boards.candidates_many(varied):
        said = True
        while said:
            before_C = cand_C.copy()
            said = bool(_released_pass(cand_C, level, trial_C, work))
            assert said == bool((cand_C != before_C).any())
            useful += said
    assert useful


def test_a_refuted_candidate_is_reported(varied: Boards) -> None:
    trial_C, work = np.empty(81, dtype=np.int16), np.zeros(boards.WORK, dtype=np.int16)
    found = set()
    for cand_C in boards.candidates_many(varied):
        before_C = cand_C.copy()
        said = bool(_refute_small(cand_C, trial_C, work))
        assert said == bool((cand_C != before_C).any())
        found.add(said)
    assert True in found


@pytest.mark.parametrize(
    "clash", ["11" + "." * 79, "1" + "." * 8 + "1" + "." * 71, "12345678" + "." * 9 + "9" + "." * 63]
)
def test_propagation_sees_contradictions(clash: str) -> None:
    assert not boards.read(read(clash)[0], np.empty(81, np.int16), np.empty(boards.WORK, np.int16))


def test_solver_order_is_that_of_the_recursive_search(varied: Boards) -> None:
    for board_C, rank_C in zip(varied, boards.solver_order_many(varied), strict=True):
        order = slow.solver_order(board_C.tolist())
        assert np.argsort(np.where(rank_C < 0, 99, rank_C), kind="stable")[: len(order)].tolist() == order


def test_candidate_count_order(varied: Boards) -> None:
    for board_C, rank_C in zip(varied, boards.candidate_count_many(varied), strict=True):
        board = board_C.tolist()
        grid = slow.propagated(board)

        def count(cell: int, board: list[int] = board, grid: slow.Grid = grid) -> int:
            raw = set(range(1, 10)) - {board[peer] for peer in slow.PEERS[cell]}
            return len(grid[cell]) if len(grid[cell]) > 1 else len(raw)

        blanks = [cell for cell in range(81) if not board[cell]]
        assert [int(rank_C[cell]) for cell in sorted(blanks, key=count)] == list(range(len(blanks)))


def test_closure_is_the_same_in_another_order(varied: Boards) -> None:
    level_NC, _ = levels_many(varied, "closure")
    assert [slow.closure_levels(board_C.tolist()) for board_C in varied] == level_NC.tolist()
    assert {0, 1, 2, 3, 4} <= set(level_NC.ravel().tolist())


def test_released_levels_and_passes(varied: Boards) -> None:
    level_NC, pass_NC = levels_many(varied, "released")
    expected = [slow.released_levels(board_C.tolist()) for board_C in varied]
    assert [level for level, _ in expected] == level_NC.tolist()
    assert [turns for _, turns in expected] == pass_NC.tolist()


def test_level_0_is_what_propagation_fixes(drawn: tuple[Boards, Boards]) -> None:
    fixed_NC = (boards.COUNT[boards.candidates_many(drawn[0])] == 1) & (drawn[0] == 0)
    for reading in READINGS:
        assert ((levels_many(drawn[0], reading)[0] == 0) == fixed_NC).all()


def test_released_levels_are_never_below_the_closure(drawn: tuple[Boards, Boards]) -> None:
    """The closure has every technique of the released hierarchy and follows up on more."""
    released_NC, closure_NC = (levels_many(drawn[0], reading)[0] for reading in READINGS)
    assert (released_NC >= closure_NC).all()
    assert (released_NC > closure_NC).any()


@settings(deadline=None, max_examples=40)
@given(
    index=st.integers(0, 399),
    digits=st.permutations(range(1, 10)),
    transposed=st.booleans(),
    bands=st.permutations(range(3)),
    rows=st.lists(st.permutations(range(3)), min_size=3, max_size=3),
)
def test_closure_does_not_depend_on_how_the_board_is_drawn(
    index: int, digits: list[int], transposed: bool, bands: list[int], rows: list[list[int]]
) -> None:
    puzzle_C = rated_many(Streams(5).named("techniques").keys(400)[index : index + 1], 0, MOST)[0][0]
    cell_RC = np.arange(81).reshape(9, 9)[
        [3 * band + row for band, inner in zip(bands, rows, strict=True) for row in inner]
    ]
    moved_C = (cell_RC.T if transposed else cell_RC).ravel()
    other_C = np.array([0, *digits], dtype=np.uint8)[puzzle_C][moved_C]
    level_2C, _ = levels_many(np.stack([puzzle_C, other_C]), "closure")
    assert (level_2C[0][moved_C] == level_2C[1]).all()


def test_orders_rank_the_blanks(drawn: tuple[Boards, Boards]) -> None:
    blank_NC = drawn[0] == 0
    orders = [boards.solver_order_many(drawn[0]), boards.candidate_count_many(drawn[0])]
    orders += [technique_order(*levels_many(drawn[0], reading)) for reading in READINGS]
    for rank_NC in orders:
        assert ((rank_NC >= 0) == blank_NC).all()
        for rank_C, blank_C in zip(rank_NC, blank_NC, strict=True):
            assert sorted(rank_C[blank_C]) == list(range(blank_C.sum()))


def test_technique_order_is_by_level_then_pass_then_place(varied: Boards) -> None:
    for reading in READINGS:
        level_NC, pass_NC = levels_many(varied, reading)
        for level_C, pass_C, rank_C in zip(level_NC, pass_NC, technique_order(level_NC, pass_NC), strict=True):
            blanks = np.flatnonzero(level_C >= 0)
            expected = sorted(blanks, key=lambda cell: (level_C[cell], pass_C[cell], cell))
            assert blanks[np.argsort(rank_C[blanks])].tolist() == expected


def subsets(cand_C: boards.Masks, size: int, hidden: bool) -> bool:
    return sum(patterns.subset(cand_C, unit, size, hidden) for unit in range(27)) > 0


PATTERNS: dict[str, Callable[[boards.Masks], bool]] = {
    "naked pairs": partial(subsets, size=2, hidden=False),
    "naked triples": partial(subsets, size=3, hidden=False),
    "hidden pairs": partial(subsets, size=2, hidden=True),
    "hidden triples": partial(subsets, size=3, hidden=True),
    "x-wing": lambda cand_C: patterns.fish(cand_C, 2),
    "swordfish": lambda cand_C: patterns.fish(cand_C, 3),
    "pointing": lambda cand_C: patterns.intersections(cand_C, patterns.POINTING),
    "box line": lambda cand_C: patterns.intersections(cand_C, patterns.BOX_LINE),
    "xy-wing": patterns.xy_wing,
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_never_deletes_the_solution_and_says_whether_it_deleted(
    name: str, drawn: tuple[Boards, Boards]
) -> None:
    """Asked again and again, it ends: one that claims a deletion without any would be asked for ever."""
    said = []
    for cand_C, solution_C in zip(boards.candidates_many(drawn[0]), drawn[1], strict=True):
        for _ in range(3):
            before_C = cand_C.copy()
            said.append(PATTERNS[name](cand_C))
            assert said[-1] == (cand_C != before_C).any()
        assert (cand_C >> (solution_C.astype(np.int16) - 1) & 1).all()
    assert any(said)


def test_known_puzzles_are_beyond_technique_and_minimal() -> None:
    for reading in READINGS:
        level_PC, _ = levels_many(START_P81, reading)
        assert ((level_PC == 4).sum(axis=1) >= BEYOND * (START_P81 == 0).sum(axis=1)).all()
    count_P, solution_PC = solve_many(START_P81)
    assert (count_P == 1).all()
    assert len(np.unique(solution_PC, axis=0)) == len(START_P81)
    for puzzle_C in START_P81:
        clues = np.flatnonzero(puzzle_C)
        without_MC = np.tile(puzzle_C, (len(clues), 1))
        without_MC[np.arange(len(clues)), clues] = 0
        assert (solve_many(without_MC)[0] == 2).all()


@pytest.mark.parametrize(("low", "high"), [(0, 5), (42, 68), (106, 1000)])
def test_walks_stay_beyond_technique_and_reach_a_rating(low: int, high: int) -> None:
    puzzle_NC, solution_NC, rating_N = rated_many(Streams(5).named("beyond").keys(20), low, high, 1000, 1.0, 0)
    assert (rating_N == rate_many(puzzle_NC)).all()
    assert ((rating_N >= low) & (rating_N <= high)).all()
    assert (solve_many(puzzle_NC)[1] == solution_NC).all()
    assert ((levels_many(puzzle_NC, "closure")[0] == 4).sum(axis=1) >= BEYOND * (puzzle_NC == 0).sum(axis=1)).all()
    assert len(np.unique(puzzle_NC, axis=0)) == 20
