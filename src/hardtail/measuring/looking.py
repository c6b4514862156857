"""One forward pass over problems of which every maskable cell is hidden: behind a run's own probe and `eval`'s.

Shapes: B batch, L sequence, A answer cells, V vocabulary.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.schemes.base import Corpus, Rows, log_likelihood

Model = Callable[[Tensor, Tensor | slice], Tensor]


@dataclass(frozen=True)
class Look:
    """What a model says about some problems."""

    rows: Rows
    there_B: Tensor
    """False where a row only fills up the last batch."""
    logits_BAV: Tensor
    log_p_BA: Tensor
    """Of the gold tokens."""


def looks(model: Model, corpus: Corpus, size: int) -> Iterator[Look]:
    """Every problem once, always `size` rows at a time: matrix products of another shape may round differently."""
    for start in range(0, len(corpus), size):
        index_B = torch.arange(start, start + size, device=corpus.tokens_NL.device)
        rows = corpus.rows(index_B.clamp(max=len(corpus) - 1))
        view = rows.hide(rows.maskable_BA, corpus)
        logits_BAV = model(view.tokens_BL, view.at_BA)
        yield Look(rows, index_B < len(corpus), logits_BAV, log_likelihood(logits_BAV, view.gold_BA))
