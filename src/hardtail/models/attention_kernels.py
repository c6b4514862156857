# mypy: ignore-errors
# ruff: noqa: E741, RUF005 - the letters are shapes, and Triton cannot unpack tuples
"""Attention on a GPU, forward and backward, in Triton.

Short sequences: one program handles one head of one sequence. It holds all keys and values, in tiles, and loops over
the queries in blocks. So a whole row of scores is available at once, nothing is rescaled, and keys and values are read
once.

Sequences that a program cannot hold: one program handles a block of queries and loops over the keys, in the forward
pass and for the queries' gradients; another handles a tile of keys and loops over the queries, for the gradients of
keys and values.

Either way each gradient is written once, by one program, without atomic additions: the same numbers in every run.

Dropout is drawn inside from a hash of seed, head and cell, so that the backward pass draws the same cells again.

Shapes: I queries of a block, J keys of a tile, E size of a head; one entry of a tuple for each tile.
"""

from typing import Any

import triton
import triton.language as tl
from torch import Tensor

from hardtail.models.attention import HELD

SIDE, WARPS = 64, 4
"""Queries of a block and keys of a tile: the fastest of those tried at the study's shapes (docs/performance.md)."""
HELD_BACKWARD = {2: HELD, 4: HELD // 4}
"""Like `HELD`, for the backward pass, by the number of bytes of an element."""
STAGES = 1
"""Pipeline stages of the kernels for longer sequences: more would take the memory that a second program needs."""


@triton.jit
def _mixed(x):
    """A 32-bit word with its bits mixed (the `lowbias32` constants of Wellons' hash prospector)."""
    x ^= x >> 16
    x *= 0x7FEB352D
    x ^= x >> 15
    x *= 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def _row_words(seed, program, i_I, queries):
    """A random word for each row of probabilities, from which dropout is drawn."""
    return _mixed(_mixed((program * queries + i_I).to(tl.uint32)) ^ tl.load(seed).to(tl.uint32))


@triton.jit
def _factor(row_I, j_J, dropped: tl.constexpr):
    """What dropout multiplies each probability by: the words of row and column mixed together decide."""
    column_J = _mixed(j_J.to(tl.uint32) + 0x9E3779B9)
    word_IJ = (row_I[:, None] ^ column_J[None, :]) * 0x9E3779B1
    word_IJ = (word_IJ ^ (word_IJ >> 15)) * 0x85EBCA77
    threshold: tl.constexpr = int(dropped * 2**31)
    return tl.where((word_IJ >> 1).to(tl.int32) >= threshold, 1.0 / (1.0 - dropped), 0.0)


@triton.jit
def _scores(q_IE, k_JE, j_J, keys, scale):
    """Scaled products in units of log 2; -inf for padding keys."""
    score_IJ = tl.dot(q_IE, tl.trans(k_JE)) * (scale * 1.4426950408889634)
    return tl.where((j_J < keys)[None, :], score_IJ, float("-inf"))


@triton.jit
def _starts(program, heads, queries, q_row, kv_row, E: tl.constexpr):
    """Where a program's queries, keys and outputs start."""
    row, head = (program // heads).to(tl.int64), program % heads
    return row * q_row + head * E, row * kv_row + head * E, (row * queries * heads + head) * E


@triton.jit
def _tiles(start, cell, keys, tiles: tl.constexpr, J: tl.constexpr, E: tl.constexpr):
    """All rows of one head, tile by tile."""
    held = ()
    for tile in tl.static_range(tiles):
        held = held + (_get(start, tile * J + tl.arange(0, J), cell, keys, E),)
    return held


@triton.jit
def _get(start, j_J, cell, count, E: tl.constexpr):
    """Rows of one head; padding rows are 0."""
    return tl.load(start + j_J[:, None] * cell + tl.arange(0, E)[None, :], mask=(j_J < count)[:, None], other=0.0)


@triton.jit
def _put(start, x_JE, j_J, cell, count, E: tl.constexpr):
    """Write rows of one head, converted to the type of the destination."""
    at_JE = start + j_J[:, None] * cell + tl.arange(0, E)[None, :]
    tl.store(at_JE, x_JE.to(start.dtype.element_ty), mask=(j_J < count)[:, None])


@triton.jit
def forward(
    q, k, v, out, log_total, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    tiles: tl.constexpr, I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """out = dropout(softmax(q·kᵀ·scale))·v of one head, and the logarithm of each row's softmax denominator."""
    program = tl.program_id(0)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    k_tiles = _tiles(k + kv_at, kv_cell, keys, tiles, J, E)
    v_tiles = _tiles(v + kv_at, kv_cell, keys, tiles, J, E)
    for first in range(0, queries, I):
        i_I = first + tl.arange(0, I)
        q_IE = _get(q + q_at, i_I, q_cell, queries, E)
        scores = ()
        most_I = tl.full((I,), float("-inf"), tl.float32)
        for tile in tl.static_range(tiles):
            score_IJ = _scores(q_IE, k_tiles[tile], tile * J + tl.arange(0, J), keys, scale)
            most_I = tl.maximum(most_I, tl.max(score_IJ, 1))
            scores = scores + (score_IJ,)
        total_I = tl.zeros((I,), tl.float32)
        out_IE = tl.zeros((I, E), tl.float32)
        if dropped > 0:
            row_I = _row_words(seed, program, i_I, queries)
        for tile in tl.static_range(tiles):
            p_IJ = tl.exp2(scores[tile] - most_I[:, None])
            total_I += tl.sum(p_IJ, 1)
            if dropped > 0:
                p_IJ *= _factor(row_I, tile * J + tl.arange(0, J), dropped)
            out_IE = tl.dot(p_IJ.to(q_IE.dtype), v_tiles[tile], out_IE)
        _put(out + out_at, out_IE * (1.0 / total_I)[:, None], i_I, heads * E, queries, E)
        tl.store(log_total + program * queries + i_I, most_I + tl.log2(total_I), mask=i_I < queries)


@triton.jit
def forward_block(
    q, k, v, out, log_total, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Like `forward`, for one block of queries; the sums so far are rescaled whenever a larger score appears."""
    program = tl.program_id(0)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    i_I = tl.program_id(1) * I + tl.arange(0, I)
    q_IE = _get(q + q_at, i_I, q_cell, queries, E)
    most_I = tl.full((I,), float("-inf"), tl.float32)
    total_I = tl.zeros((I,), tl.float32)
    out_IE = tl.zeros((I, E), tl.float32)
    if dropped > 0:
        row_I = _row_words(seed, program, i_I, queries)
    for first in range(0, keys, J):
        j_J = first + tl.arange(0, J)
        score_IJ = _scores(q_IE, _get(k + kv_at, j_J, kv_cell, keys, E), j_J, keys, scale)
        more_I = tl.maximum(most_I, tl.max(score_IJ, 1))
        fade_I = tl.exp2(most_I - more_I)
        p_IJ = tl.exp2(score_IJ - more_I[:, None])
        total_I = total_I * fade_I + tl.sum(p_IJ, 1)
        if dropped > 0:
            p_IJ *= _factor(row_I, j_J, dropped)
        v_JE = _get(v + kv_at, j_J, kv_cell, keys, E)
        out_IE = tl.dot(p_IJ.to(q_IE.dtype), v_JE, out_IE * fade_I[:, None])
        most_I = more_I
    _put(out + out_at, out_IE * (1.0 / total_I)[:, None], i_I, heads * E, queries, E)
    tl.store(log_total + program * queries + i_I, most_I + tl.log2(total_I), mask=i_I < queries)


@triton.jit
def _block(
    q, out, out_grad, log_total, seed, program, i_I, q_cell, out_cell, queries, dropped: tl.constexpr, E: tl.constexpr
):
    """Of a block of queries: themselves, their output's gradient, its share in every score's gradient, the logarithm
    of their totals, and the words that dropout is drawn from."""
    q_IE = _get(q, i_I, q_cell, queries, E)
    do_IE = _get(out_grad, i_I, out_cell, queries, E)
    share_I = tl.sum(_get(out, i_I, out_cell, queries, E).to(tl.float32) * do_IE.to(tl.float32), 1)
    log_total_I = tl.load(log_total + program * queries + i_I, mask=i_I < queries, other=0.0)
    row_I = _row_words(seed, program, i_I, queries) if dropped > 0 else i_I
    return q_IE, do_IE, share_I, log_total_I, row_I


@triton.jit
def _score_gradients(block, k_JE, v_JE, j_J, keys, scale, dropped: tl.constexpr):
    """The probabilities that dropout left, and the gradients of the scores."""
    q_IE, do_IE, share_I, log_total_I, row_I = block
    p_IJ = tl.exp2(_scores(q_IE, k_JE, j_J, keys, scale) - log_total_I[:, None])
    dp_IJ = tl.dot(do_IE, tl.trans(v_JE))
    left_IJ = p_IJ
    if dropped > 0:
        factor_IJ = _factor(row_I, j_J, dropped)
        left_IJ = p_IJ * factor_IJ
        dp_IJ *= factor_IJ
    ds_IJ = p_IJ * (dp_IJ - share_I[:, None])
    return left_IJ.to(k_JE.dtype), ds_IJ.to(k_JE.dtype)


@triton.jit
def backward(
    q, k, v, out, out_grad, log_total, q_grad, k_grad, v_grad, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    tiles: tl.constexpr, I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """The gradients of one head of one sequence; they are laid out as the inputs are."""
    program = tl.program_id(0)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    k_tiles = _tiles(k + kv_at, kv_cell, keys, tiles, J, E)
    v_tiles = _tiles(v + kv_at, kv_cell, keys, tiles, J, E)
    dk_tiles = ()
    dv_tiles = ()
    for _ in tl.static_range(tiles):
        dk_tiles = dk_tiles + (tl.zeros((J, E), tl.float32),)
        dv_tiles = dv_tiles + (tl.zeros((J, E), tl.float32),)
    for first in range(0, queries, I):
        i_I = first + tl.arange(0, I)
        block = _block(
            q + q_at, out + out_at, out_grad + out_at, log_total, seed, program, i_I, q_cell, heads * E, queries,
            dropped, E,
        )  # fmt: skip
        dq_IE = tl.zeros((I, E), tl.float32)
        new_dk_tiles = ()
        new_dv_tiles = ()
        for tile in tl.static_range(tiles):
            j_J = tile * J + tl.arange(0, J)
            left_IJ, ds_IJ = _score_gradients(block, k_tiles[tile], v_tiles[tile], j_J, keys, scale, dropped)
            new_dv_tiles = new_dv_tiles + (tl.dot(tl.trans(left_IJ), block[1], dv_tiles[tile]),)
            new_dk_tiles = new_dk_tiles + (tl.dot(tl.trans(ds_IJ), block[0], dk_tiles[tile]),)
            dq_IE = tl.dot(ds_IJ, k_tiles[tile], dq_IE)
        dk_tiles = new_dk_tiles
        dv_tiles = new_dv_tiles
        _put(q_grad + q_at, dq_IE * scale, i_I, q_cell, queries, E)
    for tile in tl.static_range(tiles):
        j_J = tile * J + tl.arange(0, J)
        _put(k_grad + kv_at, dk_tiles[tile] * scale, j_J, kv_cell, keys, E)
        _put(v_grad + kv_at, dv_tiles[tile], j_J, kv_cell, keys, E)


@triton.jit
def backward_keys(
    q, k, v, out, out_grad, log_total, k_grad, v_grad, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """The gradients of one tile of keys and values."""
    program = tl.program_id(0)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    j_J = tl.program_id(1) * J + tl.arange(0, J)
    k_JE = _get(k + kv_at, j_J, kv_cell, keys, E)
    v_JE = _get(v + kv_at, j_J, kv_cell, keys, E)
    dk_JE = tl.zeros((J, E), tl.float32)
    dv_JE = tl.zeros((J, E), tl.float32)
    for first in range(0, queries, I):
        i_I = first + tl.arange(0, I)
        block = _block(
            q + q_at, out + out_at, out_grad + out_at, log_total, seed, program, i_I, q_cell, heads * E, queries,
            dropped, E,
        )  # fmt: skip
        left_IJ, ds_IJ = _score_gradients(block, k_JE, v_JE, j_J, keys, scale, dropped)
        dv_JE = tl.dot(tl.trans(left_IJ), block[1], dv_JE)
        dk_JE = tl.dot(tl.trans(ds_IJ), block[0], dk_JE)
    _put(k_grad + kv_at, dk_JE * scale, j_J, kv_cell, keys, E)
    _put(v_grad + kv_at, dv_JE, j_J, kv_cell, keys, E)


@triton.jit
def backward_queries(
    q, k, v, out, out_grad, log_total, q_grad, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """The gradients of one block of queries."""
    program = tl.program_id(0)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    i_I = tl.program_id(1) * I + tl.arange(0, I)
    block = _block(
        q + q_at, out + out_at, out_grad + out_at, log_total, seed, program, i_I, q_cell, heads * E, queries,
        dropped, E,
    )  # fmt: skip
    dq_IE = tl.zeros((I, E), tl.float32)
    for first in range(0, keys, J):
        j_J = first + tl.arange(0, J)
        k_JE = _get(k + kv_at, j_J, kv_cell, keys, E)
        v_JE = _get(v + kv_at, j_J, kv_cell, keys, E)
        ds_IJ = _score_gradients(block, k_JE, v_JE, j_J, keys, scale, dropped)[1]
        dq_IE = tl.dot(ds_IJ, k_JE, dq_IE)
    _put(q_grad + q_at, dq_IE * scale, i_I, q_cell, queries, E)


def launch_forward(
    q_BQD: Tensor, k_BLD: Tensor, v_BLD: Tensor, out_BQD: Tensor, log_total_BHQ: Tensor, seed: Tensor, heads: int,
    dropout: float,
) -> None:  # fmt: skip
    """Write the attention outputs, which are contiguous; keys and values have the same strides."""
    tiles, blocks, sizes, how = _sizes(q_BQD, k_BLD, seed, heads, dropout)
    given = q_BQD, k_BLD, v_BLD, out_BQD, log_total_BHQ
    programs = len(q_BQD) * heads
    if k_BLD.shape[1] * how["E"] <= HELD:
        forward[(programs,)](*given, *sizes, tiles, **how)
    else:
        forward_block[(programs, blocks)](*given, *sizes, **how, num_stages=STAGES)


def launch_backward(
    q_BQD: Tensor, k_BLD: Tensor, v_BLD: Tensor, out_BQD: Tensor, gradient_BQD: Tensor, log_total_BHQ: Tensor,
    dq_BQD: Tensor, dk_BLD: Tensor, dv_BLD: Tensor, seed: Tensor, heads: int, dropout: float,
) -> None:  # fmt: skip
    """Write the gradients, which have the same strides as the inputs."""
    tiles, blocks, sizes, how = _sizes(q_BQD, k_BLD, seed, heads, dropout)
    given = q_BQD, k_BLD, v_BLD, out_BQD, gradient_BQD, log_total_BHQ
    programs = len(q_BQD) * heads
    if k_BLD.shape[1] * how["E"] <= HELD_BACKWARD[k_BLD.element_size()]:
        backward[(programs,)](*given, dq_BQD, dk_BLD, dv_BLD, *sizes, tiles, **how)
    else:
        backward_keys[(programs, tiles)](*given, dk_BLD, dv_BLD, *sizes, **how, num_stages=STAGES)
        backward_queries[(programs, blocks)](*given, dq_BQD, *sizes, **how, num_stages=STAGES)


def _sizes(
    q_BQD: Tensor, k_BLD: Tensor, seed: Tensor, heads: int, dropout: float
) -> tuple[int, int, tuple[Any, ...], dict[str, int]]:
    """Tiles of keys, blocks of queries, the arguments that follow the tensors, and the kernels' build options."""
    (_, queries, width), keys = q_BQD.shape, k_BLD.shape[1]
    strides = *q_BQD.stride()[:2], *k_BLD.stride()[:2]
    sizes = seed, *strides, (width // heads) ** -0.5, heads, queries, keys, dropout
    how = {"I": SIDE, "J": SIDE, "E": width // heads, "num_warps": WARPS}
    return triton.cdiv(keys, SIDE), triton.cdiv(queries, SIDE), sizes, how
