"""What small faults change and no other test held, in schemes, policies, decoding and measuring."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.records import Accuracy
from hardtail.decoding import workers
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring import evaluate
from hardtail.measuring.diagnosis.coverage import Histogram, compare, visits
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.policies.base import Guess, Policy, State
from hardtail.policies.check import Check
from hardtail.policies.named import policy_named
from hardtail.schemes import Corpus
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.puma import Puma, official
from hardtail.schemes.stages import Fixed
from hardtail.tasks.addition.task import Addition
from hardtail.traces.canvases import MOST_CANVASES, trace_of_canvases
from tests.decoding_toys import MASK, TOY, hashed_logits, problems
from tests.planted import adder

# -- policies and schemes -------------------------------------------------------------------------------------------


def test_pumas_release_has_eight_stages() -> None:
    wanted = Puma(Fixed(8), "interval", None, start="spread", refill="fraction", new_k="rebuild")
    assert official() == wanted
    assert official(Fixed(5), 0.7).stages == Fixed(5)
    assert official(Fixed(5), 0.7).threshold == 0.7


@pytest.mark.parametrize("place", ["first", "second"])
def test_a_mixture_of_mixtures_is_refused(place: str) -> None:
    with pytest.raises(HardtailError, match="must not be mixtures themselves"):
        Mixture(**{place: Mixture()})  # type: ignore[arg-type]


@pytest.mark.parametrize(("bare", "known"), [(False, "zigzag"), (True, "none: build the data without --bare")])
def test_an_order_that_data_do_not_have_is_refused_with_those_they_have(bare: bool, known: str) -> None:
    instances = problems(40)
    instances = instances.bare() if bare else instances
    with pytest.raises(HardtailError, match=f"no order 'lsb'; they have {known}$"):
        Corpus.on(torch.device("cpu"), instances, MASK, "lsb")


@dataclass(frozen=True)
class OneForAll(Policy):
    """Keeps one number for the whole batch."""

    def begin(self, state: State) -> dict[str, Tensor]:
        return {"once": torch.zeros(1)}

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA


def test_a_policy_inside_another_keeps_something_for_every_row() -> None:
    with pytest.raises(HardtailError, match=r"keeps 'once' \[1\]; inside another policy"):
        decode(TOY, problems(30), Check(OneForAll(), then="refill", rounds=3))


@dataclass(frozen=True)
class Only(Policy):
    """Wants one cell, and refuses all others until it is written."""

    cell: int = 4

    def score(self, guess: Guess, state: State) -> Tensor:
        wanted_A = torch.arange(state.hidden_BA.shape[1]) == self.cell
        return torch.where(wanted_A, 0.0, -torch.inf).expand_as(guess.top_BA)


def test_a_refused_cell_is_no_runner_up() -> None:
    instances = problems(200)
    full = instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1))[:3])
    trace = decode(TOY, full, Only())
    assert (trace.cell_NT[:, 0] == 4).all()
    assert (trace.runner_up_NT[:, 0] == -1).all()
    assert np.isnan(trace.margin_NT[:, 0]).all()


def test_notes_are_about_the_instances_and_not_the_rest_of_the_batch() -> None:
    trace = decode(TOY, problems(5), Check(rounds=1), Decoding(batch=16))
    assert {name: len(note_N) for name, note_N in trace.notes.items()} == dict.fromkeys(trace.notes, 5)
    assert trace.notes


@pytest.mark.parametrize(("cores", "threads", "wanted"), [(1, 2, 1), (2, 1, 1), (2, 2, 2)])
def test_workers_are_no_more_than_cores_or_threads(
    cores: int, threads: int, wanted: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "usable_cores", lambda: cores)
    ours = hardtail.load("zoo:addition-random").denoiser
    with workers.computing_threads(threads):
        assert workers.worker_count(ours, Decoding()) == wanted


@pytest.mark.parametrize(("asked", "threads"), [(None, 2), (1, 1)])
def test_a_denoiser_that_is_not_ours_keeps_its_threads_unless_one_worker_is_asked_for(
    asked: int | None, threads: int
) -> None:
    seen: set[int] = set()

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        seen.add(torch.get_num_threads())
        return hashed_logits(tokens_BL, at_BA)

    with workers.computing_threads(2):
        decode(Function(logits, MASK), problems(4), Check(rounds=1), Decoding(workers=asked))
    assert seen == {threads}


def test_our_own_model_computes_in_one_thread_also_if_there_is_one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bytes of a result do not depend on how many threads torch would take."""
    subject, seen = hardtail.load("zoo:addition-random"), set[int]()
    assert isinstance(subject.denoiser, ModelDenoiser)
    forward = subject.denoiser._forward

    def noted(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        seen.add(torch.get_num_threads())
        return forward(tokens_BL, at_BA)

    monkeypatch.setattr(subject.denoiser, "_forward", noted)
    monkeypatch.setattr(workers, "usable_cores", lambda: 1)
    with workers.computing_threads(2):
        decode(subject.denoiser, subject.task.sample(2, "natural", seed=0), policy_named("threshold"))
    assert seen == {1}


@pytest.mark.parametrize("more", [0, 1])
def test_a_trace_may_have_as_many_steps_as_it_can_count(more: int) -> None:
    instances = problems(1, cells=1)
    full = replace(instances, maskable_NA=np.ones((1, 1), dtype=np.bool_))
    steps = [np.array([[step % 2]]) for step in range(MOST_CANVASES + more)]
    if more:
        with pytest.raises(HardtailError, match="a trace can have 32,767 steps"):
            trace_of_canvases(full, steps, MASK)
    else:
        assert trace_of_canvases(full, steps, MASK).step_NT.max() == MOST_CANVASES - 1


@pytest.mark.parametrize("policy", ["threshold,p=0.01", "top1", "check,rounds=2"])
def test_every_instance_is_reported_as_done_also_if_all_end_early(policy: str) -> None:
    done = list[int]()
    decode(TOY, problems(70), policy_named(policy), progress=done.append)
    assert sum(done) == 70
    assert min(done) >= 0


def test_the_time_of_a_measurement_is_the_time_it_took(monkeypatch: pytest.MonkeyPatch) -> None:
    readings = iter([100.0, 107.25])
    monkeypatch.setattr(evaluate, "monotonic", lambda: next(readings))
    subject = hardtail.load("zoo:addition-random")
    found = evaluate.evaluate_all(subject, {"top1": policy_named("top1")}, ["natural"], 2, Decoding(), data_seed=0)
    (record,) = [held for held in evaluate.records_of(list(found)) if isinstance(held, Accuracy)]
    assert record.wall == 7.25


# -- coverage -------------------------------------------------------------------------------------------------------


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
