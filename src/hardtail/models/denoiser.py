"""What a decoder needs from a model, an adapter for networks, and what is refused of other people's.

Shapes: B batch, L sequence, A answer cells, V vocabulary.
"""

from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.types import Tokens
from hardtail.models.kernels import fits
from hardtail.models.packed import Packed, packs
from hardtail.models.precision import Precision, computing
from hardtail.models.trainable import Trainable
from hardtail.models.transformer import Transformer, untouched


@runtime_checkable
class Denoiser(Protocol):
    """Anything that predicts hidden tokens: our transformer, another checkpoint, a function.

    A row's logits must not depend on the other rows of the batch.
    """

    @property
    def mask_id(self) -> int:
        """The token of a hidden cell."""

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        """Log-probabilities [B, A, V], normalised or not, of the tokens at `at_BA`: all answer cells, in order."""


@dataclass(frozen=True)
class Function:
    """A function as a denoiser: `Function(lambda tokens_BL, at_BA: ..., mask_id=12)`."""

    function: Callable[[Tensor, Tensor], Tensor]
    mask_id: int

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return self.function(tokens_BL, at_BA)


class ModelDenoiser:
    """A network as a denoiser, in one of the precisions of training: our transformer, or another project's model.

    On a Hopper GPU or a newer one, our transformer's passes in bf16 are written out (`models.forward`). `compiled`
    makes all other passes on a GPU faster; it takes half a minute once, so it pays off for many of them.
    """

    def __init__(
        self, model: Trainable, mask_id: int, precision: Precision = "fp32", *, compiled: bool = False
    ) -> None:
        self.model = model.eval().requires_grad_(False)
        self._forward: Callable[[Tensor, Tensor], Tensor] = self.model
        if compiled:
            self._forward = torch.compile(self.model, dynamic=False)
        self._compiled = compiled
        self.mask_id = mask_id
        self.precision = precision
        self.loops: dict[Hashable, object] = {}
        """Decoding loops whose step a GPU has captured, by what they decode; they hold this denoiser's weights."""

    @property
    def compiled(self) -> bool:
        """Whether forward passes are made by torch's compiler, for one number of rows."""
        return self._compiled and self._written() is None

    @property
    def untouched(self) -> bool:
        """Whether its model is our transformer as it is defined."""
        return isinstance(self.model, Transformer) and untouched(self.model)

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        self._refuse_long(tokens_BL.shape[1])
        with computing(self.precision, tokens_BL.device):
            if model := self._written():
                from hardtail.models.forward import logits  # needs Triton

                return logits(model, tokens_BL, at_BA)
            return self._forward(tokens_BL, at_BA)

    def _written(self) -> Transformer | None:
        """The model, if its forward passes are those of `models.forward`."""
        model = self.model
        if self.precision != "bf16" or not isinstance(model, Transformer):
            return None
        return model if fits(model.shape, next(model.parameters()).device) and untouched(model) else None

    def _refuse_long(self, length: int) -> None:
        """Refuse sequences that have more cells than the model has positions: our kernels would read past them."""
        if isinstance(self.model, Transformer) and length > (most := self.model.shape.seq_len):
            raise HardtailError(f"sequences of {length} cells are too long for this model, which was made for {most}")

    def packed(self) -> "ModelDenoiser":
        """The same with its weights of this moment, prepared for many passes on a CPU; itself if it cannot be."""
        if self._forward is not self.model or self.precision != "fp32" or not packs(self.model):
            return self
        assert isinstance(self.model, Transformer)
        other = copy(self)
        other._forward = Packed(self.model)
        return other


def well_shaped(logits_BAV: object, at_BA: Tensor) -> Tensor:
    """What a denoiser returned for the cells at `at_BA`; raise HardtailError unless it is a tensor [B, A, V] on
    their device."""
    if not isinstance(logits_BAV, Tensor):
        raise HardtailError(f"the denoiser's logits are a {type(logits_BAV).__name__}; they must be a torch tensor")
    shape, (rows, cells) = tuple(logits_BAV.shape), at_BA.shape
    if len(shape) != 3 or shape[:2] != (rows, cells):
        raise HardtailError(
            f"the denoiser's logits have the shape {list(shape)}; for {rows} rows of {cells} answer cells it must be "
            f"[{rows}, {cells}, vocabulary]"
        )
    refuse_elsewhere(logits_BAV, at_BA)
    return logits_BAV


def refuse_elsewhere(logits: Tensor, asked: Tensor) -> None:
    """Refuse logits that are not on the device where they were asked for."""
    if logits.device != asked.device:
        raise HardtailError(
            f"the denoiser's logits are on {logits.device}, but its tokens are on {asked.device}; return the logits on "
            "the device of the tokens"
        )


def refuse_unread(denoiser: Denoiser, tokens_NL: Tokens) -> None:
    """Refuse problems with tokens that our transformer does not have, and such a mask: our kernels would read outside
    its table."""
    if not isinstance(denoiser, ModelDenoiser) or not isinstance(denoiser.model, Transformer):
        return
    low, high, size = int(tokens_NL.min()), int(tokens_NL.max()), denoiser.model.shape.vocab_size
    if not 0 <= denoiser.mask_id < size:
        raise HardtailError(
            f"the mask is token {denoiser.mask_id}, but the model knows only those from 0 to {size - 1}; give its own"
        )
    if low < 0 or high >= size:
        raise HardtailError(
            f"the problems have tokens from {low} to {high}, but the model knows only those from 0 to {size - 1}; give "
            "it problems of its own task"
        )


def refuse_strangers(most: int, size: int) -> None:
    """Refuse right answers with tokens up to `most` if the denoiser has logits for only `size` tokens."""
    if most >= size:
        raise HardtailError(
            f"the right answers have tokens up to {most}, but the denoiser predicts only {size} tokens; its "
            "vocabulary differs from that of the instances"
        )
