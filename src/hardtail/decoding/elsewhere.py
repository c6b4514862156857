"""Our policies inside other projects' samplers, with the signatures of the functions that they call in every step.

A sampler of the LLaDA kind asks which masked tokens to keep (`transfer_index`); Dream's passes every new canvas through
a hook (`tokens_hook`). Both see whole sequences, so every masked position is a cell, the model's own vocabulary is the
vocabulary, and there are no logical orders. Policies that take tokens back, or that ask for further forward passes,
need a loop of their own and are refused.

Shapes: B batch, S the model's sequence, W the model's vocabulary.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.noise import mix, signed
from hardtail.policies.base import Commit, Guess, Policy, State, fitting, only_hidden, ranked, refuse_unscored


@dataclass(frozen=True)
class _Asked(Commit):
    """As many cells as a sampler asks for in each row."""

    asked_B: Tensor = field(kw_only=True)

    def count(self, state: State) -> Tensor:
        return self.asked_B


class PolicyElsewhere:
    """A policy for one generation by another project's sampler; make a new one for the next."""

    def __init__(self, policy: Policy, mask_id: int, commit: Commit = Commit(), seed: int = 0) -> None:  # noqa: B008
        if policy.remasks:
            raise HardtailError(f"{policy} takes tokens back, which other samplers cannot do; decode with hardtail")
        self.policy, self.mask_id, self.commit, self.seed = policy, mask_id, commit, seed
        self._state: State | None = None
        self._canvas: Tensor | None = None

    def transfer_index(
        self,
        logits: Tensor,
        temperature: float,
        remasking: str,
        mask_index: Tensor,
        x: Tensor,
        num_transfer_tokens: Tensor | None = None,
        threshold: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        """In place of `get_transfer_index` of LLaDA's samplers: a token for every position, and which of them to keep.

        `num_transfer_tokens` is how many to keep in each row, in place of `commit`. A policy that decides that itself
        may keep fewer, so that its sampler has to go on until no mask is left. `remasking` and `threshold` are the
        sampler's own policy, which this one replaces; only a temperature of 0 is supported.
        """
        if temperature:
            raise HardtailError(
                f"the temperature is {temperature}; a policy in another sampler takes the best token only"
            )
        logits_BSW = self._committable(logits)
        state = self._at(x, mask_index, logits_BSW.shape[-1])
        log_p_BSW = logits_BSW.log_softmax(dim=-1)
        top_BS, token_BS = log_p_BSW.max(dim=-1)
        guess = Guess(logits_BSW, log_p_BSW, token_BS, top_BS)
        policy, hidden_B = self.policy, mask_index.sum(dim=1)
        score_BS = fitting(policy.score(guess, state), mask_index, policy, "score")
        refuse_unscored((score_BS.isnan() & mask_index).any(), policy)
        score_BS = only_hidden(score_BS, mask_index)
        asked = num_transfer_tokens
        commit = self.commit if asked is None else _Asked(asked_B=asked.reshape(-1))
        count_B = fitting(policy.count(guess, score_BS, state, commit), hidden_B, policy, "count")
        count_B = count_B.clamp(min=1).minimum(hidden_B)
        token_BS = fitting(policy.token(guess, state), token_BS, policy, "token")
        _, best_BS = ranked(score_BS)
        first_BS = torch.arange(x.shape[1], device=x.device) < count_B[:, None]
        state.step.add_(1)
        return torch.where(mask_index, token_BS, x), torch.zeros_like(mask_index).scatter_(1, best_BS, first_BS)

    def tokens_hook(self, step: int | None, x: Tensor, logits: Tensor | None) -> Tensor:
        """As Dream's `generation_tokens_hook_func`: the canvas that the policy makes, whatever Dream chose.

        The number of tokens is that of `commit`; give Dream at least as many `steps` as that takes.
        """
        if self._canvas is None or logits is None:  # the call before the first step
            self._canvas = x.clone()
            return x
        hidden_BS = self._canvas == self.mask_id
        if bool(hidden_BS.any()):
            token_BS, keep_BS = self.transfer_index(logits, 0.0, "", hidden_BS, self._canvas)
            self._canvas = torch.where(keep_BS, token_BS, self._canvas)
        return self._canvas.clone()

    def _committable(self, logits: Tensor) -> Tensor:
        """The logits, with -inf for the mask."""
        barred = torch.zeros(logits.shape[-1], dtype=torch.bool, device=logits.device)
        barred[self.mask_id] = True
        return logits.float().masked_fill(barred, -torch.inf)

    def _at(self, x: Tensor, hidden_BS: Tensor, vocab_size: int) -> State:
        """The state of this step; the policy's memory lasts from the first step on."""
        if self._state is None:
            places_BS = torch.arange(x.shape[1], device=x.device).expand_as(x)
            row_B = torch.arange(len(x), device=x.device)
            key_B = mix(mix(torch.full_like(row_B, signed(self.seed))) + row_B)
            step = torch.zeros((), dtype=torch.int64, device=x.device)
            self._state = State(x, places_BS, hidden_BS, hidden_BS.clone(), key_B, step, self.mask_id, vocab_size)
            self._state.memory = self.policy.begin(self._state)
        self._state.tokens_BL, self._state.hidden_BA = x, hidden_BS
        return self._state
