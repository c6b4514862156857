"""Our transformer's forward pass on an x86 CPU in fp32, prepared once for many passes over the same weights.

Two things make it faster. oneDNN's products read weights that were put into an order of their own, and apply bias, GELU
and residual to a result that is still in the cache. The first block's queries, keys and values depend on a token and
its position alone, so they are looked up. The logits are the model's up to rounding. PyTorch has no public name for
these products; compiled models use the same ones.

Shapes: B batch, L sequence, Q queries, A answer cells, V vocabulary, D width, X 3·D (query, key, value) or 2·D (key,
value), R a row for each token at each position.
"""

import platform
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

from hardtail.models.attention import attend
from hardtail.models.transformer import Block, Transformer, looked_up, pick, untouched

USUAL_TOKENS = 1024
"""Tokens of the pass for which oneDNN chooses the order of weights; it serves passes of any size."""
MOST_ROWS = 8192
"""Rows up to which the first block's table is made: it costs as much as the first block's products of a few passes."""
_TRIED = (32 * 16, 32, 16), (32, 32), (4 * 16, 4, 16), (4 * 32, 4, 32)
"""Sizes and shapes of a weight, a bias, an input and a residual that the products are tried with."""


def packs(model: nn.Module) -> bool:
    """Whether `Packed` computes what this model does, and faster: ours, as it is defined, on a CPU."""
    return (
        _has_products()
        and isinstance(model, Transformer)
        and untouched(model)
        and all(weight.device.type == "cpu" for weight in model.parameters())
    )


@cache
def _has_products() -> bool:
    """Whether this PyTorch has the products, and they do what is expected of them: another version may change them."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    weight, bias, x, residual = (torch.linspace(-1, 1, n).reshape(shape) for n, *shape in _TRIED)
    try:
        linear = _PackedLinear(weight, bias)
        found = linear(x), linear.gelu(x), linear.added(residual, x)
    except (AttributeError, RuntimeError, TypeError):
        return False
    plain = F.linear(x, weight, bias)
    wanted = plain, F.gelu(plain), plain + residual
    return all(torch.allclose(one, other, atol=1e-5) for one, other in zip(found, wanted, strict=True))


class Packed:
    """A model's forward pass in evaluation mode, with its weights as they are when this is made."""

    def __init__(self, model: Transformer) -> None:
        self.model = model
        blocks = [block for block in model.blocks if isinstance(block, Block)]
        self.blocks = [_PackedBlock(block, last=block is blocks[-1]) for block in blocks]
        vocab, length = model.shape.vocab_size, model.shape.seq_len
        self.first_RX: Tensor | None = None
        """Queries, keys and values of the first block, unless it is also the last or there are too many."""
        if len(blocks) > 1 and vocab * length <= MOST_ROWS:
            token_VL = torch.arange(vocab)[:, None].expand(-1, length)
            self.first_RX = self.blocks[0].packed(self._embedded(token_VL)).flatten(0, 1)

    def __call__(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        """Logits [B, A, V] of the answer cells at `at_BA`."""
        x_BLD, packed_BLX = self._embedded(tokens_BL), None
        if self.first_RX is not None:
            row_BL = tokens_BL * self.model.shape.seq_len + torch.arange(tokens_BL.shape[1])
            packed_BLX = F.embedding(row_BL, self.first_RX)
        for block in self.blocks:
            x_BLD = block(x_BLD, at_BA, block.packed(x_BLD) if packed_BLX is None else packed_BLX)
            packed_BLX = None
        return F.linear(self.model.norm(x_BLD), self.model.embed.weight)

    def _embedded(self, tokens_BL: Tensor) -> Tensor:
        return looked_up(tokens_BL, self.model.embed.weight) + self.model.position.weight[: tokens_BL.shape[1]]


class _PackedBlock:
    """A block; the last one computes queries and MLP only for the cells that are asked for."""

    def __init__(self, block: Block, *, last: bool) -> None:
        self.heads, self.norm_attention, self.norm_mlp = block.heads, block.norm_attention, block.norm_mlp
        weight, bias = block.qkv.weight, block.qkv.bias
        alone = block.qkv.in_features if last else 0  # the queries' rows of the weight, if they are computed apart
        self.query = _PackedLinear(weight[:alone], bias[:alone]) if last else None
        self.qkv = _PackedLinear(weight[alone:], bias[alone:])
        self.project = _PackedLinear(block.project.weight, block.project.bias)
        self.widen = _PackedLinear(block.widen.weight, block.widen.bias)
        self.narrow = _PackedLinear(block.narrow.weight, block.narrow.bias)

    def packed(self, x_BLD: Tensor) -> Tensor:
        """Queries, keys and values, or keys and values only in the last block."""
        return self.qkv(self.norm_attention(x_BLD))

    def __call__(self, x_BLD: Tensor, at_BA: Tensor, packed_BLX: Tensor) -> Tensor:
        query_BQD = None
        if self.query is not None:
            x_BLD = pick(x_BLD, at_BA)
            query_BQD = self.query(self.norm_attention(x_BLD))
        x_BLD = self.project.added(x_BLD, attend(packed_BLX, query_BQD, self.heads, 0.0))
        return self.narrow.added(x_BLD, self.widen.gelu(self.norm_mlp(x_BLD)))


class _PackedLinear:
    """A linear layer whose weight is in oneDNN's order."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        self.weight = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), USUAL_TOKENS)
        self.bias = bias.detach().clone()

    def __call__(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "none", [], "")
        return out

    def gelu(self, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, self.weight, self.bias, "gelu", [], "none")
        return out

    def added(self, residual: Tensor, x: Tensor) -> Tensor:
        out: Tensor = torch.ops.mkldnn._linear_pointwise.binary(x, residual, self.weight, self.bias, "add")
        return out
