"""Parallel rules: the distributions themselves decide how many cells a step commits.

Every rule applies row by row and commits at least the best cell. Only `Klass` uses `Commit`, if no cell is ready.

Shapes: B batch, A answer cells, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from hardtail.core.fields import AtLeastOne, Bounds
from hardtail.policies.base import Commit, Guess, State, ranked
from hardtail.policies.confidence import Top1, negative_entropy


@dataclass(frozen=True)
class Parallel(Top1):
    """A rule that may commit a single cell in every step; by top-1 probability unless it scores otherwise."""

    def steps(self, cells: int, commit: Commit) -> int:
        return cells

    def likely_passes(self, cells: int, commit: Commit) -> float:
        """Between the single pass that a model needs if it is sure, and one for each cell."""
        return math.sqrt(cells)


@dataclass(frozen=True)
class TopK(Parallel):
    """The k cells with the largest top-1 probability."""

    k: AtLeastOne = 2

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        return torch.full_like(state.key_B, self.k)

    def likely_passes(self, cells: int, commit: Commit) -> float:
        return -(-cells // self.k)


@dataclass(frozen=True)
class Threshold(Parallel):
    """Every cell whose top-1 probability is at least p (Fast-dLLM, Wu et al. 2025)."""

    p: Annotated[float, Bounds(gt=0, le=1)] = 0.9

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        return (score_BA.exp() >= self.p).sum(dim=1)


@dataclass(frozen=True)
class Factor(Parallel):
    """The largest n with (n + 1)(1 - c_n) < f, c_n the n-th largest top-1 probability (Fast-dLLM, Wu et al. 2025).

    The left side grows with n, so that the n-th cell passes exactly when the n best all do. f is 1 in their code.
    """

    f: Annotated[float, Bounds(gt=0)] = 1.0

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        doubt_BA = -torch.expm1(ranked(score_BA)[0])  # 1 - c_n, exact where c_n is nearly 1
        n_A = torch.arange(1, doubt_BA.shape[1] + 1, device=doubt_BA.device)
        return ((n_A + 1) * doubt_BA < self.f).sum(dim=1)


@dataclass(frozen=True)
class EntropyBounded(Parallel):
    """The longest run of cells, by rising entropy, with Σ H - max H ≤ γ (EB-Sampler, Ben-Hamu et al. 2025).

    Sum and maximum are over the cells of the run, in one row. As entropies rise along it, the maximum is the last one's
    and Σ H - max H is the sum of those before it.
    """

    gamma: Annotated[float, Bounds(ge=0)] = 0.1

    def score(self, guess: Guess, state: State) -> Tensor:
        return negative_entropy(guess)

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        entropy_BA = -ranked(score_BA)[0]
        before_BA = entropy_BA.cumsum(dim=1).roll(1, dims=1)
        before_BA[:, 0] = 0
        return (before_BA <= self.gamma).sum(dim=1)


@dataclass(frozen=True)
class Klass(Parallel):
    """Every cell that is sure and steady: top-1 probability > p, and KL(p_t ‖ p_{t-1}) < kl in each of the last
    `history` steps; if no cell is, the surest ones, as many as `Commit` says (KLASS, Kim et al. 2025).
    """

    p: Annotated[float, Bounds(gt=0, lt=1)] = 0.9
    kl: Annotated[float, Bounds(gt=0)] = 0.01
    history: AtLeastOne = 2

    def begin(self, state: State) -> dict[str, Tensor]:
        steady_BA = torch.zeros_like(state.at_BA)
        return {
            "last_BAV": torch.full((*steady_BA.shape, state.vocab_size), torch.nan, device=steady_BA.device),
            "steady_BA": steady_BA,
            "ready_BA": torch.zeros_like(state.hidden_BA),
        }

    def score(self, guess: Guess, state: State) -> Tensor:
        last_BAV, steady_BA, ready_BA = (state.memory[name] for name in ("last_BAV", "steady_BA", "ready_BA"))
        p_BAV = guess.p_BAV
        change_BAV = (guess.log_p_BAV - last_BAV).masked_fill(p_BAV == 0, 0.0)  # impossible tokens add nothing
        moved_BA = ~((p_BAV * change_BAV).sum(dim=-1) < self.kl)  # NaN at first: there is nothing to compare with
        steady_BA.add_(1).masked_fill_(moved_BA, 0)
        last_BAV.copy_(guess.log_p_BAV)
        ready_BA.copy_((steady_BA >= self.history) & (guess.top_BA.exp() > self.p))
        return guess.top_BA + ready_BA * (1 - math.log(self.p))  # ready: above 1; others: log p, at most 0

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        ready_B = (state.memory["ready_BA"] & state.hidden_BA).sum(dim=1)
        return torch.where(ready_B > 0, ready_B, commit.count(state))

    def likely_passes(self, cells: int, commit: Commit) -> float:
        return self.history + super().likely_passes(cells, commit)
