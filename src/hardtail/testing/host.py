"""Checks without a GPU that work can be captured as a CUDA graph: it reads no tensor value on the host."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

HOST_READS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero")
"""The operations behind `.item()`, `bool(tensor)` and shapes that depend on values."""


class forbid_host_reads(TorchDispatchMode):  # type: ignore[no-untyped-call]  # noqa: N801 (a context manager)
    """Raises AssertionError if the work inside reads the value of a tensor."""

    def __init__(self, method: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.method = method

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        assert not name.startswith(HOST_READS), (
            f"{self.method} reads a value on the host ({name}); a GPU would wait for it"
        )
        return func(*args, **(kwargs or {}))
