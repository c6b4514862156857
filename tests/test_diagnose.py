"""Readiness, agreement, calibration and coverage: against plain loops, and on decodes small enough to do by hand.

Shapes: N instances, A answer cells, T events, S steps.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hardtail.core import records
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS
from hardtail.core.seeds import Stream
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.diagnosis.coverage import Histogram, compare, visits
from hardtail.measuring.diagnosis.kendall import rank_correlation
from hardtail.measuring.diagnosis.prerequisites import closure, direct, prerequisites
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.schemes.base import Corpus
from hardtail.schemes.random import Random
from hardtail.tasks.addition.task import Addition
from hardtail.traces.calibration import calibration
from hardtail.traces.states import hidden_before, standing, visited
from hardtail.training.step import SeenStates
from tests.diagnose_toys import SMALL, Event, gold_trace, lsb_trace, remasked_trace, small, trace_of


def test_states_and_standing_commits_with_remasking_are_those_of_a_replay() -> None:
    trace, states = remasked_trace(SMALL, small(), np.random.default_rng(1))
    hidden_NSA, visited_NS, held = hidden_before(trace), visited(trace), standing(trace)
    for n, seen in enumerate(states):
        assert visited_NS[n].sum() == len(seen)
        for step, hidden in enumerate(seen):
            assert set(np.flatnonzero(hidden_NSA[n, step]).tolist()) == hidden
        for cell in range(SMALL.answer_len):
            wrote = [t for t in range(trace.cell_NT.shape[1]) if trace.cell_NT[n, t] == cell]
            stands = bool(wrote) and trace.token_NT[n, wrote[-1]] != trace.mask_id
            assert held.there_NA[n, cell] == stands == (trace.answer_NA[n, cell] != trace.mask_id)
            if stands:
                assert held.step_NA[n, cell] == trace.step_NT[n, wrote[-1]]
                assert held.right_NA[n, cell] == (trace.answer_NA[n, cell] == trace.instances.answer_NA[n, cell])


def test_prerequisites_are_those_of_a_replay_even_with_remasking() -> None:
    trace, states = remasked_trace(SMALL, small(), np.random.default_rng(2))
    found, held = prerequisites(SMALL, trace), standing(trace)
    parents_NAE = trace.instances.parents_NAE
    assert parents_NAE is not None
    unready = 0
    for n in range(len(trace)):
        for cell in np.flatnonzero(held.there_NA[n]).tolist():
            step = int(held.step_NA[n, cell])
            line, above = [], cell  # in addition a cell waits for one other, which waits for one other …
            while (above := int(parents_NAE[n, above, 0])) >= 0:
                line.append(above)
            missing = [other for other in line if other in states[n][step]]
            never = len(states[n])
            last = [int(held.step_NA[n, other]) if held.there_NA[n, other] else never for other in missing]
            assert found.ancestors.needed_NA[n, cell] == len(line)
            assert found.ancestors.missing_NA[n, cell] == len(missing)
            assert found.ancestors.wait_NA[n, cell] == (max(last) - step if last else 0)
            assert found.parents.missing_NA[n, cell] == (line[:1] == missing[:1] != [])
            assert found.ready_NA[n, cell] == (not found.parents.missing_NA[n, cell])
            unready += bool(missing)
    assert unready > 20


@pytest.mark.parametrize("name", ["maze", "listops", "countdown"])
def test_the_closure_of_parents_is_transitive_and_least(name: str) -> None:
    instances = TASKS.load(name)().sample(4, Stream("closure"))
    assert instances.parents_NAE is not None
    place_NA = np.tile(np.arange(instances.answer_len), (4, 1))
    needs_NAA = direct(instances.parents_NAE, instances.maskable_NA, place_NA, instances.answer_len)
    reached_NAA = closure(needs_NAA)
    step_NAA = needs_NAA.astype(np.float32)
    plain_NAA = step_NAA
    for _ in range(10):  # 2^10 exceeds the longest way
        plain_NAA = np.minimum(plain_NAA + plain_NAA @ plain_NAA, 1)
    assert (reached_NAA == (plain_NAA > 0)).all()
    assert reached_NAA.sum() > needs_NAA.sum()


def test_what_was_revealed_from_the_start_is_not_waited_for() -> None:
    task = Addition(digits=4)
    instances = task.parse(["0499+0502"])
    instances = replace(instances, maskable_NA=np.array([[True, True, False, True, True]]))  # the upper p is given
    found = readiness(task, trace_of(task, instances, [[(0, 1, 1), (1, 3, 0), (2, 4, 1), (3, 0, 0)]]))
    assert (found.dependent, found.premature, found.early) == (0, 0, {})


def test_padding_that_nobody_scores_is_left_out() -> None:
    task = TASKS.load("listops")()
    instances = task.sample(8, Stream("padding"), "depth=3")
    rank_NA = instances.orders["post_order"]
    padding_first = gold_trace(task, instances, np.where(instances.scored_NA, rank_NA + 1, 0))
    found = readiness(task, padding_first)
    assert found.commits == instances.scored_NA.sum() < instances.maskable_NA.sum()
    assert found.agreement["post_order"].gamma == 1.0


def test_a_decode_by_hand() -> None:
    """0499 + 0501: from below g, p, p, k. The second p waits for the first, k for the second; the g for nothing."""
    task = Addition(digits=4)
    instances = task.parse(["0499+0502"])  # 1001: digits 9 + 2, 9 + 0, 4 + 5, 0 + 0
    # Answer cells, most significant first: carry-out 0, k 1, p 2, p 3, g 4.
    events: list[list[Event]] = [[(0, 1, 0), (0, 4, 1), (1, 0, 0), (1, 3, 0), (1, 2, 0)]]
    trace = trace_of(task, instances, events, prob=0.95)
    found = readiness(task, trace)
    assert (found.commits, found.dependent, found.premature) == (5, 2, 2)
    assert found.premature_share == 0.4
    assert found.premature_share_of_dependent == 1.0
    assert found.accuracy["unready"].right == 1  # the k digit takes no carry: 0 for 1
    assert found.accuracy["free"].accuracy == 1.0
    assert found.accuracy["ready"].accuracy is None
    parents, ancestors = found.early["parents"], found.early["ancestors"]
    assert (parents.commits, parents.missing_mean, parents.missing_fraction_mean) == (2, 1.0, 1.0)
    assert parents.share == 1.0  # of those that have parents
    assert parents.steps_until_last_mean == 0.5  # k waits one step; the two p of one step do not see each other
    assert ancestors.missing_mean == 1.5
    assert found.calibration["all"].ece == pytest.approx(0.15)
    assert found.calibration["unready"].accuracy == 0.5
    # Steps 1 0 1 1 0 against ranks 4 3 2 1 0: pairs untied in the steps are 6, of them 4 agree.
    assert found.agreement["lsb"].tau_b == pytest.approx((4 - 2) / np.sqrt(6 * 10))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 10_000))
def test_rank_correlation_is_its_definition_with_ties_on_both_sides(cells: int, values: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x_NA, y_NA = rng.integers(0, values, (4, cells)), rng.integers(0, values, (4, cells))
    counts_NA = rng.random((4, cells)) < 0.8
    for n, (tau, gamma) in enumerate(zip(*rank_correlation(x_NA, y_NA, counts_NA), strict=True)):
        chosen = np.flatnonzero(counts_NA[n])
        signs = [
            (np.sign(x_NA[n, i] - x_NA[n, j]), np.sign(y_NA[n, i] - y_NA[n, j]))
            for i in chosen
            for j in chosen
            if i < j
        ]
        untied = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
        if untied:
            assert tau == pytest.approx(sum(int(a * b) for a, b in signs) / np.sqrt(untied))
        else:
            assert np.isnan(tau)
        if either := sum(int(abs(a * b)) for a, b in signs):
            assert gamma == pytest.approx(sum(int(a * b) for a, b in signs) / either)
        else:
            assert np.isnan(gamma)


def test_calibration_of_a_sure_and_half_right_decoder() -> None:
    found = calibration(np.array([0.9995, 0.9995, 0.55, 0.45]), np.array([True, False, True, False]))
    assert [(line.low, line.commits, line.accuracy) for line in found.bins] == [
        (0.4, 1, 0),
        (0.5, 1, 1),
        (0.999, 2, 0.5),
    ]
    assert found.ece == pytest.approx((0.45 + 0.45 + 2 * 0.4995) / 4)
    assert calibration(np.array([0.5]), np.array([True])).bins[0].high == 0.5
    assert calibration(np.array([]), np.array([], dtype=np.bool_)).ece is None
    assert sum(line.commits for line in calibration(np.array([0.0, 1.0]), np.array([True, True])).bins) == 2


# -- coverage -------------------------------------------------------------------------------------------------------


def test_visited_states_are_counted_as_training_counts_them() -> None:
    instances = small(40)
    trace, states = remasked_trace(SMALL, instances, np.random.default_rng(3))
    corpus = Corpus.on(torch.device("cpu"), instances, SMALL.vocabulary.mask_id, "lsb")
    rows = [(n, sorted(hidden)) for n, seen in enumerate(states) for hidden in seen]
    hidden_BA = torch.zeros(len(rows), SMALL.answer_len, dtype=torch.bool)
    for place, (_, hidden) in enumerate(rows):
        hidden_BA[place, hidden] = True
    training = SeenStates(corpus, Random())
    training.add(*training.bins(corpus.rows(torch.tensor([n for n, _ in rows])).hide(hidden_BA, corpus)))
    ours = visits(trace, "lsb")
    assert ours.count_K.tolist() == training.count_K.tolist()
    assert ours.rank_KR.tolist() == training.rank_KR.tolist()
    same = compare(trace, Histogram(ours.count_K * 7, ours.rank_KR * 7), "lsb")
    assert same.count_distance == same.count_and_rank_distance == same.rank_distance == 0.0
    assert same.states == len(rows)


def even_training(cells: int) -> Histogram:
    """Every count as often as every other, and at each every rank."""
    count_K = np.full(cells + 1, 1000 * cells, dtype=np.int64)  # states with nothing hidden included: they do not count
    return Histogram(count_K, np.outer(1000 * np.arange(cells + 1), np.ones(cells, np.int64)))


def test_a_logical_order_stays_within_uniform_masking() -> None:
    found = compare(lsb_trace(), even_training(9), "lsb")
    assert found.count_distance == pytest.approx(0.0)
    # With K of 9 cells hidden these are the K highest: a distance of 1 - K/9 from all alike.
    assert found.rank_distance == pytest.approx(4 / 9)
    assert [line.rank_distance for line in found.by_count] == pytest.approx([1 - k / 9 for k in range(1, 10)])
    assert found.rare_by_count == found.rare_by_rank == found.rare_commits == 0.0


def test_training_on_full_masks_alone_leaves_every_later_state_rare() -> None:
    full = even_training(9)
    full.count_K[:9] = 0
    full.rank_KR[:9] = 0
    found = compare(lsb_trace(), full, "lsb")
    assert found.count_distance == pytest.approx(8 / 9)
    assert found.rank_distance == pytest.approx(8 / 9)
    assert found.rare_by_count == found.rare_by_rank == found.rare_commits == pytest.approx(8 / 9)


def test_a_rank_that_training_leaves_out_is_rare_where_a_decoder_has_it_hidden() -> None:
    narrow = even_training(9)
    narrow.rank_KR[1:5, 0] = 0  # the lowest digit is never among the last four
    found = compare(lsb_trace(-1), narrow, "lsb")  # the decoder has it hidden until the end
    assert found.rare_by_count == 0.0
    assert found.rare_by_rank == pytest.approx(sum(1 / k for k in range(1, 5)) / 9)
    assert found.rare_commits == pytest.approx(1 / 9)
    assert compare(lsb_trace(), narrow, "lsb").rare_by_rank == 0.0
    unranked = compare(lsb_trace(-1), narrow)
    assert (unranked.rank_distance, unranked.rare_by_rank, unranked.rare_commits) == (None, None, None)


def test_ranks_that_training_never_had_are_rare() -> None:
    short = Histogram(even_training(9).count_K, even_training(9).rank_KR[:, :7])
    assert compare(lsb_trace(), short, "lsb").rare_commits == pytest.approx(2 / 9)


def test_fewer_maskable_cells_than_answer_cells_are_no_gap() -> None:
    """The reference knows how many cells can be hidden at all: here 6, 7 and 8 of 9."""
    instances = small(3)
    maskable_NA = np.arange(9) < np.array([[6], [7], [8]])
    instances = replace(instances, maskable_NA=maskable_NA)
    trace = gold_trace(SMALL, instances, np.random.default_rng(0).random((3, 9)))
    found = compare(trace, visits(trace))
    assert found.count_distance == found.rare_by_count == 0.0
    assert [line.visited for line in found.by_count] == pytest.approx([3 / 21] * 6 + [2 / 21, 1 / 21])
    # Uniform masking has 8 hidden in a third of 1/8 of its states; a tenth of that is 0.0042.
    for eights, rare in ((5, 0.0), (4, 1 / 21)):
        count_K = np.array([0, 150, 150, 150, 150, 150, 150, 100 - eights, eights, 0])
        assert compare(trace, Histogram(count_K, count_K[:, None])).rare_by_count == pytest.approx(rare)


@pytest.mark.parametrize(
    ("coverage", "says"),
    [
        ({"by_count": [0] * 10, "by_count_and_rank": [[0]] * 10}, "empty"),
        ({"by_count": [1] * 34, "by_count_and_rank": [[1]] * 34}, "33 answer cells"),
    ],
)
def test_a_coverage_that_does_not_fit_is_refused_in_a_sentence(coverage: dict[str, Any], says: str) -> None:
    with pytest.raises(HardtailError, match=says):
        diagnose(SMALL, lsb_trace(), records.Coverage(**coverage))


@pytest.mark.parametrize(
    "coverage",
    [
        {},
        {"by_count": ["many"], "by_count_and_rank": [[1]]},
        {"by_count": [0, 1], "by_count_and_rank": [[1]]},
        {"by_count": [0, 0], "by_count_and_rank": [[0], [0]]},
    ],
)
def test_a_damaged_coverage_is_named(coverage: dict[str, object], tmp_path: Path) -> None:
    path = tmp_path / "coverage.json"
    path.write_text(json.dumps(coverage))
    with pytest.raises(HardtailError, match=rf"^{path}"):
        Histogram.of(records.read_json(path, records.Coverage) or pytest.fail("there is a file"), str(path))
