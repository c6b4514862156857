"""Our own GPU kernels, in Triton (docs/kernels.md). The modules of this package need Triton; the package does not."""

import torch

from hardtail.models.attention import HAS_TRITON
from hardtail.models.transformer import Shape


def fits(shape: Shape, device: torch.device) -> bool:
    """Whether the passes of `models.fused` are written for this GPU and these sizes."""
    if not HAS_TRITON or device.type != "cuda" or torch.cuda.get_device_capability(device) < (9, 0):
        return False
    return shape.width % 64 == 0 and shape.width <= 512 and shape.mlp_ratio % 2 == 0 and shape.vocab_size <= 64
