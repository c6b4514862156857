"""Tiny models of other projects' families: real classes of `transformers`, or classes written from what is known where
its code does not have them. All weights are random, also of output layers that start at 0 in the original."""

import string
from collections.abc import Callable
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PretrainedConfig,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)
from transformers.modeling_outputs import MaskedLMOutput

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = f"{string.ascii_letters}{string.digits}{string.punctuation} \n"
WIDTH = 32


def tokenizer(characters: str = CHARACTERS, *, start: bool = True, mask: bool = True) -> PreTrainedTokenizerFast:
    """One token for each character."""
    vocabulary = {sign: place for place, sign in enumerate([*SPECIAL, *dict.fromkeys(characters)])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    names |= {"cls_token": "[CLS]"} if start else {}
    names |= {"mask_token": "[MASK]"} if mask else {}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def _drawn(model: nn.Module) -> Any:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(float(weight.dim() == 1), 0.2, generator=generator)
    return model.eval()


def bert(size: int) -> Any:
    config = BertConfig(
        vocab_size=size, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=256,
    )  # fmt: skip
    return _drawn(BertForMaskedLM(config))


def roberta(size: int) -> Any:
    config = RobertaConfig(
        vocab_size=size, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=256, pad_token_id=0, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    return _drawn(RobertaForMaskedLM(config))


def modernbert(size: int) -> Any:
    config = ModernBertConfig(
        vocab_size=size, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3,
        attn_implementation="sdpa", reference_compile=False,
    )  # fmt: skip
    return _drawn(ModernBertForMaskedLM(config))


class Tiny(nn.Module):
    """A transformer of one block with rotary-free positions; what the families below have in common."""

    def __init__(self, size: int, length: int = 512) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(size, WIDTH), nn.Embedding(length, WIDTH)
        self.qkv, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, size)

    def run(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out(x + self.mixed(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


class Llada(Tiny):
    config = PretrainedConfig()
    config.model_type = "llada"

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> MaskedLMOutput:
        keys = None if attention_mask is None else attention_mask.bool()[:, None, :]
        return MaskedLMOutput(logits=self.run(input_ids, keys))


class Llada2(Tiny):
    """Causal unless it gets a four-dimensional mask."""

    config = PretrainedConfig()
    config.model_type = "llada2_moe"

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> MaskedLMOutput:
        if attention_mask is None or attention_mask.dim() != 4:
            length = input_ids.shape[1]
            return MaskedLMOutput(logits=self.run(input_ids, torch.ones(length, length).tril().bool()))
        return MaskedLMOutput(logits=self.run(input_ids, attention_mask[:, 0]))


class Dream(Tiny):
    """Its logits at position i are for the token at i + 1."""

    config = PretrainedConfig()
    config.model_type = "Dream"

    def forward(self, input_ids: Tensor, attention_mask: Tensor | str | None = None) -> MaskedLMOutput:
        keys = attention_mask.bool()[:, None, :] if isinstance(attention_mask, Tensor) else None
        return MaskedLMOutput(logits=self.run(input_ids, keys))


class Mdlm(Tiny):
    config = PretrainedConfig()
    config.model_type = "mdlm"

    def forward(self, input_ids: Tensor, timesteps: Tensor) -> Tensor:
        assert not timesteps.any()
        return self.run(input_ids, None)


class Bd3lm(Tiny):
    """Blocks of eight tokens."""

    config = PretrainedConfig()
    config.model_type = "bd3lm"

    def forward(self, input_ids: Tensor, timesteps: Tensor, sample_mode: bool = False) -> MaskedLMOutput:
        assert sample_mode
        block = torch.arange(input_ids.shape[1]) // 8
        return MaskedLMOutput(logits=self.run(input_ids, block[None, :] <= block[:, None]))


class Sedd(Tiny):
    config = PretrainedConfig()
    config.model_type = "sedd"

    def forward(self, indices: Tensor, sigma: Tensor) -> Tensor:
        scores = self.run(indices, None) + sigma[:, None, None]
        return scores.scatter(-1, indices[..., None], 0.0)


def tiny(kind: type[Tiny]) -> Callable[[int], Any]:
    return lambda size: _drawn(kind(size))


FAMILIES: dict[str, Callable[[int], Any]] = {
    "bert": bert,
    "roberta": roberta,
    "modernbert": modernbert,
    **{kind.__name__.lower(): tiny(kind) for kind in (Llada, Llada2, Dream, Mdlm, Bd3lm, Sedd)},
}
