"""What a run measures of itself with one forward pass while it trains, on the EMA weights.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from hardtail.schemes.base import Corpus, log_likelihood

Model = Callable[[Tensor, Tensor | slice], Tensor]
CHUNK = 500


@torch.no_grad()
def probe_nll(model: Model, corpus: Corpus) -> float:
    """Mean NLL of the gold tokens of all maskable cells with every one of them hidden (study §1.5)."""
    total = torch.zeros((), dtype=torch.float64, device=corpus.tokens_NL.device)
    for row_B in torch.split(torch.arange(len(corpus), device=corpus.tokens_NL.device), CHUNK):
        rows = corpus.rows(row_B)
        view = rows.hide(rows.maskable_BA, corpus)
        log_p_BA = log_likelihood(model(view.tokens_BL, view.at_BA), view.gold_BA)
        total -= (log_p_BA * rows.maskable_BA).sum()
    return float(total / corpus.maskable_NA.sum())
