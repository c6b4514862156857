"""Remasking: committed cells may be hidden again. Every policy here commits by top-1 and ends with nothing hidden.

Leave-one-out is not captured on a GPU: it reads values on the host and runs the denoiser on sequences of its own.

Shapes: B batch, L sequence, A answer cells, K further looks, V vocabulary.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from hardtail.core.fields import Bounds, Probability
from hardtail.core.noise import stream
from hardtail.policies.base import LIKELY_ROUNDS, REFUSED, Commit, Guess, Logits, State, ranked
from hardtail.policies.confidence import Top1

LOOKS = 4096
"""The most extra sequences in one forward pass, to limit memory."""
_REMASK = stream("remask")


@dataclass(frozen=True)
class LeaveOneOut(Top1):
    """Fill all cells by top-1, then revise: hide the cell whose token has the lowest probability given all the others,
    refill it, and repeat until a refilled token is the same as before or `rounds` are used up (docs/study.md §7.4).

    The probabilities are exact: each cell is hidden alone and looked at, so a round costs one pass per cell.
    """

    remasks: ClassVar[bool] = True

    rounds: Annotated[int, Bounds(ge=0)] | None = None
    """By default as many as the row has cells to fill."""

    def begin(self, state: State) -> dict[str, Tensor]:
        return {
            "rounds_B": torch.zeros_like(state.key_B),
            "cell_B": torch.zeros_like(state.key_B),
            "token_B": torch.full_like(state.key_B, -1),
            "done_B": ~state.hidden_BA.any(dim=1),
        }

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        rounds_B, cell_B, token_B, done_B = (state.memory[name] for name in ("rounds_B", "cell_B", "token_B", "done_B"))
        complete_B = ~state.hidden_BA.any(dim=1)
        token_BA = state.token_BA
        same_B = token_BA.gather(1, cell_B[:, None])[:, 0] == token_B
        most_B = state.maskable_BA.sum(dim=1) if self.rounds is None else self.rounds
        done_B.logical_or_(complete_B & (same_B | (rounds_B >= most_B)))
        doubt_B = complete_B & ~done_B
        if not bool(doubt_B.any()):
            return torch.zeros_like(state.hidden_BA)
        worst_B = leave_one_out(doubt_B, state, logits).argmin(dim=1)
        rounds_B.add_(doubt_B)
        cell_B.copy_(torch.where(doubt_B, worst_B, cell_B))
        token_B.copy_(torch.where(doubt_B, token_BA.gather(1, worst_B[:, None])[:, 0], token_B))
        return torch.zeros_like(state.hidden_BA).scatter_(1, worst_B[:, None], doubt_B[:, None])

    def finished(self, state: State) -> Tensor:
        return state.memory["done_B"]

    def steps(self, cells: int, commit: Commit) -> int:
        return super().steps(cells, commit) + (cells if self.rounds is None else self.rounds)

    def likely_passes(self, cells: int, commit: Commit) -> float:
        rounds = LIKELY_ROUNDS if self.rounds is None else min(self.rounds, LIKELY_ROUNDS)
        return super().likely_passes(cells, commit) + rounds * (cells + 1)


def leave_one_out(rows_B: Tensor, state: State, logits: Logits) -> Tensor:
    """log p of each cell's token given all other tokens [B, A]; +inf in other rows and for cells never hidden."""
    row_K, cell_K = (rows_B[:, None] & state.maskable_BA).nonzero(as_tuple=True)
    log_p_BA = torch.full(state.hidden_BA.shape, torch.inf, device=state.hidden_BA.device)
    token_BA = state.token_BA
    for row_k, cell_k in zip(torch.split(row_K, LOOKS), torch.split(cell_K, LOOKS), strict=True):
        at_k1 = state.at_BA[row_k, cell_k][:, None]
        tokens_kL = state.tokens_BL[row_k].scatter_(1, at_k1, state.mask_id)
        log_p_kV = logits(tokens_kL, at_k1, row_k)[:, 0].log_softmax(dim=-1)
        log_p_BA[row_k, cell_k] = log_p_kV.gather(1, token_BA[row_k, cell_k][:, None])[:, 0]
    return log_p_BA


