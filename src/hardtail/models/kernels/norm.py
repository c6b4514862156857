# mypy: ignore-errors
"""Residual sum, dropout and LayerNorm as one kernel each way.

Forward: x' = x + dropout(p), n = LayerNorm(x'). Backward: from the gradients of n and x' those of x and p, and sums
over rows for LayerNorm's weight and bias and for the bias of the layer that made p. Mean and deviation are computed
again from x' rather than stored.

Each program of the backward pass writes its own partial sums; `settle` adds them up in a fixed order, so the result is
the same in every run.

Shapes: R rows of a block, D width, P width up to a power of two.
"""

import triton
import triton.language as tl
from torch import Tensor

from hardtail.models import transformer
from hardtail.models.kernels.dropout import dropout

EPSILON = tl.constexpr(transformer.EPSILON)
PROGRAMS = 1056
"""Programs of the backward pass, each with its own partial sums: eight for each multiprocessor of an H200."""
FORWARD_CELLS, BACKWARD_CELLS = 2048, 512
"""Cells of a block, forward and backward."""
AHEAD = tl.constexpr(3)
"""Blocks of the backward pass on their way from memory, counting the one that is computed."""


@triton.jit
def _standard(x_RP, real_P, D: tl.constexpr):
    """Rows with mean 0 and deviation 1, and the reciprocals of their deviations."""
    centred_RP = tl.where(real_P[None, :], x_RP - (tl.sum(x_RP, 1) / D)[:, None], 0.0)
    inverse_R = tl.rsqrt(tl.sum(centred_RP * centred_RP, 1) / D + EPSILON)
    return centred_RP * inverse_R[:, None], inverse_R


@triton.jit
def _write_normed(x_RP, weight, bias, x_out, n_out, cell_RP, here_RP, d_P, D: tl.constexpr):
    """Store x' and LayerNorm(x')."""
    tl.store(x_out + cell_RP, x_RP.to(x_out.dtype.element_ty), mask=here_RP)
    hat_RP = _standard(x_RP, d_P < D, D)[0]
    weight_P = tl.load(weight + d_P, mask=d_P < D, other=0.0)
    bias_P = tl.load(bias + d_P, mask=d_P < D, other=0.0)
    n_RP = hat_RP * weight_P[None, :] + bias_P[None, :]
    tl.store(n_out + cell_RP, n_RP.to(n_out.dtype.element_ty), mask=here_RP)


