"""Readiness, agreement, calibration and coverage: against plain loops, and on decodes small enough to do by hand.

Shapes: N instances, A answer cells, T events, S steps.
"""

import json
from dataclasses import replace
from io import StringIO
from typing import cast

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from rich.console import Console

from hardtail.diagnose import diagnose, tables
from hardtail.diagnose.by_stratum import by_stratum
from hardtail.diagnose.calibration import calibration
from hardtail.diagnose.coverage import Histogram, compare, visits
from hardtail.diagnose.kendall import rank_correlation
from hardtail.diagnose.prerequisites import closure, direct, prerequisites
from hardtail.diagnose.readiness import readiness
from hardtail.diagnose.states import hidden_before, standing, visited
from hardtail.errors import HardtailError
from hardtail.registry import TASKS
from hardtail.schemes.base import Corpus
from hardtail.seeds import Stream
from hardtail.tables import Table
from hardtail.tasks.addition import Addition
from hardtail.tasks.base import Task
from hardtail.train.step import Coverage
from hardtail.types import Instances, Trace

Event = tuple[int, int, int | None]
"""A step, a cell, and the token that is written there; None hides it again."""


def trace_of(task: Task, instances: Instances, events: list[list[Event]], prob: float = 1.0) -> Trace:
    """A trace from the events of each instance."""
    mask_id = task.vocabulary.mask_id
    shape = (len(instances), max(map(len, events)))
    cell_NT, step_NT, token_NT = np.full(shape, -1, np.int16), np.zeros(shape, np.int16), np.zeros(shape, np.uint8)
    answer_NA = np.where(instances.maskable_NA, mask_id, instances.answer_NA).astype(np.uint8)
    for n, row in enumerate(events):
        for t, (step, cell, token) in enumerate(row):
            step_NT[n, t], cell_NT[n, t] = step, cell
            token_NT[n, t] = answer_NA[n, cell] = mask_id if token is None else token
    prob_NT = np.full(shape, prob, np.float32)
    zeros_NT = np.zeros(shape, np.int32)
    return Trace(
        instances, mask_id, answer_NA, cell_NT, step_NT, token_NT, prob_NT, prob_NT, zeros_NT, cell_NT, prob_NT
    )


