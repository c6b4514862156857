"""Policies that ask something fitted on a frozen model (`training.heads`). They are made in Python, as they hold it.

What is fitted reads the features of a forward pass over the same tokens. They are computed a second time here and
counted once, as one pass would give both.

Shapes: B batch, L sequence, A answer cells, K looks, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from hardtail.core.fields import AtLeastOne
from hardtail.policies.base import LIKELY_ROUNDS, Commit, Guess, Logits, Policy, State, in_tiles
from hardtail.policies.parallel import Threshold

Fitted = Callable[[Tensor, Tensor], Tensor]
"""`fitted(tokens_BL, at_BA)`: a number for each answer cell [B, A]."""

TILE = 32
"""Rows that a head is asked about together: as many as in decodes on a CPU (`decoding.sizes.CPU_BATCH`)."""


@dataclass(frozen=True)
class Planned(Policy):
    """The cell with the largest number of a planner first (P2's trained planner; Peng et al. 2025)."""

    planner: Fitted

    def score(self, guess: Guess, state: State) -> Tensor:
        return self.planner(state.tokens_BL, state.at_BA)


@dataclass(frozen=True)
class Suspects(Threshold):
    """Draft by threshold; then let a head name the `k` written cells that it trusts least, look at each of them with
    that cell alone hidden, write what differs, and ask the head again, until none of its suspects differs.

    The head is PRISM's (Kim et al. 2025): how likely a written token is right. A round costs one pass for the head, k
    for the looks, and one to write.
    """

    remasks: ClassVar[bool] = True

    head: Fitted = field(kw_only=True)
    """Higher where a cell is to be trusted."""
    k: AtLeastOne = 4
    rounds: AtLeastOne = 33

    def begin(self, state: State) -> dict[str, Tensor]:
        none_B = torch.zeros_like(state.key_B)
        return {
            "done_B": ~state.hidden_BA.any(dim=1),
            "writing_B": none_B.bool(),
            "rounds_B": none_B,
            "caught_B": none_B.clone(),  # cells that differed in the first round
            "new_BA": torch.zeros_like(state.at_BA),
        }

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        drafted_B = super().count(guess, score_BA, state, commit)
        return torch.where(state.memory["writing_B"], state.hidden_BA.sum(dim=1), drafted_B)

    def token(self, guess: Guess, state: State) -> Tensor:
        return torch.where(state.memory["writing_B"][:, None], state.memory["new_BA"], guess.token_BA)

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        memory = state.memory
        done_B, writing_B, rounds_B = memory["done_B"], memory["writing_B"], memory["rounds_B"]
        asks_B = ~state.hidden_BA.any(dim=1) & ~done_B
        spent_B = asks_B & (rounds_B >= self.rounds)
        asks_B = asks_B & ~spent_B
        new_BA = self._new(asks_B, state, logits) if bool(asks_B.any()) else state.token_BA
        differs_BA = asks_B[:, None] & (new_BA != state.token_BA)
        memory["caught_B"].add_(differs_BA.sum(dim=1) * (rounds_B == 0))
        rounds_B.add_(asks_B)
        done_B.logical_or_(spent_B | (asks_B & ~differs_BA.any(dim=1)))
        writing_B.copy_(differs_BA.any(dim=1))
        memory["new_BA"].copy_(new_BA)
        return differs_BA

    def _new(self, rows_B: Tensor, state: State, logits: Logits) -> Tensor:
        """The answers, with what the model says about each row's suspects."""
        row_R = rows_B.nonzero()[:, 0]
        tokens_RL, at_RA = state.tokens_BL[row_R], state.at_BA[row_R]
        logits(tokens_RL, at_RA[:, :1], row_R)  # the pass whose features the head reads
        trust_RA = in_tiles(self.head, TILE, tokens_RL, at_RA).masked_fill(~state.maskable_BA[row_R], torch.inf)
        k = min(self.k, trust_RA.shape[1])
        cell_Rk = trust_RA.argsort(dim=1, stable=True)[:, :k]
        row_K, cell_K = row_R.repeat_interleave(k), cell_Rk.flatten()
        may_K = state.maskable_BA[row_K, cell_K]  # a row may have fewer cells than k
        row_K, cell_K = row_K[may_K], cell_K[may_K]
        at_K1 = state.at_BA[row_K, cell_K][:, None]
        looked_KV = logits(state.tokens_BL[row_K].scatter(1, at_K1, state.mask_id), at_K1, row_K)[:, 0]
        new_BA = state.token_BA.clone()
        new_BA[row_K, cell_K] = looked_KV.argmax(dim=-1)
        return new_BA

    def finished(self, state: State) -> Tensor:
        return state.memory["done_B"]

    def notes(self, state: State) -> dict[str, Tensor]:
        """How many rounds there were, and how many cells differed in the first."""
        return {"rounds": state.memory["rounds_B"], "caught": state.memory["caught_B"]}

    def steps(self, cells: int, commit: Commit) -> int:
        return super().steps(cells, commit) + self.rounds

    def likely_passes(self, cells: int, commit: Commit) -> float:
        return super().likely_passes(cells, commit) + min(self.rounds, LIKELY_ROUNDS) * (self.k + 2)
