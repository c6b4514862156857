"""Models of families that `transformers` does not have, written from what is known about each.

This file is also what comes with a model: tests copy it into the model's folder, where `transformers` loads it.
"""

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import MaskedLMOutput

WIDTH = 32


class ToyConfig(PretrainedConfig):  # type: ignore[misc]
    vocab_size: int = 128
    max_position_embeddings: int = 512


class LladaConfig(ToyConfig):
    model_type = "llada"


class Llada2Config(ToyConfig):
    model_type = "llada2_moe"


class DreamConfig(ToyConfig):
    model_type = "Dream"


class MdlmConfig(ToyConfig):
    model_type = "mdlm"
    time_conditioning: bool = False


class Bd3lmConfig(ToyConfig):
    model_type = "bd3lm"
    attn_backend: str = "sdpa"


class SeddConfig(ToyConfig):
    model_type = "sedd"


class Tiny(PreTrainedModel):  # type: ignore[misc]
    """A transformer of one block with rotary-free positions; what the families below have in common."""

    config_class = ToyConfig

    def __init__(self, config: ToyConfig) -> None:
        super().__init__(config)
        size = config.vocab_size
        self.tokens, self.places = nn.Embedding(size, WIDTH), nn.Embedding(config.max_position_embeddings, WIDTH)
        self.qkv, self.mixed = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.out = nn.Linear(WIDTH, size)
        self.post_init()

    def run(self, ids: Tensor, mask: Tensor | None) -> Tensor:
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        q, k, v = self.qkv(x).chunk(3, -1)
        return self.out(x + self.mixed(nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


class Llada(Tiny):
    config_class = LladaConfig

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> MaskedLMOutput:
        keys = None if attention_mask is None else attention_mask.bool()[:, None, :]
        return MaskedLMOutput(logits=self.run(input_ids, keys))


class Llada2(Tiny):
    """Causal unless it gets a four-dimensional mask."""

    config_class = Llada2Config

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> MaskedLMOutput:
        if attention_mask is None or attention_mask.dim() != 4:
            length = input_ids.shape[1]
            return MaskedLMOutput(logits=self.run(input_ids, torch.ones(length, length).tril().bool()))
        return MaskedLMOutput(logits=self.run(input_ids, attention_mask[:, 0]))


class Dream(Tiny):
    """Its logits at position i are for the token at i + 1."""

    config_class = DreamConfig

    def forward(self, input_ids: Tensor, attention_mask: Tensor | str | None = None) -> MaskedLMOutput:
        keys = attention_mask.bool()[:, None, :] if isinstance(attention_mask, Tensor) else None
        return MaskedLMOutput(logits=self.run(input_ids, keys))


class Mdlm(Tiny):
    config_class = MdlmConfig

    def forward(self, input_ids: Tensor, timesteps: Tensor) -> Tensor:
        assert not timesteps.any()
        return self.run(input_ids, None)


class Bd3lm(Tiny):
    """Blocks of eight tokens."""

    config_class = Bd3lmConfig

    def forward(self, input_ids: Tensor, timesteps: Tensor, sample_mode: bool = False) -> MaskedLMOutput:
        assert sample_mode
        block = torch.arange(input_ids.shape[1]) // 8
        return MaskedLMOutput(logits=self.run(input_ids, block[None, :] <= block[:, None]))


class Sedd(Tiny):
    config_class = SeddConfig

    def forward(self, indices: Tensor, sigma: Tensor) -> Tensor:
        scores = self.run(indices, None) + sigma[:, None, None]
        return scores.scatter(-1, indices[..., None], 0.0)
