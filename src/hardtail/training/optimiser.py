"""AdamW, gradient clipping, the learning-rate schedule and the EMA, on one flat vector of all parameters.

One vector makes the update a handful of kernels however many parameters there are, and an EMA that cannot miss a tied
weight. Weight decay reaches every parameter, biases and norms included, as in the released code (docs/study.md §1.4).

Shapes: P parameters in all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, pi
from typing import Literal

import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError

EPSILON = 1e-8


@dataclass(frozen=True)
class AdamW:
    """How weights move."""

    lr: float = 1e-3
    floor: float = 1e-4
    """Learning rate at the end of the cosine."""
    warmup: int = 2000
    schedule: Literal["cosine", "constant"] = "cosine"
    beta1: float = 0.9
    beta2: float = 0.99
    weight_decay: float = 0.1
    clip: float | None = 1.0
    """Largest norm of the whole gradient."""
    ema: float | None = 0.9999
    """Decay of the moving average of all weights, which starts at the initial weights; no bias correction."""

    def __post_init__(self) -> None:
        if not 0 < self.lr < inf or self.warmup < 0 or not 0 <= self.floor <= self.lr:
            raise HardtailError(
                f"the learning rate goes from {self.lr} to {self.floor} after {self.warmup} steps of warm-up"
            )
        if not (0 <= self.beta1 < 1 and 0 <= self.beta2 < 1):
            raise HardtailError(f"the betas are {self.beta1} and {self.beta2}; they are at least 0 and below 1")
        if not 0 <= self.weight_decay < inf:
            raise HardtailError(f"the weight decay is {self.weight_decay}; it is a number, at least 0")
        if self.clip is not None and not self.clip > 0:
            raise HardtailError(f"gradients are clipped at {self.clip}; it must be above 0, or None not to clip")
        if self.ema is not None and not 0 <= self.ema < 1:
            raise HardtailError(f"the EMA's decay is {self.ema}; it is at least 0 and below 1")

    def rate(self, step: Tensor, steps: int) -> Tensor:
        """Learning rate at 0-based `step`: lr·it/warmup with it = step + 1, then the cosine (docs/study.md §1.4)."""
        it = (step + 1).float()
        warm = it / max(self.warmup, 1)
        if self.schedule == "constant":
            return self.lr * warm.clamp(max=1.0)
        through = ((it - self.warmup) / max(steps - self.warmup, 1)).clamp(0.0, 1.0)
        cosine = self.floor + 0.5 * (self.lr - self.floor) * (1 + torch.cos(pi * through))
        return torch.where(it < self.warmup, self.lr * warm, cosine)


class Flat:
    """A module's parameters as views of one vector, with AdamW's moments and the EMA beside it."""

    def __init__(self, module: nn.Module) -> None:
        self.parameters = list(module.parameters())
        self.names = [name for name, _ in module.named_parameters()]
        self.weight_P = torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters])
        at = 0
        for parameter in self.parameters:
            parameter.data = self.weight_P[at : at + parameter.numel()].view_as(parameter)
            at += parameter.numel()
        self.first_P = torch.zeros_like(self.weight_P)
        self.second_P = torch.zeros_like(self.weight_P)
        self.ema_P = self.weight_P.clone()

    def views(self, vector_P: Tensor) -> dict[str, Tensor]:
        """A vector as named tensors of the parameters' shapes."""
        parts = torch.split(vector_P, [parameter.numel() for parameter in self.parameters])
        return {
            name: part.view_as(parameter)
            for name, part, parameter in zip(self.names, parts, self.parameters, strict=True)
        }


def flatten(gradients: Sequence[Tensor]) -> Tensor:
    """Gradients as one float32 vector."""
    return torch.cat([gradient.reshape(-1).float() for gradient in gradients])


def update(flat: Flat, gradient_P: Tensor, settings: AdamW, step: Tensor, steps: int) -> Tensor:
    """One step of clipping, AdamW and EMA, in place; returns the gradient's norm before clipping.

    The gradient is used up: vectors of this length are dear to allocate where nothing is compiled.
    """
    norm = torch.linalg.vector_norm(gradient_P)
    if settings.clip is not None:
        gradient_P.mul_((settings.clip / (norm + 1e-6)).clamp(max=1.0))
    it = (step + 1).float()
    rate = settings.rate(step, steps)
    flat.first_P.lerp_(gradient_P, 1 - settings.beta1)
    flat.second_P.lerp_(gradient_P.square_(), 1 - settings.beta2)
    move_P = gradient_P.copy_(flat.second_P).sqrt_().mul_((1 - settings.beta2**it).rsqrt()).add_(EPSILON)
    move_P.reciprocal_().mul_(flat.first_P).mul_(rate / (1 - settings.beta1**it))
    flat.weight_P.mul_(1 - rate * settings.weight_decay).sub_(move_P)
    if settings.ema is None:
        flat.ema_P.copy_(flat.weight_P)
    else:
        flat.ema_P.lerp_(flat.weight_P, 1 - settings.ema)
    return norm
