"""Bidirectional attention without a mask, by the fastest method for the device and the sizes.

On a GPU, short sequences in bf16 and all sequences in tf32 use our own kernels (`kernels.attention`); everything else
uses PyTorch's `scaled_dot_product_attention`. The two agree up to rounding; with dropout they draw different cells.

Shapes: B batch, Q queries, L sequence, D width, X 3·D (query, key, value) or 2·D (key, value), H heads, E = D/H.
"""

from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

HAS_TRITON = find_spec("triton") is not None
HEADS = 16, 32, 64
"""Sizes of a head that our kernels are written for."""
HELD = 128 * 64
"""Keys of a head times its size that one program of our kernels can hold in the forward pass without spilling."""


def attend(packed_BLX: Tensor, query_BQD: Tensor | None, heads: int, dropout: float) -> Tensor:
    """The output of attention for each query, as [B, Q, D].

    `packed_BLX` holds queries, keys and values side by side; only keys and values if `query_BQD` is given.
    """
    if packed_BLX.is_cuda and _runs_kernels(packed_BLX.device) and rounds(packed_BLX.dtype):
        width = packed_BLX.shape[-1] // (3 if query_BQD is None else 2)
        if pays(packed_BLX.shape[1], width // heads, packed_BLX.dtype):
            seed = packed_BLX.new_empty(1, dtype=torch.int32)
            if dropout:  # drawn on the device, so that a captured graph draws a new one in every step
                seed = torch.randint(2**31 - 1, (1,), dtype=torch.int32, device=packed_BLX.device)
            return fused(packed_BLX, query_BQD, seed, heads, dropout)[0]
    q, k, v = (part.view(*part.shape[:2], heads, -1).transpose(1, 2) for part in split(packed_BLX, query_BQD))
    return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout).transpose(1, 2).flatten(-2)


def rounds(kind: torch.dtype) -> bool:
    """Whether matrix products of this type may be rounded as our kernels round them."""
    return kind == torch.bfloat16 or (kind == torch.float32 and _allows_tf32())


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator]
def _runs_kernels(device: torch.device) -> bool:
    """Whether Triton is installed and this GPU supports bf16 and tf32."""
    return HAS_TRITON and torch.cuda.get_device_capability(device) >= (8, 0)


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator] # a change of it compiles anew
def _allows_tf32() -> bool:
    return torch.get_float32_matmul_precision() != "highest"


def pays(length: int, head: int, kind: torch.dtype) -> bool:
    """Whether our kernels are used: in bf16 if one program can hold all keys of a head, as they are faster then; in
    tf32 always, as PyTorch's are two to five times slower (docs/performance.md)."""
    return head in HEADS and (kind == torch.float32 or length * head <= HELD)


def split(packed_BLX: Tensor, query_BQD: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """Queries, keys and values as views."""
    if query_BQD is None:
        q_BLD, k_BLD, v_BLD = packed_BLX.chunk(3, dim=-1)
        return q_BLD, k_BLD, v_BLD
    k_BLD, v_BLD = packed_BLX.chunk(2, dim=-1)
    return query_BQD, k_BLD, v_BLD


def _current(tensor: Tensor) -> torch.cuda.device:
    """Make the tensor's GPU the current one, on which Triton launches."""
    return torch.cuda.device_of(tensor)  # type: ignore[no-untyped-call]


# -- our own kernels as an operator that is opaque to compiled code -------------------------------------------------


@torch.library.custom_op("hardtail::attention", mutates_args=())
def fused(
    packed_BLX: Tensor, query_BQD: Tensor | None, seed: Tensor, heads: int, dropout: float
) -> tuple[Tensor, Tensor]:
    """The output for each query, and the logarithm of what it was divided by, which the backward pass needs."""
    from hardtail.models.kernels.attention import launch_forward

    q_BQD, k_BLD, v_BLD = split(packed_BLX, query_BQD)
    out_BQD, log_total_BHQ = _outputs(packed_BLX, query_BQD, seed, heads, dropout)
    with _current(packed_BLX):
        launch_forward(q_BQD, k_BLD, v_BLD, out_BQD, log_total_BHQ, seed, heads, dropout)
    return out_BQD, log_total_BHQ


@fused.register_fake
def _outputs(
    packed_BLX: Tensor, query_BQD: Tensor | None, seed: Tensor, heads: int, dropout: float
) -> tuple[Tensor, Tensor]:
    batch, queries, width = split(packed_BLX, query_BQD)[0].shape
    total_BHQ = packed_BLX.new_empty((batch, heads, queries), dtype=torch.float32)
    return packed_BLX.new_empty((batch, queries, width)), total_BHQ


@torch.library.custom_op("hardtail::attention_backward", mutates_args=())
def fused_backward(
    gradient_BQD: Tensor,
    packed_BLX: Tensor,
    query_BQD: Tensor | None,
    seed: Tensor,
    out_BQD: Tensor,
    log_total_BHQ: Tensor,
    heads: int,
    dropout: float,
) -> tuple[Tensor, Tensor]:
    """Gradients of `packed_BLX` and `query_BQD`; an empty tensor if there is no `query_BQD`."""
    from hardtail.models.kernels.attention import launch_backward

    d_packed_BLX = torch.empty_like(packed_BLX)
    d_query_BQD = packed_BLX.new_empty(0) if query_BQD is None else torch.empty_like(query_BQD)
    inputs = split(packed_BLX, query_BQD)
    into = split(d_packed_BLX, None if query_BQD is None else d_query_BQD)
    with _current(packed_BLX):
        launch_backward(*inputs, out_BQD, gradient_BQD.contiguous(), log_total_BHQ, *into, seed, heads, dropout)
    return d_packed_BLX, d_query_BQD


@fused_backward.register_fake
def _gradients(
    gradient_BQD: Tensor, packed_BLX: Tensor, query_BQD: Tensor | None, *others: object
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(packed_BLX), packed_BLX.new_empty(0) if query_BQD is None else torch.empty_like(query_BQD)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    packed_BLX, query_BQD, seed, ctx.heads, ctx.dropout = inputs
    ctx.save_for_backward(packed_BLX, query_BQD, seed, *output)


def _backward(ctx: Any, gradient_BQD: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
    d_packed_BLX, d_query_BQD = fused_backward(gradient_BQD, *ctx.saved_tensors, ctx.heads, ctx.dropout)
    return d_packed_BLX, None if ctx.saved_tensors[1] is None else d_query_BQD, None, None, None


fused.register_autograd(_backward, setup_context=_keep)
