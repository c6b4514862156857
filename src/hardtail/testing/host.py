"""Checks without a GPU that work can be captured as a CUDA graph: it reads no tensor value on the host."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

HOST_READS = (
    *("_local_scalar_dense", "nonzero", "masked_select", "unique", "_unique2", "is_nonzero"),
    *("equal", "bincount", "repeat_interleave"),
)
"""The operations behind `.item()`, `bool(tensor)` and shapes that depend on values. Copies to and from the host
(`.cpu()`, `torch.tensor([…])`) are none on a CPU, and are not found."""


class forbid_host_reads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # noqa: N801 (a context manager)
    """Raises AssertionError if the work inside reads the value of a tensor."""

    def __init__(self, method: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.method = method

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        indices = args[1] if "index" in name and len(args) > 1 and isinstance(args[1], list | tuple) else ()
        how = f"{name} by a mask" if any(map(_is_mask, indices)) else name if name.startswith(HOST_READS) else ""
        assert not how, f"{self.method} reads a value on the host ({how}); a GPU would wait for it"
        return func(*args, **(kwargs or {}))


def _is_mask(index: Tensor | None) -> bool:
    """Whether indexing by it needs to know how many of its values are true."""
    return index is not None and index.dtype in (torch.bool, torch.uint8)
