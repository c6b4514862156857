"""Orders that are fixed in advance: along the sequence, block by block, or a task's own logic.

Shapes: B batch, A answer cells.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne
from hardtail.policies.base import Commit, Guess, Policy, State, ranked


@dataclass(frozen=True)
class LeftToRight(Policy):
    """The first hidden cell."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return -_place_BA(state)


@dataclass(frozen=True)
class RightToLeft(Policy):
    """The last hidden cell."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return _place_BA(state)


@dataclass(frozen=True)
class Logical(Policy):
    """A task's logical order, the lowest rank first; equal ranks by top-1 probability."""

    order: str

    def begin(self, state: State) -> dict[str, Tensor]:
        if self.order not in state.orders:
            known = f"they carry {', '.join(state.orders)}" if state.orders else "they carry none, as if built `--bare`"
            raise HardtailError(f"the instances have no order {self.order!r}; {known}")
        return {}

    def score(self, guess: Guess, state: State) -> Tensor:
        """Minus the cell's place in the whole order: a rank and a probability do not fit into one float32."""
        _, sure_BA = ranked(guess.top_BA.masked_fill(~state.maskable_BA, -torch.inf))
        _, by_rank_BA = ranked(-state.orders[self.order].gather(1, sure_BA))  # stable: equal ranks stay by probability
        place_BA = _place_BA(state)
        return torch.empty_like(place_BA).scatter_(1, sure_BA.gather(1, by_rank_BA), -place_BA)


@dataclass(frozen=True)
class Blocks(Policy):
    """Semi-autoregressive (LLaDA, Nie et al. 2025): blocks from left to right, by top-1 probability inside a block.

    No step goes beyond the current block, so there are at least as many steps as blocks, whatever `Commit` asks for.
    A total of steps is divided equally among the blocks, as LLaDA's `steps` and `block_length` are.
    """

    size: AtLeastOne = 8
    """Answer cells of a block."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA.masked_fill(~self._now_BA(state), -torch.inf)

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        now_BA = self._now_BA(state)
        now_B, cells = now_BA.sum(dim=1), now_BA.shape[1]
        if commit.steps is None:
            return commit.count(state).minimum(now_B)
        if commit.schedule != "even":
            raise HardtailError(
                f"block divides a total of steps evenly among its blocks, not by the schedule {commit.schedule!r}; "
                "leave the schedule out, or give another policy"
            )
        share = max(commit.steps // -(-cells // self.size), 1)
        block_B = now_BA.to(torch.uint8).argmax(dim=1) // self.size
        left_B = ((block_B + 1) * share - state.taken).clamp(min=1)
        return (now_B + left_B - 1) // left_B

    def steps(self, cells: int, commit: Commit) -> int:
        return cells

    def _now_BA(self, state: State) -> Tensor:
        """The hidden cells of the first block that has any."""
        block_A = torch.arange(state.hidden_BA.shape[1], device=state.hidden_BA.device) // self.size
        beyond = len(block_A)
        first_B1 = torch.where(state.hidden_BA, block_A, beyond).amin(dim=1, keepdim=True)
        return state.hidden_BA & (block_A == first_B1)


def _place_BA(state: State) -> Tensor:
    """0, 1, 2 … along every row, in float32."""
    cells = state.hidden_BA.shape[1]
    return torch.arange(cells, dtype=torch.float32, device=state.hidden_BA.device).expand(len(state.hidden_BA), -1)
