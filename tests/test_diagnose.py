"""Readiness, agreement and calibration: against plain loops, and on decodes small enough to do by hand.

Shapes: N instances, A answer cells, T events, S steps.
"""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hardtail.core.registry import TASKS
from hardtail.core.seeds import Stream
from hardtail.measuring.diagnosis.kendall import rank_correlation
from hardtail.measuring.diagnosis.prerequisites import closure, direct, prerequisites
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.tasks.addition.task import Addition
from hardtail.traces.calibration import calibration
from hardtail.traces.states import hidden_before, standing, visited
from tests.diagnose_toys import SMALL, Event, gold_trace, remasked_trace, small, trace_of


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
