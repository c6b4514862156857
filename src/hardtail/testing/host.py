"""Work that may be captured as a CUDA graph, checked without a GPU: it asks the host nothing."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch.utils._python_dispatch import TorchDispatchMode

ASKING = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "is_nonzero")
"""What `.item()`, `bool(tensor)` and shapes that depend on values come down to."""


class no_questions(TorchDispatchMode):  # type: ignore[no-untyped-call]  # noqa: N801 (a context manager)
    """Raises AssertionError where the work inside needs a value of a tensor to go on."""

    def __init__(self, method: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.method = method

    def __torch_dispatch__(
        self, func: Any, types: Sequence[Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        name = func.overloadpacket.__name__
        assert not name.startswith(ASKING), f"{self.method} asks the host for a value ({name}); a GPU would wait for it"
        return func(*args, **(kwargs or {}))
