"""Losses that look at the model's own confidence: PAPL, its control, and its mirror image."""

from abc import abstractmethod
from dataclasses import dataclass, field
from math import inf
from typing import Annotated, Literal

import torch
from torch import Tensor

from hardtail.core.fields import Bounds, NonNegative
from hardtail.core.noise import Moment
from hardtail.schemes.base import Carried, Corpus, Scheme, View, log_likelihood
from hardtail.schemes.random import Random


class Reweighted(Scheme):
    """Random masking whose cells also weigh by what the model says about them in this step."""

    masking: Random

    @property
    def pooled(self) -> bool:
        return self.masking.pooled

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        return self.masking.corrupt(state, corpus, batch, now)

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        log_p_BA = log_likelihood(logits_BAV, view.gold_BA)
        return (self.masking.weights(view) * self.factor(log_p_BA.detach(), view) * -log_p_BA).sum()

    @abstractmethod
    def factor(self, log_p_BA: Tensor, view: View) -> Tensor:
        """What each cell's weight is multiplied by, from log p of its gold token."""


@dataclass(frozen=True)
class Papl(Reweighted):
    """w_i = (1 + α·w̃_i) / |M| with w̃ = softmax over hidden cells of log p_i / τ, detached (PAPL; docs/study.md §1.7).

    The w̃_i of a sequence sum to 1, so its total weight is 1 + α/|M|: PAPL also favours lightly masked states.
    `matched` keeps that and drops the confidence: w_i = (1 + α/|M|) / |M|.
    """

    alpha: NonNegative = 1.0
    tau: Annotated[float, Bounds(gt=0, lt=inf)] = 1.0
    planner: Literal["confidence", "matched"] = "confidence"
    masking: Random = field(default_factory=Random)

    def factor(self, log_p_BA: Tensor, view: View) -> Tensor:
        if self.planner == "confidence":
            score_BA = (log_p_BA / self.tau).masked_fill(~view.hidden_BA, -torch.inf)
            some_B1 = view.hidden_BA.any(dim=1, keepdim=True)
            planned_BA = torch.where(some_B1, score_BA, 0.0).softmax(dim=1) * view.hidden_BA
        else:
            planned_BA = view.hidden_BA / view.hidden_BA.sum(dim=1, keepdim=True).clamp(min=1)
        return 1 + self.alpha * planned_BA


@dataclass(frozen=True)
class Focal(Reweighted):
    """w_i = (1 - p_i)^γ / |M|, detached: what the model knows counts less (Ye et al. 2025; docs/study.md §10.2)."""

    gamma: NonNegative = 2.0
    masking: Random = field(default_factory=Random)

    def factor(self, log_p_BA: Tensor, view: View) -> Tensor:
        doubt_BA: Tensor = (1 - log_p_BA.exp()) ** self.gamma
        return doubt_BA
