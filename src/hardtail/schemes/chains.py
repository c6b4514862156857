"""Chains: a sequence in each place of the batch, shown for several steps; what schemes that carry them share.

Shapes: B chains, A answer cells, V vocabulary.
"""

import torch
from torch import Tensor

from hardtail.core.noise import Moment
from hardtail.schemes.base import Carried, Corpus


def empty_chains(corpus: Corpus, batch: int, *cells: str) -> Carried:
    """The state of chains before the first: rows, stages, the place in the epoch, and `cells`, booleans by name."""
    device, width = corpus.tokens_NL.device, corpus.maskable_NA.shape[1]
    shapes = {"row_B": (batch,), "stage_B": (batch,), "cursor": (), "epoch": ()}
    state = {name: torch.zeros(shape, dtype=torch.int64, device=device) for name, shape in shapes.items()}
    return state | {name: torch.zeros((batch, width), dtype=torch.bool, device=device) for name in cells}


def next_rows(state: Carried, corpus: Corpus, over_B: Tensor, now: Moment) -> Tensor:
    """The next sequences of the epoch's order for the chains that are over; the places of others mean nothing.

    Where fewer are left than needed, the rest of the order is dropped and a new one begins.
    """
    needed = over_B.sum()
    new_epoch = state["cursor"] + needed > len(corpus)
    state["epoch"].add_(new_epoch)
    state["cursor"].mul_(~new_epoch)
    row_B = corpus.epoch_rows(state["cursor"] + over_B.cumsum(0) - 1, state["epoch"], now.seed)
    state["cursor"].add_(needed)
    return row_B


def without_mask(logits_BAV: Tensor, mask_id: int) -> Tensor:
    """Logits in float32, the mask token's at -inf."""
    kept_V = torch.arange(logits_BAV.shape[-1], device=logits_BAV.device) != mask_id
    return torch.where(kept_V, logits_BAV.float(), -torch.inf)


def surest(logits_BAV: Tensor, mask_id: int) -> Tensor:
    """log of the largest probability of each cell, the mask token left out, in float32."""
    logits_BAV = without_mask(logits_BAV, mask_id)
    return logits_BAV.amax(dim=-1) - logits_BAV.logsumexp(dim=-1)


def ranks(score_BA: Tensor) -> Tensor:
    """The place of each cell when the highest score comes first; ties by position.

    Counted, not sorted: the compiler for a GPU unrolls a sort, which takes it many times as long.
    """
    own_BA1, other_B1A = score_BA[:, :, None], score_BA[:, None, :]
    place_A = torch.arange(score_BA.shape[1], device=score_BA.device)
    earlier_AA = place_A[None, :] < place_A[:, None]
    return ((other_B1A > own_BA1) | ((other_B1A == own_BA1) & earlier_AA)).sum(dim=-1)
