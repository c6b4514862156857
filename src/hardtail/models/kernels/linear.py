# mypy: ignore-errors
# ruff: noqa: RUF005, SIM113 - Gluon knows neither unpacking nor enumerate
"""Linear layers on Hopper with what follows them inside: a bias, GELU, or GELU's derivative and sums for a bias.

A program computes tiles of one block of columns. Two groups of four warps take these tiles in turn: while one
multiplies, the other finishes its own tile and writes it. One more warp loads what they multiply into a ring of places
in shared memory. So GELU's arithmetic and its bytes are hidden behind the products.

Every tile is written once, by one program, and sums over rows are added up in a fixed order: the same numbers in every
run.

Shapes: M rows, N columns and K depth of a tile; C chunks of depth K; S places of the ring.
"""

import triton
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
PLACES = 4
"""Of the ring. With the two tiles that are being written they nearly fill the shared memory."""
PROGRAMS = 132
"""As many as an H200 has multiprocessors."""


@gluon.jit
def _tail(x):
    """1 - Φ(|x|) and exp(-x²/2), as in `gelu`."""
    inverse: gl.constexpr = "rcp.approx.ftz.f32 $0, $1;"
    t = gl.inline_asm_elementwise(
        inverse, "=f,f", [1.0 + 0.23164188 * gl.abs(x)], dtype=gl.float32, is_pure=True, pack=1
    )
    bell = gl.exp2(x * x * -0.7213475204444817)
    series = 0.7107068705 + t * (-0.7265760135 + t * 0.5307027145)
    return t * (0.127414796 + t * (-0.142248368 + t * series)) * bell, bell


