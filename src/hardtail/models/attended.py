"""Attention for passes that are written out: forward when it is made, backward when asked.

Shapes: B batch, Q queries, L sequence, D width, X 3·D (query, key, value) or 2·D (key, value).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from hardtail.models.attention import HEADS, attend, split
from hardtail.models.kernels.attention import launch_backward, launch_forward

Room = Callable[[torch.Size], Tensor]
"""Makes a tensor of this shape to write to. Torch's attention makes its own."""


class Attended(ABC):
    """The output for each query, and what the backward pass needs."""

    out_BQD: Tensor

    @abstractmethod
    def backward(self, gradient_BQD: Tensor, room: Room) -> tuple[Tensor, Tensor | None]:
        """Gradients of `packed_BLX`, for which there is `room`, and `query_BQD`."""


class KernelAttention(Attended):
    """By our own kernels."""

    def __init__(
        self, packed_BLX: Tensor, query_BQD: Tensor | None, seed: Tensor, heads: int, dropout: float, room: Room
    ) -> None:
        self.packed_BLX, self.query_BQD = packed_BLX, query_BQD
        self.seed, self.heads, self.dropout = seed, heads, dropout
        q_BQD, k_BLD, v_BLD = split(packed_BLX, query_BQD)
        self.out_BQD = room(q_BQD.shape)
        self.log_total_BHQ = packed_BLX.new_empty((len(q_BQD), heads, q_BQD.shape[1]), dtype=torch.float32)
        launch_forward(q_BQD, k_BLD, v_BLD, self.out_BQD, self.log_total_BHQ, seed, heads, dropout)

    def backward(self, gradient_BQD: Tensor, room: Room) -> tuple[Tensor, Tensor | None]:
        d_packed_BLX = room(self.packed_BLX.shape)
        d_query_BQD = None if self.query_BQD is None else torch.empty_like(self.query_BQD)
        inputs, into = split(self.packed_BLX, self.query_BQD), split(d_packed_BLX, d_query_BQD)
        how = self.seed, self.heads, self.dropout
        launch_backward(*inputs, self.out_BQD, gradient_BQD, self.log_total_BHQ, *into, *how)
        return d_packed_BLX, d_query_BQD


class TorchAttention(Attended):
    """PyTorch's, differentiated by autograd."""

    def __init__(self, packed_BLX: Tensor, query_BQD: Tensor | None, heads: int, dropout: float) -> None:
        given = (packed_BLX,) if query_BQD is None else (packed_BLX, query_BQD)
        self.leaves = [tensor.detach().requires_grad_() for tensor in given]
        with torch.enable_grad():
            self.attached_BQD = attend(self.leaves[0], self.leaves[1] if len(given) > 1 else None, heads, dropout)
        self.out_BQD = self.attached_BQD.detach()

    def backward(self, gradient_BQD: Tensor, room: Room) -> tuple[Tensor, Tensor | None]:
        d_packed_BLX, *d_query = torch.autograd.grad(self.attached_BQD, self.leaves, gradient_BQD)
        return d_packed_BLX, d_query[0] if d_query else None


def attended(
    packed_BLX: Tensor, query_BQD: Tensor | None, width: int, seed: Tensor, heads: int, dropout: float, room: Room
) -> Attended:
    """Attention by our own kernels where they are written for this size of a head; there is `room` for its output."""
    if width // heads in HEADS:
        return KernelAttention(packed_BLX, query_BQD, seed, heads, dropout, room)
    return TorchAttention(packed_BLX, query_BQD, heads, dropout)
