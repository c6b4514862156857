"""Which cells a decode predicts: those that may be hidden, and a few more; what it writes is as if it predicted all."""

from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail.core.types import Instances, Trace
from hardtail.decoding import loop, sizes
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import predicts_some
from hardtail.models.denoiser import Denoiser, Function, ModelDenoiser
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.base import Commit, Guess, Policy, State
from hardtail.policies.confidence import Top1
from hardtail.testing import check_policy
from hardtail.testing.host import forbid_host_reads
from tests.decoding_toys import MASK, NAMES, VOCAB, problems, same_trace, toy_policy

CELLS = 40
ON_GPU = Decoding(device="cuda")
WRITTEN = ("answer_NA", "cell_NT", "step_NT", "token_NT", "gold_rank_NT", "runner_up_NT", "passes_N")


@cache
def model(vocab: int = VOCAB, length: int = 8 + CELLS) -> Transformer:
    """Large random weights, so that predictions differ from cell to cell."""
    drawn = Transformer(Shape(2, 2, 24, vocab, length)).initialise(torch.Generator().manual_seed(0))
    with torch.no_grad():
        for parameter in drawn.parameters():
            parameter.mul_(4)
    return drawn


def ours() -> ModelDenoiser:
    return ModelDenoiser(model(), MASK)


def whole(denoiser: ModelDenoiser) -> Denoiser:
    """The same model, as somebody else's that predicts every answer cell."""
    return Function(denoiser.packed().logits, denoiser.mask_id)


def ragged(n: int = 40) -> Instances:
    """0 to 40 cells of 40 may be hidden."""
    return problems(n, seed=1, cells=CELLS)