@triton.jit
def embed_norm(
    token, table, place, weight, bias, seed, x_out, n_out, rows, length,
    dropped: tl.constexpr, D: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """x' = dropout(table[token] + place), n = LayerNorm(x')."""
    r_R = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d_P = tl.arange(0, P)
    here_RP = (r_R < rows)[:, None] & (d_P < D)[None, :]
    token_R = tl.load(token + r_R, mask=r_R < rows, other=0)
    x_RP = tl.load(table + token_R[:, None] * D + d_P[None, :], mask=here_RP, other=0.0)
    x_RP += tl.load(place + (r_R % length)[:, None] * D + d_P[None, :], mask=here_RP, other=0.0)
    if dropped > 0:
        x_RP = dropout(x_RP, seed, r_R, d_P, dropped)
    _write_normed(x_RP, weight, bias, x_out, n_out, r_R[:, None] * D + d_P[None, :], here_RP, d_P, D)


@triton.jit
def add_norm(
    x, p, at, weight, bias, seed, x_out, n_out, rows,
    dropped: tl.constexpr, D: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """x' = x + dropout(p), n = LayerNorm(x'); where `at` is given, row at[r] of x belongs to row r of p."""
    r_R = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    d_P = tl.arange(0, P)
    here_RP = (r_R < rows)[:, None] & (d_P < D)[None, :]
    cell_RP = r_R[:, None] * D + d_P[None, :]
    p_RP = tl.load(p + cell_RP, mask=here_RP, other=0.0).to(tl.float32)
    if dropped > 0:
        p_RP = dropout(p_RP, seed, r_R, d_P, dropped)
    if at is not None:
        from_R = tl.load(at + r_R, mask=r_R < rows, other=0)
        x_RP = tl.load(x + from_R[:, None] * D + d_P[None, :], mask=here_RP, other=0.0)
    else:
        x_RP = tl.load(x + cell_RP, mask=here_RP, other=0.0)
    _write_normed(x_RP.to(tl.float32) + p_RP, weight, bias, x_out, n_out, cell_RP, here_RP, d_P, D)


@triton.jit
def norm_backward(
    x, n_grad, x_grad, place, picked_n_grad, weight, seed, g_out, p_out, partial, rows,
    dropped: tl.constexpr, D: tl.constexpr, P: tl.constexpr, R: tl.constexpr,
):  # fmt: skip
    """The gradients of x and p, and partial sums of those of LayerNorm's weight and bias and of p.

    `n_grad` and `x_grad` are the gradients of n and x'; `x_grad` is None where x' was not used further. With `place`,
    x' was used further only at some rows: `place` says where in `x_grad`, and in `picked_n_grad`, which adds to
    `n_grad`, a row is found; -1 means nowhere. Without dropout the gradients of x and p are the same, and only the
    first is written.
    """
    d_P = tl.arange(0, P)
    real_P = d_P < D
    weight_P = tl.load(weight + d_P, mask=real_P, other=0.0)
    weight_sum_RP = tl.zeros((R, P), tl.float32)
    bias_sum_RP = tl.zeros((R, P), tl.float32)
    p_sum_RP = tl.zeros((R, P), tl.float32)
    for first in tl.range(tl.program_id(0) * R, rows, tl.num_programs(0) * R, num_stages=AHEAD):
        r_R = (first + tl.arange(0, R)).to(tl.int64)
        here_RP = (r_R < rows)[:, None] & real_P[None, :]
        cell_RP = r_R[:, None] * D + d_P[None, :]
        x_RP = tl.load(x + cell_RP, mask=here_RP, other=0.0).to(tl.float32)
        n_grad_RP = tl.load(n_grad + cell_RP, mask=here_RP, other=0.0).to(tl.float32)
        x_grad_RP = tl.zeros((R, P), tl.float32)
        if place is not None:
            place_R = tl.load(place + r_R, mask=r_R < rows, other=-1)
            found_RP = (place_R >= 0)[:, None] & here_RP
            found_cell_RP = place_R[:, None] * D + d_P[None, :]
            x_grad_RP = tl.load(x_grad + found_cell_RP, mask=found_RP, other=0.0).to(tl.float32)
            n_grad_RP += tl.load(picked_n_grad + found_cell_RP, mask=found_RP, other=0.0).to(tl.float32)
        elif x_grad is not None:
            x_grad_RP = tl.load(x_grad + cell_RP, mask=here_RP, other=0.0).to(tl.float32)
        hat_RP, inverse_R = _standard(x_RP, real_P, D)
        weight_sum_RP += n_grad_RP * hat_RP
        bias_sum_RP += n_grad_RP
        hat_grad_RP = n_grad_RP * weight_P[None, :]
        along_R = tl.sum(hat_grad_RP * hat_RP, 1) / D
        mean_R = tl.sum(hat_grad_RP, 1) / D
        g_RP = x_grad_RP + (hat_grad_RP - mean_R[:, None] - hat_RP * along_R[:, None]) * inverse_R[:, None]
        tl.store(g_out + cell_RP, g_RP.to(g_out.dtype.element_ty), mask=here_RP)
        if dropped > 0:
            g_RP = dropout(g_RP, seed, r_R, d_P, dropped)
            tl.store(p_out + cell_RP, g_RP.to(p_out.dtype.element_ty), mask=here_RP)
        p_sum_RP += tl.where(here_RP, g_RP, 0.0)
    mine_P = partial + tl.program_id(0) * 3 * D + d_P
    tl.store(mine_P, tl.sum(weight_sum_RP, 0), mask=real_P)
    tl.store(mine_P + D, tl.sum(bias_sum_RP, 0), mask=real_P)
    tl.store(mine_P + 2 * D, tl.sum(p_sum_RP, 0), mask=real_P)


def _widths(width: int, cells: int) -> dict[str, int]:
    """The build options that follow from the width: about `cells` cells in a block."""
    padded = triton.next_power_of_2(width)
    return {"D": width, "P": padded, "R": max(cells // padded, 1)}


def launch_embed_norm(
    tokens_BL: Tensor, table_VD: Tensor, place_LD: Tensor, norm: tuple[Tensor, Tensor], seed: Tensor, dropped: float,
    x_MD: Tensor, n_MD: Tensor,
) -> None:  # fmt: skip
    """Write x' and n."""
    how = _widths(x_MD.shape[1], FORWARD_CELLS)
    grid = (triton.cdiv(len(x_MD), how["R"]),)
    given = tokens_BL, table_VD, place_LD, *norm, seed, x_MD, n_MD, len(x_MD), tokens_BL.shape[1], dropped
    embed_norm[grid](*given, **how)


def launch_add_norm(
    x_MD: Tensor, p_MD: Tensor, at_M: Tensor | None, norm: tuple[Tensor, Tensor], seed: Tensor, dropped: float,
    x_out_MD: Tensor, n_MD: Tensor,
) -> None:  # fmt: skip
    """Write x' and n."""
    how = _widths(p_MD.shape[1], FORWARD_CELLS)
    grid = (triton.cdiv(len(p_MD), how["R"]),)
    add_norm[grid](x_MD, p_MD, at_M, *norm, seed, x_out_MD, n_MD, len(p_MD), dropped, **how)


def launch_norm_backward(
    x_MD: Tensor, n_grad_MD: Tensor, x_grad: Tensor | None, place_M: Tensor | None, picked_n_grad: Tensor | None,
    weight_D: Tensor, seed: Tensor, dropped: float, g_MD: Tensor, p_grad_MD: Tensor, partial: Tensor,
) -> None:  # fmt: skip
    """Write the gradients of x and p and the partial sums [PROGRAMS, 3, D]."""
    how = _widths(x_MD.shape[1], BACKWARD_CELLS)
    given = x_MD, n_grad_MD, x_grad, place_M, picked_n_grad, weight_D, seed, g_MD, p_grad_MD, partial, len(x_MD)
    norm_backward[(PROGRAMS,)](*given, dropped, **how, num_warps=1)
