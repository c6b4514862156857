"""Products that nothing waits for, on a stream of their own next to the main one.

Shapes: M rows, N and K columns, S partial sums.
"""

import torch
from torch import Tensor

from hardtail.models.kernels.sums import launch_column_sums


class Aside:
    """Gradients of weights, computed while the main stream goes on; `join` waits for them."""

    def __init__(self, device: torch.device) -> None:
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None  # type: ignore[no-untyped-call]
        self._held: list[Tensor] = []
        """What the products read: memory that is freed sooner could be given to something else in the meantime."""

    def product(self, left_MN: Tensor, right_MK: Tensor, out_NK: Tensor, sums_SN: Tensor | None = None) -> None:
        """Write leftᵀ·right in float32 and, if asked, partial sums of the first columns of `left_MN`."""
        self._held += [left_MN, right_MK, out_NK]
        if self._stream is None:
            self._compute(left_MN, right_MK, out_NK, sums_SN)
            return
        self._stream.wait_stream(torch.cuda.current_stream(left_MN.device))
        with torch.cuda.stream(self._stream):
            self._compute(left_MN, right_MK, out_NK, sums_SN)

    def _compute(self, left_MN: Tensor, right_MK: Tensor, out_NK: Tensor, sums_SN: Tensor | None) -> None:
        if sums_SN is not None:
            launch_column_sums(left_MN, sums_SN)
        if left_MN.dtype == out_NK.dtype:
            torch.mm(left_MN.T, right_MK, out=out_NK)
        else:
            torch.mm(left_MN.T, right_MK, out_dtype=out_NK.dtype, out=out_NK)

    def join(self) -> None:
        """Let the main stream wait for everything so far."""
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)
        self._held.clear()
