"""The denoiser: one bidirectional pre-norm transformer (study §1.2), which looks at every token and answers for a few.

Only answer cells are ever predicted, so the last block computes queries and MLP for them alone: the same numbers as
the full computation, up to a third less work.

Shapes: B batch, L sequence, A answer cells, D width, H heads, V vocabulary.
"""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from hardtail.errors import HardtailError

SPARE_POSITIONS = 8
"""The released model has eight more position rows than tokens; nothing reads them, but they count as parameters."""


@dataclass(frozen=True)
class Shape:
    """The sizes that make a denoiser."""

    layers: int
    heads: int
    width: int
    vocab_size: int
    seq_len: int
    mlp_ratio: int = 4
    dropout: float = 0.0

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise HardtailError(f"a width of {self.width} does not divide into {self.heads} heads")
        if not 0 <= self.dropout < 1:
            raise HardtailError(f"dropout is {self.dropout}; it is at least 0 and below 1")

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Block(nn.Module):
    """LayerNorm, attention, residual; LayerNorm, MLP, residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        d = shape.width
        self.heads, self.dropout = shape.heads, shape.dropout
        self.norm_attention = nn.LayerNorm(d)
        self.qkv = nn.Linear(d, 3 * d)
        self.project = nn.Linear(d, d)
        self.norm_mlp = nn.LayerNorm(d)
        self.widen = nn.Linear(d, shape.mlp_ratio * d)
        self.narrow = nn.Linear(shape.mlp_ratio * d, d)

    def forward(self, x_BLD: Tensor, at_BA: Tensor | slice | None = None) -> Tensor:
        """The block's output at every position, or only `at_BA`; every position is attended to in both cases."""
        normed_BLD = self.norm_attention(x_BLD)
        d = x_BLD.shape[-1]
        if at_BA is None:
            q_BQD, k_BLD, v_BLD = self.qkv(normed_BLD).chunk(3, dim=-1)
        else:
            weight, bias = self.qkv.weight, self.qkv.bias
            q_BQD = F.linear(pick(normed_BLD, at_BA), weight[:d], bias[:d])
            k_BLD, v_BLD = F.linear(normed_BLD, weight[d:], bias[d:]).chunk(2, dim=-1)
            x_BLD = pick(x_BLD, at_BA)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (q_BQD, k_BLD, v_BLD))
        mixed = F.scaled_dot_product_attention(q, k, v, dropout_p=self.dropout if self.training else 0.0)
        mixed_BQD = mixed.transpose(1, 2).flatten(-2)
        x_BLD = x_BLD + self._drop(self.project(mixed_BQD))
        return x_BLD + self._drop(self.narrow(F.gelu(self.widen(self.norm_mlp(x_BLD)))))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Transformer(nn.Module):
    """Token and position embeddings, blocks, a final norm and a head tied to the token embedding."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab_size, shape.width)
        self.position = nn.Embedding(shape.seq_len + SPARE_POSITIONS, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)

    def initialise(self, generator: torch.Generator) -> "Transformer":
        """Weights from N(0, 0.02²), biases 0, norms 1 and 0; no scaling with depth."""
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=0.02, generator=generator)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)
            if isinstance(module, nn.LayerNorm):
                nn.init.ones_(module.weight)
                nn.init.zeros_(module.bias)
        return self

    def forward(self, tokens_BL: Tensor, at_BA: Tensor | slice) -> Tensor:
        """Logits over the whole vocabulary for the answer cells at `at_BA`."""
        position_LD = self.position.weight[: tokens_BL.shape[1]]
        x_BLD = F.dropout(F.embedding(tokens_BL, self.embed.weight) + position_LD, self.shape.dropout, self.training)
        for block in self.blocks[:-1]:
            x_BLD = block(x_BLD)
        x_BAD = self.blocks[-1](x_BLD, at_BA)
        return F.linear(self.norm(x_BAD), self.embed.weight)


def pick(x_BLD: Tensor, at_BA: Tensor | slice) -> Tensor:
    """The rows of each sequence at `at_BA`: a slice where all answers sit at the same place."""
    if isinstance(at_BA, slice):
        return x_BLD[:, at_BA]
    return x_BLD.gather(1, at_BA[:, :, None].expand(-1, -1, x_BLD.shape[-1]))


def parameter_count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
