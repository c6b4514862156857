"""What differs between families of models: how one is called, and where it predicts a token.

A family is final and knows one calling convention; `family_of` picks it by the model's configuration. Any other model
that `AutoModelForMaskedLM` loads is called as BERT is. What would silently be wrong is refused.

Shapes: B batch, S the model's sequence, W the model's vocabulary.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError

LLADA2_BLOCK = 32
"""Tokens of a block of LLaDA 2 that see each other and every earlier block."""


class Family(ABC):
    """One calling convention."""

    name: ClassVar[str]
    auto_class: ClassVar[str] = "AutoModel"
    """The class of `transformers` that loads it."""
    shifted: ClassVar[bool] = False
    """Whether the logits for a position are those that the model returns one position earlier."""
    pads: ClassVar[bool] = True
    """Whether sequences of different lengths can share a batch."""
    mask_is_last: ClassVar[bool] = False
    """Whether the mask is the last token of the vocabulary where neither tokenizer nor configuration names one."""
    needs: ClassVar[str] = ""
    """What a plain call with token ids alone would leave out, and so silently get wrong."""

    @abstractmethod
    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        """What the model returns for every position, [B, S, W]; `real_BS` is False at padding."""

    def mask_id(self, tokenizer: Any, config: Any) -> int | None:
        """The token of a hidden cell; None if there is none."""
        named = (getattr(held, "mask_token_id", None) for held in (tokenizer, config))
        last = config.vocab_size - 1 if self.mask_is_last else None
        return next((found for found in named if found is not None), last)

    def fault(self, config: Any) -> str | None:
        """Why a model with this configuration cannot be a denoiser; None if it can."""
        return None


class MaskedLanguageModel(Family):
    """BERT, RoBERTa, ModernBERT, dllm's A2D models: anything that `AutoModelForMaskedLM` loads."""

    name = "masked language model"
    auto_class = "AutoModelForMaskedLM"

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        return model(input_ids=ids_BS, attention_mask=real_BS.long()).logits


class Llada(Family):
    """LLaDA 8B and 1.5, iLLaDA, LLaDA-MoE: full attention, a two-dimensional mask for padding."""

    name = "LLaDA"

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        return model(ids_BS, attention_mask=real_BS.long()).logits


class Llada2(Family):
    """LLaDA 2.0 and 2.1: block-causal attention.

    Without a four-dimensional mask the model silently becomes causal, so the mask is made here.
    """

    name = "LLaDA 2"
    needs = "a block-causal, four-dimensional attention mask"
    auto_class = "AutoModelForCausalLM"

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        block_S = torch.arange(ids_BS.shape[1], device=ids_BS.device) // LLADA2_BLOCK
        seen_BSS = (block_S[None, :] <= block_S[:, None]) & real_BS[:, None, :]
        kind = next(model.parameters()).dtype
        mask_B1SS = torch.zeros_like(seen_BSS, dtype=kind).masked_fill(~seen_BSS, torch.finfo(kind).min)[:, None]
        return model(input_ids=ids_BS, attention_mask=mask_B1SS).logits


class Dream(Family):
    """Dream 7B and DiffuCoder: made from an autoregressive model, so position i is predicted at i - 1."""

    name = "Dream"
    shifted = True
    needs = "its logits moved by one position"

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        return model(ids_BS, attention_mask="full" if bool(real_BS.all()) else real_BS.long()).logits


class Mdlm(Family):
    """MDLM: the noise level is an input that the model ignores, and there is no attention mask."""

    name = "MDLM"
    auto_class = "AutoModelForMaskedLM"
    mask_is_last = True
    needs = "a noise level"
    pads = False

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        return _tensor(model(input_ids=ids_BS, timesteps=_no_noise(ids_BS)))

    def fault(self, config: Any) -> str | None:
        timed = getattr(config, "time_conditioning", False)
        return "this MDLM is conditioned on time, which decoding cell by cell does not have" if timed else None


class Bd3lm(Family):
    """BD3-LM: as MDLM, with block-causal attention over the sequence itself."""

    name = "BD3-LM"
    auto_class = "AutoModelForMaskedLM"
    mask_is_last = True
    needs = "its sample mode"
    pads = False

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        return _tensor(model(input_ids=ids_BS, timesteps=_no_noise(ids_BS), sample_mode=True))

    def fault(self, config: Any) -> str | None:
        if (backend := getattr(config, "attn_backend", "sdpa")) == "sdpa":
            return None
        return f"this BD3-LM has attn_backend={backend!r}, which reads the sequence twice over; set it to 'sdpa'"


class Sedd(Family):
    """SEDD: logarithms of concrete scores, which are log-probabilities up to a constant for each position.

    Under its log-linear noise the level that fits a sequence with a share m of its tokens masked is σ = -log(1 - m).
    """

    name = "SEDD"
    pads = False
    mask_is_last = True
    needs = "the noise level that fits its input"

    def logits(self, model: nn.Module, ids_BS: Tensor, real_BS: Tensor, mask_id: int) -> Tensor:
        share_B = (ids_BS == mask_id).float().mean(dim=1).clamp(max=1 - 1e-3)
        return _tensor(model(ids_BS, -torch.log1p(-share_B)))


def _no_noise(ids_BS: Tensor) -> Tensor:
    """A noise level of 0 for every row."""
    return torch.zeros(len(ids_BS), device=ids_BS.device)


def _tensor(returned: Any) -> Tensor:
    """Logits, whether a model returns them as they are or in an output object."""
    return returned if isinstance(returned, Tensor) else returned.logits


FAMILIES: Mapping[str, type[Family]] = {
    "llada": Llada,
    "lladamoe": Llada,
    "llada2_moe": Llada2,
    "dream": Dream,
    "mdlm": Mdlm,
    "bd3lm": Bd3lm,
    "sedd": Sedd,
}
"""By `model_type`, in lower case."""
REFUSED = {
    "diffusion_gemma": "DiffusionGemma replaces tokens by other tokens; it has no mask token that could hide a cell",
}
"""Why a family cannot be a denoiser, by `model_type`."""


def family_of(config: Any) -> Family:
    """The family of a model's configuration; raise HardtailError for one that cannot be used."""
    kind = str(getattr(config, "model_type", "")).lower()
    if kind in REFUSED:
        raise HardtailError(REFUSED[kind])
    family = FAMILIES[kind]() if kind in FAMILIES else _masked(config)
    if fault := family.fault(config):
        raise HardtailError(fault)
    return family


def is_plain(model_type: str) -> bool:
    """Whether a type is a masked language model whose code `transformers` itself has."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

    return model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES and model_type not in FAMILIES


def _masked(config: Any) -> Family:
    wanted = MaskedLanguageModel.auto_class
    if is_plain(config.model_type) or wanted in (getattr(config, "auto_map", None) or {}):
        return MaskedLanguageModel()
    known = ", ".join(sorted(FAMILIES))
    raise HardtailError(
        f"a model of the type {config.model_type!r} is not a masked language model; hardtail knows {known} and "
        f"everything that {wanted} loads"
    )
