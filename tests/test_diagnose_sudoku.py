"""The diagnosis of Sudoku: levels, clashes, clusters and candidates, against slow references."""

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hardtail import HardtailError, Instances, Streams
from hardtail.core.types import Array, Trace
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from hardtail.tasks.sudoku import profile as sudoku
from hardtail.tasks.sudoku.solver.techniques import LEVELS
from hardtail.tasks.sudoku.task import Sudoku
from tests.diagnose_toys import profiled
from tests.planted_other import reciting

TASK = Sudoku()


@pytest.fixture(scope="module")
def mixed() -> Instances:
    """Puzzles that singles solve, and puzzles beyond technique."""
    easy, hard = (
        TASK.sample(6, Streams(2).named("diagnose"), stratum) for stratum in ("tier=easy", "tier=medium,tl4>=0.95")
    )
    return Instances.concat([easy, hard])


def answered(instances: Instances, answer_NA: Array, sure_NA: Array | None = None) -> Trace:
    sure_NA = np.full(answer_NA.shape, 0.8) if sure_NA is None else sure_NA
    return decode(reciting(TASK, instances, answer_NA, sure_NA), instances, Top1())


def spoilt(instances: Instances, part: float) -> NDArray[np.uint8]:
    """Answers with random wrong digits in such a part of the blanks; the first instance stays right."""
    rng = np.random.default_rng(0)
    answer_NA = instances.answer_NA.copy()
    chosen_NA = instances.scored_NA & (rng.random(answer_NA.shape) < part)
    chosen_NA[0] = False
    other_NA = (answer_NA - 1 + rng.integers(1, 9, answer_NA.shape, dtype=np.uint8)) % 9 + 1
    return np.where(chosen_NA, other_NA, answer_NA).astype(np.uint8)