def assert_alike(one: Trace, other: Trace) -> None:
    """The same up to rounding."""
    for name in WRITTEN:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("prob_NT", "gold_prob_NT"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(one.margin_NT, other.margin_NT, rtol=1e-3, atol=1e-4)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The rows and cells of every forward pass."""
    seen = list[tuple[int, int]]()
    usual = ModelDenoiser.logits

    def logits(self: ModelDenoiser, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        seen.append((len(at_BA), at_BA.shape[1]))
        return usual(self, tokens_BL, at_BA)

    monkeypatch.setattr(ModelDenoiser, "logits", logits)
    return seen


@pytest.mark.parametrize("name", NAMES)
def test_a_policy_reads_no_cell_that_is_not_predicted(name: str) -> None:
    """It would decide otherwise if all of them were."""
    doing = Decoding(Commit(each=2), temperature=0.5)
    policy, instances = toy_policy(name), ragged()
    assert_alike(decode(ours(), instances, policy, doing), decode(whole(ours()), instances, policy, doing))


@pytest.mark.parametrize("name", ["top1", "zigzag", "klass", "loo,rounds=2", "remdm,eta=0.3", "p2", "check,rounds=1"])
def test_rows_with_more_or_fewer_maskable_cells_change_no_bit(name: str) -> None:
    policy, instances, doing = toy_policy(name), ragged(70), Decoding(seed=3)
    together = decode(ours(), instances, policy, doing)
    assert len(np.unique(sizes.predicted(instances.maskable_NA.sum(axis=1), CELLS, doing))) == 3
    for part in (slice(1), slice(5), slice(33, 70)):
        assert same_trace(together.take(part), decode(ours(), instances.take(part), policy, doing))
    order_N = np.random.default_rng(0).permutation(70)
    assert same_trace(together.take(order_N), decode(ours(), instances.take(order_N), policy, doing))


def test_a_row_is_predicted_at_as_many_cells_whatever_else_is_decoded(asked: list[tuple[int, int]]) -> None:
    """Matrix products of another shape may round differently."""
    instances, rows = ragged(70), sizes.tile(8 + CELLS)
    few = instances.take(instances.maskable_NA.sum(axis=1) < 17)
    for chosen, wanted in ((instances, {16, 32, CELLS}), (few, {16})):
        asked.clear()
        decode(ours(), chosen, Top1(), Decoding(Commit(steps=2)))
        assert set(asked) - {(1, cells) for cells in wanted} == {(rows, cells) for cells in wanted}


def test_somebody_elses_model_is_asked_about_every_cell() -> None:
    """It may need their places to know where the prompt ends."""
    seen = set[int]()

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        seen.add(at_BA.shape[1])
        return ours().logits(tokens_BL, at_BA)

    decode(Function(logits, MASK), ragged(), Top1(), Decoding(Commit(steps=2)))
    assert seen == {CELLS}


def test_a_compiled_model_is_asked_about_every_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would be compiled anew for each number of cells."""
    monkeypatch.setattr(torch, "compile", lambda model, **how: model)
    assert predicts_some(ours())
    assert not predicts_some(ModelDenoiser(model(), MASK, compiled=True))


@torch.no_grad()
def obvious(denoiser: ModelDenoiser, instances: Instances) -> np.ndarray[Any, Any]:
    """The answers of the loop as it is usually written, one problem at a time, with logits of the whole sequence."""
    answers = []
    for i in range(len(instances)):
        tokens = torch.from_numpy(instances.tokens_NL[i]).long()
        at, hidden = torch.from_numpy(instances.answer_at_NA[i]), torch.from_numpy(instances.maskable_NA[i].copy())
        tokens[at[hidden]] = denoiser.mask_id
        while hidden.any():
            logits = denoiser.model(tokens[None], torch.arange(len(tokens))[None])[0, at]
            logits[:, denoiser.mask_id] = -torch.inf
            surest, token = logits.softmax(-1).max(-1)
            cell = surest.masked_fill(~hidden, -1).argmax()
            tokens[at[cell]] = token[cell]
            hidden[cell] = False
        answers.append(tokens[at].numpy())
    return np.stack(answers)


def test_mazes_are_answered_as_by_the_obvious_loop(asked: list[tuple[int, int]]) -> None:
    """Less than half of a maze's cells may be hidden; here even fewer, and more in one maze than in another."""
    task = hardtail.task("maze")
    drawn = task.sample(4, hardtail.Streams(0).named("predicted"))
    rng = np.random.default_rng(0)
    keep_NA = rng.random(drawn.maskable_NA.shape) < np.array([[1.0], [0.2], [0.05], [0.0]])
    instances = replace(drawn, maskable_NA=drawn.maskable_NA & keep_NA)
    denoiser = ModelDenoiser(model(task.vocabulary.size, task.seq_len), task.vocabulary.mask_id)
    trace = decode(denoiser, instances, Top1())
    assert {cells for _, cells in asked} >= {208, 16}
    assert max(cells for _, cells in asked) == 208  # of 441; 197 may be hidden
    np.testing.assert_array_equal(trace.answer_NA, obvious(denoiser, instances))
    assert len(np.unique(trace.answer_NA[instances.maskable_NA])) > 1


@pytest.mark.parametrize("name", ["top1", "klass", "p2", "check,rounds=1"])
def test_a_captured_step_predicts_the_cells_of_every_later_batch(
    name: str, asked: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU, except that a replay computes anew: all rows go together, at as many cells as the fullest needs."""

    def captured(work: Any, device: torch.device, warm_up: int) -> Any:
        def replay() -> None:
            with forbid_host_reads("a step"):
                work()

        return replay

    every, policy, doing = ragged(70), toy_policy(name), Decoding(batch=32, workers=1)
    count_N = every.maskable_NA.sum(axis=1)
    fullest_last_N = np.argsort(count_N, kind="stable")[: (count_N <= 32).sum()]
    instances = every.take(fullest_last_N)
    usual = decode(ours(), instances, policy, doing)
    asked.clear()
    monkeypatch.setattr(loop, "captured", captured)
    monkeypatch.setattr(loop, "replays", lambda device: True)
    monkeypatch.setattr(loop, "WINDOW", 1)  # batches in the order that they were given
    monkeypatch.setattr(loop, "predicted", lambda maskable_N, answer, on: sizes.predicted(maskable_N, answer, ON_GPU))
    assert_alike(decode(ours(), instances, policy, doing), usual)
    assert {cells for _, cells in asked} == {32}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("name", ["top1", "klass", "p2"])
def test_a_gpu_predicts_all_cells_that_a_row_may_hide(name: str) -> None:
    """A step that was captured for rows with few cells would leave out some of a later row's."""
    every, policy = ragged(), toy_policy(name)
    there = ModelDenoiser(deepcopy(model()).to("cuda"), MASK)
    for most in (16, 32, CELLS, 16):
        instances = every.take(every.maskable_NA.sum(axis=1) <= most)
        assert_alike(decode(there, instances, policy, ON_GPU), decode(ours(), instances, policy))
    assert len(there.loops) == 3


def test_cells_go_in_steps_and_on_a_gpu_all_rows_go_together() -> None:
    maskable_N = np.array([0, 3, 16, 17, 40])
    assert sizes.predicted(maskable_N, 40, Decoding()).tolist() == [16, 16, 16, 32, 40]
    assert sizes.predicted(maskable_N, 40, ON_GPU).tolist() == [40] * 5
    assert sizes.predicted(np.array([190, 197]), 441, ON_GPU).tolist() == [208] * 2
    assert sizes.predicted(np.array([5]), 9, Decoding()).tolist() == [9]


@dataclass(frozen=True)
class Nosy(Policy):
    """Hurries where the whole answer looks sure, what is given included."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        return 1 + (guess.top_BA.exp() > 0.5).sum(dim=1)


def test_a_policy_that_reads_a_cell_that_is_not_predicted_is_caught() -> None:
    with pytest.raises(AssertionError, match="depends on the prediction for a cell that is never hidden"):
        check_policy(Nosy())
    with pytest.raises(AssertionError):
        assert_alike(decode(ours(), ragged(), Nosy()), decode(whole(ours()), ragged(), Nosy()))
