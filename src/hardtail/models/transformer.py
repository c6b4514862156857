"""The denoiser: a bidirectional pre-norm transformer that sees every token and predicts a few (docs/study.md §1.2).

Only answer cells are ever predicted, so the last block computes queries and MLP for them alone: the same numbers as
the full computation, up to a third less work.

Shapes: B batch, L sequence, A answer cells, D width, H heads, V vocabulary.
"""

from dataclasses import asdict, dataclass
from functools import cache
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne, Bounds, Checked
from hardtail.models.attention import attend
from hardtail.models.trainable import Trainable

SPARE_POSITIONS = 8
"""The released model has eight more position rows than tokens; nothing reads them, but they count as parameters."""
EPSILON = 1e-5
"""That of the norms, which is torch's."""


@dataclass(frozen=True)
class Shape(Checked):
    """The sizes of a denoiser."""

    layers: AtLeastOne
    heads: AtLeastOne
    width: AtLeastOne
    vocab_size: int
    seq_len: int
    mlp_ratio: AtLeastOne = 4
    dropout: Annotated[float, Bounds(ge=0, lt=1)] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width % self.heads:
            raise HardtailError(
                f"the width {self.width} does not divide into {self.heads} heads; give a multiple of {self.heads}, or "
                "another number of heads"
            )


class Block(nn.Module):
    """LayerNorm, attention, residual; LayerNorm, MLP, residual."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        d = shape.width
        self.heads, self.dropout = shape.heads, shape.dropout
        self.norm_attention = nn.LayerNorm(d, EPSILON)
        self.qkv = nn.Linear(d, 3 * d)
        self.project = nn.Linear(d, d)
        self.norm_mlp = nn.LayerNorm(d, EPSILON)
        self.widen = nn.Linear(d, shape.mlp_ratio * d)
        self.narrow = nn.Linear(shape.mlp_ratio * d, d)

    def forward(
        self, x_BLD: Tensor, at_BA: Tensor | slice | None = None, attention: torch.dtype | None = None
    ) -> Tensor:
        """The block's output at every position, or only `at_BA`; every position is attended to in both cases.

        `attention` is the type in which attention alone is computed, if it differs.
        """
        normed_BLD = self.norm_attention(x_BLD)
        d = x_BLD.shape[-1]
        if at_BA is None:
            query_BQD, packed_BLX = None, self.qkv(normed_BLD)
        else:
            weight, bias = self.qkv.weight, self.qkv.bias
            query_BQD = F.linear(pick(normed_BLD, at_BA), weight[:d], bias[:d])
            packed_BLX = F.linear(normed_BLD, weight[d:], bias[d:])
            x_BLD = pick(x_BLD, at_BA)
        kind = packed_BLX.dtype
        if attention is not None:
            packed_BLX = packed_BLX.to(attention)
            query_BQD = None if query_BQD is None else query_BQD.to(attention)
        mixed_BQD = attend(packed_BLX, query_BQD, self.heads, self.dropout if self.training else 0.0).to(kind)
        x_BLD = x_BLD + self._drop(self.project(mixed_BQD))
        return x_BLD + self._drop(self.narrow(F.gelu(self.widen(self.norm_mlp(x_BLD)))))

    def _drop(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.dropout, self.training)


class Transformer(Trainable):
    """Token and position embeddings, blocks, a final norm and a head tied to the token embedding."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.embed = nn.Embedding(shape.vocab_size, shape.width)
        self.position = nn.Embedding(shape.seq_len + SPARE_POSITIONS, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width, EPSILON)

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

    def twin(self) -> "Transformer":
        return Transformer(self.shape).to(self.embed.weight.device)

    def header(self) -> dict[str, Any]:
        return {"shape": asdict(self.shape)}

    def fault(self, vocabulary: int, length: int) -> str | None:
        fits = (self.shape.vocab_size, self.shape.seq_len) == (vocabulary, length)
        return None if fits else "the weights are for other sequences or another vocabulary"

    def forward(self, tokens_BL: Tensor, at_BA: Tensor | slice, attention: torch.dtype | None = None) -> Tensor:
        """Logits over the whole vocabulary for the answer cells at `at_BA`."""
        return F.linear(self.features(tokens_BL, at_BA, attention), self.embed.weight)

    def features(self, tokens_BL: Tensor, at_BA: Tensor | slice, attention: torch.dtype | None = None) -> Tensor:
        """What the head reads: the normed output of the last block [B, A, D]."""
        position_LD = self.position.weight[: tokens_BL.shape[1]]
        x_BLD = F.dropout(looked_up(tokens_BL, self.embed.weight) + position_LD, self.shape.dropout, self.training)
        for block in self.blocks[:-1]:
            x_BLD = block(x_BLD, attention=attention)
        normed_BAD: Tensor = self.norm(self.blocks[-1](x_BLD, at_BA, attention))
        return normed_BAD