def shares_a_unit(one: int, other: int) -> bool:
    (r, c), (s, d) = divmod(one, 9), divmod(other, 9)
    return one != other and (r == s or c == d or (r // 3, c // 3) == (s // 3, d // 3))


def test_clashes_and_clusters_are_those_of_pairwise_comparison(mixed: Instances) -> None:
    answer_NA = spoilt(mixed, 0.7)
    figures = profiled(TASK, answered(mixed, answer_NA))
    wrong_NA = answer_NA != mixed.answer_NA
    clashing, shares, baselines = 0, [], []
    for i in range(1, len(mixed)):
        wrong, blank = np.flatnonzero(wrong_NA[i]), np.flatnonzero(mixed.scored_NA[i])
        pairs = [(int(cell), int(peer)) for cell in wrong for peer in blank if shares_a_unit(int(cell), int(peer))]
        shares.append(sum(bool(wrong_NA[i, peer]) for _, peer in pairs) / len(pairs))
        baselines.append((len(wrong) - 1) / (len(blank) - 1))
        for cell in wrong:
            clashing += any(
                shares_a_unit(int(cell), peer) and answer_NA[i, cell] == answer_NA[i, peer] for peer in range(81)
            )
    assert figures["failures"] == len(mixed) - 1
    assert figures["wrong_cells"] == wrong_NA.sum()
    assert figures["wrong_cells_that_clash"] == pytest.approx(clashing / wrong_NA.sum())
    assert 0 < clashing < wrong_NA.sum(), "the sample shows nothing"
    assert figures["clusters"]["peer_wrong_given_wrong"] == pytest.approx(np.mean(shares))
    assert figures["clusters"]["baseline"] == pytest.approx(np.mean(baselines))


def test_a_wrong_row_is_a_cluster_and_scattered_cells_are_none(mixed: Instances) -> None:
    puzzle = mixed.take(slice(0, 1))
    blank_A = puzzle.scored_NA[0]
    row = int(blank_A.reshape(9, 9).sum(axis=1).argmax())
    scattered: list[int] = []
    for cell in np.flatnonzero(blank_A).tolist():
        if not any(shares_a_unit(cell, other) for other in scattered):
            scattered.append(cell)
    for cells, clustered in (
        (np.flatnonzero(blank_A & (np.arange(81) // 9 == row)).tolist(), True),
        (scattered, False),
    ):
        answer_NA = puzzle.answer_NA.copy()
        answer_NA[0, cells] = answer_NA[0, cells] % 9 + 1
        clusters = profiled(TASK, answered(puzzle, answer_NA))["clusters"]
        assert (clusters["peer_wrong_given_wrong"] > clusters["baseline"]) == clustered
        assert (clusters["peer_wrong_given_wrong"] > 0) == clustered


def test_one_wrong_cell_clashes_and_makes_no_cluster(mixed: Instances) -> None:
    puzzle = mixed.take(slice(0, 1))
    cell = int(np.argmax(puzzle.scored_NA[0]))
    for token, without_digit in ((int(puzzle.answer_NA[0, cell]) % 9 + 1, 0), (0, 1), (TASK.vocabulary.id("="), 1)):
        answer_NA = puzzle.answer_NA.copy()
        answer_NA[0, cell] = token
        figures = profiled(TASK, answered(puzzle, answer_NA))
        assert figures["wrong_cells_that_clash"] == 1
        assert figures["wrong_cells_without_a_digit"] == without_digit
        assert figures["clusters"] == {"boards": 0, "peer_wrong_given_wrong": None, "baseline": None}
        json.dumps(figures, allow_nan=False)


def test_levels_of_wrong_cells_and_calibration_by_level(mixed: Instances) -> None:
    answer_NA = spoilt(mixed, 0.2)
    level_NA = mixed.extras["level_NA"]
    sure_NA = np.where(level_NA == 0, 0.9, 0.7)
    figures = profiled(TASK, answered(mixed, answer_NA, sure_NA))
    wrong_NA = answer_NA != mixed.answer_NA
    for level, name in enumerate(LEVELS):
        here_NA = level_NA == level
        assert figures["level"]["wrong"][name] == (wrong_NA & here_NA).sum()
        calibrated = figures["calibration"][name]
        assert calibrated["commits"] == here_NA.sum()
        if here_NA.any():
            assert calibrated["accuracy"] == pytest.approx(1 - wrong_NA[here_NA].mean())
            assert calibrated["confidence"] == pytest.approx(0.9 if level == 0 else 0.7)
        else:
            assert calibrated["accuracy"] is None
    assert min(figures["calibration"][name]["commits"] for name in ("TL0", "TL4")) > 0


def test_the_first_wrong_commit_in_time_and_how_many_candidates_it_had(mixed: Instances) -> None:
    last = len(mixed) - 1  # a puzzle beyond technique: propagation determines nothing of these
    puzzle = mixed.take(slice(last, last + 1))
    mask_A = sudoku.candidates(puzzle)[0]
    count_A = np.array([int(mask).bit_count() for mask in mask_A])
    blank = np.flatnonzero(puzzle.scored_NA[0])
    early, late = int(blank[0]), int(blank[-1])
    gold_A = puzzle.answer_NA[0]
    candidate = next(d for d in range(1, 10) if mask_A[late] >> (d - 1) & 1 and d != gold_A[late])
    excluded = next(d for d in range(1, 10) if not mask_A[early] >> (d - 1) & 1)
    answer_NA, sure_NA = puzzle.answer_NA.copy(), np.full((1, 81), 0.5)
    answer_NA[0, late], answer_NA[0, early] = candidate, excluded
    sure_NA[0, late], sure_NA[0, early] = 0.9, 0.8
    figures = profiled(TASK, answered(puzzle, answer_NA, sure_NA))
    first, lowest = (figures["first_wrong"][name] for name in ("first_in_time", "lowest_index"))
    assert (first["step_mean"], lowest["step_mean"]) == (0, 1)
    assert (first["was_a_candidate"], lowest["was_a_candidate"]) == (1, 0)
    assert figures["level"]["first_in_time"][LEVELS[puzzle.extras["level_NA"][0, late]]] == 1
    assert figures["candidates"]["first_in_time"][str(count_A[late])] == 1
    assert figures["candidates"]["lowest_index"][str(count_A[early])] == 1
    assert sum(figures["candidates"]["all"].values()) == blank.size
    assert count_A[late] > 1


def test_copies_of_givens_do_not_count_where_the_whole_answer_is_hidden(mixed: Instances) -> None:
    task = Sudoku(maskable="answer")
    puzzle = task.parse(TASK.render(mixed.take(slice(0, 1))))
    answer_NA = puzzle.answer_NA.copy()
    given, blank = int(np.argmin(puzzle.scored_NA[0])), int(np.argmax(puzzle.scored_NA[0]))
    answer_NA[0, [given, blank]] = answer_NA[0, [given, blank]] % 9 + 1
    figures = profiled(task, decode(reciting(task, puzzle, answer_NA, np.full((1, 81), 0.9)), puzzle, Top1()))
    assert figures["wrong_cells"] == 1
    assert sum(level["commits"] for level in figures["calibration"].values()) == puzzle.scored_NA.sum()


def test_gold_has_an_empty_profile(mixed: Instances) -> None:
    figures = profiled(TASK, answered(mixed, mixed.answer_NA))
    assert figures["failures"] == figures["wrong_cells"] == figures["first_wrong"]["first_in_time"]["n"] == 0
    assert figures["wrong_cells_that_clash"] is None
    json.dumps(figures, allow_nan=False)


def test_bare_instances_are_refused_in_a_sentence(mixed: Instances) -> None:
    trace = answered(mixed, mixed.answer_NA)
    with pytest.raises(HardtailError, match=r"'level_NA'.*without `--bare`"):
        profiled(TASK, replace(trace, instances=mixed.bare()))
