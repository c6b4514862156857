"""Which cells are hidden together when a written answer is looked at again: every cell is in one group.

Groups divide the cells that can be hidden, counted along the answer. With fewer cells than parts there are as many
groups as cells, so no group is empty.

Shapes: B batch, A answer cells.
"""

import string
from collections.abc import Callable, Mapping

import torch
from torch import Tensor

from hardtail.core.noise import stream
from hardtail.policies.base import State

Grouping = Callable[[State, int], Tensor]
"""`grouping(state, parts)`: the number of each cell's group [B, A], from 0; it means nothing for cells never hidden."""
SIGNS = string.digits + string.ascii_lowercase
"""The signs of groups that are written out, one for each cell."""
_GROUPS = stream("groups")


def comb(state: State, parts: int) -> Tensor:
    """Every `parts`-th cell: neighbours are in different groups."""
    return _place_BA(state) % parts


def block(state: State, parts: int) -> Tensor:
    """Runs of neighbours, of nearly the same length."""
    cells_B1 = state.maskable_BA.sum(dim=1, keepdim=True).clamp(min=parts)
    return _place_BA(state) * parts // cells_B1


def random(state: State, parts: int) -> Tensor:
    """Drawn at random, nearly the same number in each; new in every step."""
    noise_BA = state.noise(_GROUPS, state.maskable_BA.shape[1]).masked_fill(~state.maskable_BA, torch.inf)
    order_BA = noise_BA.argsort(dim=1, stable=True)
    place_BA = torch.arange(order_BA.shape[1], device=order_BA.device).expand_as(order_BA)
    return torch.empty_like(order_BA).scatter_(1, order_BA, place_BA) % parts


def whole(state: State, parts: int) -> Tensor:
    """All cells in one group, however many parts are asked for."""
    return torch.zeros_like(state.at_BA)


def written_out(groups: str, like_BA: Tensor) -> Tensor:
    """Groups that are given as one sign for each cell, the same in every row."""
    number_A = torch.tensor([SIGNS.index(sign) for sign in groups], device=like_BA.device)
    return number_A.expand_as(like_BA)


def _place_BA(state: State) -> Tensor:
    """The place of each cell among those that can be hidden."""
    return state.maskable_BA.cumsum(dim=1) - 1


GROUPINGS: Mapping[str, Grouping] = {"comb": comb, "block": block, "random": random, "none": whole}