class _LookUp(torch.autograd.Function):
    """Rows of a small table. The gradient is a product with one-hot vectors, by sequence, then summed.

    The usual way adds each token's gradient to its row: hundreds of thousands of atomic additions to a dozen rows on a
    GPU, in an order that changes from run to run.
    """

    @staticmethod
    def forward(ctx: Any, tokens_BL: Tensor, table_VD: Tensor) -> Tensor:
        ctx.save_for_backward(tokens_BL)
        ctx.rows = len(table_VD)
        return F.embedding(tokens_BL, table_VD)

    @staticmethod
    def backward(ctx: Any, gradient_BLD: Tensor) -> tuple[None, Tensor]:
        (tokens_BL,) = ctx.saved_tensors
        row_V1 = torch.arange(ctx.rows, device=tokens_BL.device)[:, None]
        chosen_BVL = (tokens_BL[:, None] == row_V1).to(gradient_BLD.dtype)
        with torch.autocast(gradient_BLD.device.type, enabled=False):
            return None, (chosen_BVL @ gradient_BLD).sum(dim=0)


SMALL_TABLE = 256
"""Rows of a table whose gradient is a product with one-hot vectors; for more, these vectors would fill the memory."""


def looked_up(tokens_BL: Tensor, table_VD: Tensor) -> Tensor:
    """The table's row for each token."""
    if len(table_VD) > SMALL_TABLE:
        return F.embedding(tokens_BL, table_VD)
    out_BLD: Tensor = _LookUp.apply(tokens_BL, table_VD)  # type: ignore[no-untyped-call]
    return out_BLD


def pick(x_BLD: Tensor, at_BA: Tensor | slice) -> Tensor:
    """The rows of each sequence at `at_BA`: a slice where all answers sit at the same place."""
    if isinstance(at_BA, slice):
        return x_BLD[:, at_BA]
    return x_BLD.gather(1, at_BA[:, :, None].expand(-1, -1, x_BLD.shape[-1]))


def first_cells(wanted_BA: Tensor, count: int) -> Tensor:
    """This many cells of each row, in order: those that are wanted, and others where there are fewer."""
    first_BA = wanted_BA.to(torch.int8).argsort(dim=1, descending=True, stable=True)
    return first_BA[:, :count].sort(dim=1).values


def untouched(model: Transformer) -> bool:
    """Whether this is the model that is defined here, in float32: no part replaced, removed or shared, no hooks, and
    the epsilon of its norms."""
    if hooked(model) or not all(type(part) in _PARTS for part in model.modules()):
        return False
    if any(part.eps != EPSILON for part in model.modules() if isinstance(part, nn.LayerNorm)):
        return False
    weights = dict(model.named_parameters())
    plain = all(weight.dtype == torch.float32 and weight.is_contiguous() for weight in weights.values())
    return plain and {name: weight.shape for name, weight in weights.items()} == _sizes(model.shape)


_PARTS = Transformer, Block, nn.ModuleList, nn.Embedding, nn.LayerNorm, nn.Linear


@cache
def _sizes(shape: Shape) -> dict[str, torch.Size]:
    """The sizes of a model's parameters, by name."""
    with torch.device("meta"):
        return {name: weight.shape for name, weight in Transformer(shape).named_parameters()}


def hooked(model: nn.Module) -> bool:
    """Whether other code runs in forward passes of a model or of a part of it."""
    return any(part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part) for part in model.modules())


def parameter_count(model: nn.Module) -> int:
    return sum(parameter.numel() for parameter in model.parameters())
