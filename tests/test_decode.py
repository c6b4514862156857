"""The decoding loop: what holds for every policy, what changes no result, and what a bad request is told."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

import hardtail
from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances, Trace
from hardtail.decoding import sizes
from hardtail.decoding.elsewhere import PolicyElsewhere
from hardtail.decoding.loop import WINDOW, decode, decode_stream
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import CPU_BATCH, batch_rows, in_flight, tile
from hardtail.measuring.looking import judge
from hardtail.models.denoiser import Function, ModelDenoiser, refuse_strangers
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.base import Commit, Policy
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from hardtail.policies.orders import Blocks, Logical
from hardtail.policies.remask import P2, ReMDM
from hardtail.testing import check_policy
from tests.decoding_toys import (
    CELLS,
    MASK,
    NAMES,
    TOY,
    VOCAB,
    PlainEntropy,
    hashed_logits,
    problems,
    same_trace,
    toy_policy,
)

OWN_ORDER = ("noisy", "random", "r2l", "zigzag", "tests.decoding_toys:EveryOther")
"""Policies that tell cells apart though the denoiser does not."""


def hidden_after_NS(trace: Trace) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """How many cells are hidden after each step."""
    steps = int(trace.step_NT.max()) + 1
    change_NT = np.where(trace.commit_NT, -1, 1) * trace.happened_NT
    change_NS = np.stack([(change_NT * (trace.step_NT == step)).sum(axis=1) for step in range(steps)], axis=1)
    return np.asarray(trace.instances.maskable_NA.sum(axis=1)[:, None] + change_NS.cumsum(axis=1))


# -- what holds for every policy ----------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_a_row_is_decoded_as_if_alone(name: str, temperature: float) -> None:
    """Other batch sizes, another order, other neighbours: the same bits."""
    policy, instances = toy_policy(name), problems(150)

    def run(chosen: Instances, batch: int | None = None) -> Trace:
        return decode(TOY, chosen, policy, Decoding(batch=batch, temperature=temperature))

    whole = run(instances)
    assert same_trace(whole, run(instances, batch=100))
    order_N = np.random.default_rng(1).permutation(150)
    assert same_trace(whole.take(order_N), run(instances.take(order_N)))
    assert same_trace(whole.take(slice(3, 8)), run(instances.take(slice(3, 8))))


@pytest.mark.parametrize("name", ["top1", "loo"])
@pytest.mark.parametrize("n", [1, 33])
def test_every_look_on_a_cpu_has_the_same_number_of_rows(name: str, n: int) -> None:
    """Matrix products of another shape may round differently: one row by a vector, say."""
    rows: set[int] = set()

    def watched(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        rows.add(len(tokens_BL))
        return hashed_logits(tokens_BL, at_BA)

    decode(Function(watched, MASK), problems(n), toy_policy(name), Decoding(batch=64))
    assert rows == {tile(problems(n).tokens_NL.shape[1])}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", NAMES)
def test_a_gpu_commits_the_same(name: str) -> None:
    """In captured graphs, or without where the policy is not capturable; a warning that it cannot be would fail."""
    cpu, gpu = (
        decode(TOY, problems(150), toy_policy(name), Decoding(device=device, batch=64)) for device in ("cpu", "cuda")
    )
    for array in ("answer_NA", "cell_NT", "step_NT", "token_NT", "runner_up_NT"):
        np.testing.assert_array_equal(getattr(cpu, array), getattr(gpu, array))
    np.testing.assert_allclose(cpu.prob_NT, gpu.prob_NT, rtol=1e-5)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", [name for name in NAMES if toy_policy(name).remasks])
def test_a_gpu_commits_the_same_with_a_graph_for_fewer_and_fewer_rows(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "GPU_TILE_TOKENS", 32 * problems(1).tokens_NL.shape[1])
    cpu, gpu = (
        decode(TOY, problems(300), toy_policy(name), Decoding(device=device, batch=256)) for device in ("cpu", "cuda")
    )
    for array in ("answer_NA", "cell_NT", "step_NT", "token_NT", "runner_up_NT", "passes_N"):
        np.testing.assert_array_equal(getattr(cpu, array), getattr(gpu, array))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("batch", [1, 3])
def test_a_gpu_takes_fewer_rows_than_a_cpu_would(batch: int) -> None:
    many, few = (
        decode(TOY, problems(7), toy_policy("top1"), Decoding(device="cuda", batch=rows)) for rows in (64, batch)
    )
    np.testing.assert_array_equal(many.answer_NA, few.answer_NA)
    np.testing.assert_array_equal(many.cell_NT, few.cell_NT)


@pytest.mark.parametrize("name", NAMES)
def test_a_denoiser_need_not_answer_for_the_mask(name: str) -> None:
    silent = Function(lambda tokens_BL, at_BA: hashed_logits(tokens_BL, at_BA)[..., :MASK], MASK)
    instances = problems(20)
    assert same_trace(decode(silent, instances, toy_policy(name)), decode(TOY, instances, toy_policy(name)))


@pytest.mark.parametrize("name", NAMES)
def test_only_allowed_tokens_are_committed(name: str) -> None:
    trace = decode(TOY, problems(40), toy_policy(name), Decoding(allowed=[2, 5, MASK]))
    assert set(trace.token_NT[trace.commit_NT]) == {2, 5}
    free = decode(TOY, problems(40), toy_policy(name))
    assert set(free.token_NT[free.commit_NT]) == set(range(MASK))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OWN_ORDER])
def test_equal_scores_go_by_position(name: str) -> None:
    """A denoiser that says the same of every cell."""
    flat = Function(lambda tokens_BL, at_BA: torch.zeros((*at_BA.shape, VOCAB)), MASK)
    instances = problems(20)
    trace = decode(flat, instances, toy_policy(name), Decoding(Commit(each=2)))
    for row in range(len(trace)):
        committed = trace.cell_NT[row][trace.commit_NT[row]]
        first_time = list(dict.fromkeys(committed.tolist()))
        assert first_time == np.flatnonzero(instances.maskable_NA[row]).tolist()


# -- how many cells a step commits --------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [1, 2, 4, 7, 50])
@pytest.mark.parametrize("policy", [Top1(), Logical("zigzag"), ReMDM(eta=0.5), P2(eta=4.0)], ids=str)
def test_a_number_of_steps(policy: Policy, steps: int) -> None:
    instances = problems(40)
    trace = decode(TOY, instances, policy, Decoding(Commit(steps=steps)))
    hidden_NS = hidden_after_NS(trace)
    for row, hidden in enumerate(instances.maskable_NA.sum(axis=1)):
        expected: list[int] = []
        while hidden:
            hidden -= -(-hidden // (steps - len(expected)))
            expected.append(hidden)
        assert len(expected) == min(steps, instances.maskable_NA[row].sum())
        expected += [0] * (hidden_NS.shape[1] - len(expected))
        assert hidden_NS[row].tolist() == expected


@pytest.mark.parametrize("each", [1, 2, 4, 20])
@pytest.mark.parametrize("policy", [Top1(), Logical("zigzag"), ReMDM(eta=0.5), P2(eta=4.0)], ids=str)
def test_a_number_of_cells_a_step(policy: Policy, each: int) -> None:
    instances = problems(40)
    hidden_NS = hidden_after_NS(decode(TOY, instances, policy, Decoding(Commit(each=each))))
    start_N = instances.maskable_NA.sum(axis=1)
    expected_NS = np.maximum(start_N[:, None] - each * np.arange(1, hidden_NS.shape[1] + 1), 0)
    np.testing.assert_array_equal(hidden_NS, expected_NS)


# -- a real model -------------------------------------------------------------------------------------------------


@cache
def tiny(name: str) -> tuple[ModelDenoiser, Instances]:
    """A model with large random weights, so that its distributions differ, and 70 instances; some cells are given."""
    task = hardtail.task(name, digits=6) if name == "addition" else hardtail.task(name)
    instances = task.sample(70, hardtail.Streams(0).named("decode"))
    model = Transformer(Shape(2, 2, 24, task.vocabulary.size, task.seq_len))
    model.initialise(torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(4)
    keep_NA = np.random.default_rng(0).random(instances.maskable_NA.shape) < 0.7
    chosen_NA = instances.maskable_NA & keep_NA & (np.arange(instances.answer_len) < 12)
    return ModelDenoiser(model, task.vocabulary.mask_id), replace(instances, maskable_NA=chosen_NA)


@pytest.mark.parametrize("name", ["top1", "entropy", "random", "eb", "klass", "loo", "remdm,eta=0.3", "p2"])
def test_a_model_decodes_the_same_in_any_company(name: str) -> None:
    denoiser, instances = tiny("addition")
    policy = policy_named(name)
    whole = decode(denoiser, instances, policy, Decoding(seed=3))
    assert len(np.unique(whole.prob_NT[whole.commit_NT])) > 100  # the model is no constant
    for n in (1, 5, 33):
        assert same_trace(whole.take(slice(n)), decode(denoiser, instances.take(slice(n)), policy, Decoding(seed=3)))
    order_N = np.random.default_rng(0).permutation(70)
    assert same_trace(
        whole.take(order_N), decode(denoiser, instances.take(order_N), policy, Decoding(seed=3, batch=64))
    )


@pytest.mark.parametrize("name", ["post_order", "block", "loo,rounds=2"])
def test_prompts_of_different_lengths(name: str) -> None:
    pytest.importorskip("numba", reason="trees are drawn by compiled code")
    denoiser, instances = tiny("listops")
    assert len(set(instances.prompt_len_N)) > 5
    policy = policy_named(name, ("post_order",))
    whole = decode(denoiser, instances, policy)
    assert same_trace(whole.take(slice(5, 9)), decode(denoiser, instances.take(slice(5, 9)), policy))
    assert (whole.answer_NA != denoiser.mask_id).all()


# -- sampling -----------------------------------------------------------------------------------------------------


def test_sampling_is_seeded() -> None:
    first, again, other = (
        decode(TOY, problems(50), Top1(), Decoding(temperature=1.0, seed=seed)) for seed in (4, 4, 5)
    )
    assert same_trace(first, again)
    assert (first.answer_NA != other.answer_NA).any(axis=1).mean() > 0.5


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
def test_sampled_tokens_have_the_probabilities(temperature: float) -> None:
    p_V = torch.tensor([0.5, 0.25, 0.15, 0.1, 0, 0, 0, 0])
    fixed = Function(lambda tokens_BL, at_BA: p_V.log().expand(*at_BA.shape, VOCAB), MASK)
    instances = problems(3000)
    trace = decode(
        fixed, replace(instances, maskable_NA=np.ones_like(instances.maskable_NA)), Top1(), Decoding(Commit(steps=3))
    )
    assert (trace.answer_NA == 0).all()  # without a temperature, always the most probable
    trace = decode(fixed, instances, Top1(), Decoding(Commit(steps=3), temperature=temperature))
    drawn = trace.token_NT[trace.commit_NT]
    expected_V = (p_V ** (1 / temperature) / (p_V ** (1 / temperature)).sum()).numpy()
    observed_V = np.bincount(drawn, minlength=VOCAB) / len(drawn)
    assert (np.abs(observed_V - expected_V) <= 4 * np.sqrt(expected_V * (1 - expected_V) / len(drawn))).all()


# -- many instances, bad requests ---------------------------------------------------------------------------------


def test_a_stream_is_bounded_and_in_order() -> None:
    part, instances = CPU_BATCH * WINDOW, problems(2 * CPU_BATCH * WINDOW + 70, cells=3)
    parts = list(decode_stream(TOY, instances, Top1(), Decoding(batch=1), about={"task": "toy"}))
    assert [len(one) for one in parts] == [part, part, 70]
    finished: list[int] = []
    whole = decode(TOY, instances, Top1(), progress=finished.append, about={"task": "toy"})
    assert sum(finished) == len(instances)
    assert same_trace(whole, Trace.concat(parts))
    assert whole.about == {"task": "toy"}
    np.testing.assert_array_equal(whole.instances.tokens_NL, instances.tokens_NL)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"instances": problems(0)}, "nothing to decode"),
        ({"batch": 0}, "batch is 0"),
        ({"temperature": -1.0}, "temperature is -1"),
        ({"allowed": [MASK]}, "no token may be committed"),
        ({"policy": Logical("lsb")}, "no order 'lsb'; they carry zigzag"),
        ({"policy": Logical("lsb"), "instances": problems(3).bare()}, "no order 'lsb'; they carry none"),
        (
            {"policy": Blocks(), "commit": Commit(steps=4, schedule="dream")},
            "evenly among its blocks, not by .*dream",
        ),
    ],
)
def test_a_bad_request_is_one_sentence(change: dict[str, Any], words: str) -> None:
    request: dict[str, Any] = {"instances": problems(3), "policy": Top1()} | change
    instances, policy = request.pop("instances"), request.pop("policy")
    with pytest.raises(HardtailError, match=words) as caught:
        decode(TOY, instances, policy, Decoding(**request))
    assert "\n" not in str(caught.value)


def test_a_policy_whose_scores_are_nan_is_refused() -> None:
    """It would decode from the first cell to the last, whatever it is meant to do."""
    with pytest.raises(HardtailError, match=r"^PlainEntropy\(\): score returned NaN .* use torch\.special\.entr"):
        decode(TOY, problems(3), PlainEntropy())
    with pytest.raises(AssertionError, match="a hidden cell's score is NaN"):
        check_policy(PlainEntropy())
    x = torch.full((2, CELLS), MASK)
    with pytest.raises(HardtailError, match="score returned NaN"):
        PolicyElsewhere(PlainEntropy(), MASK).transfer_index(torch.randn(2, CELLS, VOCAB), 0.0, "", x == MASK, x)


def test_a_commit_of_nothing_is_refused() -> None:
    with pytest.raises(HardtailError, match="at least 1"):
        Commit(each=0)
    with pytest.raises(HardtailError, match="at least 1"):
        Commit(steps=0)
    with pytest.raises(HardtailError, match="give that total too"):
        Commit(schedule="dream")


def test_an_instance_with_nothing_hidden_is_left_alone() -> None:
    given = replace(problems(3), maskable_NA=np.zeros((3, CELLS), dtype=bool))
    trace = decode(TOY, given, Top1())
    np.testing.assert_array_equal(trace.answer_NA, given.answer_NA)
    assert not trace.happened_NT.any()


def test_how_many_rows_are_decoded_at_a_time() -> None:
    cpu = Decoding()
    assert [in_flight(n, cpu) for n in (1, 32, 33, 1000)] == [32] * 4
    assert [in_flight(1000, replace(cpu, batch=batch)) for batch in (1, 32, 33, 5000)] == [32, 32, 64, 1024]
    assert [tile(length) for length in (1, 100_000)] == [32, 4]
    assert all(tile(length) >= tile(length + 1) for length in range(1, 3000))
    assert [batch_rows(256, n, 8, 2) for n in (1, 16, 17, 5000)] == [8, 8, 16, 256]
    assert batch_rows(256, 1, 8, 1) == 256


def test_tokens_that_the_denoiser_does_not_know() -> None:
    refuse_strangers(9, 10)
    with pytest.raises(HardtailError, match="tokens up to 10, but the denoiser predicts only 10 tokens"):
        refuse_strangers(10, 10)


def test_sequences_that_are_too_long_for_the_model_are_refused() -> None:
    """Kernels that read past its positions would find numbers there."""
    denoiser, _ = tiny("addition")
    longer = hardtail.task("addition", digits=7).sample(2, hardtail.Streams(0).named("longer"))
    with pytest.raises(HardtailError, match="24 cells are too long for this model, which was made for 21"):
        decode(denoiser, longer, policy_named("top1"))


@pytest.mark.parametrize("stranger", [-1, 99])
def test_prompts_with_tokens_that_the_model_does_not_know_are_refused(stranger: int) -> None:
    """Kernels that read outside its table would find numbers there."""
    denoiser, instances = tiny("addition")
    tokens_NL = instances.tokens_NL.astype(np.int32)
    tokens_NL[3, 0] = stranger
    given, known = replace(instances, tokens_NL=tokens_NL), hardtail.task("addition").vocabulary.size - 1
    told = f"{stranger}.* the model knows only those from 0 to {known}; give it problems of its own task"
    with pytest.raises(HardtailError, match=told):
        decode(denoiser, given, policy_named("top1"))
    with pytest.raises(HardtailError, match=told):
        judge(denoiser, given, given.maskable_NA, Decoding(), "probe")


@pytest.mark.parametrize("mask", [-1, 99])
def test_a_mask_that_the_model_does_not_know_is_refused(mask: int) -> None:
    denoiser, instances = tiny("addition")
    with pytest.raises(HardtailError, match=f"the mask is token {mask}, but the model knows only those from 0 to"):
        decode(ModelDenoiser(denoiser.model, mask), instances, policy_named("top1"))
