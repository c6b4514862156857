"""What a run trains: our transformer, or a model of another project.

Shapes: B batch, L sequence, A answer cells, V vocabulary.
"""

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import torch
from torch import Tensor, nn


class Trainable(nn.Module, ABC):
    """A network that predicts answer cells. Calling it gives logits [B, A, V] over the task's vocabulary."""

    whole_answers: ClassVar[bool] = False
    """Whether it needs the places of all answer cells; otherwise it can predict some of them alone."""

    capturable: ClassVar[bool] = True
    """Whether a forward pass never waits for the host, so that a GPU can capture the step that it is in."""

    @abstractmethod
    def forward(self, tokens_BL: Tensor, at_BA: Tensor | slice, attention: torch.dtype | None = None) -> Tensor:
        """Logits for the answer cells at `at_BA`, a slice where all answers are at the same place.

        `attention` is the type in which attention alone is computed, if it differs.
        """

    @abstractmethod
    def twin(self) -> Self:
        """Another network of the same architecture on the same device, whose weights are still to be set."""

    @abstractmethod
    def header(self) -> dict[str, Any]:
        """What a file of its weights says about the architecture, as JSON; `models.weights` reads it."""

    @abstractmethod
    def fault(self, vocabulary: int, length: int) -> str | None:
        """Why it cannot be used on sequences of this length over a vocabulary of this size; None if it can."""

    def name_in_files(self, name: str) -> str:
        """What files call a parameter."""
        return name

    def put(self, weights: dict[str, Tensor]) -> Self:
        """Copy values into the parameters, which are given by their own names."""
        with torch.no_grad():
            for name, parameter in self.named_parameters():
                parameter.copy_(weights[name])
        return self