def gold_trace(task: Task, instances: Instances, score_NA: NDArray[np.floating], each: int = 1) -> Trace:
    """The gold answers, committed from the lowest score on, so many a step."""
    events: list[list[Event]] = []
    for n in range(len(instances)):
        cells = np.flatnonzero(instances.maskable_NA[n])
        cells = cells[np.argsort(score_NA[n, cells], kind="stable")]
        events.append([(place // each, int(cell), int(instances.answer(n)[cell])) for place, cell in enumerate(cells)])
    return trace_of(task, instances, events)


def remasked_trace(task: Task, instances: Instances, rng: np.random.Generator) -> tuple[Trace, list[list[set[int]]]]:
    """A decode that commits some hidden cells and hides some others again, and what was hidden before each step."""
    events: list[list[Event]] = []
    states: list[list[set[int]]] = []
    for n in range(len(instances)):
        hidden = set(np.flatnonzero(instances.maskable_NA[n]).tolist())
        row: list[Event] = []
        seen: list[set[int]] = []
        for step in range(int(rng.integers(3, 12))):
            if not hidden:
                break
            seen.append(set(hidden))
            chosen = rng.permutation(sorted(hidden))[: rng.integers(1, 4)].tolist()
            row += [(step, cell, int(rng.integers(0, 10))) for cell in chosen]
            hidden -= set(chosen)
            shown = sorted(set(np.flatnonzero(instances.maskable_NA[n]).tolist()) - hidden)
            again = rng.permutation(shown)[: rng.integers(0, 3)].tolist()
            row += [(step, cell, None) for cell in again]
            hidden |= set(again)
        events.append(row)
        states.append(seen)
    return trace_of(task, instances, events), states


SMALL = Addition(digits=8)


def small(n: int = 30) -> Instances:
    return SMALL.sample(n, Stream("small"), "chain>=3")


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
    training = Coverage(corpus)
    training.note(corpus.rows(torch.tensor([n for n, _ in rows])).hide(hidden_BA, corpus))
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


def lsb_trace(sign: int = 1) -> Trace:
    """Addition from the lowest digit on, or from the highest."""
    return gold_trace(SMALL, small(), sign * small().orders["lsb"])


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
        ({"by_count": [0, 1]}, "no coverage of a run"),
        ({"by_count": ["many"], "by_count_and_rank": [[1]]}, "no coverage of a run"),
        ({"by_count": [0, 1, 2], "by_count_and_rank": [[1], [2]]}, "as many rows"),
        ({"by_count": [0] * 10, "by_count_and_rank": [[0]] * 10}, "empty"),
        ({"by_count": [1] * 34, "by_count_and_rank": [[1]] * 34}, "33 answer cells"),
    ],
)
def test_a_coverage_that_does_not_fit_is_refused_in_a_sentence(coverage: dict[str, object], says: str) -> None:
    with pytest.raises(HardtailError, match=says):
        diagnose(SMALL, lsb_trace(), coverage)


# -- the front ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TASKS.names())
def test_every_task_is_diagnosed_and_its_orders_wait_for_prerequisites(name: str) -> None:
    task = TASKS.load(name)()
    instances = task.sample(6, Stream("front"))
    trained = {"by_count": [1] * (task.answer_len + 1), "by_count_and_rank": [[1, 1]] * (task.answer_len + 1)}
    for order, rank_NA in instances.orders.items():
        trace = gold_trace(task, instances, rank_NA)
        found = diagnose(task, trace, trained, order)
        assert json.loads(json.dumps(found, allow_nan=False)) == found
        assert found["result"]["exact_match"] == 1.0
        assert found["readiness"]["agreement"][order]["gamma"] == 1.0
        if trace.instances.parents_NAE is not None and trace.instances.parents_NAE.shape[2]:
            assert found["readiness"]["premature"] == 0
    backwards = diagnose(task, gold_trace(task, instances, -instances.orders[task.order_names[0]]))["readiness"]
    assert backwards["premature"] == backwards["accuracy"]["unready"]["commits"] > 0
    assert backwards["agreement"][task.order_names[0]]["gamma"] == -1.0
    for table in tables(found):
        assert len({len(table.columns), *map(len, table.rows)}) == 1, table.title
        assert table.markdown().count("\n") == len(table.rows) + 4
        assert table.rich().row_count == len(table.rows)


def test_first_wrong_commits_by_stratum_are_those_of_a_replay() -> None:
    trace, states = remasked_trace(SMALL, small(40), np.random.default_rng(4))
    odd_N = np.arange(40) % 2 == 1
    found = by_stratum(SMALL, trace, {"even": ~odd_N, "odd": odd_N, "none": np.zeros(40, dtype=np.bool_)})
    parents_NAE, held = trace.instances.parents_NAE, standing(trace)
    assert parents_NAE is not None
    for name, rows in {"all": range(40), "even": range(0, 40, 2), "odd": range(1, 40, 2)}.items():
        unready, steps = [], []
        for n in rows:
            wrong = np.flatnonzero(held.there_NA[n] & ~held.right_NA[n])
            if wrong.size:
                first = min(wrong, key=lambda cell: held.event_NA[n, cell])
                step = int(held.step_NA[n, first])
                steps.append(step)
                unready.append(int(parents_NAE[n, first, 0]) in states[n][step])
        line = found[name]
        assert (line.n, line.failures) == (len(rows), int((~trace.exact_N[list(rows)]).sum()))
        assert line.exact_match == line.valid == 1 - line.failures / line.n
        assert line.unready == pytest.approx(np.mean(unready))
        assert line.step == np.median(steps)
        assert 0 < np.mean(unready) < 1
    assert (found["none"].n, found["none"].exact_match, found["none"].unready) == (0, None, None)


@pytest.mark.parametrize("name", TASKS.names())
def test_no_table_of_a_diagnosis_is_cut_off(name: str) -> None:
    """On a screen of 100 columns: an ellipsis in a heading hides what the numbers are."""
    task, rng = TASKS.load(name)(), np.random.default_rng(5)
    instances = task.sample(60, Stream("tables"))
    events: list[list[Event]] = []
    for n in range(len(instances)):
        cells = rng.permutation(np.flatnonzero(instances.maskable_NA[n]))
        tokens = np.where(rng.random(cells.size) < 0.2, task.answer_tokens[0], instances.answer(n)[cells])
        events.append([(step, int(cell), int(tokens[step])) for step, cell in enumerate(cells)])
    trace = trace_of(task, instances, events, prob=0.09936)
    trained = {"by_count": [1] * (task.answer_len + 1), "by_count_and_rank": [[1, 1]] * (task.answer_len + 1)}
    strata = ("natural", "heldout=1,m=4-10")
    groups = {stratum: np.arange(60) % 2 == place for place, stratum in enumerate(strata)}
    shown = tables(diagnose(task, trace, trained, groups=groups))
    assert [table.columns[0] for table in shown if table.title == "first wrong commits: by stratum"] == [""]
    for width in (100, 120):
        for table in shown:
            console = Console(width=width, file=StringIO(), color_system=None)
            console.print(table.rich())
            text = cast(StringIO, console.file).getvalue()
            assert "…" not in text, text


def test_what_cannot_be_diagnosed_is_refused_in_a_sentence() -> None:
    trace = lsb_trace()
    assert diagnose(SMALL, replace(trace, about={"temperature": float("nan")}))["about"] == {"temperature": None}
    with pytest.raises(HardtailError, match="no instance"):
        diagnose(SMALL, trace.take(slice(0, 0)))
    with pytest.raises(HardtailError, match="9 answer cells"):
        diagnose(Addition(), trace)
    with pytest.raises(HardtailError, match="no order 'msb'"):
        diagnose(SMALL, trace, {"by_count": [1] * 10, "by_count_and_rank": [[1, 1]] * 10}, "msb")
    with pytest.raises(HardtailError, match="parents"):
        readiness(SMALL, replace(trace, instances=trace.instances.bare()))


def test_a_decode_with_nothing_to_do_has_counts_of_zero_and_no_means() -> None:
    instances = replace(small(3), maskable_NA=np.zeros((3, 9), dtype=np.bool_))
    found = diagnose(
        SMALL, trace_of(SMALL, instances, [[], [], []]), {"by_count": [1] * 10, "by_count_and_rank": [[1]] * 10}
    )
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert found["readiness"]["commits"] == found["coverage"]["states"] == 0
    assert found["readiness"]["premature_share"] is None


def test_a_table_for_documents() -> None:
    table = Table("Two | three", ("what", "how many", "share"), (("a|b", 12_345, 0.123456), ("c", None, 1.0)))
    assert table.markdown().splitlines() == [
        "**Two | three**",
        "",
        "| what | how many | share |",
        "| :-- | --: | --: |",
        "| a\\|b | 12,345 | 0.1235 |",
        "| c | – | 1 |",
    ]
