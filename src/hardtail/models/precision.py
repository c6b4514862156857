"""In which precision a model computes: the one place that sets PyTorch's matrix products and autocast."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

import torch

Precision = Literal["fp32", "tf32", "bf16"]


@contextmanager
def computing(precision: Precision, device: torch.device) -> Iterator[None]:
    """A forward pass in `precision`; what it sets for the whole process is put back afterwards."""
    with matmul_precision(precision), autocast(precision, device):
        yield


@contextmanager
def matmul_precision(precision: Precision) -> Iterator[None]:
    """float32 matrix products as `precision` has them, for the whole process while this lasts."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("highest" if precision == "fp32" else "high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def autocast(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """bf16 where it is asked for; unlike `matmul_precision`, compiled code may contain it."""
    return torch.autocast(device.type, torch.bfloat16) if precision == "bf16" else nullcontext()
