"""The precision that a model computes in: only this module sets PyTorch's matrix products and autocast."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch

Precision = Literal["fp32", "tf32", "bf16"]


@contextmanager
def computing(precision: Precision, device: torch.device) -> Iterator[None]:
    """Run a forward pass in `precision`, then restore the settings of the process."""
    with matmul_precision(precision), autocast(precision, device):
        yield


@contextmanager
def matmul_precision(precision: Precision) -> Iterator[None]:
    """Compute float32 matrix products in `precision`, in the whole process while this lasts."""
    before, wanted = torch.get_float32_matmul_precision(), "highest" if precision == "fp32" else "high"
    _set_matmul_precision(wanted)
    try:
        yield
    finally:
        _set_matmul_precision(before)


def _set_matmul_precision(wanted: str) -> None:
    if torch.get_float32_matmul_precision() != wanted:  # threads that compute in the same one leave it alone
        torch.set_float32_matmul_precision(wanted)


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """bf16 if `precision` is bf16; compiled code may contain this, unlike `matmul_precision`."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
