"""Readings of traces against the canvases that they were made of, and the parts that a trace is taken in and made of.

Shapes: N instances, A answer cells, S steps.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hardtail import HardtailError
from hardtail.core.types import MOST_TOKENS, Instances, Trace, TraceSource
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from hardtail.tasks.addition.task import Addition
from hardtail.traces.calibration import calibration
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from hardtail.traces.commits import Spread, readings_of, revealed_before, tally, wrong_cells
from hardtail.traces.states import blocks, hidden_before, standing, steps_of, visited, wrong_before
from tests.decoding_toys import MASK, problems
from tests.planted import adder

Canvases = NDArray[np.int64]


def made_up(seed: int) -> tuple[Trace, Canvases]:
    """A decode that writes, overwrites and hides cells at random, and the answers before its first step and after each;
    some steps change nothing in some rows, and some rows have nothing to decode."""
    rng = np.random.default_rng(seed)
    instances = problems(6, seed)
    answer_NA = np.where(instances.maskable_NA, MASK, instances.answer_NA).astype(np.int64)
    canvases = [answer_NA]
    for _ in range(7):
        changed_NA = (rng.random(answer_NA.shape) < 0.3) & instances.maskable_NA
        changed_NA[rng.random(6) < 0.3] = False
        answer_NA = np.where(changed_NA, rng.integers(0, MASK + 1, answer_NA.shape), answer_NA)
        canvases.append(answer_NA)
    guess_NA = np.where(rng.random(answer_NA.shape) < 0.5, instances.answer_NA, rng.integers(0, MASK, answer_NA.shape))
    canvases.append(np.where(answer_NA == MASK, guess_NA, answer_NA))
    canvases_SNA = np.stack(canvases)
    return trace_of_canvases(instances, canvases[1:], MASK), canvases_SNA


@pytest.mark.parametrize("seed", range(8))
def test_what_a_trace_says_is_what_its_canvases_showed(seed: int) -> None:
    trace, canvases_SNA = made_up(seed)
    gold_NA, maskable_NA = trace.instances.answer_NA, trace.instances.maskable_NA
    steps = steps_of(trace)
    assert steps == int((canvases_SNA[1:] != canvases_SNA[:-1]).any(axis=(1, 2)).nonzero()[0].max()) + 1
    np.testing.assert_array_equal(canvases_of(trace), canvases_SNA[1 : steps + 1])
    before_NSA = canvases_SNA[:steps].transpose(1, 0, 2)
    np.testing.assert_array_equal(hidden_before(trace), (before_NSA == MASK) & maskable_NA[:, None])
    wrong_NSA = (before_NSA != MASK) & (before_NSA != gold_NA[:, None])
    np.testing.assert_array_equal(wrong_before(trace), wrong_NSA)
    changed_SNA = canvases_SNA[1 : steps + 1] != canvases_SNA[:steps]
    np.testing.assert_array_equal(visited(trace), changed_SNA.any(axis=2).T)
    held = standing(trace)
    np.testing.assert_array_equal(held.there_NA, maskable_NA)
    last_NA = steps - 1 - changed_SNA[::-1].argmax(axis=0)
    np.testing.assert_array_equal(held.step_NA[maskable_NA], last_NA[maskable_NA])
    np.testing.assert_array_equal(held.right_NA[maskable_NA], (trace.answer_NA == gold_NA)[maskable_NA])


@pytest.mark.parametrize("seed", range(8))
def test_a_wrong_commit_is_the_one_that_its_canvases_show(seed: int) -> None:
    trace, canvases_SNA = made_up(seed)
    wrong_NA = wrong_cells(trace)
    step_NA = standing(trace).step_NA
    found = readings_of(trace, wrong_NA)
    rows = np.flatnonzero(wrong_NA.any(axis=1)).tolist()
    assert rows
    for commits in (found.first_in_time, found.lowest_index):
        assert commits.row_K.tolist() == rows
        assert len(commits) == len(rows)
        for k, row in enumerate(rows):
            cell, step = int(commits.cell_K[k]), int(commits.step_K[k])
            assert (commits.token_K[k], commits.gold_K[k]) == (
                trace.answer_NA[row, cell],
                trace.instances.answer_NA[row, cell],
            )
            assert step == step_NA[row, cell]
            shown_A = (canvases_SNA[step, row] != MASK) | ~trace.instances.maskable_NA[row]
            np.testing.assert_array_equal(revealed_before(trace, commits)[k], shown_A)
    for k, row in enumerate(rows):
        cells = np.flatnonzero(wrong_NA[row]).tolist()
        assert found.lowest_index.cell_K[k] == cells[0]
        assert found.first_in_time.cell_K[k] == min(cells, key=lambda cell: (step_NA[row, cell], cell))


def test_a_trace_without_events_has_nothing_standing() -> None:
    instances = replace(problems(3), maskable_NA=np.zeros((3, 9), dtype=np.bool_))
    trace = trace_of_canvases(instances, [instances.answer_NA.astype(np.int64)], MASK)
    assert trace.cell_NT.shape == (3, 0)
    held = standing(trace)
    assert not held.there_NA.any()
    assert not held.right_NA.any()
    assert not held.prob_NA.any()
    assert not held.event_NA.any()
    assert (steps_of(trace), canvases_of(trace).shape) == (0, (0, 3, 9))
    assert hidden_before(trace).shape == wrong_before(trace).shape == (3, 0, 9)


def test_empty_places_of_events_are_those_of_a_decode() -> None:
    """A row with fewer events than another is filled up as the decoder does it, so that both are saved alike."""
    instances = problems(2, cells=2)
    instances = replace(instances, maskable_NA=np.array([[True, True], [True, False]]))
    trace = trace_of_canvases(instances, [np.array([[1, 2], [3, 0]])], MASK)
    last = {name: getattr(trace, name)[1, 1] for name in ("cell_NT", "step_NT", "token_NT", "prob_NT", "gold_prob_NT")}
    assert last == {"cell_NT": -1, "step_NT": 0, "token_NT": 0, "prob_NT": 0, "gold_prob_NT": 0}
    assert (trace.gold_rank_NT[1, 1], trace.runner_up_NT[1, 1]) == (0, -1)
    assert (trace.gold_rank_NT[0] == -1).all()  # unknown
    assert (trace.runner_up_NT[0] == -1).all()
    for name in ("prob_NT", "gold_prob_NT", "margin_NT"):
        assert np.isnan(getattr(trace, name)[0]).all()


@pytest.mark.parametrize(
    ("canvas", "reason"),
    [
        ([[MOST_TOKENS, 0], [0, 0]], f"the token {MOST_TOKENS}; ids are 0 to "),
        ([[0, 0], [-1, 0]], "the token -1; ids are 0 to "),
        ([[0, MASK], [MASK, 0]], "cell 1 of problem 1 is still hidden"),
        ([[0.0, 0.0], [0.0, 0.0]], r"canvas 0 is \[2, 2\] of float64"),
        ([[0.0] * 10, [0.0] * 10], r"canvas 0 is \[2, 10\] of float64"),
        ([[0, 0, 0], [0, 0, 0]], r"canvas 0 is \[2, 3\] of int64; .* \[2, 10\] \(whole sequences\) or \[2, 2\]"),
    ],
)
def test_a_canvas_that_cannot_be_an_answer_is_refused(canvas: Sequence[Sequence[float]], reason: str) -> None:
    instances = replace(problems(2, cells=2), maskable_NA=np.ones((2, 2), dtype=np.bool_))
    with pytest.raises(HardtailError, match=reason):
        trace_of_canvases(instances, [np.array(canvas)], MASK)


@pytest.mark.parametrize("token", [255, 256, MOST_TOKENS - 1])
def test_the_largest_token_is_kept_as_it_is(token: int) -> None:
    instances = replace(problems(1, cells=2), maskable_NA=np.ones((1, 2), dtype=np.bool_))
    trace = trace_of_canvases(instances, [np.array([[token, 0]])], MASK)
    assert trace.answer_NA.tolist() == trace.token_NT.tolist() == [[token, 0]]
    canvases = [np.array([[token, 0]]), np.array([[1, 0]])]
    masked = trace_of_canvases(instances, canvases, token)
    assert masked.cell_NT.tolist() == [[1, 0]]
    np.testing.assert_array_equal(canvases_of(masked), canvases)


# -- parts of a large trace -------------------------------------------------------------------------------------------


def wide(n: int, cells: int, steps: int) -> Trace:
    """`n` rows of which the first cell was written in the last of `steps` steps."""
    maskable_NA = np.zeros((n, cells), dtype=np.bool_)
    maskable_NA[:, 0] = True
    tokens_NL = np.zeros((n, cells + 1), dtype=np.uint8)
    instances = Instances(tokens_NL, np.ones(n, dtype=np.int32), maskable_NA, maskable_NA, orders={})
    zero_N1 = np.zeros((n, 1), dtype=np.int16)
    return Trace(
        instances,
        MASK,
        np.zeros((n, cells), dtype=np.uint8),
        cell_NT=zero_N1,
        step_NT=zero_N1 + np.int16(steps - 1),
        token_NT=zero_N1.astype(np.uint8),
        prob_NT=zero_N1.astype(np.float32),
        gold_prob_NT=zero_N1.astype(np.float32),
        gold_rank_NT=zero_N1.astype(np.int32),
        runner_up_NT=zero_N1,
        margin_NT=zero_N1.astype(np.float32),
    )


@pytest.mark.parametrize(
    ("cells", "steps", "rows"),
    [(1672, 1, 2), (1671, 1, 3), (99, 20_971, 4), (99, 20_972, 3), (2895, 1, 1), (9000, 1, 1)],
)
def test_a_large_trace_is_read_in_parts_that_fit_in_memory(cells: int, steps: int, rows: int) -> None:
    """8 million pairs of cells, or of cells and steps, at a time; one row at least."""
    trace = wide(2 * rows + 1, cells, steps)
    parts = list(blocks(trace))
    assert [len(part) for part in parts] == [rows, rows, 1]
    pairs = rows * (cells + 1) * max(cells + 1, steps)
    assert rows == 1 or pairs <= 8 << 20 < pairs * (rows + 1) // rows
    assert parts[1].instances.tokens_NL.shape == (rows, cells + 1)


# -- one trace of several, and its name -------------------------------------------------------------------------------


def test_parts_of_a_trace_one_after_another() -> None:
    """A shorter part is lengthened by "no event"; passes are known only if every part knows them."""
    task = Addition(digits=4)
    trace = decode(adder(task), task.sample(3, "natural", seed=0), Top1())
    first: dict[str, Any] = {name: getattr(trace, name)[:, :3] for name in vars(trace) if name.endswith("_NT")}
    short = replace(trace, **first, notes={"doubt": np.arange(3.0)})
    whole = replace(trace, notes={"doubt": np.arange(3.0) + 5})
    both = Trace.concat([short, whole])
    assert both.cell_NT.shape == (6, 5)
    assert (both.cell_NT[:3, 3:] == -1).all()
    assert (both.runner_up_NT[:3, 3:] == -1).all()
    assert np.isnan(both.margin_NT[:3, 3:]).all()
    assert (both.step_NT[:3, 3:] == 0).all()
    assert both.notes["doubt"].tolist() == [0, 1, 2, 5, 6, 7]
    assert both.passes_N is not None
    assert both.passes_N.tolist() == [5] * 6
    assert Trace.concat([replace(short, passes_N=None), whole]).passes_N is None
    assert both.take(np.array([0, 4])).notes["doubt"].tolist() == [0, 6]
    frame = both.to_frame()
    assert len(frame) == 3 * 3 + 3 * 5
    assert list(frame.columns)[:4] == ["instance", "cell", "step", "token"]
    assert not frame["wrong"].any()


@pytest.mark.parametrize(
    ("about", "shown"),
    [
        ({}, "<Trace: 3 of 3 right>"),
        ({"policy": "top1"}, "<Trace: top1, 3 of 3 right>"),
        ({"x": 1, "policy": "top1", "model": "m"}, "<Trace: m, top1, 3 of 3 right>"),
    ],
)
def test_a_trace_is_shown_whatever_is_known_about_it(about: dict[str, Any], shown: str) -> None:
    task = Addition(digits=4)
    trace = decode(adder(task), task.sample(3, "natural", seed=0), Top1())
    assert repr(replace(trace, about=about)) == shown


def test_what_a_trace_says_about_itself_is_read_as_what_it_should_be() -> None:
    about = {"model": 5, "policy": "top1", "seed": "seven", "step": 3, "device": None, "other": "x"}
    assert TraceSource.of(about) == TraceSource(model="5", policy="top1", step=3)
    assert TraceSource.of({"seed": 4, "step": "x"}) == TraceSource(seed=4)
    assert TraceSource.of({"temperature": "warm", "restrict": 1, "decode_seed": 0.5}) == TraceSource()


@pytest.mark.parametrize(
    ("about", "how"),
    [
        ({}, ""),
        ({"commit_rule": "1 a step", "temperature": 0, "restrict": False, "decode_precision": ""}, ""),
        ({"temperature": 1}, "temperature 1"),
        ({"temperature": 1.0, "decode_seed": 3}, "temperature 1, decode seed 3"),
        ({"restrict": True, "commit_rule": "40 steps", "decode_precision": "bf16"}, "40 steps, restricted, bf16"),
    ],
)
def test_how_a_trace_was_decoded_is_said_if_it_is_not_as_usual(about: dict[str, Any], how: str) -> None:
    """Whole numbers are whole however they are written: a temperature of 0 is not one of its own."""
    assert TraceSource.of(about).how == how


# -- small figures ----------------------------------------------------------------------------------------------------


def test_a_probability_on_an_edge_is_in_the_bin_below_it() -> None:
    prob_K = np.array([0.0, 0.1, 0.5, 0.99, 0.991, 0.999, 1.0])
    right_K = np.array([False, True, True, False, True, True, True])
    found = calibration(prob_K, right_K)
    assert [(held.low, held.high, held.commits) for held in found.bins] == [
        (0.0, 0.1, 2),
        (0.4, 0.5, 1),
        (0.9, 0.99, 1),
        (0.99, 0.999, 2),
        (0.999, 1.0, 1),
    ]
    assert [(held.confidence, held.accuracy) for held in found.bins[:2]] == [(0.05, 0.5), (0.5, 1.0)]
    assert found.commits == 7
    assert found.accuracy == pytest.approx(5 / 7)
    assert found.confidence == pytest.approx(prob_K.mean())
    gaps = 2 * 0.45 + 0.5 + 0.99 + 2 * (1 - 0.995) + 0
    assert found.ece == pytest.approx(gaps / 7)
    nothing = calibration(prob_K[:0], right_K[:0])
    assert (nothing.commits, nothing.confidence, nothing.accuracy, nothing.ece, nothing.bins) == (
        0,
        None,
        None,
        None,
        (),
    )


def test_spreads_and_tallies() -> None:
    assert Spread.of(np.array([4, 1, 1, 10])) == Spread(4, 4.0, 2.5, 1.0, 10.0)
    assert Spread.of(np.array([])) == Spread(0, None, None, None, None)
    assert tally(np.array([3, 7, 3]), np.array([7, 3, 5, 3])) == {"3": 2, "5": 0, "7": 1}
