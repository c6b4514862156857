"""Losses that look at the model's own confidence: PAPL, its control, and its mirror image."""

from dataclasses import dataclass, field
from math import inf
from typing import Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.noise import Moment
from hardtail.schemes.base import Carried, Corpus, Scheme, View, log_likelihood
from hardtail.schemes.random import Random


@dataclass(frozen=True)
class Papl(Scheme):
    """w_i = (1 + α·w̃_i) / |M| with w̃ = softmax over hidden cells of log p_i / τ, detached (PAPL; docs/study.md §1.7).

    The w̃_i of a sequence sum to 1, so its total weight is 1 + α/|M|: PAPL also favours lightly masked states.
    `matched` keeps that and drops the confidence: w_i = (1 + α/|M|) / |M|.
    """

    alpha: float = 1.0
    tau: float = 1.0
    planner: Literal["confidence", "matched"] = "confidence"
    masking: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        if not 0 < self.tau < inf:
            raise HardtailError(f"PAPL's temperature tau is {self.tau}; it must be a number above 0")
        if not 0 <= self.alpha < inf:
            raise HardtailError(f"PAPL's alpha is {self.alpha}; it is a number, at least 0")

    @property
    def pooled(self) -> bool:
        return self.masking.pooled

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        return self.masking.corrupt(state, corpus, batch, now)

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        log_p_BA = log_likelihood(logits_BAV, view.gold_BA)
        if self.planner == "confidence":
            score_BA = (log_p_BA.detach() / self.tau).masked_fill(~view.hidden_BA, -torch.inf)
            some_B1 = view.hidden_BA.any(dim=1, keepdim=True)
            planned_BA = torch.where(some_B1, score_BA, 0.0).softmax(dim=1) * view.hidden_BA
        else:
            planned_BA = view.hidden_BA / view.hidden_BA.sum(dim=1, keepdim=True).clamp(min=1)
        return (self.masking.weights(view) * (1 + self.alpha * planned_BA) * -log_p_BA).sum()


@dataclass(frozen=True)
class Focal(Scheme):
    """w_i = (1 - p_i)^γ / |M|, detached: what the model knows counts less (Ye et al. 2025; docs/study.md §10.2)."""

    gamma: float = 2.0
    masking: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        if not 0 <= self.gamma < inf:
            raise HardtailError(f"the focal gamma is {self.gamma}; it is a number, at least 0")

    @property
    def pooled(self) -> bool:
        return self.masking.pooled

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        return self.masking.corrupt(state, corpus, batch, now)

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        log_p_BA = log_likelihood(logits_BAV, view.gold_BA)
        doubt_BA = (1 - log_p_BA.detach().exp()) ** self.gamma
        return (self.masking.weights(view) * doubt_BA * -log_p_BA).sum()
