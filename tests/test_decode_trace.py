"""What a decode writes into its trace: events, the notes of each, notes about instances, and tokens that fit."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hardtail import HardtailError
from hardtail.core.types import MOST_TOKENS
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit, Guess, Policy, State
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from tests.decoding_toys import MASK, NAMES, TOY, hashed_logits, problems, toy_policy


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", NAMES)
def test_events_are_the_story_of_the_answer(name: str, temperature: float) -> None:
    policy, instances = toy_policy(name), problems(70)
    trace = decode(TOY, instances, policy, Decoding(temperature=temperature))
    assert (trace.answer_NA != MASK).all()
    np.testing.assert_array_equal(trace.answer_NA[~instances.maskable_NA], instances.answer_NA[~instances.maskable_NA])
    for row in range(len(trace)):
        answer_A = np.where(instances.maskable_NA[row], MASK, instances.answer_NA[row])
        events = int(trace.happened_NT[row].sum())
        assert trace.happened_NT[row, :events].all()
        assert (np.diff(trace.step_NT[row, :events]) >= 0).all()
        for cell, token in zip(trace.cell_NT[row, :events], trace.token_NT[row, :events], strict=True):
            assert instances.maskable_NA[row, cell]
            assert (answer_A[cell] == MASK) != (token == MASK)  # a hidden cell is revealed, or a revealed one hidden
            answer_A[cell] = token
        np.testing.assert_array_equal(answer_A, trace.answer_NA[row])
        if not policy.remasks:
            assert sorted(trace.cell_NT[row, :events]) == list(np.flatnonzero(instances.maskable_NA[row]))
    assert np.isfinite(trace.prob_NT).all()
    assert (trace.prob_NT[trace.commit_NT] > 0).all()


def test_the_notes_of_an_event() -> None:
    """Probability, gold token's probability and rank, runner-up and margin, against one look by hand."""
    instances = problems(30)
    trace = decode(TOY, instances, Top1(), Decoding(Commit(each=2)))
    hidden_NA = instances.maskable_NA
    tokens_NL = instances.tokens_NL.copy()
    np.put_along_axis(tokens_NL, instances.answer_at_NA, np.where(hidden_NA, MASK, instances.answer_NA), axis=1)
    logits = TOY.logits(torch.from_numpy(tokens_NL).long(), torch.from_numpy(instances.answer_at_NA)).double().numpy()
    logits[..., MASK] = -np.inf
    p_NAV = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    for row in range(len(trace)):
        order = sorted(np.flatnonzero(hidden_NA[row]), key=lambda cell: (-p_NAV[row, cell].max(), cell))
        for event, cell in enumerate(order[:2]):
            gold = instances.answer_NA[row, cell]
            assert trace.cell_NT[row, event] == cell
            assert trace.token_NT[row, event] == p_NAV[row, cell].argmax()
            np.testing.assert_allclose(trace.prob_NT[row, event], p_NAV[row, cell].max(), rtol=1e-5)
            np.testing.assert_allclose(trace.gold_prob_NT[row, event], p_NAV[row, cell, gold], rtol=1e-4)
            assert trace.gold_rank_NT[row, event] == (p_NAV[row, cell] > p_NAV[row, cell, gold]).sum()
            if len(order) <= 2:
                assert trace.runner_up_NT[row, event] == -1
                assert np.isnan(trace.margin_NT[row, event])
            else:
                margin = np.log(p_NAV[row, cell].max()) - np.log(p_NAV[row, order[2]].max())
                assert trace.runner_up_NT[row, event] == order[2]
                np.testing.assert_allclose(trace.margin_NT[row, event], margin, atol=1e-5)


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


@pytest.mark.parametrize(("mask_id", "fits"), [(MOST_TOKENS, False), (-1, False), (0, True)])
def test_a_mask_that_no_trace_can_hold_is_refused(mask_id: int, fits: bool) -> None:
    asked = Function(hashed_logits, mask_id)
    alone = replace(problems(1, cells=1), maskable_NA=np.ones((1, 1), dtype=np.bool_))
    if fits:
        assert decode(asked, alone, policy_named("top1")).mask_id == mask_id
    else:
        with pytest.raises(HardtailError, match=f"8 tokens and its mask is {mask_id:,}; traces hold tokens from 0"):
            decode(asked, alone, policy_named("top1"))
