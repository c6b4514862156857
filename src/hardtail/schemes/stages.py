"""How many stages K a PUMA chain has at a given step of training."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne, Checked, Probability


@dataclass(frozen=True)
class Stages(Checked, ABC):
    """K as a function of the step, on the device."""

    @abstractmethod
    def at(self, step: Tensor, steps: int) -> Tensor:
        """K at `step` of a run of `steps`, as an int64 tensor."""


@dataclass(frozen=True)
class Fixed(Stages):
    """The same K throughout."""

    count: AtLeastOne

    def at(self, step: Tensor, steps: int) -> Tensor:
        return torch.full_like(step, self.count)


@dataclass(frozen=True)
class _Rising(Stages):
    """K from `start` to `end`."""

    start: AtLeastOne
    end: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start > self.end:
            kind = type(self).__name__
            raise HardtailError(f"{kind}: stages go from {self.start} to {self.end}; they must not decrease")


@dataclass(frozen=True)
class Stairs(_Rising):
    """K = min(start + by·⌊step / period⌋, end), rising over about a third of training (docs/study.md §1.8)."""

    by: AtLeastOne

    def period(self, steps: int) -> int:
        return max(1000, (steps // 3) // max((self.end - self.start) // self.by, 1))

    def at(self, step: Tensor, steps: int) -> Tensor:
        return (self.start + self.by * (step // self.period(steps))).clamp(max=self.end)


@dataclass(frozen=True)
class Ramp(_Rising):
    """K grows evenly from `start` to `end` over the first `over` of training, as the paper describes it."""

    over: Probability = 1 / 3

    def at(self, step: Tensor, steps: int) -> Tensor:
        climb = max(int(steps * self.over), 1)
        return self.start + ((self.end - self.start) * step.clamp(max=climb)) // climb
