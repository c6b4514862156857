"""AdamW, gradient clipping, the learning-rate schedule and the EMA, on one flat vector of all parameters.

One vector makes the update a handful of kernels however many parameters there are, and an EMA that cannot miss a tied
weight. Weight decay reaches every parameter, biases and norms included, as in the released code (docs/study.md §1.4).

Shapes: P parameters in all.
"""

from dataclasses import dataclass
from math import inf, pi
from typing import Annotated, Literal

import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds, Checked, NonNegative

EPSILON = 1e-8
Decay = Annotated[float, Bounds(ge=0, lt=1)]


@dataclass(frozen=True)
class AdamW(Checked):
    """How weights are updated."""

    lr: Annotated[float, Bounds(gt=0, lt=inf)] = 1e-3
    """Learning rate after the warm-up."""
    floor: NonNegative = 1e-4
    """Learning rate at the end of the cosine."""
    warmup: Annotated[int, Bounds(ge=0)] = 2000
    """Steps in which the learning rate rises to its full value."""
    schedule: Literal["cosine", "constant"] = "cosine"
    """What the learning rate does after that."""
    beta1: Decay = 0.9
    beta2: Decay = 0.99
    weight_decay: NonNegative = 0.1
    clip: Annotated[float, Bounds(gt=0)] | None = 1.0
    """Largest norm of the whole gradient."""
    ema: Decay | None = 0.9999
    """Decay of the moving average of all weights, which starts at the initial weights; no bias correction."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.floor > self.lr:
            raise HardtailError(
                f"AdamW: the learning rate falls from lr to floor, but floor={self.floor} is above lr={self.lr}"
            )

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
    """A module's parameters as views of one vector, with AdamW's moments and the EMA."""

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


def update(flat: Flat, gradient_P: Tensor, settings: AdamW, step: Tensor, steps: int) -> Tensor:
    """One step of clipping, AdamW and EMA, in place; returns the gradient's norm before clipping.

    The gradient is overwritten: vectors of this length are expensive to allocate in code that is not compiled.
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
