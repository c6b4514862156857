# mypy: ignore-errors
"""Sums over rows: of a whole matrix, and of the partial sums that other kernels leave.

Kernels that see every row of a tensor leave sums of its columns behind, one row of them for each program. `Partials`
is the room for all of these in a backward pass, and `settle` adds them up, all in one launch and in a fixed order.

Shapes: N rows of a block, C columns of a block.
"""

from math import prod

import torch
import triton
import triton.language as tl
from torch import Tensor

PROGRAMS, ROWS, COLUMNS = 264, 32, 128
"""Programs of `column_sums` with their own partial sums, and a block of each."""
SETTLED_ROWS, SETTLED_COLUMNS = 256, 32


@triton.jit
def column_sums(x, partial, rows, width, x_row, row, N: tl.constexpr, C: tl.constexpr):
    """Each program's share of the sum of every column."""
    c_C = tl.program_id(1) * C + tl.arange(0, C)
    sum_NC = tl.zeros((N, C), tl.float32)
    for first in range(tl.program_id(0) * N, rows, tl.num_programs(0) * N):
        n_N = first + tl.arange(0, N)
        here_NC = (n_N < rows)[:, None] & (c_C < width)[None, :]
        sum_NC += tl.load(x + n_N.to(tl.int64)[:, None] * x_row + c_C[None, :], mask=here_NC, other=0.0)
    tl.store(partial + tl.program_id(0) * row + c_C, tl.sum(sum_NC, 0), mask=c_C < width)


@triton.jit
def settle(partial, out, job, N: tl.constexpr, C: tl.constexpr):
    """One job: sum rows of `partial` and write the sums to `out`. A job is start, row stride, rows, place, columns."""
    mine = job + tl.program_id(0) * 5
    start, row, rows = tl.load(mine), tl.load(mine + 1), tl.load(mine + 2)
    c_C = tl.arange(0, C)
    here_C = c_C < tl.load(mine + 4)
    sum_NC = tl.zeros((N, C), tl.float32)
    for first in range(0, rows, N):
        n_N = first + tl.arange(0, N)
        here_NC = (n_N < rows)[:, None] & here_C[None, :]
        sum_NC += tl.load(partial + start + n_N[:, None] * row + c_C[None, :], mask=here_NC, other=0.0)
    tl.store(out + tl.load(mine + 3) + c_C, tl.sum(sum_NC, 0), mask=here_C)


def launch_column_sums(x_MN: Tensor, partial: Tensor) -> None:
    """Write partial sums of the first columns of x, as many of each as `partial` has rows."""
    width = partial.shape[1]
    if width:
        grid = len(partial), triton.cdiv(width, COLUMNS)
        column_sums[grid](x_MN, partial, len(x_MN), width, x_MN.stride(0), partial.stride(0), ROWS, COLUMNS)


class Partials:
    """Where partial sums lie in one vector, and where in another their totals belong."""

    def __init__(self) -> None:
        self.cells = 0
        self._shapes: dict[str, tuple[int, tuple[int, ...]]] = {}
        self._jobs: list[tuple[int, int, int, int, int]] = []

    def add(self, name: str, shape: tuple[int, ...], places: list[int | None], used: int | None = None) -> None:
        """Room for sums of `shape` [sites, rows, parts, columns].

        `places` has the place of each part of each site; None where the sums are not needed. Only the first `used`
        columns are.
        """
        sites, rows, parts, width = shape
        for number, place in enumerate(places):
            start = self.cells + number // parts * rows * parts * width + number % parts * width
            if place is not None:
                for c in range(0, used or width, SETTLED_COLUMNS):
                    few = min(SETTLED_COLUMNS, (used or width) - c)
                    self._jobs.append((start + c, parts * width, rows, place + c, few))
        assert len(places) == sites * parts
        self._shapes[name] = self.cells, shape
        self.cells += prod(shape)

    def jobs(self, device: torch.device) -> Tensor:
        """What `launch_settle` needs."""
        return torch.tensor(self._jobs, dtype=torch.int64, device=device)

    def views(self, partial: Tensor) -> dict[str, Tensor]:
        """The room of each name."""
        return {name: partial[at : at + prod(shape)].view(shape) for name, (at, shape) in self._shapes.items()}


def launch_settle(partial: Tensor, out_P: Tensor, jobs: Tensor) -> None:
    """Add up all partial sums and write them to their places in `out_P`."""
    settle[(len(jobs),)](partial, out_P, jobs, SETTLED_ROWS, SETTLED_COLUMNS)
