# mypy: ignore-errors
"""The gradients of the token table and of the positions, in one pass over the gradient of their sum.

A token's gradient goes to its row by a product with one-hot vectors, so nothing is added atomically. Each program
writes partial sums, which `sums.settle` adds up.

Shapes: V tokens, J positions of a block, C columns of a block.
"""

import triton
import triton.language as tl
from torch import Tensor

POSITIONS, COLUMNS, SPLITS = 64, 64, 16
"""Positions and columns of a block; the batch is split into this many shares."""


@triton.jit
def embedding_backward(
    token, gradient, table_partial, place_partial, batch, length, width,
    V: tl.constexpr, J: tl.constexpr, C: tl.constexpr,
):  # fmt: skip
    """One block of positions and columns, over a share of the batch."""
    block, column, share = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    j_J = block * J + tl.arange(0, J)
    c_C = column * C + tl.arange(0, C)
    v_V = tl.arange(0, V)
    here_JC = (j_J < length)[:, None] & (c_C < width)[None, :]
    place_JC = tl.zeros((J, C), tl.float32)
    table_VC = tl.zeros((V, C), tl.float32)
    for b in range(share, batch, tl.num_programs(2)):
        row_J = b * length + j_J.to(tl.int64)
        token_J = tl.load(token + row_J, mask=j_J < length, other=-1)
        g_JC = tl.load(gradient + row_J[:, None] * width + c_C[None, :], mask=here_JC, other=0.0)
        place_JC += g_JC.to(tl.float32)
        table_VC = tl.dot((token_J[None, :] == v_V[:, None]).to(g_JC.dtype), g_JC, table_VC)
    tl.store(place_partial + (share * length + j_J)[:, None] * width + c_C[None, :], place_JC, mask=here_JC)
    mine = table_partial + (share * tl.num_programs(0) + block) * V * width
    tl.store(mine + v_V[:, None] * width + c_C[None, :], table_VC, mask=(c_C < width)[None, :])


def table_shares(length: int) -> int:
    """How many partial sums of the token table there are."""
    return SPLITS * triton.cdiv(length, POSITIONS)


def launch_embedding_backward(
    tokens_BL: Tensor, gradient_MD: Tensor, table_partial: Tensor, place_partial: Tensor
) -> None:
    """Write partial sums: [table_shares, V, D] of the table and [SPLITS, L, D] of the positions."""
    (batch, length), width = tokens_BL.shape, gradient_MD.shape[1]
    grid = triton.cdiv(length, POSITIONS), triton.cdiv(width, COLUMNS), SPLITS
    given = tokens_BL, gradient_MD, table_partial, place_partial, batch, length, width, table_partial.shape[1]
    embedding_backward[grid](*given, POSITIONS, COLUMNS)