@gluon.jit
def _feed(x, w, x_ring, w_ring, full, empty, row_tiles, columns, chunks, S: gl.constexpr, FLIPPED: gl.constexpr):
    """Load the tiles' chunks in the order in which they are multiplied, each once its place is free."""
    M: gl.constexpr = x.block_shape[0]
    K: gl.constexpr = x.block_shape[1]
    N: gl.constexpr = w.block_shape[1 if FLIPPED else 0]
    n = gl.program_id(0) % columns * N
    step = 0
    for row in range(gl.program_id(0) // columns, row_tiles, gl.num_programs(0) // columns):
        for chunk in range(chunks):
            place = step % S
            mbarrier.wait(empty.index(place), ((step // S) & 1) ^ 1)
            mbarrier.expect(full.index(place), (M + N) * K * 2)
            tma.async_copy_global_to_shared(x, [row * M, chunk * K], full.index(place), x_ring.index(place))
            if FLIPPED:
                tma.async_copy_global_to_shared(w, [chunk * K, n], full.index(place), w_ring.index(place))
            else:
                tma.async_copy_global_to_shared(w, [n, chunk * K], full.index(place), w_ring.index(place))
            step += 1


@gluon.jit
def _product(
    x_ring, w_ring, full, empty, turn, chunks, count, sum_MN,
    FIRST: gl.constexpr, S: gl.constexpr, FLIPPED: gl.constexpr,
):  # fmt: skip
    """Add the product of one tile to `sum_MN`, when it is this group's turn: then all chunks before have arrived."""
    mbarrier.wait(turn.index(FIRST), (count & 1) ^ (1 - FIRST))
    step = (2 * count + FIRST) * chunks
    for chunk in range(chunks):
        place = step % S
        mbarrier.wait(full.index(place), (step // S) & 1)
        w_KN = w_ring.index(place) if FLIPPED else w_ring.index(place).permute((1, 0))
        sum_MN = warpgroup_mma(x_ring.index(place), w_KN, sum_MN, is_async=True)
        sum_MN = warpgroup_mma_wait(num_outstanding=1, deps=(sum_MN,))
        mbarrier.arrive(empty.index((step + S - 1) % S), count=1, pred=chunk > 0)
        step += 1
    mbarrier.arrive(turn.index(1 - FIRST), count=1)
    sum_MN = warpgroup_mma_wait(num_outstanding=0, deps=(sum_MN,))
    mbarrier.arrive(empty.index((step + S - 1) % S), count=1)
    return sum_MN


@gluon.jit
def _write(tile_MN, x_MN, out, row, column):
    """Write a tile to `out` by way of shared memory, once what was written before has left it."""
    tma.store_wait(pendings=0)
    tile_MN.store(x_MN.to(tile_MN.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(out, [row, column], tile_MN)


@gluon.jit
def _rows_of_a_thread(x_MN):
    """Sums over the rows of a tile that a thread holds: by warp, and by row of eight."""
    M: gl.constexpr = x_MN.shape[0]
    N: gl.constexpr = x_MN.shape[1]
    return gl.sum(gl.sum(x_MN.reshape((M // 64, 4, 2, 8, N)), 2), 0)


@gluon.jit
def _compute(
    x_ring, w_ring, full, empty, turn, ready, tile_MN, bias, h, out, partial, row_tiles, columns, chunks,
    FIRST: gl.constexpr, S: gl.constexpr, FLIPPED: gl.constexpr, FOLLOWED: gl.constexpr,
):  # fmt: skip
    """One group's tiles: every second one of the program's."""
    M: gl.constexpr = tile_MN.shape[0]
    N: gl.constexpr = tile_MN.shape[1]
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, N, 16])
    n = gl.program_id(0) % columns * N
    n_N = n + gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    group, groups = gl.program_id(0) // columns, gl.num_programs(0) // columns
    if bias is not None:
        bias_N = gl.load(bias + n_N).to(gl.float32)
    if partial is not None:
        total = _rows_of_a_thread(gl.zeros((M, N), gl.float32, layout))
    count = 0
    for row in range(group + FIRST * groups, row_tiles, 2 * groups):
        if FOLLOWED == "derivative":
            tma.store_wait(pendings=0)
            mbarrier.expect(ready.index(FIRST), M * N * 2)
            tma.async_copy_global_to_shared(h, [row * M, n], ready.index(FIRST), tile_MN)
        x_MN = gl.zeros((M, N), gl.float32, layout)
        x_MN = _product(x_ring, w_ring, full, empty, turn, chunks, count, x_MN, FIRST, S, FLIPPED)
        if bias is not None:
            x_MN += bias_N[None, :]
        if FOLLOWED == "gelu":
            _write(tile_MN, x_MN, h, row * M, n)
            x_MN = gl.maximum(x_MN, 0.0) - gl.abs(x_MN) * _tail(x_MN)[0]
        if FOLLOWED == "derivative":
            mbarrier.wait(ready.index(FIRST), count & 1)
            h_MN = tile_MN.load(layout).to(gl.float32)
            tail_MN, bell_MN = _tail(h_MN)
            x_MN *= gl.where(h_MN > 0, 1.0 - tail_MN, tail_MN) + h_MN * bell_MN * 0.3989422804014327
        if partial is not None:
            total += _rows_of_a_thread(x_MN)
        _write(tile_MN, x_MN, out, row * M, n)
        count += 1
    tma.store_wait(pendings=0)
    if partial is not None:
        total_N = gl.convert_layout(gl.sum(gl.sum(total, 1), 0), gl.SliceLayout(0, layout))
        gl.store(partial + (2 * group + FIRST) * (columns * N) + n_N, total_N)


@gluon.jit(do_not_specialize=["row_tiles", "columns", "chunks"])
def linear(
    x, w, bias, h, out, partial, row_tiles, columns, chunks,
    S: gl.constexpr, FLIPPED: gl.constexpr, FOLLOWED: gl.constexpr,
):  # fmt: skip
    """x·wᵀ + bias, or x·w if `FLIPPED`, followed by nothing, or

    - "gelu": h gets the sum, and out gelu(h);
    - "derivative": out gets the product times gelu'(h), and `partial` sums of its columns.
    """
    x_ring = gl.allocate_shared_memory(x.dtype, [S] + x.block_shape, x.layout)
    w_ring = gl.allocate_shared_memory(w.dtype, [S] + w.block_shape, w.layout)
    tile_0 = gl.allocate_shared_memory(out.dtype, out.block_shape, out.layout)
    tile_1 = gl.allocate_shared_memory(out.dtype, out.block_shape, out.layout)
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
            (_compute, (x_ring, w_ring, full, empty, turn, ready, tile_0, bias, h, out, partial, row_tiles, columns,
                        chunks, 0, S, FLIPPED, FOLLOWED)),
            (_compute, (x_ring, w_ring, full, empty, turn, ready, tile_1, bias, h, out, partial, row_tiles, columns,
                        chunks, 1, S, FLIPPED, FOLLOWED)),
            (_feed, (x, w, x_ring, w_ring, full, empty, row_tiles, columns, chunks, S, FLIPPED)),
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


def launch_gelu(x_MK: Tensor, weight_NK: Tensor, bias_N: Tensor, h_MN: Tensor, out_MN: Tensor) -> None:
    """h = x·wᵀ + bias, out = gelu(h), from h before it is rounded."""
    _launch(x_MK, weight_NK, bias_N, h_MN, out_MN, None, flipped=False, followed="gelu")


def launch_derivative(x_MK: Tensor, weight_KN: Tensor, h_MN: Tensor, out_MN: Tensor, partial_SN: Tensor) -> None:
    """out = (x·w)·gelu'(h), and partial sums of its columns."""
    _launch(x_MK, weight_KN, None, h_MN, out_MN, partial_SN, flipped=True, followed="derivative")


def _launch(
    x_MK: Tensor, weight: Tensor, bias_N: Tensor | None, h_MN: Tensor | None, out_MN: Tensor, partial_SN: Tensor | None,
    *, flipped: bool, followed: str,
) -> None:  # fmt: skip
    (rows, depth), columns = x_MK.shape, out_MN.shape[1] // COLUMNS
    given = (
        _tiles(x_MK, ROWS, DEPTH),
        _tiles(weight, DEPTH, COLUMNS) if flipped else _tiles(weight, COLUMNS, DEPTH),
        bias_N,
        None if h_MN is None else _tiles(h_MN, ROWS, COLUMNS),
        _tiles(out_MN, ROWS, COLUMNS),
        partial_SN,
    )
    sizes = triton.cdiv(rows, ROWS), columns, depth // DEPTH
    programs = max(PROGRAMS // columns, 1) * columns
    linear[(programs,)](*given, *sizes, PLACES, flipped, followed, num_warps=4)


def _tiles(x: Tensor, rows: int, columns: int) -> TensorDescriptor:
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.bfloat16)
    return TensorDescriptor.from_tensor(x, [rows, columns], layout)
