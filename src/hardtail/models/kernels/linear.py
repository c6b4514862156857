# mypy: ignore-errors
# ruff: noqa: RUF005, SIM113 - Gluon knows neither unpacking nor enumerate
"""Linear layers on Hopper with what follows them inside: a bias, GELU, or GELU's derivative and sums for a bias.

A program computes tiles of one block of columns. Two groups of four warps take these tiles in turn: while one
multiplies, the other finishes its own tile and writes it. One more warp loads what they multiply into a ring of places
in shared memory; the weight, of which a program needs one block of columns, stays there if it finds room. So GELU's
arithmetic and its bytes are hidden behind the products. GELU and its derivative share most of their arithmetic, so both
are computed forward, and the way back only multiplies.

A tile is finished and written in pieces, so that one leaves shared memory while the next is computed, and so that what
GELU needs fits the registers. The pieces take turns in a loop: written out one after the other, their instructions
would be more than the processor keeps at hand, and a group would wait for them.

Every tile is written once, by one program, and sums over rows are added up in a fixed order: the same numbers in every
run.

Shapes: M rows, N columns and K depth of a tile; H rows of half a tile and C columns of a piece; W warps of a group; S
places of the ring; T pieces that a group has room for.
"""

import torch
from torch import Tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS, COLUMNS, DEPTH = 128, 128, 64
"""Of a tile. It needs 128 registers of each thread of a group for its sums."""
PIECE = {"nothing": 64, "gelu": 64, "derivative": 64}
"""Columns of a piece, by what follows the product."""
ROOM, PLACES = 14, 3
"""Chunks of x and of the weight, and halves of tiles, that find room in shared memory; and how many places the ring has
at least, or else the weight is not kept. With few of them, products wait for what they multiply."""
PROGRAMS = 132
"""As many as an H200 has multiprocessors."""
SLOPE = torch.float16
"""The kind of GELU's derivative, which lies between -0.13 and 1.13: float16 rounds it an eighth as much as bfloat16."""


@gluon.jit
def _gelu(x):
    """x·Φ(x) and its derivative Φ(x) + x·φ(x), with Φ as in `gelu`, within 1e-7.

    Neither chooses by the sign of x: with predicates the compiler orders this arithmetic badly.
    """
    inverse: gl.constexpr = "rcp.approx.ftz.f32 $0, $1;"
    signed: gl.constexpr = "copysign.f32 $0, $1, $2;"
    t = gl.inline_asm_elementwise(
        inverse, "=f,f", [1.0 + 0.23164188 * gl.abs(x)], dtype=gl.float32, is_pure=True, pack=1
    )
    bell = gl.exp2(x * x * -0.7213475204444817)
    series = 0.7107068705 + t * (-0.7265760135 + t * 0.5307027145)
    away = 0.5 - t * (0.127414796 + t * (-0.142248368 + t * series)) * bell  # Φ(|x|) - 1/2
    share = 0.5 + gl.inline_asm_elementwise(signed, "=f,f,f", [x, away], dtype=gl.float32, is_pure=True, pack=1)
    return x * share, share + x * 0.3989422804014327 * bell


