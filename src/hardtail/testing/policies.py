"""The contract of a policy: `check_policy(MyPolicy())` tests yours exactly as ours are tested.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from hardtail.core.noise import mix, unit
from hardtail.core.seeds import Streams
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Function
from hardtail.policies import nested
from hardtail.policies.base import Commit, Guess, Logits, Policy, State
from hardtail.tasks.base import Task
from hardtail.tasks.named import make_task
from hardtail.testing.host import forbid_host_reads

N = 70
"""More rows than a CPU decodes at a time."""


def check_policy(policy: Policy, task: Task | None = None) -> None:
    """Everything that the decoder relies on, with a model that guesses at random, on short sums by default."""
    task = task or make_task("addition", digits=8)
    instances = _partly_shown(task.sample(N, Streams(7).named("contract/policy")))
    mask_id, size = task.vocabulary.mask_id, task.vocabulary.size
    denoiser = Function(lambda tokens_BL, at_BA: _logits(tokens_BL, at_BA, size), mask_id)

    predicts_all = True
    """Whether the policy is shown predictions for cells that are never hidden, too."""

    def shown(guess: Guess, state: State) -> Guess:
        return guess if predicts_all else _of_maskable(guess, state)

    class Watched(type(policy)):  # type: ignore[misc]
        """The policy, with its answers checked on their way to the decoder."""

        def score(self, guess: Guess, state: State) -> Tensor:
            before = (state.tokens_BL.clone(), state.hidden_BA.clone())
            with self._captured("score"):
                score_BA: Tensor = super().score(shown(guess, state), state)
            assert score_BA.dtype == torch.float32, "scores are not float32"
            assert not (score_BA.isnan() & state.hidden_BA).any(), "a hidden cell's score is NaN"
            assert torch.equal(before[0], state.tokens_BL), "score changes the tokens"
            assert torch.equal(before[1], state.hidden_BA), "score changes what is hidden"
            return score_BA

        def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
            with self._captured("count"):
                count_B: Tensor = super().count(shown(guess, state), score_BA, state, commit)
            return count_B

        def token(self, guess: Guess, state: State) -> Tensor:
            with self._captured("token"):
                token_BA: Tensor = super().token(shown(guess, state), state)
            return token_BA

        def overwrite(self, guess: Guess, state: State) -> Tensor | None:
            with self._captured("overwrite"):
                anew_BA: Tensor | None = super().overwrite(shown(guess, state), state)
            return anew_BA

        def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
            with self._captured("review"):
                further = _no_pass if policy.capturable else logits
                again_BA: Tensor = super().review(shown(guess, state), state, further)
            return again_BA

        def _captured(self, method: str) -> AbstractContextManager[object]:
            return forbid_host_reads(method) if policy.capturable else nullcontext()

        def finished(self, state: State) -> Tensor:
            with self._captured("finished"):
                done_B: Tensor = super().finished(state)
            assert not (done_B & state.hidden_BA.any(dim=1)).any(), "a row with hidden cells counts as finished"
            return done_B

    watched = Watched(**vars(policy))

    def run(chosen: Instances, batch: int | None = None) -> Trace:
        with _as_on_a_gpu() if policy.capturable else nullcontext():
            return decode(denoiser, chosen, watched, Decoding(batch=batch, seed=3))

    whole = run(instances)
    _check_story(policy, whole, mask_id)
    order_N = np.random.default_rng(1).permutation(N)
    assert same_decode(whole, run(instances)), "the same seed decodes differently"
    assert same_decode(whole, run(instances, batch=2 * N)), "the result depends on the batch size"
    assert same_decode(whole.take(order_N), run(instances.take(order_N))), "the result depends on the rows' order"
    assert same_decode(whole.take(slice(3, 8)), run(instances.take(slice(3, 8)))), "the result depends on other rows"
    predicts_all = False
    assert same_decode(whole, run(instances)), "the result depends on the prediction for a cell that is never hidden"


def same_decode(one: Trace, other: Trace) -> bool:
    """Whether two traces are the same bit for bit, however many columns without events they have."""
    both = (Trace.concat([one, other]).take(slice(len(one))), Trace.concat([other, one]).take(slice(len(other))))
    mine, theirs = (trace.arrays() for trace in both)
    return mine.keys() == theirs.keys() and all(
        np.array_equal(mine[name].view(np.uint8), theirs[name].view(np.uint8)) for name in mine
    )


def _of_maskable(guess: Guess, state: State) -> Guess:
    """The guess as a model gives it that predicts only cells that may be hidden: logits of 0 elsewhere."""
    never_BA = ~state.maskable_BA
    logits_BAV = guess.logits_BAV.masked_fill(never_BA[..., None], 0.0)
    log_p_BAV = logits_BAV.log_softmax(dim=-1)
    token_BA = guess.token_BA.masked_fill(never_BA, 0)
    return Guess(logits_BAV, log_p_BAV, token_BA, log_p_BAV.amax(dim=-1))


def _as_on_a_gpu() -> AbstractContextManager[object]:
    """Let `perhaps` read no value, as where the host would have to wait for it."""
    return patch.object(nested, "asking_waits", lambda device: True)


def _no_pass(tokens_KL: Tensor, at_KA: Tensor, row_K: Tensor) -> Tensor:
    raise AssertionError("review makes a further pass, which a captured step cannot; `capturable` must be False")


def _check_story(policy: Policy, trace: Trace, mask_id: int) -> None:
    """The events lead from hidden cells to the answer, and every step commits a cell."""
    instances = trace.instances
    assert (trace.answer_NA != mask_id).all(), "cells are left hidden"
    for row in range(len(trace)):
        answer_A = np.where(instances.maskable_NA[row], np.int64(mask_id), instances.answer_NA[row])
        happened_T = trace.happened_NT[row]
        for cell, token in zip(trace.cell_NT[row, happened_T], trace.token_NT[row, happened_T], strict=True):
            assert instances.maskable_NA[row, cell], "a cell that is never hidden is written"
            assert (answer_A[cell] == mask_id) != (token == mask_id), "a cell is revealed or hidden twice"
            answer_A[cell] = token
        assert (answer_A == trace.answer_NA[row]).all(), "the events do not lead to the answer"
        commits = int(trace.commit_NT[row].sum())
        assert policy.remasks or commits == instances.maskable_NA[row].sum(), "a cell is committed more than once"
        steps_T = trace.step_NT[row, trace.commit_NT[row]]
        assert set(steps_T.tolist()) >= set(range(int(steps_T.max(initial=-1)) + 1)) or policy.remasks, (
            "a step commits nothing although cells are hidden"
        )


def _partly_shown(instances: Instances) -> Instances:
    """Answers of which different numbers of cells are hidden, down to none."""
    shown_NA = np.random.default_rng(0).random(instances.maskable_NA.shape) < np.linspace(0, 1, len(instances))[:, None]
    return replace(instances, maskable_NA=instances.maskable_NA & ~shown_NA)


def _logits(tokens_BL: Tensor, at_BA: Tensor, size: int) -> Tensor:
    """A random model: numbers in 0 … 12 that depend on every token of the row."""
    place_L = torch.arange(tokens_BL.shape[1], device=tokens_BL.device)
    key_B = mix(mix(mix(tokens_BL + 1) + place_L).sum(dim=1))
    token_V = torch.arange(size, device=at_BA.device)
    return 12 * unit(mix(mix(key_B[:, None, None] + at_BA[..., None] * 64 + token_V)))
