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

Dropout is drawn inside, by a generator for each row of scores, so that the backward pass draws the same cells again.

Shapes: I queries of a block, J keys of a tile, E size of a head; one entry of a tuple for each tile.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from hardtail.models.attention import HELD
from hardtail.models.kernels.dropout import keep, powers, row_words, words

HELD_BACKWARD = {2: HELD, 4: HELD // 4}
"""Like `HELD`, for the backward pass, by the number of bytes of an element."""
Tile = tuple[int, int, int, int]
"""Queries, keys, warps and pipeline stages."""
HOLDING: dict[str, Tile] = {"forward": (64, 64, 4, 3), "backward": (64, 64, 4, 3)}
LOOPING: dict[int, dict[str, Tile]] = {
    2: {"forward": (64, 64, 4, 3), "queries": (64, 64, 4, 3), "keys": (32, 128, 4, 3)},
    4: {"forward": (64, 64, 4, 1), "queries": (64, 64, 4, 1), "keys": (64, 64, 4, 1)},
}
"""The fastest of those tried at the study's shapes (docs/performance.md): for kernels that hold all keys, and for those
that loop, by the number of bytes of an element."""


LOG2_E = tl.constexpr(1.4426950408889634)
"""Softmax is computed with powers of 2, and scores stay unscaled until then: one operation scales and shifts them."""


@triton.jit
def _real(score_IJ, j_J, keys):
    """Scores, with -inf for padding keys."""
    return tl.where((j_J < keys)[None, :], score_IJ, float("-inf"))


@triton.jit
def _starts(program, heads, queries, q_row, kv_row, E: tl.constexpr):
    """Where a program's queries, keys and outputs start."""
    row, head = (program // heads).to(tl.int64), program % heads
    return row * q_row + head * E, row * kv_row + head * E, (row * queries * heads + head) * E


@triton.jit
def _head_and_tile(count, size: tl.constexpr):
    """Which head of which sequence a program handles, and which tile of its rows.

    Tiles of a head follow each other, so that they run at the same time and find what they share in the cache.
    """
    tiles = tl.cdiv(count, size)
    return tl.program_id(0) // tiles, tl.program_id(0) % tiles


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
    """out = dropout(softmax(q·kᵀ·scale))·v of one head, and the logarithm of what each row is divided by: softmax's
    denominator, times the share that dropout keeps."""
    program = tl.program_id(0)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    k_tiles = _tiles(k + kv_at, kv_cell, keys, tiles, J, E)
    v_tiles = _tiles(v + kv_at, kv_cell, keys, tiles, J, E)
    scale *= LOG2_E
    zero = scale * 0.0  # written as a constant, it would be chosen after rounding, in halves of registers
    for first in range(0, queries, I):
        i_I = first + tl.arange(0, I)
        q_IE = _get(q + q_at, i_I, q_cell, queries, E)
        scores = ()
        most_I = tl.full((I,), float("-inf"), tl.float32)
        for tile in tl.static_range(tiles):
            score_IJ = tl.dot(q_IE, tl.trans(k_tiles[tile]))
            if (tile + 1) * J > keys:
                score_IJ = _real(score_IJ, tile * J + tl.arange(0, J), keys)
            most_I = tl.maximum(most_I, tl.max(score_IJ, 1))
            scores = scores + (score_IJ,)
        shift_I = most_I * scale
        total_I = tl.zeros((I,), tl.float32)
        out_IE = tl.zeros((I, E), tl.float32)
        if dropped > 0:
            row_I = row_words(seed, program * queries + i_I)
        for tile in tl.static_range(tiles):
            p_IJ = tl.exp2(scores[tile] * scale - shift_I[:, None])
            total_I += tl.sum(p_IJ, 1)
            if dropped > 0:
                p_IJ = keep(p_IJ, words(row_I, tile * J + tl.arange(0, J)), dropped, zero)
            out_IE = tl.dot(p_IJ.to(q_IE.dtype), v_tiles[tile], out_IE)
        total_I *= 1.0 - dropped
        _put(out + out_at, out_IE * (1.0 / total_I)[:, None], i_I, heads * E, queries, E)
        tl.store(log_total + program * queries + i_I, shift_I + tl.log2(total_I), mask=i_I < queries)


@triton.jit
def forward_block(
    q, k, v, out, log_total, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Like `forward`, for one block of queries; the sums so far are rescaled whenever a larger score appears."""
    program, tile = _head_and_tile(queries, I)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    i_I = tile * I + tl.arange(0, I)
    q_IE = _get(q + q_at, i_I, q_cell, queries, E)
    most_I = tl.full((I,), float("-inf"), tl.float32)
    total_I = tl.zeros((I,), tl.float32)
    out_IE = tl.zeros((I, E), tl.float32)
    scale *= LOG2_E
    zero = scale * 0.0  # written as a constant, it would be chosen after rounding, in halves of registers
    if dropped > 0:
        row_I = row_words(seed, program * queries + i_I)
    for first in range(0, keys, J):
        j_J = first + tl.arange(0, J)
        score_IJ = _real(tl.dot(q_IE, tl.trans(_get(k + kv_at, j_J, kv_cell, keys, E))), j_J, keys)
        more_I = tl.maximum(most_I, tl.max(score_IJ, 1))
        shift_I = more_I * scale
        fade_I = tl.exp2(most_I * scale - shift_I)
        p_IJ = tl.exp2(score_IJ * scale - shift_I[:, None])
        total_I = total_I * fade_I + tl.sum(p_IJ, 1)
        if dropped > 0:
            p_IJ = keep(p_IJ, words(row_I, tl.arange(0, J)), dropped, zero)
            row_I *= powers(tl.full((1,), J, tl.int32))  # on to the next tile's first column
        v_JE = _get(v + kv_at, j_J, kv_cell, keys, E)
        out_IE = tl.dot(p_IJ.to(q_IE.dtype), v_JE, out_IE * fade_I[:, None])
        most_I = more_I
    total_I *= 1.0 - dropped
    _put(out + out_at, out_IE * (1.0 / total_I)[:, None], i_I, heads * E, queries, E)
    tl.store(log_total + program * queries + i_I, most_I * scale + tl.log2(total_I), mask=i_I < queries)


@triton.jit
def _block(
    q, out, out_grad, share, word, log_total, seed, program, i_I, q_cell, out_cell, queries,
    dropped: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """Of a block of queries: themselves, their output's gradient, its share in every score's gradient, the logarithm
    of their totals, and the words that dropout is drawn from. Shares and words are loaded if `share` is given.
    """
    q_IE = _get(q, i_I, q_cell, queries, E)
    do_IE = _get(out_grad, i_I, out_cell, queries, E)
    log_total_I = tl.load(log_total + program * queries + i_I, mask=i_I < queries, other=0.0)
    row_I = i_I
    if share is not None:
        share_I = tl.load(share + program * queries + i_I, mask=i_I < queries, other=0.0)
        if dropped > 0:
            row_I = tl.load(word + program * queries + i_I, mask=i_I < queries, other=0).to(tl.uint32, bitcast=True)
    else:
        out_IE = _get(out, i_I, out_cell, queries, E)
        share_I = tl.sum(out_IE.to(tl.float32) * do_IE.to(tl.float32), 1) * (1.0 - dropped)
        if dropped > 0:
            row_I = row_words(seed, program * queries + i_I)
    return q_IE, do_IE, share_I, log_total_I, row_I


@triton.jit
def _score_gradients(a, b, da, db, share, log_total, word, real, scale, dropped: tl.constexpr):
    """What dropout left of the probabilities, divided by the share it keeps, and the gradients of the scores.

    Queries by keys if a, da are queries and their output's gradients and b, db keys and values; the other way round,
    keys by queries. What follows them has two dimensions, one of them 1 where it does not depend on it. `real` tells
    keys from padding; without it, padding gets numbers too, for rows that are not written.
    """
    p = tl.exp2(tl.dot(a, tl.trans(b)) * (scale * LOG2_E) - log_total)
    if real is not None:
        p = tl.where(real, p, 0.0)
    dp = tl.dot(da, tl.trans(db))
    if dropped > 0:
        kept = keep(p, word, dropped)
        return kept.to(a.dtype), (kept * dp - p * share).to(a.dtype)
    return p.to(a.dtype), (p * (dp - share)).to(a.dtype)


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
        q_IE, do_IE, share_I, log_total_I, row_I = _block(
            q + q_at, out + out_at, out_grad + out_at, None, None, log_total, seed, program, i_I, q_cell, heads * E,
            queries, dropped, E,
        )  # fmt: skip
        dq_IE = tl.zeros((I, E), tl.float32)
        new_dk_tiles = ()
        new_dv_tiles = ()
        for tile in tl.static_range(tiles):
            j_J = tile * J + tl.arange(0, J)
            real_1J = None
            if (tile + 1) * J > keys:
                real_1J = (j_J < keys)[None, :]
            left_IJ, ds_IJ = _score_gradients(
                q_IE, k_tiles[tile], do_IE, v_tiles[tile], share_I[:, None], log_total_I[:, None],
                words(row_I, j_J), real_1J, scale, dropped,
            )  # fmt: skip
            new_dv_tiles = new_dv_tiles + (tl.dot(tl.trans(left_IJ), do_IE, dv_tiles[tile]),)
            new_dk_tiles = new_dk_tiles + (tl.dot(tl.trans(ds_IJ), q_IE, dk_tiles[tile]),)
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
    q, k, v, out_grad, log_total, share, word, k_grad, v_grad, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """The gradients of one tile of keys and values.

    Scores are computed keys by queries, as the products for the gradients take them.
    """
    program, tile = _head_and_tile(keys, J)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    j_J = tile * J + tl.arange(0, J)
    k_JE = _get(k + kv_at, j_J, kv_cell, keys, E)
    v_JE = _get(v + kv_at, j_J, kv_cell, keys, E)
    dk_JE = tl.zeros((J, E), tl.float32)
    dv_JE = tl.zeros((J, E), tl.float32)
    column_J1 = powers(j_J)[:, None]
    for first in range(0, queries, I):
        q_IE, do_IE, share_I, log_total_I, row_I = _block(
            q + q_at, None, out_grad + out_at, share, word, log_total, seed, program, first + tl.arange(0, I), q_cell,
            heads * E, queries, dropped, E,
        )  # fmt: skip
        left_JI, ds_JI = _score_gradients(
            k_JE, q_IE, v_JE, do_IE, share_I[None, :], log_total_I[None, :], row_I[None, :] * column_J1, None, scale,
            dropped,
        )  # fmt: skip
        dv_JE = tl.dot(left_JI, do_IE, dv_JE)
        dk_JE = tl.dot(ds_JI, q_IE, dk_JE)
    _put(k_grad + kv_at, dk_JE * scale, j_J, kv_cell, keys, E)
    _put(v_grad + kv_at, dv_JE, j_J, kv_cell, keys, E)


@triton.jit
def backward_queries(
    q, k, v, out, out_grad, log_total, share, word, q_grad, seed, q_row, q_cell, kv_row, kv_cell, scale,
    heads: tl.constexpr, queries: tl.constexpr, keys: tl.constexpr, dropped: tl.constexpr,
    I: tl.constexpr, J: tl.constexpr, E: tl.constexpr,
):  # fmt: skip
    """The gradients of one block of queries; also writes the shares and words that `backward_keys` reads."""
    program, tile = _head_and_tile(queries, I)
    q_at, kv_at, out_at = _starts(program, heads, queries, q_row, kv_row, E)
    i_I = tile * I + tl.arange(0, I)
    q_IE, do_IE, share_I, log_total_I, row_I = _block(
        q + q_at, out + out_at, out_grad + out_at, None, None, log_total, seed, program, i_I, q_cell, heads * E,
        queries, dropped, E,
    )  # fmt: skip
    tl.store(share + program * queries + i_I, share_I, mask=i_I < queries)
    if dropped > 0:
        tl.store(word + program * queries + i_I, row_I.to(tl.int32, bitcast=True), mask=i_I < queries)
    dq_IE = tl.zeros((I, E), tl.float32)
    for first in range(0, keys, J):
        j_J = first + tl.arange(0, J)
        k_JE = _get(k + kv_at, j_J, kv_cell, keys, E)
        v_JE = _get(v + kv_at, j_J, kv_cell, keys, E)
        word_IJ = words(row_I, tl.arange(0, J))
        if dropped > 0:
            row_I *= powers(tl.full((1,), J, tl.int32))
        ds_IJ = _score_gradients(
            q_IE, k_JE, do_IE, v_JE, share_I[:, None], log_total_I[:, None], word_IJ, (j_J < keys)[None, :], scale,
            dropped,
        )[1]  # fmt: skip
        dq_IE = tl.dot(ds_IJ, k_JE, dq_IE)
    _put(q_grad + q_at, dq_IE * scale, i_I, q_cell, queries, E)


def launch_forward(
    q_BQD: Tensor, k_BLD: Tensor, v_BLD: Tensor, out_BQD: Tensor, log_total_BHQ: Tensor, seed: Tensor, heads: int,
    dropout: float,
) -> None:  # fmt: skip
    """Write the attention outputs, which are contiguous; keys and values have the same strides."""
    size, keys, head, sizes = _sizes(q_BQD, k_BLD, seed, heads, dropout)
    given = q_BQD, k_BLD, v_BLD, out_BQD, log_total_BHQ
    programs, queries = len(q_BQD) * heads, q_BQD.shape[1]
    if keys * head <= HELD:
        tile = HOLDING["forward"]
        forward[(programs,)](*given, *sizes, triton.cdiv(keys, tile[1]), **_how(tile, head))
    else:
        tile = _fitted(LOOPING[size]["forward"], keys)
        forward_block[(programs * triton.cdiv(queries, tile[0]),)](*given, *sizes, **_how(tile, head))


def launch_backward(
    q_BQD: Tensor, k_BLD: Tensor, v_BLD: Tensor, out_BQD: Tensor, gradient_BQD: Tensor, log_total_BHQ: Tensor,
    dq_BQD: Tensor, dk_BLD: Tensor, dv_BLD: Tensor, seed: Tensor, heads: int, dropout: float,
) -> None:  # fmt: skip
    """Write the gradients, which have the same strides as the inputs."""
    size, keys, head, sizes = _sizes(q_BQD, k_BLD, seed, heads, dropout)
    given = q_BQD, k_BLD, v_BLD, out_BQD, gradient_BQD, log_total_BHQ
    programs, queries = len(q_BQD) * heads, q_BQD.shape[1]
    if keys * head <= HELD_BACKWARD[size]:
        tile = HOLDING["backward"]
        tiles = triton.cdiv(keys, tile[1])
        backward[(programs,)](*given, dq_BQD, dk_BLD, dv_BLD, *sizes, tiles, **_how(tile, head))
        return
    share_BHQ = torch.empty_like(log_total_BHQ)
    word_BHQ = torch.empty_like(log_total_BHQ, dtype=torch.int32) if dropout else None
    tile = _fitted(LOOPING[size]["queries"], keys)
    grid = (programs * triton.cdiv(queries, tile[0]),)
    backward_queries[grid](*given, share_BHQ, word_BHQ, dq_BQD, *sizes, **_how(tile, head))
    tile = LOOPING[size]["keys"]
    grid = (programs * triton.cdiv(keys, tile[1]),)
    given = q_BQD, k_BLD, v_BLD, gradient_BQD, log_total_BHQ, share_BHQ
    backward_keys[grid](*given, word_BHQ, dk_BLD, dv_BLD, *sizes, **_how(tile, head))


def _sizes(
    q_BQD: Tensor, k_BLD: Tensor, seed: Tensor, heads: int, dropout: float
) -> tuple[int, int, int, tuple[Any, ...]]:
    """Bytes of an element, keys, size of a head, and the arguments that follow the tensors."""
    (_, queries, width), keys = q_BQD.shape, k_BLD.shape[1]
    strides = *q_BQD.stride()[:2], *k_BLD.stride()[:2]
    sizes = seed, *strides, (width // heads) ** -0.5, heads, queries, keys, dropout
    return k_BLD.element_size(), keys, width // heads, sizes


def _fitted(tile: Tile, keys: int) -> Tile:
    """With half as many keys where that leaves a tenth less to compute, as tiles of 32 do for 200 keys."""
    rows, width, warps, stages = tile
    narrow, wide = (triton.cdiv(keys, size) * size for size in (width // 2, width))
    return (rows, width // 2, warps, stages) if narrow <= 0.9 * wide else tile


def _how(tile: Tile, head: int) -> dict[str, int]:
    """A kernel's build options."""
    return {"I": tile[0], "J": tile[1], "E": head, "num_warps": tile[2], "num_stages": tile[3]}
