"""The confidence family: commit the cell that the denoiser is surest about, in one of the senses of "sure".

Shapes: B batch, A answer cells, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.core.fields import NonNegative
from hardtail.core.noise import gumbel, stream
from hardtail.policies.base import Guess, Policy, State

_ORDER, _GUMBEL = stream("order"), stream("gumbel")


@dataclass(frozen=True)
class Top1(Policy):
    """The largest probability of any token: max_v p(v) (MaskGIT, Chang et al. 2022)."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA


@dataclass(frozen=True)
class MaxLogit(Policy):
    """The largest raw logit: the released order of addition, ListOps and Countdown (docs/study.md §1.10)."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.logits_BAV.amax(dim=-1)


@dataclass(frozen=True)
class Margin(Policy):
    """The largest gap between the two most probable tokens: p₁ - p₂ (Kim et al. 2025)."""

    def score(self, guess: Guess, state: State) -> Tensor:
        first_BA, second_BA = guess.p_BAV.topk(2, dim=-1).values.unbind(dim=-1)
        return first_BA - second_BA


@dataclass(frozen=True)
class Entropy(Policy):
    """The smallest entropy, that is the largest Σ p log p (Dream, Ye et al. 2025)."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return negative_entropy(guess)


@dataclass(frozen=True)
class Noisy(Policy):
    """Top-1 with noise: log max_v p(v) + t · g, with standard Gumbel noise g for every cell and step. One cell a step
    is then drawn with probability ∝ (max_v p(v))^(1/t) (the noise of MaskGIT's sampler, without its cooling).
    """

    t: NonNegative = 0.1
    """0 is `top1`; above about 1 the order is nearly random."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA + self.t * gumbel(state.noise(_GUMBEL, state.hidden_BA.shape[1]))


@dataclass(frozen=True)
class RandomOrder(Policy):
    """Uniformly random among the hidden cells, seeded per instance."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return state.noise(_ORDER, state.hidden_BA.shape[1])


def negative_entropy(guess: Guess) -> Tensor:
    """Σ_v p(v) log p(v), at most 0; impossible tokens add nothing."""
    return torch.special.entr(guess.p_BAV).sum(dim=-1).neg()