@gluon.jit
def _feed(
    x, w, x_ring, w_ring, full, empty, rows, columns, chunks,
    S: gl.constexpr, KEPT: gl.constexpr, FLIPPED: gl.constexpr,
):  # fmt: skip
    """Load the tiles' chunks in the order in which they are multiplied, each once its place is free.

    If the weight is kept, it comes with the first tile alone.
    """
    M: gl.constexpr = x.block_shape[0]
    K: gl.constexpr = x.block_shape[1]
    N: gl.constexpr = w.block_shape[1 if FLIPPED else 0]
    n = gl.program_id(0) % columns * N
    step = 0
    for row in range(gl.program_id(0) // columns * M, rows, gl.num_programs(0) // columns * M):
        for chunk in range(chunks):
            place = step % S
            mbarrier.wait(empty.index(place), ((step // S) & 1) ^ 1)
            if step < chunks or not KEPT:
                mbarrier.expect(full.index(place), (M + N) * K * 2)
                at = [chunk * K, n] if FLIPPED else [n, chunk * K]
                tma.async_copy_global_to_shared(w, at, full.index(place), w_ring.index(chunk if KEPT else place))
            else:
                mbarrier.expect(full.index(place), M * K * 2)
            tma.async_copy_global_to_shared(x, [row, chunk * K], full.index(place), x_ring.index(place))
            step += 1


@gluon.jit
def _product(
    x_ring, w_ring, full, empty, turn, chunks, count, sum_MN,
    FIRST: gl.constexpr, S: gl.constexpr, KEPT: gl.constexpr, FLIPPED: gl.constexpr,
):  # fmt: skip
    """Add the product of one tile to `sum_MN`, when it is this group's turn: then all chunks before have arrived."""
    mbarrier.wait(turn.index(FIRST), (count & 1) ^ (1 - FIRST))
    step = (2 * count + FIRST) * chunks
    for chunk in range(chunks):
        place = step % S
        mbarrier.wait(full.index(place), (step // S) & 1)
        w_KN = w_ring.index(chunk if KEPT else place)
        if not FLIPPED:
            w_KN = w_KN.permute((1, 0))
        sum_MN = warpgroup_mma(x_ring.index(place), w_KN, sum_MN, is_async=True)
        sum_MN = warpgroup_mma_wait(num_outstanding=1, deps=(sum_MN,))
        mbarrier.arrive(empty.index((step + S - 1) % S), count=1, pred=chunk > 0)
        step += 1
    mbarrier.arrive(turn.index(1 - FIRST), count=1)
    sum_MN = warpgroup_mma_wait(num_outstanding=0, deps=(sum_MN,))
    mbarrier.arrive(empty.index((step + S - 1) % S), count=1)
    return sum_MN


@gluon.jit
def _upper_and_lower(x_MN):
    """The halves of the rows of a tile; every thread has as many of each, so nothing moves."""
    M: gl.constexpr = x_MN.shape[0]
    N: gl.constexpr = x_MN.shape[1]
    upper_HN, lower_HN = x_MN.reshape((2, M // 2, N)).permute((1, 2, 0)).split()
    upper_HN = gl.convert_layout(upper_HN, x_MN.type.layout, assert_trivial=True)
    return upper_HN, gl.convert_layout(lower_HN, x_MN.type.layout, assert_trivial=True)


@gluon.jit
def _left_and_right(x_HN):
    """The halves of the columns; nothing moves either."""
    H: gl.constexpr = x_HN.shape[0]
    N: gl.constexpr = x_HN.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N // 2, 16])
    left_HC, right_HC = x_HN.reshape((H, 2, N // 2)).permute((0, 2, 1)).split()
    left_HC = gl.convert_layout(left_HC, layout, assert_trivial=True)
    return left_HC, gl.convert_layout(right_HC, layout, assert_trivial=True)


@gluon.jit
def _pieces(x_HN, C: gl.constexpr):
    """Half a tile in pieces of C columns, from left to right."""
    left, right = _left_and_right(x_HN)
    pieces = (left, right)
    if x_HN.shape[1] == 4 * C:
        pieces = _left_and_right(left) + _left_and_right(right)
    return pieces


@gluon.jit
def _rows_of_a_thread(x_HC):
    """Sums over the rows of a piece that a thread holds: by warp, and by row of eight."""
    H: gl.constexpr = x_HC.shape[0]
    C: gl.constexpr = x_HC.shape[1]
    return gl.sum(x_HC.reshape((4, H // 32, 8, C)), 1)


@gluon.jit
def _store_sums(total, piece, out):
    """Add up the rows that `_rows_of_a_thread` left, and write them by way of the room of a piece, which is free again.

    (A change of layout would take shared memory of its own, and a place from the ring.)
    """
    total_WC = gl.sum(total, 1)
    W: gl.constexpr = total_WC.shape[0]
    C: gl.constexpr = total_WC.shape[1]
    shared: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, [1, 0])
    by_column: gl.constexpr = gl.BlockedLayout([W, 1], [1, 32], [1, 4], [0, 1])
    rows_WC = piece._reinterpret(gl.float32, [W, C], shared)
    rows_WC.store(total_WC)
    c_C = gl.arange(0, C, layout=gl.SliceLayout(0, by_column))
    gl.store(out + c_C, gl.sum(rows_WC.load(by_column), 0))


@gluon.jit
def _finish(x_HC, room, slope, out, row, column, number, FOLLOWED: gl.constexpr):
    """Do what follows the product of a piece, and write it by way of shared memory; returns what `out` gets."""
    T: gl.constexpr = room.shape[0]
    if FOLLOWED == "gelu" and slope is not None:
        x_HC, slope_HC = _gelu(x_HC)
        place = 2 * number % T
        tma.store_wait(pendings=T - 2)
        room.index(place).store(slope_HC.to(gl.float16).to(slope.dtype, bitcast=True))
        room.index(place + 1).store(x_HC.to(out.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(slope, [row, column], room.index(place))
        tma.async_copy_shared_to_global(out, [row, column], room.index(place + 1))
    else:
        piece_HC = room.index(number % T)
        if FOLLOWED == "derivative":
            slope_HC = piece_HC.load(x_HC.type.layout).to(gl.float16, bitcast=True)
            x_HC *= slope_HC.to(gl.float32)
        else:
            if FOLLOWED == "gelu":
                x_HC, _ = _gelu(x_HC)
            tma.store_wait(pendings=T - 1)
        piece_HC.store(x_HC.to(out.dtype))
        fence_async_shared()
        tma.async_copy_shared_to_global(out, [row, column], piece_HC)
    return x_HC


@gluon.jit
def _compute(
    x_ring, w_ring, full, empty, turn, ready, room, bias, slope, out, partial, rows, columns, chunks,
    FIRST: gl.constexpr, S: gl.constexpr, KEPT: gl.constexpr, FLIPPED: gl.constexpr, FOLLOWED: gl.constexpr,
):  # fmt: skip
    """One group's tiles: every second one of the program's."""
    M: gl.constexpr = x_ring.shape[1]
    N: gl.constexpr = w_ring.shape[2 if FLIPPED else 1]
    H: gl.constexpr = room.shape[1]
    C: gl.constexpr = room.shape[2]
    ACROSS: gl.constexpr = N // C
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N, 16])
    n = gl.program_id(0) % columns * N
    n_N = n + gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    group, groups = gl.program_id(0) // columns, gl.num_programs(0) // columns
    totals = ()
    if partial is not None:
        for part in gl.static_range(ACROSS):
            totals = totals + (_rows_of_a_thread(_pieces(gl.zeros((H, N), gl.float32, layout), C)[part]),)
    count = 0
    for row in range((group + FIRST * groups) * M, rows, 2 * groups * M):
        if FOLLOWED == "derivative":
            tma.store_wait(pendings=0)
            mbarrier.expect(ready.index(FIRST), M * N * 2)
            for part in gl.static_range(2 * ACROSS):
                at = [row + part // ACROSS * H, n + part % ACROSS * C]
                tma.async_copy_global_to_shared(slope, at, ready.index(FIRST), room.index(part))
        x_MN = gl.zeros((M, N), gl.float32, layout)
        if bias is not None:  # read again for every tile: there are no registers to keep it in
            x_MN += gl.load(bias + n_N).to(gl.float32)[None, :]
        x_MN = _product(x_ring, w_ring, full, empty, turn, chunks, count, x_MN, FIRST, S, KEPT, FLIPPED)
        if FOLLOWED == "derivative":
            mbarrier.wait(ready.index(FIRST), count & 1)
        this_HN, other_HN = _upper_and_lower(x_MN)
        for half in range(2):
            pieces = _pieces(this_HN, C)
            for number in range(ACROSS):
                at_row, at_column = row + half * H, n + number * C
                done_HC = _finish(pieces[0], room, slope, out, at_row, at_column, half * ACROSS + number, FOLLOWED)
                pieces = pieces[1:] + pieces[:1]
                if partial is not None:
                    totals = totals[1:] + (totals[0] + _rows_of_a_thread(done_HC),)
            this_HN = other_HN
        count += 1
    tma.store_wait(pendings=0)
    if partial is not None:
        mine = partial + (2 * group + FIRST) * (columns * N) + n
        for part in gl.static_range(ACROSS):
            _store_sums(totals[part], room.index(part), mine + part * C)


@gluon.jit(do_not_specialize=["rows", "columns", "chunks"])
def linear(
    x, w, bias, slope, out, partial, rows, columns, chunks,
    S: gl.constexpr, KEPT: gl.constexpr, T: gl.constexpr, FLIPPED: gl.constexpr, FOLLOWED: gl.constexpr,
):  # fmt: skip
    """x·wᵀ + bias, or x·w if `FLIPPED`, followed by nothing, or

    - "gelu": out gets gelu of the sum, and `slope`, if it is given, gelu' of it;
    - "derivative": out gets the product times `slope`, and `partial` sums of its columns.

    `KEPT` chunks of the weight stay in shared memory: all of them or none. GELU and its derivative have a whole tile's
    room for what is on its way; a product alone, which has time to wait for half of it, leaves the rest to the ring.
    """
    x_ring = gl.allocate_shared_memory(x.dtype, [S] + x.block_shape, x.layout)
    w_ring = gl.allocate_shared_memory(w.dtype, [KEPT or S] + w.block_shape, w.layout)
    room_0 = gl.allocate_shared_memory(out.dtype, [T] + out.block_shape, out.layout)
    room_1 = gl.allocate_shared_memory(out.dtype, [T] + out.block_shape, out.layout)
    full = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [S, 1], mbarrier.MBarrierLayout())
    turn = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    ready = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for place in gl.static_range(S):
        mbarrier.init(full.index(place), count=1)
        mbarrier.init(empty.index(place), count=1)
    for group in gl.static_range(2):
        mbarrier.init(turn.index(group), count=1)
        mbarrier.init(ready.index(group), count=1)
    fence_async_shared()
    # fmt: off
    gl.warp_specialize(
        [
            (_compute, (x_ring, w_ring, full, empty, turn, ready, room_0, bias, slope, out, partial, rows, columns,
                        chunks, 0, S, KEPT, FLIPPED, FOLLOWED)),
            (_compute, (x_ring, w_ring, full, empty, turn, ready, room_1, bias, slope, out, partial, rows, columns,
                        chunks, 1, S, KEPT, FLIPPED, FOLLOWED)),
            (_feed, (x, w, x_ring, w_ring, full, empty, rows, columns, chunks, S, KEPT, FLIPPED)),
        ],
        [4, 1],  # warps of the second group and of the one that loads
        [232, 40],  # registers of their threads; the first group has those that are left
    )
    # fmt: on


def pays(weight_NK: Tensor) -> bool:
    """Whether tiles fill the output's columns and the depth, and cuBLAS is slower: it is not if the layer is deep."""
    columns, depth = weight_NK.shape
    return columns % COLUMNS == 0 and depth % DEPTH == 0 and depth <= columns


def partial_sums(columns: int) -> int:
    """How many partial sums of each of this many columns `launch_derivative` writes."""
    return 2 * max(PROGRAMS // (columns // COLUMNS), 1)


def launch_linear(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor, out_MN: Tensor) -> None:
    """out = x·wᵀ + bias."""
    _launch(x_MK, weight_NK, bias_N, None, out_MN, None, flipped=False, followed="nothing")


def launch_gelu(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor, slope_MN: Tensor | None, out_MN: Tensor) -> None:
    """out = gelu(h) and, if it is wanted, slope = gelu'(h), from h = x·wᵀ + bias before it is rounded."""
    _launch(x_MK, weight_NK, bias_N, slope_MN, out_MN, None, flipped=False, followed="gelu")


def launch_derivative(x_MK: Tensor, weight_KN: Tensor, slope_MN: Tensor, out_MN: Tensor, partial_SN: Tensor) -> None:
    """out = (x·w)·slope, and partial sums of its columns."""
    _launch(x_MK, weight_KN, None, slope_MN, out_MN, partial_SN, flipped=True, followed="derivative")


def _launch(
    x_MK: Tensor, weight: Tensor, bias_N: Tensor | None, slope_MN: Tensor | None, out_MN: Tensor,
    partial_SN: Tensor | None, *, flipped: bool, followed: str,
) -> None:  # fmt: skip
    rows, chunks, columns, piece = len(x_MK), x_MK.shape[1] // DEPTH, out_MN.shape[1] // COLUMNS, PIECE[followed]
    given = (
        _tiles(x_MK, ROWS, DEPTH),
        _tiles(weight, DEPTH, COLUMNS) if flipped else _tiles(weight, COLUMNS, DEPTH),
        bias_N,
        None if slope_MN is None else _tiles(slope_MN.view(out_MN.dtype), ROWS // 2, piece),
        _tiles(out_MN, ROWS // 2, piece),
        partial_SN,
    )
    programs = max(PROGRAMS // columns, 1) * columns
    halves = 1 if followed == "nothing" else 2  # of a tile, that a group has room for
    room = ROOM - 2 * halves
    places, kept = (room - chunks, chunks) if chunks + PLACES <= room else (room // 2, 0)
    pieces = halves * COLUMNS // piece
    linear[(programs,)](*given, rows, columns, chunks, places, kept, pieces, flipped, followed, num_warps=4)


def _tiles(x: Tensor, rows: int, columns: int) -> TensorDescriptor:
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.bfloat16)
    return TensorDescriptor.from_tensor(x, [rows, columns], layout)
