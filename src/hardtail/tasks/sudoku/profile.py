"""Wrong cells of Sudoku: what technique they take, whether they clash, and whether they come in clusters (study §7.3).

Only blanks count. Levels are the task's technique levels, TL0 to TL4. A wrong cell *clashes* when its digit stands in
its row, column or box a second time, or when it holds no digit at all; one that does not clash cannot be told wrong by
looking at its own units. Wrong digits at random places nearly all clash: a lower share speaks of errors that fit
together.

*Clustering*: a pair of cells is related when they share a unit. Of a failing board's wrong cells and their blank peers,
what share of the peers is wrong too? If w of b blanks were wrong at random places it would be (w - 1) / (b - 1) on
average. Both are averaged over the boards with at least two wrong cells.

Shapes: N instances (F those that failed), A = C = 81 cells, K commits.
"""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array, Instances, Trace
from hardtail.measuring.diagnosis.calibration import calibration
from hardtail.tasks.sudoku.solver.board import COUNT, PEERS, candidates_many
from hardtail.tasks.sudoku.solver.techniques import LEVELS
from hardtail.tasks.sudoku.task import Sudoku
from hardtail.traces.commits import (
    Commits,
    annotation,
    counts,
    first_in_time,
    lowest_in_index,
    refuse_misfit,
    summary,
    tallies,
    timing,
    wrong_cells,
)
from hardtail.traces.states import standing
from hardtail.traces.summary import mean, share


def profile(task: Sudoku, trace: Trace) -> dict[str, Any]:
    """Everything this module measures, as JSON holds it; a trace without failures has zero counts and None means.

    `all` are the blanks of failing boards, for comparison with the wrong ones; calibration is over all boards.
    """
    refuse_misfit(task, trace)
    level_NA = annotation(task, trace.instances.extras, "level_NA")
    failed_N = ~trace.exact_N
    failing, level_FA = trace.take(failed_N), level_NA[failed_N]
    wrong_FA, mask_FA = wrong_cells(failing), candidates(failing.instances)
    firsts = {
        "first_in_time": first_in_time(failing, wrong_FA),
        "lowest_index": lowest_in_index(failing, wrong_FA),
    }
    groups = {
        "all": np.nonzero(failing.instances.scored_NA),
        "wrong": np.nonzero(wrong_FA),
        **{name: (commits.row_K, commits.cell_K) for name, commits in firsts.items()},
    }
    return {
        "instances": len(trace),
        "failures": len(failing),
        "wrong_cells": int(wrong_FA.sum()),
        "wrong_cells_that_clash": share((wrong_FA & clashes(failing.answer_NA)).sum(), wrong_FA.sum()),
        "wrong_cells_without_a_digit": int((wrong_FA & ~_is_digit(failing.answer_NA)).sum()),
        "wrong_cells_of_a_failure": summary(wrong_FA.sum(axis=1)),
        "clusters": _clusters(failing, wrong_FA),
        "first_wrong": {name: _begun(commits, mask_FA) for name, commits in firsts.items()},
        "level": counts({name: level_FA[at] for name, at in groups.items()}, LEVELS),
        "candidates": tallies({name: COUNT[mask_FA[at]] for name, at in groups.items()}),
        "calibration": _calibration(trace, level_NA),
    }


# -- arrays -----------------------------------------------------------------------------------------------------


def clashes(answer_NA: Array) -> NDArray[np.bool_]:
    """`clash_NA`: cells whose digit one of their peers has too, and cells without a digit."""
    return (answer_NA[:, PEERS] == answer_NA[:, :, None]).any(axis=2) | ~_is_digit(answer_NA)


def peers_wrong(wrong_NA: NDArray[np.bool_], blank_NA: NDArray[np.bool_]) -> tuple[Array, Array]:
    """`p_N` and `baseline_N` of clustering; NaN where fewer than two cells are wrong, or no wrong cell has a peer."""
    wrong_N, blank_N = wrong_NA.sum(axis=1), blank_NA.sum(axis=1)
    pairs_N = (blank_NA[:, PEERS].sum(axis=2) * wrong_NA).sum(axis=1)
    wrong_pairs_N = (wrong_NA[:, PEERS].sum(axis=2) * wrong_NA).sum(axis=1)
    known_N = (wrong_N > 1) & (pairs_N > 0)
    p_N = np.where(known_N, wrong_pairs_N / np.maximum(pairs_N, 1), np.nan)
    return p_N, np.where(known_N, (wrong_N - 1) / np.maximum(blank_N - 1, 1), np.nan)


def candidates(instances: Instances) -> NDArray[np.int16]:
    """`mask_NA`: the digits that propagating the givens leaves to each cell; bit d - 1 is digit d."""
    return candidates_many(np.ascontiguousarray(instances.tokens_NL[:, :81]))[0]


def _is_digit(answer_NA: Array) -> NDArray[np.bool_]:
    return (answer_NA >= 1) & (answer_NA <= 9)


# -- figures ----------------------------------------------------------------------------------------------------


def _calibration(trace: Trace, level_NA: Array) -> dict[str, Any]:
    """Confidence against accuracy of the commits of each level's cells, over all instances."""
    last = standing(trace)
    figures = {}
    for level, name in enumerate(LEVELS):
        here_NA = last.there_NA & (level_NA == level)  # givens have no level
        figures[name] = asdict(calibration(last.prob_NA[here_NA], last.right_NA[here_NA]))
    return figures


def _clusters(failing: Trace, wrong_FA: NDArray[np.bool_]) -> dict[str, Any]:
    p_F, baseline_F = peers_wrong(wrong_FA, failing.instances.scored_NA)
    known_F = ~np.isnan(p_F)
    return {
        "boards": int(known_F.sum()),
        "peer_wrong_given_wrong": mean(p_F[known_F]),
        "baseline": mean(baseline_F[known_F]),
    }


def _begun(commits: Commits, mask_FA: NDArray[np.int16]) -> dict[str, Any]:
    """The figures of `timing`, and how often the committed digit was still a candidate by the givens alone."""
    mask_K, digit_K = mask_FA[commits.row_K, commits.cell_K], commits.token_K.astype(np.int64)
    possible_K = _is_digit(digit_K) & (mask_K >> np.maximum(digit_K - 1, 0) & 1 > 0)
    return timing(commits) | {"was_a_candidate": share(possible_K.sum(), len(commits))}
