"""Wrong cells of Sudoku: the technique they need, whether they clash, whether they cluster (docs/study.md §7.3).

Only blanks count. Levels are the task's technique levels, TL0 to TL4. A wrong cell *clashes* if its digit occurs again
in its row, column or box, or if it holds no digit. Random wrong digits nearly all clash; a lower share shows errors
that are consistent with each other.

*Clustering*: the share of the blank peers of a wrong cell that are wrong too. If w of b blanks were wrong at random, it
would be (w - 1) / (b - 1) on average. Both are averaged over the boards with at least two wrong cells.

Shapes: N instances (F those that failed), A = C = 81 cells, K commits or boards that count.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.tables import percent
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.sudoku.solver.board import COUNT, PEERS, candidates_many
from hardtail.tasks.sudoku.solver.techniques import LEVELS
from hardtail.tasks.sudoku.task import Sudoku
from hardtail.traces.calibration import Calibration, calibration
from hardtail.traces.commits import (
    Commits,
    Groups,
    Readings,
    Spread,
    Timing,
    annotation,
    count,
    readings_of,
    tally,
    wrong_cells,
)
from hardtail.traces.states import standing
from hardtail.traces.summary import mean, share


@dataclass(frozen=True)
class Clusters:
    """Clustering, averaged over the boards with at least two wrong cells."""

    boards: int
    peer_wrong_given_wrong: float | None
    baseline: float | None

    @classmethod
    def of(cls, wrong_FA: NDArray[np.bool_], blank_FA: NDArray[np.bool_]) -> "Clusters":
        wrong_F, blank_F = wrong_FA.sum(axis=1), blank_FA.sum(axis=1)
        pairs_F = (blank_FA[:, PEERS].sum(axis=2) * wrong_FA).sum(axis=1)
        wrong_pairs_F = (wrong_FA[:, PEERS].sum(axis=2) * wrong_FA).sum(axis=1)
        known_F = (wrong_F > 1) & (pairs_F > 0)
        given_wrong_K = wrong_pairs_F[known_F] / pairs_F[known_F]
        baseline_K = (wrong_F[known_F] - 1) / (blank_F[known_F] - 1)
        return cls(int(known_F.sum()), mean(given_wrong_K), mean(baseline_K))


@dataclass(frozen=True)
class CandidateTiming(Timing):
    """When wrong commits were made, and how often the digit was still a candidate by the givens alone."""

    was_a_candidate: float | None

    @classmethod
    def among(cls, commits: Commits, mask_FA: NDArray[np.int16]) -> "CandidateTiming":
        mask_K, digit_K = mask_FA[commits.row_K, commits.cell_K], commits.token_K.astype(np.int64)
        possible_K = _is_digit(digit_K) & (mask_K >> np.maximum(digit_K - 1, 0) & 1 > 0)
        return cls(**vars(Timing.of(commits)), was_a_candidate=share(possible_K.sum(), len(commits)))


@dataclass(frozen=True)
class Profile:
    """All measurements; a trace without failures has zero counts and None means.

    `all` are the blanks of failing boards, for comparison with the wrong ones; calibration is over all boards.
    """

    instances: int
    failures: int
    wrong_cells: int
    wrong_cells_that_clash: float | None
    wrong_cells_without_a_digit: int
    wrong_cells_of_a_failure: Spread
    clusters: Clusters
    first_wrong: Readings[CandidateTiming]
    level: Groups[Mapping[str, int]]
    candidates: Groups[Mapping[str, int]]
    calibration: Mapping[str, Calibration]
    """Confidence against accuracy of the commits of each level's cells, over all instances."""

    @classmethod
    def of(cls, task: Sudoku, trace: Trace) -> "Profile":
        level_NA = annotation(task, trace.instances.extras, "level_NA")
        failed_N = ~trace.exact_N
        failing, level_FA = trace.take(failed_N), level_NA[failed_N]
        wrong_FA, blank_FA = wrong_cells(failing), failing.instances.scored_NA
        mask_FA = candidates(failing.instances)
        firsts = readings_of(failing, wrong_FA)
        groups = firsts, wrong_FA, blank_FA
        return cls(
            instances=len(trace),
            failures=len(failing),
            wrong_cells=int(wrong_FA.sum()),
            wrong_cells_that_clash=share((wrong_FA & clashes(failing.answer_NA)).sum(), wrong_FA.sum()),
            wrong_cells_without_a_digit=int((wrong_FA & ~_is_digit(failing.answer_NA)).sum()),
            wrong_cells_of_a_failure=Spread.of(wrong_FA.sum(axis=1)),
            clusters=Clusters.of(wrong_FA, blank_FA),
            first_wrong=firsts.map(lambda commits: CandidateTiming.among(commits, mask_FA)),
            level=Groups.of(*groups, lambda at: count(level_FA[at], LEVELS)),
            candidates=Groups.of(*groups, lambda at: tally(COUNT[mask_FA[at]], COUNT[mask_FA[blank_FA]])),
            calibration=_calibrations(trace, level_NA),
        )

    def in_words(self) -> str | None:
        first, blanks = self.level.first_in_time, self.level.all
        if not sum(first.values()):
            return None
        beyond, usual = (1 - found[LEVELS[0]] / sum(found.values()) for found in (first, blanks))
        return (
            f"{percent(beyond)} of the earliest wrong cells need more than a single candidate, as do "
            f"{percent(usual)} of all blanks; "
            f"{percent(self.wrong_cells_that_clash)} of the wrong cells clash with another."
        )


# -- arrays -----------------------------------------------------------------------------------------------------


def clashes(answer_NA: Array) -> NDArray[np.bool_]:
    """`clash_NA`: cells whose digit a peer also has, and cells without a digit."""
    return (answer_NA[:, PEERS] == answer_NA[:, :, None]).any(axis=2) | ~_is_digit(answer_NA)


def candidates(instances: Instances) -> NDArray[np.int16]:
    """`mask_NA`: the candidates of each cell after propagation of the givens; bit d - 1 is digit d."""
    return candidates_many(np.ascontiguousarray(instances.tokens_NL[:, :81]))


def _is_digit(answer_NA: Array) -> NDArray[np.bool_]:
    return (answer_NA >= 1) & (answer_NA <= 9)


def _calibrations(trace: Trace, level_NA: Array) -> dict[str, Calibration]:
    last = standing(trace)
    inside = {name: last.there_NA & (level_NA == level) for level, name in enumerate(LEVELS)}  # givens have no level
    return {name: calibration(last.prob_NA[here_NA], last.right_NA[here_NA]) for name, here_NA in inside.items()}
