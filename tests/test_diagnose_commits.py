"""Which commit a wrong cell goes back to, also where cells were hidden again, and what it could see."""

from collections.abc import Sequence

import numpy as np
import pytest

from hardtail import HardtailError, Instances
from hardtail.core.types import Trace
from hardtail.tasks.listops.task import ListOps
from hardtail.traces.commits import (
    Spread,
    first_in_time,
    lowest_index,
    refuse_misfit,
    revealed_before,
    wrong_cells,
)

MASK = 9
GOLD = (0, 1, 2, 3)


def told(*stories: Sequence[tuple[int, int, int]], visible: Sequence[int] = ()) -> Trace:
    """A trace from events (step, cell, token), one story an instance; gold is 0 1 2 3, all cells scored."""
    n, events = len(stories), max(map(len, stories))
    columns = {"step": np.zeros((n, events)), "cell": np.full((n, events), -1), "token": np.zeros((n, events))}
    answer_NA = np.tile(np.array(GOLD, dtype=np.uint8), (n, 1))
    for i, story in enumerate(stories):
        for t, (step, cell, token) in enumerate(story):
            columns["step"][i, t], columns["cell"][i, t], columns["token"][i, t] = step, cell, token
            answer_NA[i, cell] = token
    maskable_NA = np.ones((n, 4), dtype=np.bool_)
    maskable_NA[:, list(visible)] = False
    instances = Instances(
        tokens_NL=np.tile(np.array((7, *GOLD), dtype=np.uint8), (n, 1)),
        prompt_len_N=np.ones(n, dtype=np.int32),
        maskable_NA=maskable_NA,
        scored_NA=maskable_NA,
    )
    place_NT = np.tile(np.arange(events), (n, 1))
    return Trace(
        instances,
        MASK,
        answer_NA,
        cell_NT=columns["cell"].astype(np.int16),
        step_NT=columns["step"].astype(np.int16),
        token_NT=columns["token"].astype(np.uint8),
        prob_NT=(place_NT / 100).astype(np.float32),
        gold_prob_NT=np.zeros((n, events), dtype=np.float32),
        gold_rank_NT=place_NT.astype(np.int32),
        runner_up_NT=np.full((n, events), -1, dtype=np.int16),
        margin_NT=np.zeros((n, events), dtype=np.float32),
    )


RIGHT = [(0, 0, 0), (1, 1, 1), (2, 2, 2), (3, 3, 3)]
TWO_WRONG = [(0, 0, 0), (1, 3, 5), (2, 1, 6), (3, 2, 2)]
TAKEN_BACK = [(0, 1, 6), (1, 3, 5), (1, 1, MASK), (2, 2, 2), (3, 1, 1), (4, 0, 0)]
WRONG_AGAIN = [(0, 1, 6), (0, 1, MASK), (1, 3, 5), (2, 1, 7), (3, 0, 0), (4, 2, 2)]


def test_the_first_wrong_commit_in_time_and_in_index() -> None:
    trace = told(RIGHT, TWO_WRONG)
    first, lowest = (find(trace, wrong_cells(trace)) for find in (first_in_time, lowest_index))
    assert (first.row_K.tolist(), first.cell_K.tolist(), first.step_K.tolist()) == ([1], [3], [1])
    assert (first.token_K.tolist(), first.gold_K.tolist(), first.gold_rank_K.tolist()) == ([5], [3], [1])
    assert (lowest.row_K.tolist(), lowest.cell_K.tolist(), lowest.step_K.tolist()) == ([1], [1], [2])


def test_a_commit_that_was_taken_back_is_not_the_first_wrong_one() -> None:
    trace = told(TAKEN_BACK, WRONG_AGAIN)
    first = first_in_time(trace, wrong_cells(trace))
    assert (first.cell_K.tolist(), first.step_K.tolist(), first.token_K.tolist()) == ([3, 3], [1, 1], [5, 5])
    lowest = lowest_index(trace, wrong_cells(trace))
    assert (lowest.cell_K.tolist(), lowest.step_K.tolist(), lowest.token_K.tolist()) == ([3, 1], [1, 2], [5, 7])


def test_a_commit_sees_what_earlier_steps_wrote_and_nobody_hid_again() -> None:
    trace = told(TWO_WRONG, WRONG_AGAIN, [(0, 3, 5), (0, 0, 0), (0, 1, 1), (0, 2, 2)], visible=[])
    seen_KA = revealed_before(trace, lowest_index(trace, wrong_cells(trace)))
    assert seen_KA.tolist() == [
        [True, False, False, True],
        [False, False, False, True],  # cell 1 had been written and hidden again
        [False, False, False, False],  # all in one step
    ]


def test_cells_that_are_never_hidden_are_seen() -> None:
    trace = told([(0, 3, 5), (1, 0, 0), (2, 1, 1)], visible=[2])
    assert revealed_before(trace, first_in_time(trace, wrong_cells(trace))).tolist() == [[False, False, True, False]]


def test_nothing_is_summed_up_as_none() -> None:
    assert Spread.of(np.array([])) == Spread(0, None, None, None, None)
    assert Spread.of(np.array([1, 2, 6])) == Spread(3, 3, 2, 1, 6)


def test_a_trace_of_another_task_is_refused_in_a_sentence() -> None:
    with pytest.raises(HardtailError, match="sequences of 5 with 4 answer cells, this configuration 200 with 20"):
        refuse_misfit(ListOps(), told(RIGHT))
