"""Sudoku search, rating and generators, against an exact cover in plain Python and frozen ratings."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from hardtail.core.seeds import Streams
from hardtail.tasks.sudoku.solver.generate import BEYOND, MOST, START_P81, Keys, _thicken, rated_many, state_of
from hardtail.tasks.sudoku.solver.rating import rate, rate_many
from hardtail.tasks.sudoku.solver.search import solve_many
from hardtail.tasks.sudoku.solver.techniques import SEARCH, levels_many
from tests.sudoku_reference import propagated

PAPER = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
GOLDEN_NUGGET = "000000039000001005003050800008090006070002000100400000009080050020000600400700000"
Board = NDArray[np.uint8]
Cover = dict[str, set[int]]

# Row 9 * cell + digit - 1 of the exact cover fills a cell, and a digit's place in a row, a column and a box.
DEMANDS = [
    (f"cell{cell}", f"row{cell // 9}={digit}", f"column{cell % 9}={digit}", f"box{cell // 27}{cell % 9 // 3}={digit}")
    for cell in range(81)
    for digit in range(1, 10)
]
EASY_KEYS = Streams(0).named("test_sudoku_search").keys(40)


def board(text: str) -> Board:
    return np.array([int(digit) for digit in text], dtype=np.uint8)


def with_clues(keys: Keys, extra: int = 0) -> tuple[Board, Board]:
    """Minimal puzzles with `extra` clues put back, and their solutions."""
    return rated_many(keys, 0, MOST, 1, 0.0, extra)[:2]


def count_solutions(puzzle: Board, limit: int) -> int:
    return int(solve_many(puzzle[None], limit)[0][0])


def beyond_technique(puzzles: Board) -> NDArray[np.bool_]:
    searched = (levels_many(puzzles, "closure")[0] == SEARCH).sum(axis=1)
    return np.asarray(searched >= BEYOND * (puzzles == 0).sum(axis=1))


def choose(cover: Cover, row: int) -> list[set[int]]:
    """Knuth's algorithm X on sets: meet the demands of a row and withdraw the rows that compete with it."""
    taken = []
    for demand in DEMANDS[row]:
        for rival in cover[demand]:
            for other in DEMANDS[rival]:
                if other != demand:
                    cover[other].discard(rival)
        taken.append(cover.pop(demand))
    return taken


def restore(cover: Cover, row: int, taken: list[set[int]]) -> None:
    for demand, rivals in zip(reversed(DEMANDS[row]), reversed(taken), strict=True):
        cover[demand] = rivals
        for rival in rivals:
            for other in DEMANDS[rival]:
                if other != demand:
                    cover[other].add(rival)


def covers(cover: Cover) -> Iterator[list[int]]:
    if not cover:
        yield []
        return
    fewest = min(cover, key=lambda demand: len(cover[demand]))
    for row in sorted(cover[fewest]):
        taken = choose(cover, row)
        for rest in covers(cover):
            yield [row, *rest]
        restore(cover, row, taken)


def slow_solutions(puzzle: Board, limit: int) -> list[list[int]]:
    cover: Cover = {}
    for row, demands in enumerate(DEMANDS):
        for demand in demands:
            cover.setdefault(demand, set()).add(row)
    given_rows = [9 * cell + int(digit) - 1 for cell, digit in enumerate(puzzle) if digit]
    for row in given_rows:
        if any(demand not in cover or row not in cover[demand] for demand in DEMANDS[row]):
            return []
        choose(cover, row)
    return [[row % 9 + 1 for row in sorted(given_rows + rest)] for rest in islice(covers(cover), limit)]


