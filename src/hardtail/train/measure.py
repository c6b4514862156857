"""What a run measures of itself while it trains, on the EMA weights: probe NLL, and accuracy of a plain decode.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

from collections.abc import Callable
from typing import Literal

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


@torch.no_grad()
def exact_match(model: Model, corpus: Corpus, scored_NA: Tensor, order: Literal["confidence", "logical"]) -> float:
    """Share of instances whose scored cells all come out right when one cell is committed at a time.

    `confidence`: the hidden cell with the largest probability; `logical`: the one that the corpus's order ranks first,
    ties by confidence. The mask token is never committed.
    """
    right = torch.zeros((), dtype=torch.int64, device=corpus.tokens_NL.device)
    for row_B in torch.split(torch.arange(len(corpus), device=corpus.tokens_NL.device), CHUNK):
        rows = corpus.rows(row_B)
        hidden_BA, answer_BA = rows.maskable_BA, rows.gold_BA.masked_fill(rows.maskable_BA, corpus.mask_id)
        for _ in range(int(hidden_BA.sum(dim=1).max())):
            tokens_BL = rows.tokens_BL.scatter(1, rows.at_BA, answer_BA)
            at_BA = rows.at_BA if corpus.fixed_answer is None else corpus.fixed_answer
            logits_BAV = model(tokens_BL, at_BA).float()
            logits_BAV[..., corpus.mask_id] = -torch.inf
            log_p_BA, token_BA = logits_BAV.log_softmax(dim=-1).max(dim=-1)
            score_BA = log_p_BA
            if order == "logical":
                assert corpus.rank_NA is not None
                score_BA = log_p_BA.exp() / 2 - corpus.rank_NA[row_B].float()
            best_B1 = score_BA.masked_fill(~hidden_BA, -torch.inf).argmax(dim=1, keepdim=True)
            commit_BA = torch.zeros_like(hidden_BA).scatter(1, best_B1, True) & hidden_BA
            answer_BA = torch.where(commit_BA, token_BA, answer_BA)
            hidden_BA = hidden_BA & ~commit_BA
        right += ((answer_BA == rows.gold_BA) | ~scored_NA[row_B]).all(dim=1).sum()
    return int(right) / len(corpus)
