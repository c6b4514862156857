# mypy: ignore-errors
"""The exact GELU and its derivative, each in one pass; the second also sums columns for the bias before it.

Shapes: R rows and C columns of a block.
"""

import os

import triton
import triton.language as tl
from torch import Tensor

CELLS = 1024
"""Cells of a program, forward."""
PROGRAMS, ROWS, COLUMNS = 264, 8, 128
"""Programs with their own partial sums, and a block of each, backward."""
_INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")


@triton.jit
def _reciprocal(x):
    """1/x, off by at most one unit in the last place; full division takes eight instructions more."""
    if _INTERPRETED:
        return 1.0 / x
    return tl.inline_asm_elementwise("rcp.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _tail(x):
    """1 - Φ(|x|), by Abramowitz & Stegun 7.1.26 (within 1e-7), and exp(-x²/2)."""
    t = _reciprocal(1.0 + 0.23164188 * tl.abs(x))
    bell = tl.exp2(x * x * -0.7213475204444817)
    series = 0.7107068705 + t * (-0.7265760135 + t * 0.5307027145)
    return t * (0.127414796 + t * (-0.142248368 + t * series)) * bell, bell


@triton.jit
def gelu(h, a, cells, C: tl.constexpr):
    """a = gelu(h) = h·Φ(h)."""
    c_C = tl.program_id(0).to(tl.int64) * C + tl.arange(0, C)
    h_C = tl.load(h + c_C, mask=c_C < cells, other=0.0).to(tl.float32)
    a_C = tl.maximum(h_C, 0.0) - tl.abs(h_C) * _tail(h_C)[0]
    tl.store(a + c_C, a_C.to(a.dtype.element_ty), mask=c_C < cells)


@triton.jit
def gelu_backward(h, gradient, partial, rows, width, R: tl.constexpr, C: tl.constexpr):
    """gradient *= gelu'(h) = Φ(h) + h·φ(h), and each program's share of the sums of its columns."""
    c_C = tl.program_id(1) * C + tl.arange(0, C)
    sum_RC = tl.zeros((R, C), tl.float32)
    for first in range(tl.program_id(0) * R, rows, tl.num_programs(0) * R):
        r_R = (first + tl.arange(0, R)).to(tl.int64)
        cell_RC = r_R[:, None] * width + c_C[None, :]
        here_RC = (r_R < rows)[:, None] & (c_C < width)[None, :]
        h_RC = tl.load(h + cell_RC, mask=here_RC, other=0.0).to(tl.float32)
        g_RC = tl.load(gradient + cell_RC, mask=here_RC, other=0.0).to(tl.float32)
        tail_RC, bell_RC = _tail(h_RC)
        g_RC *= tl.where(h_RC > 0, 1.0 - tail_RC, tail_RC) + h_RC * bell_RC * 0.3989422804014327
        tl.store(gradient + cell_RC, g_RC.to(gradient.dtype.element_ty), mask=here_RC)
        sum_RC += g_RC
    tl.store(partial + tl.program_id(0) * width + c_C, tl.sum(sum_RC, 0), mask=c_C < width)


def launch_gelu(h_MF: Tensor, a_MF: Tensor) -> None:
    """Write gelu(h)."""
    gelu[(triton.cdiv(h_MF.numel(), CELLS),)](h_MF, a_MF, h_MF.numel(), CELLS)


def launch_gelu_backward(h_MF: Tensor, gradient_MF: Tensor, partial: Tensor) -> None:
    """Turn the gradient of gelu(h) into that of h, in place, and write partial sums [PROGRAMS, F] of its columns."""
    rows, width = h_MF.shape
    grid = len(partial), triton.cdiv(width, COLUMNS)
    gelu_backward[grid](h_MF, gradient_MF, partial, rows, width, ROWS, COLUMNS, num_warps=2)