@settings(deadline=None, max_examples=60)
@given(st.integers(0, len(EASY_KEYS) - 1), st.sets(st.integers(0, 80), max_size=3), st.data())
def test_solutions_are_counted_as_an_exact_cover_counts_them(
    index: int, dropped: set[int], data: st.DataObject
) -> None:
    """Unique puzzles, puzzles with clues missing, and puzzles with a clue that is perhaps wrong."""
    puzzle = with_clues(EASY_KEYS[index : index + 1], 4)[0][0]
    puzzle[list(dropped)] = 0
    if data.draw(st.booleans()):
        puzzle[data.draw(st.integers(0, 80))] = data.draw(st.integers(1, 9))
    slow = slow_solutions(puzzle, 20)
    assert count_solutions(puzzle, 20) == len(slow)
    assert count_solutions(puzzle, 1) == min(len(slow), 1)
    counts, solutions = solve_many(puzzle[None])
    assert counts[0] == min(len(slow), 2)
    if slow:
        assert (solutions[0] == puzzle)[puzzle > 0].all()
        assert slow_solutions(solutions[0], 2) == [solutions[0].tolist()]
    else:
        assert not solutions.any()


def test_contradicting_givens_have_no_solution() -> None:
    for cells in ([0, 8], [0, 72], [0, 20]):  # one row, one column, one box
        puzzle = np.zeros(81, dtype=np.uint8)
        puzzle[cells] = 5
        assert count_solutions(puzzle, 2) == 0
        assert rate(puzzle) == -1


def test_an_empty_board_is_counted_up_to_the_limit() -> None:
    assert count_solutions(np.zeros(81, dtype=np.uint8), 1000) == 1000


@pytest.mark.parametrize(
    ("text", "rating"),
    [
        (PAPER, 0),
        ("400000805030000000000700000020000060000080400000010000000603070500200000104000000", 0),  # 17 clues
        ("100007090030020008009600500005300900010080002600004000300000010040000007007000300", 4),  # AI Escargot
        (GOLDEN_NUGGET, 48),
        ("100000002090400050006000700050903000000070000000850040700000600030009080002000001", 48),  # Easter Monster
        ("800000000003600000070090200050007000000045700000100030001000068008500010090000400", 57),  # Inkala 2012
    ],
)
def test_ratings_of_famous_puzzles(text: str, rating: int) -> None:
    assert rate(board(text)) == rating


def test_ratings_do_not_depend_on_the_batch() -> None:
    puzzles = np.stack([board(GOLDEN_NUGGET), board(PAPER), board(GOLDEN_NUGGET)])
    assert rate_many(puzzles).tolist() == [48, 0, 48]


def test_what_singles_solve_needs_no_guess() -> None:
    puzzles, _ = with_clues(EASY_KEYS, 6)
    by_singles = [all(len(cell) == 1 for cell in propagated(puzzle.tolist())) for puzzle in puzzles]
    assert any(by_singles)
    assert (rate_many(puzzles[by_singles]) == 0).all()


def test_clues_of_the_solution_never_make_guesses_out_of_none() -> None:
    """Rating 0 means that propagation alone solves the board; more clues only help it."""
    puzzles, solutions = with_clues(EASY_KEYS)
    rating = rate_many(puzzles)
    assert 0 < (rating == 0).sum() < len(rating)
    for puzzle, solution in zip(puzzles[rating == 0], solutions[rating == 0], strict=True):
        fuller = np.where(np.arange(81) % 3 == 0, solution, puzzle)
        assert rate(fuller) == 0


def test_minimal_puzzles_have_one_solution_and_no_needless_clue() -> None:
    puzzles, solutions = with_clues(EASY_KEYS)
    counts, found = solve_many(puzzles)
    assert (counts == 1).all()
    assert (found == solutions).all()
    for puzzle in puzzles:
        for cell in np.flatnonzero(puzzle):
            less = puzzle.copy()
            less[cell] = 0
            assert count_solutions(less, 2) == 2


def test_minimal_puzzles_follow_the_known_law() -> None:
    """About 56.6 blanks on average and 56 % of rating 0; the bounds are five standard errors wide."""
    puzzles, _ = with_clues(Streams(3).named("law").keys(2000))
    assert (puzzles == 0).sum(axis=1).mean() == pytest.approx(56.6, abs=0.15)
    assert (rate_many(puzzles) == 0).mean() == pytest.approx(0.56, abs=0.056)


