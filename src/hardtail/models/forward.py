"""The transformer's forward pass on a GPU in bf16, written out with our own kernels (docs/kernels.md).

The same maths as `transformer` under autocast, up to rounding. A training step keeps what its backward pass needs
(`fused`); a decode keeps nothing (`logits`).

Shapes: B batch, L sequence, K cells to predict, D width, F = mlp_ratio·D, X 3·D (query, key, value) or 2·D (key,
value), V vocabulary, W V up to a power of two, M rows (B·L; B·K from the last block's queries on).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from hardtail.models.aside import Stacks
from hardtail.models.attended import Attended, attended
from hardtail.models.attention import attend
from hardtail.models.kernels import TILED_WIDTH, gelu, norm, tiled_products
from hardtail.models.transformer import Shape, Transformer


@dataclass(frozen=True)
class KeptBlock:
    """What the backward pass of a block needs."""

    x_MD: Tensor
    n_MD: Tensor
    n_query_MD: Tensor | None
    attended: Attended
    x_mlp_MD: Tensor
    n_mlp_MD: Tensor
    a_MF: Tensor
    kept_MF: Tensor


@dataclass
class Pass:
    """One forward pass: what it computes, where it writes, and what it leaves for the backward pass."""

    tokens_BL: Tensor
    at_M: Tensor
    """The rows to predict, among those of all sequences."""
    seed: Tensor
    dropout: float
    stacks: Stacks
    blocks: list[KeptBlock] | None = field(default_factory=list)
    """None if nothing is kept; then nothing is dropped either."""
    last: tuple[Tensor, Tensor, Tensor] | None = None
    """The final residual stream, its norm, and the table that makes logits of it [W, D]."""


def rows_at(at_BK: Tensor, length: int) -> Tensor:
    """Cells of sequences as rows among those of all sequences."""
    first_B1 = torch.arange(len(at_BK), device=at_BK.device)[:, None] * length
    return (at_BK + first_B1).flatten()


def seeds(layers: int, device: torch.device) -> Tensor:
    """Room for the seeds of dropout: after the embedding, and of attention and both sums of each block."""
    return torch.zeros((3 * layers + 1, 4), dtype=torch.int32, device=device)


class Forward:
    """The forward pass over weights in float32 (`full`) and, where they are multiplied, in bf16 (`half`).

    The norms are numbered: 2·i and 2·i + 1 are those of block i, and the last is the final one.
    """

    def __init__(self, shape: Shape, full: Mapping[str, Tensor], half: Mapping[str, Tensor]) -> None:
        self.shape, self.full, self.half = shape, full, half
        table = half["embed.weight"]
        self.tokens = max(16, 1 << (shape.vocab_size - 1).bit_length())
        """Tokens of the table, up to a power of two."""
        self.tiled = tiled_products(table.device, table.dtype) if shape.width >= TILED_WIDTH else None
        blocks = [f"blocks.{i}" for i in range(shape.layers)]
        self.norms = [f"{block}.norm_{of}" for block in blocks for of in ("attention", "mlp")] + ["norm"]

    def __call__(self, now: Pass) -> Tensor:
        """Logits [M, V] of the rows to predict."""
        x_MD, n_MD = self._stream(now, now.tokens_BL.numel(), "n", 0)
        tables = self.full["embed.weight"], self.full["position.weight"]
        norm.launch_embed_norm(now.tokens_BL, *tables, self.norm(0), now.seed[0], now.dropout, x_MD, n_MD)
        for i in range(self.shape.layers):
            x_MD, n_MD = self._block(now, i, x_MD, n_MD)
        tokens_VD = self.half["embed.weight"]
        table_WD = nn.functional.pad(tokens_VD, (0, 0, 0, self.tokens - len(tokens_VD)))
        now.last = x_MD, n_MD, table_WD
        return (n_MD @ table_WD.T)[:, : len(tokens_VD)]

    def norm(self, number: int) -> tuple[Tensor, Tensor]:
        """The weight and the bias of a norm."""
        return self.full[f"{self.norms[number]}.weight"], self.full[f"{self.norms[number]}.bias"]

    def _stream(self, now: Pass, rows: int, name: str, i: int) -> tuple[Tensor, Tensor]:
        """Room for the residual stream and for its norm, which is called `name` in block `i`."""
        x_MD = torch.empty((rows, self.shape.width), dtype=torch.float32, device=now.tokens_BL.device)
        return x_MD, now.stacks.room(name, i, x_MD.shape)

    def _linear(self, name: str, x_MK: Tensor, rows: slice = slice(None)) -> Tensor:
        """A linear layer, or only some rows of its weight."""
        bias_N, weight_NK = self.half[f"{name}.bias"][rows], self.half[f"{name}.weight"][rows]
        if self.tiled and self.tiled.pays(weight_NK):
            out_MN = x_MK.new_empty((len(x_MK), len(bias_N)))
            self.tiled.launch_linear(x_MK, weight_NK, bias_N, out_MN)
            return out_MN
        return torch.addmm(bias_N, x_MK, weight_NK.T)

    def _widened(self, now: Pass, i: int, n_MD: Tensor) -> tuple[Tensor, Tensor | None]:
        """GELU of the MLP's wide layer h, and what its gradient needs: gelu'(h), or h where GELU is a pass of its own.

        Such a pass waits for memory, so that it has time for the derivative on the way back; a product has not.
        """
        bias_F, weight_FD = self.half[f"blocks.{i}.widen.bias"], self.half[f"blocks.{i}.widen.weight"]
        a_MF = now.stacks.room("a", i, (len(n_MD), len(bias_F)))
        if self.tiled:
            slope_MF = None if now.blocks is None else torch.empty_like(a_MF, dtype=self.tiled.SLOPE)
            self.tiled.launch_gelu(n_MD, weight_FD, bias_F, slope_MF, a_MF)
            return a_MF, slope_MF
        h_MF = torch.addmm(bias_F, n_MD, weight_FD.T)
        gelu.launch_gelu(h_MF, a_MF)
        return a_MF, None if now.blocks is None else h_MF

    def _block(self, now: Pass, i: int, x_MD: Tensor, n_MD: Tensor) -> tuple[Tensor, Tensor]:
        """The residual stream after a block, and its next norm; of the last block only at the rows to predict."""
        batch, width, dropout, name = len(now.tokens_BL), self.shape.width, now.dropout, f"blocks.{i}"
        at_M = now.at_M if i == self.shape.layers - 1 else None
        query_BQD = n_query_MD = given = None
        if at_M is None:
            packed_MX = self._linear(f"{name}.qkv", n_MD)
        else:
            n_query_MD = n_MD[at_M]
            query_BQD = self._linear(f"{name}.qkv", n_query_MD, slice(None, width)).view(batch, -1, width)
            packed_MX = self._linear(f"{name}.qkv", n_MD, slice(width, None))
        packed_BLX = packed_MX.view(batch, -1, packed_MX.shape[1])
        if now.blocks is None:
            out_BQD = attend(packed_BLX, query_BQD, self.shape.heads, 0.0)
        else:
            room = partial(now.stacks.room, "out", i)
            given = attended(packed_BLX, query_BQD, width, now.seed[3 * i + 1], self.shape.heads, dropout, room)
            out_BQD = given.out_BQD
        p_MD = self._linear(f"{name}.project", out_BQD.reshape(-1, width))
        x_mlp_MD, n_mlp_MD = self._stream(now, len(p_MD), "n_mlp", i)
        seed, around = now.seed[3 * i + 2], self.norm(2 * i + 1)
        norm.launch_add_norm(x_MD, p_MD, at_M, around, seed, dropout, x_mlp_MD, n_mlp_MD)
        a_MF, kept_MF = self._widened(now, i, n_mlp_MD)
        if now.blocks is not None:
            assert given is not None
            assert kept_MF is not None
            now.blocks.append(KeptBlock(x_MD, n_MD, n_query_MD, given, x_mlp_MD, n_mlp_MD, a_MF, kept_MF))
        p_MD = self._linear(f"{name}.narrow", a_MF)
        x_MD, n_MD = self._stream(now, len(p_MD), "n", i + 1)
        seed, around = now.seed[3 * i + 3], self.norm(2 * i + 2)
        norm.launch_add_norm(x_mlp_MD, p_MD, None, around, seed, dropout, x_MD, n_MD)
        return x_MD, n_MD


def logits(model: Transformer, tokens_BL: Tensor, at_BA: Tensor, kind: torch.dtype = torch.bfloat16) -> Tensor:
    """The logits [B, A, V] of the cells at `at_BA`, without dropout, with the weights of this moment."""
    shape, (batch, length) = model.shape, tokens_BL.shape
    full = dict(model.named_parameters())
    half = {name: torch.empty_like(weight, dtype=kind) for name, weight in full.items() if _multiplied(name)}
    with torch.cuda.device_of(tokens_BL):  # type: ignore[no-untyped-call]
        torch._foreach_copy_(list(half.values()), [full[name] for name in half])
        seed, stacks = seeds(shape.layers, tokens_BL.device), Stacks(0, half["embed.weight"])
        now = Pass(tokens_BL.contiguous(), rows_at(at_BA, length), seed, 0.0, stacks, blocks=None)
        return Forward(shape, full, half)(now).reshape(batch, -1, shape.vocab_size)


def _multiplied(name: str) -> bool:
    return "norm" not in name and name != "position.weight"
