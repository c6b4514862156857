"""Our own GPU kernels, in Triton (docs/kernels.md). The modules of this package need Triton; the package does not."""

import os
from importlib import import_module
from types import ModuleType

import torch

from hardtail.models.attention import HAS_TRITON
from hardtail.models.transformer import Shape

GLUON = "3.6."
"""The versions of Triton whose Gluon `linear` is written in. It is experimental, so others may change it."""
TILED_WIDTH = 192
"""The width from which `linear` saves more than 3 % of a step (docs/performance.md)."""


def fits(shape: Shape, device: torch.device) -> bool:
    """Whether the passes of `models.forward` and `models.fused` are written for this GPU and these sizes."""
    if not HAS_TRITON or device.type != "cuda" or torch.cuda.get_device_capability(device) < (9, 0):
        return False
    return shape.width % 64 == 0 and shape.width <= 512 and shape.mlp_ratio % 2 == 0 and shape.vocab_size <= 64


def tiled_products(device: torch.device, kind: torch.dtype) -> ModuleType | None:
    """The module `linear`, where its products run: on Hopper, in bf16, not in Triton's interpreter."""
    if not HAS_TRITON or device.type != "cuda" or kind != torch.bfloat16 or os.environ.get("TRITON_INTERPRET") == "1":
        return None
    if torch.cuda.get_device_capability(device)[0] != 9 or not import_module("triton").__version__.startswith(GLUON):
        return None
    return import_module("hardtail.models.kernels.linear")