@dataclass(frozen=True)
class ReMDM(Top1):
    """Remasking by the posterior of Wang et al. (2025), "Remasking Discrete Diffusion Models".

    A revealed cell is hidden again with probability σ and, to make up for it, a hidden one is revealed with probability
    (α_s - (1 - σ) α_t) / (1 - α_t), where α is the share that is revealed and 0 ≤ σ ≤ σ_max = min(1, (1 - α_s) / α_t).
    cap:   σ = min(η, σ_max)
    conf:  σ_i = σ_max · softmax_i(-ψ) over the revealed cells, ψ_i the probability its token had when it was committed

    Here the shares are counts: with h of n cells hidden and `Commit` asking for c, α_t = (n - h) / n and
    α_s = (n - h + c) / n. Each revealed cell draws independently; if r are hidden again, at most h - c, then c + r
    hidden cells are committed, by top-1 probability, so that exactly h - c cells are hidden afterwards.
    """

    remasks: ClassVar[bool] = True

    variant: Literal["cap", "conf"] = "cap"
    """How the probability of hiding a cell again is set."""
    eta: Probability = 0.008
    """η of `cap`; `conf` has none."""

    @property
    def capturable(self) -> bool:
        return True

    def begin(self, state: State) -> dict[str, Tensor]:
        never_BA = torch.zeros_like(state.hidden_BA)
        return {"again_BA": never_BA, "was_hidden_BA": never_BA.clone(), "psi_BA": never_BA.float()}

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        """c + r; which r cells will be hidden again is decided here, as the number to commit depends on it."""
        state.memory["was_hidden_BA"].copy_(state.hidden_BA)
        hidden_B = state.hidden_BA.sum(dim=1)
        commit_B = commit.count(state).minimum(hidden_B)
        left_B1 = (hidden_B - commit_B)[:, None]
        revealed_BA = state.maskable_BA & ~state.hidden_BA
        most_B1 = (left_B1 / revealed_BA.sum(dim=1, keepdim=True).clamp(min=1)).clamp(max=1)
        sigma_BA = self._sigma(most_B1, revealed_BA, state.memory["psi_BA"])
        # How far below σ the draw is; the furthest go first where more are drawn than may be hidden.
        below_BA = torch.where(revealed_BA, sigma_BA - state.noise(_REMASK, sigma_BA.shape[1]), -torch.inf)
        best_BA, cell_BA = ranked(below_BA)
        place_A = torch.arange(below_BA.shape[1], device=below_BA.device)
        again_BA = state.memory["again_BA"]
        again_BA.scatter_(1, cell_BA, (best_BA > 0) & (place_A < left_B1))
        return commit_B + again_BA.sum(dim=1)

    def _sigma(self, most_B1: Tensor, revealed_BA: Tensor, psi_BA: Tensor) -> Tensor:
        if self.variant == "cap":
            return most_B1.clamp(max=self.eta).expand_as(psi_BA)
        return most_B1 * (-psi_BA).masked_fill(~revealed_BA, -torch.inf).softmax(dim=1)

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        psi_BA = state.memory["psi_BA"]
        p_BA = guess.p_BAV.gather(-1, guess.token_BA[..., None])[..., 0]
        psi_BA.copy_(torch.where(state.memory["was_hidden_BA"] & ~state.hidden_BA, p_BA, psi_BA))
        return state.memory["again_BA"]


@dataclass(frozen=True)
class P2(Top1):
    """Path planning with the denoiser as its own planner: P2-self (Peng et al. 2025).

    In every step the best κ·n of all n cells stay or become revealed and the others are hidden (again). A hidden cell's
    score is log p of its most probable token, a revealed one's is η · log p of the token it has: η = 0 never hides a
    cell again, larger values do so more readily. Where scores are equal (of log p = 0 there are many) revealed cells
    stay. κ follows `Commit`: with h cells hidden and c to commit, n - h + c stay.
    """

    remasks: ClassVar[bool] = True

    eta: Annotated[float, Bounds(ge=0)] = 1.0

    @property
    def capturable(self) -> bool:
        return True

    def begin(self, state: State) -> dict[str, Tensor]:
        return {"again_BA": torch.zeros_like(state.hidden_BA)}

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        """How many of the cells that stay are hidden now; the others that are revealed now will be hidden."""
        hidden_B = state.hidden_BA.sum(dim=1)
        commit_B = commit.count(state).minimum(hidden_B)
        stay_B1 = (state.maskable_BA.sum(dim=1) - hidden_B + commit_B)[:, None]
        revealed_BA = state.maskable_BA & ~state.hidden_BA
        token_log_p_BA = guess.log_p_BAV.gather(-1, state.token_BA[..., None])[..., 0]
        # Finite: an impossible token's -inf would tie with the cells that are never hidden, and 0 times it is NaN.
        held_BA = (self.eta * token_log_p_BA).nan_to_num(nan=0.0, neginf=REFUSED)
        _, held_first_BA = ranked(revealed_BA.to(torch.uint8))  # a revealed cell stays if a hidden one is only as sure
        _, by_score_BA = ranked(torch.where(revealed_BA, held_BA, score_BA).gather(1, held_first_BA))
        cell_BA = held_first_BA.gather(1, by_score_BA)
        place_A = torch.arange(cell_BA.shape[1], device=cell_BA.device)
        stay_BA = torch.zeros_like(revealed_BA).scatter_(1, cell_BA, place_A < stay_B1)
        state.memory["again_BA"].copy_(revealed_BA & ~stay_BA)
        return (stay_BA & state.hidden_BA).sum(dim=1)

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        return state.memory["again_BA"]
