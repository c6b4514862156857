"""Uniform random masking, the standard MDM objective."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.noise import Moment, stream
from hardtail.schemes.base import Carried, Corpus, Scheme, View, log_likelihood

_CELL, _RATE = stream("cell"), stream("rate")


@dataclass(frozen=True)
class Random(Scheme):
    """Hide each maskable cell with a probability drawn per sequence (docs/study.md §1.6)."""

    draw: Literal["rate", "count"] = "rate"
    """`rate`: t ~ U(0,1), then each cell with probability t; `count`: a uniform number of cells from 1 to n."""
    at_least_one: bool = True
    """A sequence that got no mask hides one cell chosen uniformly."""
    weighting: Literal["masked", "rate", "batch", "bound"] = "masked"
    """Weight of a hidden cell: 1/|M| of its sequence; 1/(λ·n) of its sequence, the 1/λ of the MDM bound divided by the
    number n of maskable cells so that both sum to one on average; 1/Σ|M|, one mean over the batch; or 1/λ, the bound as
    it is written, a sum over cells. The last is n times the second, which matters where gradients are clipped."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.weighting in ("rate", "bound") and self.draw == "rate" and self.at_least_one:
            raise HardtailError(
                "weights 1/λ need at_least_one switched off (--scheme.no-at-least-one): otherwise a "
                "sequence hides at least one cell even at rates λ near 0, and the mean of its weight 1/λ is infinite"
            )

    @property
    def pooled(self) -> bool:
        return self.weighting == "batch"

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        rows = corpus.batch(batch, now)
        hidden_BA, rate_B = self.hide(rows.maskable_BA, now)
        return rows.hide(hidden_BA, corpus, rate_B)

    def hide(self, maskable_BA: Tensor, now: Moment) -> tuple[Tensor, Tensor]:
        """The hidden cells and the rate λ they were drawn with."""
        batch, cells = maskable_BA.shape
        place_BA = torch.where(maskable_BA, now.uniform(_CELL, batch, cells), 2.0)
        rate_B = now.uniform(_RATE, batch)
        if self.draw == "count":
            n_B = maskable_BA.sum(dim=1)
            count_B = (rate_B * n_B).long() + 1  # uniform on 1 … n, since the rate is below 1
            rank_BA = place_BA.argsort(dim=1).argsort(dim=1)
            return rank_BA < count_B[:, None], count_B / n_B
        hidden_BA = place_BA < rate_B[:, None]
        if self.at_least_one:  # the cell with the smallest draw is uniform among the maskable ones
            hidden_BA = hidden_BA | (place_BA == place_BA.amin(dim=1, keepdim=True))
        return hidden_BA, rate_B

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return (self.weights(view) * -log_likelihood(logits_BAV, view.gold_BA)).sum()

    def weights(self, view: View) -> Tensor:
        """The weight of each cell's negative log-likelihood; 0 for cells that are not hidden."""
        batch = view.hidden_BA.shape[0]
        hidden_BA = view.hidden_BA.float()
        if self.weighting == "batch":
            return hidden_BA / hidden_BA.sum().clamp(min=1)
        if self.weighting in ("rate", "bound"):
            assert view.rate_B is not None
            cells_B = view.maskable_BA.sum(dim=1) if self.weighting == "rate" else 1
            return hidden_BA / (view.rate_B * cells_B)[:, None] / batch
        return hidden_BA / hidden_BA.sum(dim=1, keepdim=True).clamp(min=1) / batch
