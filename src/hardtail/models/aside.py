"""Products that nothing waits for, on a stream of their own next to the main one.

Shapes: M rows, N and K columns, S partial sums.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor

from hardtail.models.kernels.sums import launch_column_sums

Product = tuple[Tensor, Tensor, Tensor]
"""Left [M, N], right [M, K], and where leftᵀ·right [N, K] goes."""


class Stacks:
    """Room for tensors that several blocks have: those of one name lie side by side, for one batched product."""

    def __init__(self, blocks: int, like: Tensor) -> None:
        self._blocks, self._like = blocks, like
        self._held: dict[str, Tensor] = {}

    def room(self, name: str, i: int, shape: Sequence[int]) -> Tensor:
        """That of block `i`; for a block that is not one of these, room of its own."""
        if not 0 <= i < self._blocks:
            return self._like.new_empty(shape)
        if name not in self._held:
            self._held[name] = self._like.new_empty((self._blocks, *shape))
        return self._held[name][i]


class Aside:
    """Gradients of weights, computed while the main stream goes on; `join` waits for them."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._waiting: dict[str, list[Product]] = {}
        self._held: list[Tensor] = []
        """What is read here: memory that is freed sooner could be given to something else in the meantime."""

    def product(self, left_MN: Tensor, right_MK: Tensor, out_NK: Tensor) -> None:
        """Write leftᵀ·right in float32."""
        self._run(lambda: _multiply(left_MN, right_MK, out_NK), left_MN, right_MK, out_NK)

    def together(self, name: str, left_MN: Tensor, right_MK: Tensor, out_NK: Tensor, *, last: bool) -> None:
        """Like `product`, but wait for the last one of this name; as one batched product if memory allows it.

        Blocks are expected from the last to the first, and the rooms of their tensors in the opposite order.
        """
        waiting = self._waiting.setdefault(name, [])
        waiting.append((left_MN, right_MK, out_NK))
        if last:
            lefts, rights, outs = zip(*reversed(self._waiting.pop(name)), strict=True)
            stacked = _stacked(lefts), _stacked(rights), _stacked(outs)
            for product in zip(*stacked if all(stacked) else (lefts, rights, outs), strict=True):
                self.product(*product)

    def sums(self, x_MN: Tensor, sums_SN: Tensor) -> None:
        """Write partial sums of the first columns of `x_MN`."""
        self._run(lambda: launch_column_sums(x_MN, sums_SN), x_MN)

    def _run(self, work: Callable[[], None], *held: Tensor) -> None:
        self._held += held
        if self._stream is None:
            work()
            return
        self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        with torch.cuda.stream(self._stream):
            work()

    def join(self) -> None:
        """Let the main stream wait for everything so far."""
        assert not self._waiting
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        self._held.clear()


def _stacked(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Several tensors of one memory at equal distances as one tensor; otherwise nothing."""
    first = tensors[0]
    steps = {after.storage_offset() - before.storage_offset() for before, after in pairwise(tensors)}
    kinds = {(x.untyped_storage().data_ptr(), x.dtype, x.shape, x.stride()) for x in tensors}
    if len(steps) != 1 or len(kinds) != 1:
        return []
    return [first.as_strided((len(tensors), *first.shape), (*steps, *first.stride()))]


def _multiply(left: Tensor, right: Tensor, out: Tensor) -> None:
    """leftᵀ·right of matrices, or of batches of them, in the type of `out`."""
    multiply = torch.bmm if left.ndim == 3 else torch.mm
    if left.dtype == out.dtype:
        multiply(left.mT, right, out=out)
    else:
        multiply(left.mT, right, out_dtype=out.dtype, out=out)
