"""What a run measures about itself in one forward pass while it trains, with the EMA weights.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.measuring.looking import Model, looks
from hardtail.schemes.base import Corpus

CHUNK = 500


@dataclass(frozen=True)
class Probed:
    """What the probe found."""

    nll: float
    """Mean NLL of the gold tokens of all maskable cells."""
    guessed: int
    """Answer cells that are nearly guessed: their mean NLL is above half the entropy of their tokens."""


class Probe:
    """Problems whose maskable cells are all hidden (docs/study.md §1.5)."""

    def __init__(self, corpus: Corpus, vocab_size: int) -> None:
        self.corpus = corpus
        self.count_A = corpus.maskable_NA.sum(dim=0)
        self.guess_A = self._entropies(vocab_size)

    @torch.no_grad()
    def of(self, model: Model) -> Probed:
        total_A = torch.zeros_like(self.guess_A)
        for look in looks(model, self.corpus, min(CHUNK, len(self.corpus))):
            judged_BA = look.rows.maskable_BA & look.there_B[:, None]
            total_A -= (look.log_p_BA * judged_BA).sum(dim=0)
        guessed_A = total_A > 0.5 * self.guess_A * self.count_A
        return Probed(float(total_A.sum() / self.count_A.sum()), int((guessed_A & (self.guess_A > 0)).sum()))

    def _entropies(self, vocab_size: int) -> Tensor:
        """The entropy of each cell's gold tokens over the instances in which it is hidden: the NLL of a model that
        knows only how common each token is there."""
        cells = len(self.count_A)
        seen_AV = torch.zeros((cells, vocab_size), dtype=torch.float64, device=self.count_A.device)
        cell_A = torch.arange(cells, device=self.count_A.device)
        for row_B in torch.split(torch.arange(len(self.corpus), device=self.count_A.device), CHUNK):
            rows = self.corpus.rows(row_B)
            place_K = (cell_A * vocab_size + rows.gold_BA)[rows.maskable_BA]
            seen_AV += torch.bincount(place_K, minlength=cells * vocab_size).view(cells, vocab_size)
        share_AV = seen_AV / self.count_A.clamp(min=1)[:, None]
        return -torch.special.xlogy(share_AV, share_AV).sum(dim=1)
