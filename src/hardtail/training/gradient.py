"""The loss of a batch and its gradient, in one of two ways: by autograd, or by passes that are written out.

Cells that an instance never hides need no prediction: the last block computes only those that may be hidden, and the
other cells' logits are 0.

Shapes: N instances, B batch, A answer cells, K cells to predict, V vocabulary, P parameters in all.
"""

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.models.precision import Precision, autocast
from hardtail.models.trainable import Trainable
from hardtail.models.transformer import Transformer, first_cells
from hardtail.schemes.base import Corpus, Scheme, View


class Predicted:
    """Which answer cells a step predicts: as many for each instance as the one with the most maskable cells needs.

    A model that needs `whole_answers` predicts all of them.
    """

    def __init__(self, corpus: Corpus, whole_answers: bool = False) -> None:
        self.answer_at_NA = corpus.answer_at_NA
        count = int(corpus.maskable_NA.sum(dim=1).max())
        self.cell_NK: Tensor | None = None
        if count < corpus.maskable_NA.shape[1] and not whole_answers:
            self.cell_NK = first_cells(corpus.maskable_NA, count).to(torch.int16)

    def at(self, view: View) -> Tensor | slice:
        """Their places in the sequences."""
        if self.cell_NK is None:
            return view.at_BA
        return self.answer_at_NA[view.row_B].gather(1, self.cell_NK[view.row_B].long()).long()

    def spread(self, logits_BKV: Tensor, view: View) -> Tensor:
        """Logits of all answer cells; 0 where nothing was predicted."""
        if self.cell_NK is None:
            return logits_BKV
        cell_BKV = self.cell_NK[view.row_B].long()[:, :, None].expand_as(logits_BKV)
        shape = *view.hidden_BA.shape, logits_BKV.shape[-1]
        return logits_BKV.new_zeros(shape).scatter(1, cell_BKV, logits_BKV)


class Gradient(ABC):
    """How the gradient is computed."""

    @abstractmethod
    def __call__(self, view: View) -> tuple[Tensor, Tensor, Tensor]:
        """The loss, the logits of all answer cells, and the gradient of all parameters as one float32 vector."""


class Autograd(Gradient):
    """By PyTorch's autograd, in any precision, on any device."""

    def __init__(
        self, model: Trainable, scheme: Scheme, predicted: Predicted, precision: Precision,
        attention: torch.dtype | None,
    ) -> None:  # fmt: skip
        self.model, self.scheme, self.predicted = model, scheme, predicted
        self.precision, self.attention = precision, attention
        self.parameters = list(model.parameters())
        self.loss: Callable[[View], tuple[Tensor, Tensor]] = self.forward

    def __call__(self, view: View) -> tuple[Tensor, Tensor, Tensor]:
        loss, logits_BAV = self.loss(view)
        refuse_loss(loss, self.scheme)
        gradient_P = flatten(torch.autograd.grad(loss, self.parameters, materialize_grads=True))
        return loss.detach(), logits_BAV.detach(), gradient_P

    def forward(self, view: View) -> tuple[Tensor, Tensor]:
        """The loss and the logits."""
        with autocast(self.precision, view.tokens_BL.device):
            logits_BKV = self.model(view.tokens_BL, self.predicted.at(view), self.attention)
        logits_BAV = self.predicted.spread(logits_BKV, view)
        return self.scheme.loss(logits_BAV, view), logits_BAV

    def compiled(self) -> "Autograd":
        """The same, with the forward and backward pass compiled."""
        same = Autograd(self.model, self.scheme, self.predicted, self.precision, self.attention)
        same.loss = torch.compile(same.forward, dynamic=False)
        return same


class Fused(Gradient):
    """By `models.fused`: bf16 on a GPU. Only the loss is left to autograd."""

    def __init__(self, model: Transformer, scheme: Scheme, predicted: Predicted, weight_P: Tensor) -> None:
        from hardtail.models.fused import Passes  # needs Triton

        self.passes = Passes(model, weight_P, model.shape.seq_len)
        self.model, self.scheme, self.predicted = model, scheme, predicted
        self._at = torch.compile(self._places, dynamic=False)
        self._loss = torch.compile(self._of_logits, dynamic=False)

    def __call__(self, view: View) -> tuple[Tensor, Tensor, Tensor]:
        dropout = self.model.shape.dropout if self.model.training else 0.0
        with torch.no_grad():
            logits_BKV = self.passes.forward(view.tokens_BL, self._at(view), dropout)
        leaf_BKV = logits_BKV.requires_grad_()
        loss, logits_BAV = self._loss(leaf_BKV, view)
        refuse_loss(loss, self.scheme)
        (gradient_BKV,) = torch.autograd.grad(loss, leaf_BKV)
        with torch.no_grad():
            return loss.detach(), logits_BAV.detach(), self.passes.backward(gradient_BKV)

    def _places(self, view: View) -> Tensor:
        at = self.predicted.at(view)
        if isinstance(at, slice):
            place_K = torch.arange(at.start, at.stop, device=view.row_B.device)
            return place_K.expand(len(view.row_B), -1)
        return at

    def _of_logits(self, logits_BKV: Tensor, view: View) -> tuple[Tensor, Tensor]:
        logits_BAV = self.predicted.spread(logits_BKV, view)
        return self.scheme.loss(logits_BAV, view), logits_BAV


def refuse_loss(loss: object, scheme: Scheme) -> None:
    """Raise HardtailError unless a scheme's loss is one number that has a gradient; asks the device for nothing."""
    if not isinstance(loss, Tensor) or loss.dim() or not loss.requires_grad:
        given = f"a tensor {list(loss.shape)}" if isinstance(loss, Tensor) else reprlib.repr(loss)
        without = " without a gradient" if isinstance(loss, Tensor) and not loss.requires_grad else ""
        raise HardtailError(
            f"{type(scheme).__name__}: loss returned {given}{without}; it must be one number, a tensor [], that "
            "depends on the logits (hardtail.testing.check_scheme)"
        )


def flatten(gradients: tuple[Tensor, ...]) -> Tensor:
    """Gradients as one float32 vector."""
    return torch.cat([gradient.reshape(-1).float() for gradient in gradients])
