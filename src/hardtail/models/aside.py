"""What nothing waits for, on a stream of its own next to the main one: gradients of weights, and sums for biases.

`Stacks` is room for what the gradients of several blocks are made of, so that one batched product makes them all.

Shapes: M rows, N and K columns, S partial sums, G blocks.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from hardtail.models.kernels.sums import launch_column_sums


class Stacks:
    """Room for tensors that several blocks have: those of one name lie side by side, for one batched product."""

    def __init__(self, blocks: int, like: Tensor) -> None:
        self.blocks, self._like = blocks, like
        self._held: dict[str, Tensor] = {}

    def room(self, name: str, i: int, shape: Sequence[int]) -> Tensor:
        """That of block `i`; for a block that is not one of these, room of its own."""
        if not 0 <= i < self.blocks:
            return self._like.new_empty(shape)
        if name not in self._held:
            self._held[name] = self._like.new_empty((self.blocks, *shape))
        return self._held[name][i]

    def whole(self, name: str) -> Tensor | None:
        """The tensors of all blocks [G, M, columns]; None if there was no room for them here."""
        held = self._held.get(name)
        return None if held is None else held.flatten(1, -2)


class Aside:
    """Work on a second stream; `join` lets the main one wait for it."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._held: list[Tensor] = []
        """What is read here: memory that is freed sooner could be given to something else in the meantime."""

    def product(self, left_MN: Tensor, right_MK: Tensor, out_NK: Tensor) -> None:
        """Write leftᵀ·right in float32; of batches of matrices, too."""
        self._run(lambda: _multiply(left_MN, right_MK, out_NK), left_MN, right_MK, out_NK)

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
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        self._held.clear()


def _multiply(left: Tensor, right: Tensor, out: Tensor) -> None:
    """leftᵀ·right of matrices, or of batches of them, in the type of `out`."""
    multiply = torch.bmm if left.ndim == 3 else torch.mm
    if left.dtype == out.dtype:
        multiply(left.mT, right, out=out)
    else:
        multiply(left.mT, right, out_dtype=out.dtype, out=out)
