"""A user's own function or module as a denoiser.

Shapes: B batch, L sequence, A answer cells, V vocabulary.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from inspect import Parameter, signature
from threading import Lock
from typing import Any

from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.core.pretrained import HF
from hardtail.core.vocabulary import Vocabulary
from hardtail.models.denoiser import Denoiser, ModelDenoiser, refuse_elsewhere
from hardtail.models.hf.families import FAMILIES

ACCEPTED = (
    "a function logits(tokens_BL, at_BA), an nn.Module that returns logits [B, L, V], or an object with `mask_id` and "
    "`logits`"
)


def denoiser_of(model: object, vocabulary: Vocabulary, device: str = "cpu") -> Denoiser:
    """Anything that predicts tokens, as a denoiser for a task with this vocabulary."""
    if isinstance(model, type) or not (isinstance(model, Denoiser) or callable(model)):
        raise HardtailError(f"{model!r} cannot be decoded; give {ACCEPTED}")
    if isinstance(model, Denoiser):
        if model.mask_id != (mask_id := vocabulary.mask_id):
            raise HardtailError(
                f"{name_of(model)} has the mask {model.mask_id}, but hidden cells of this task hold {mask_id}; set "
                f"mask_id to {mask_id}"
            )
        return model if isinstance(model, ModelDenoiser) else Cut(model, vocabulary.size)
    if isinstance(model, nn.Module):
        _refuse_plain_call(model)
        model.to(device)
        return OwnModel(model, _takes_places(model.forward), vocabulary.mask_id, vocabulary.size, Evaluating(model))
    return OwnModel(model, _takes_places(model), vocabulary.mask_id, vocabulary.size)


@dataclass(frozen=True)
class Cut:
    """A denoiser without the logits of tokens that the task does not have."""

    denoiser: Denoiser
    size: int

    @property
    def mask_id(self) -> int:
        return self.denoiser.mask_id

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return self.denoiser.logits(tokens_BL, at_BA)[..., : self.size]


@dataclass(frozen=True)
class OwnModel:
    """A function or module as a denoiser. A module is decoded in evaluation mode and left as it was."""

    function: Callable[..., Any]
    takes_places: bool
    """Whether it gets the positions of the answer cells, and so returns their logits alone."""
    mask_id: int
    size: int
    """The task's tokens. A model whose vocabulary is padded has logits for more, which are left out."""
    evaluating: "Evaluating | None" = None
    """Of a module."""

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        with self.evaluating or nullcontext():
            try:
                found = self.function(tokens_BL, at_BA) if self.takes_places else self.function(tokens_BL)
            except Exception as error:
                name, shape = name_of(self.function), list(tokens_BL.shape)
                error.add_note(f"{name} got tokens of shape {shape}, where {self.mask_id} is the mask")
                raise
        logits = found if isinstance(found, Tensor) else getattr(found, "logits", None)  # as Hugging Face returns them
        if not isinstance(logits, Tensor):
            raise HardtailError(f"the model returned {_described(found)}; give {ACCEPTED}")
        if logits.dim() != 3 or not (self.takes_places or logits.shape[:2] == tokens_BL.shape):
            rows, places = (at_BA if self.takes_places else tokens_BL).shape
            raise HardtailError(
                f"the model returned {_described(logits)} for tokens {list(tokens_BL.shape)}; it must return logits "
                f"[{rows}, {places}, vocabulary]"
            )
        refuse_elsewhere(logits, tokens_BL)
        logits = logits[..., : self.size]
        return logits if self.takes_places else logits.gather(1, at_BA[..., None].expand(-1, -1, logits.shape[-1]))


class Evaluating(AbstractContextManager[None]):
    """A module's evaluation mode, from the first thread of a denoiser that computes with it to the last; then every
    part of it is in the mode that it was in before."""

    def __init__(self, module: nn.Module) -> None:
        self.module, self.lock, self.inside = module, Lock(), 0
        self.training: list[nn.Module] = []

    def __enter__(self) -> None:
        with self.lock:
            if not self.inside:
                self.training = [part for part in self.module.modules() if part.training]
                self.module.eval()
            self.inside += 1

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            for part in [] if self.inside else self.training:
                part.training = True


def _refuse_plain_call(model: nn.Module) -> None:
    """Refuse a model of a family that is silently wrong when it gets token ids alone."""
    family = FAMILIES.get(str(getattr(getattr(model, "config", None), "model_type", "")).lower())
    if family is not None and family.needs:
        raise HardtailError(
            f"{type(model).__name__} is of the family {family.name} and needs {family.needs}, which a plain call "
            f"leaves out; save it with its tokenizer and load the folder as {HF}FOLDER"
        )


def _takes_places(function: Callable[..., object]) -> bool:
    """Whether a function needs two arguments: the tokens, and where the answer cells are."""
    places = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    taken = [item for item in signature(function).parameters.values() if item.kind in places]
    needed = [item for item in taken if item.default is item.empty]
    if not taken or len(needed) > 2:  # Hugging Face's take the tokens and need nothing
        raise HardtailError(f"{name_of(function)} needs {len(needed)} arguments; give {ACCEPTED}")
    return len(needed) == 2


def name_of(model: object) -> str:
    """What an object is called if it is given no name."""
    return getattr(model, "__name__", type(model).__name__)


def _described(found: object) -> str:
    return f"a tensor {list(found.shape)}" if isinstance(found, Tensor) else f"a {type(found).__name__}"
