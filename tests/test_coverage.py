"""States that a decode visits against those that training had: counts, ranks, and what is rare."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from hardtail import Streams
from hardtail.core import records
from hardtail.core.errors import HardtailError
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.diagnosis.coverage import Histogram, compare, visits
from hardtail.policies.check import Check
from hardtail.policies.named import policy_named
from hardtail.schemes.base import Corpus
from hardtail.schemes.random import Random
from hardtail.tasks.addition.task import Addition
from hardtail.training.step import SeenStates
from tests.decoding_toys import TOY, problems
from tests.diagnose_toys import SMALL, gold_trace, lsb_trace, remasked_trace, small
from tests.planted import adder


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


def test_ranks_count_only_where_training_counted_them() -> None:
    """With an order, with one that training did not count by, and with none."""
    task = Addition(digits=3)
    trace = decode(adder(task), task.sample(20, Streams(1).named("coverage")), Check(rounds=1))
    by_rank = visits(trace, "lsb")
    merged = by_rank.with_ranks(1)
    assert merged.rank_KR.tolist() == by_rank.rank_KR.sum(axis=1, keepdims=True).tolist()
    assert by_rank.with_ranks(6).rank_KR.shape[1] == 6
    two = Histogram(merged.count_K, np.repeat(merged.rank_KR, 2, axis=1))
    assert two.with_ranks(2).rank_KR.tolist() == two.rank_KR.tolist()
    assert compare(trace, by_rank, "lsb").rank_distance == pytest.approx(0)
    for trained, order in ((merged, "lsb"), (by_rank, None)):
        gap = compare(trace, trained, order)
        assert (gap.order, gap.rank_distance, gap.rare_commits) == (None, None, None)
        assert gap.count_distance == pytest.approx(0)


@pytest.mark.parametrize(("trained", "rare"), [(1, 0.0), (0, 1.0)])
def test_a_tenth_of_what_uniform_masking_shows_is_not_rare(trained: int, rare: float) -> None:
    """One cell can be hidden, so uniform masking always hides it; training did so in one of ten states."""
    instances = problems(1, cells=2)
    alone = replace(instances, maskable_NA=np.array([[True, False]]), scored_NA=np.array([[True, False]]))
    trace = decode(TOY, alone, policy_named("top1"))
    count_K = np.array([0, trained, 10 - trained])
    gap = compare(trace, Histogram(count_K, np.stack([count_K, np.zeros_like(count_K)], axis=1)), "zigzag")
    assert (gap.rare_by_count, gap.rare_commits) == (rare, rare if trained == 0 else gap.rare_commits)


def test_a_single_state_is_all_there_is() -> None:
    alone = Histogram(np.array([0, 1]), np.array([[0], [1]]))
    assert [share.tolist() for share in alone.shares()] == [[0, 1], [[0], [1]]]


@pytest.mark.parametrize(("orders", "known"), [((), "none"), (("zigzag",), "zigzag")])
def test_an_order_that_a_trace_does_not_have_is_refused(orders: Sequence[str], known: str) -> None:
    instances = problems(4)
    held = replace(instances, orders={name: instances.orders[name] for name in orders})
    trace = decode(TOY, held, Check(rounds=1))
    with pytest.raises(HardtailError, match=f"its orders are: {known}$"):
        compare(trace, visits(trace), "lsb")