@pytest.mark.parametrize("extra", [0, 1, 9, 81])
def test_clues_that_are_put_back(extra: int) -> None:
    minimal, solutions = with_clues(EASY_KEYS)
    puzzles, same = with_clues(EASY_KEYS, extra)
    assert (same == solutions).all()
    blanks = (minimal == 0).sum(axis=1)
    assert ((puzzles == 0).sum(axis=1) == np.maximum(blanks - extra, 1)).all()
    assert (puzzles[minimal > 0] == minimal[minimal > 0]).all()
    assert (puzzles[puzzles > 0] == solutions[puzzles > 0]).all()


def test_hard_puzzles_with_clues_put_back() -> None:
    keys = Streams(0).named("thick").keys(12)
    puzzles, solutions, rating = rated_many(keys, 22, 41, 1000, 1.0, 3)
    assert (rate_many(puzzles) == rating).all()
    assert (solve_many(puzzles)[1] == solutions).all()
    hits = puzzles[(rating >= 22) & (rating <= 41)]
    assert len(hits)
    assert beyond_technique(hits).any()
    for puzzle in hits:
        needless = 0
        for cell in np.flatnonzero(puzzle):
            less = puzzle.copy()
            less[cell] = 0
            needless += count_solutions(less, 2) == 1
        assert needless >= 3


def test_puzzles_of_both_kinds_are_mixed_by_key() -> None:
    keys = Streams(0).named("mixed").keys(60)
    puzzles, _, rating = rated_many(keys, 1, 21, 1000, 0.5, 0)
    assert ((rating >= 1) & (rating <= 21)).all()
    beyond = beyond_technique(puzzles)
    assert beyond.mean() == pytest.approx(0.5, abs=0.2)
    assert (puzzles[~beyond] == rated_many(keys[~beyond], 1, 21, 1000, 0.0, 0)[0]).all()
    assert (puzzles[beyond] == rated_many(keys[beyond], 1, 21, 1000, 1.0, 0)[0]).all()


@pytest.mark.parametrize(("low", "high"), [(0, 0), (1, 17), (1, 21), (18, 34), (42, 68), (69, 105), (106, 10_000)])
def test_every_tier_is_reached_by_minimal_puzzles(low: int, high: int) -> None:
    keys = Streams(0).named("tiers").keys(6)
    puzzles, solutions, rating = rated_many(keys, low, high, 20_000, 0.0, 0)
    assert ((low <= rating) & (rating <= high)).all()
    assert (rate_many(puzzles) == rating).all()
    counts, found = solve_many(puzzles)
    assert (counts == 1).all()
    assert (found == solutions).all()
    assert len(np.unique(puzzles, axis=0)) == len(puzzles)
    again = rated_many(keys[4:5], low, high, 20_000, 0.0, 0)
    assert (again[0] == puzzles[4:5]).all()
    assert (again[1] == solutions[4:5]).all()


def test_a_rating_out_of_reach_is_owned_up_to() -> None:
    puzzles, _, rating = rated_many(EASY_KEYS[:2], 100_000, 100_000, 3, 0.0, 0)
    assert (rating < 100_000).all()
    assert (rate_many(puzzles) == rating).all()


def test_puzzles_depend_on_their_key_alone() -> None:
    puzzles, solutions = with_clues(EASY_KEYS)
    part, part_solutions = with_clues(EASY_KEYS[7:9])
    assert (part == puzzles[7:9]).all()
    assert (part_solutions == solutions[7:9]).all()
    assert len(np.unique(puzzles, axis=0)) == len(puzzles)


@pytest.mark.parametrize("extra", [1, 3])
def test_as_many_clues_are_put_back_as_were_asked_for(extra: int) -> None:
    puzzle_81 = START_P81[0].copy()
    solution_81 = solve_many(puzzle_81[None])[1][0]
    before = int((puzzle_81 > 0).sum())
    _thicken(state_of(np.uint64(5)), 0, extra, puzzle_81, solution_81.astype(np.uint8))
    assert int((puzzle_81 > 0).sum()) == before + extra
