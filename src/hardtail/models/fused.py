"""The transformer's forward and backward pass on a GPU in bf16, written out with our own kernels (docs/kernels.md).

The same maths as `transformer` under autograd and autocast, up to rounding. Between the matrix products there are few
passes over the activations: residual sum, dropout and LayerNorm are one kernel each way; GELU is inside the products
next to it, or one kernel each way; the gradients of biases and norms come out of kernels that read the same tensors
anyway. Most products are cuBLAS's. The residual stream is float32, its gradient bf16; gradients of weights are written
in float32 to their places in one vector.

The gradients of weights are not needed before the optimiser, so they are computed aside, on a stream of their own. In
deep models those of all blocks but the last are one batched product for each kind of weight, and what it reads lies
side by side in memory (`Stacks`). In others each is computed while the main stream goes on to the next layer: matrix
products fill what kernels that wait for memory leave idle.

Shapes: B batch, L sequence, K cells to predict, D width, F = mlp_ratio·D, X 3·D or 2·D, V vocabulary, W V up to a power
of two, M rows (B·L; B·K from the last block's queries on), P parameters in all, G blocks.
"""

from functools import partial
from itertools import accumulate, pairwise

import torch
from torch import Tensor

from hardtail.models.aside import Aside, Stacks
from hardtail.models.forward import Forward, KeptBlock, Pass, rows_at, seeds
from hardtail.models.kernels import embedding, gelu, norm, sums
from hardtail.models.transformer import Transformer

BATCHED = 6
"""Blocks, without the last one, from which batched products pay: 7 and 11 do, 2 do not (docs/performance.md)."""
STACKED = {
    "qkv": ("packed_grad", "n"),
    "project": ("project_grad", "out"),
    "widen": ("h_grad", "n_mlp"),
    "narrow": ("narrow_grad", "a"),
}
"""The two factors of each layer's gradient, by their names in `Stacks`."""


class Passes:
    """Forward and backward pass over a model's parameters, which are views of `weight_P` in their own order."""

    def __init__(self, model: Transformer, weight_P: Tensor, length: int, kind: torch.dtype = torch.bfloat16) -> None:
        self.shape, self.weight_P = model.shape, weight_P
        self._sizes = {name: parameter.shape for name, parameter in model.named_parameters()}
        ends = accumulate((size.numel() for size in self._sizes.values()), initial=0)
        self._ends = dict(zip(self._sizes, pairwise(ends), strict=True))
        self._half_P = torch.empty_like(weight_P, dtype=kind)
        self._half = self._views(self._half_P)
        self._forward = Forward(self.shape, self._views(weight_P), self._half)
        blocks = [f"blocks.{i}" for i in range(self.shape.layers)]
        self._summed = (3 if self.shape.dropout else 1) * self.shape.width
        """Columns of queries, keys and values whose sums are needed; see `_rest_of_biases`."""
        self._partials = self._rooms(blocks, length)
        self._jobs = self._partials.jobs(weight_P.device)
        self._aside = Aside(weight_P.device)

    def _rooms(self, blocks: list[str], length: int) -> sums.Partials:
        """The sums that kernels leave behind, and the parameters whose gradients they are."""
        layers, width, wide = self.shape.layers, self.shape.width, self.shape.mlp_ratio * self.shape.width
        start = {name: start for name, (start, _) in self._ends.items()}
        rooms = sums.Partials()
        added = [None, *(start[f"{block}.{layer}.bias"] for block in blocks for layer in ("project", "narrow"))]
        around = [(start[f"{name}.weight"], start[f"{name}.bias"]) for name in self._forward.norms]
        norms = [place for both, before in zip(around, added, strict=True) for place in (*both, before)]
        rooms.add("norms", (2 * layers + 1, norm.PROGRAMS, 3, width), norms)
        tiled = self._forward.tiled
        parts = tiled.partial_sums(wide) if tiled else gelu.PROGRAMS
        rooms.add("widen", (layers, parts, 1, wide), [start[f"{block}.widen.bias"] for block in blocks])
        rooms.add("qkv", (layers, sums.PROGRAMS, 1, self._summed), [start[f"{block}.qkv.bias"] for block in blocks])
        tables = 1, 1 + embedding.table_shares(length), 1, self._forward.tokens * width
        rooms.add("tables", tables, [start["embed.weight"]], self.shape.vocab_size * width)
        rooms.add("places", (1, embedding.SPLITS, 1, length * width), [start["position.weight"]])
        return rooms

    def _views(self, vector_P: Tensor) -> dict[str, Tensor]:
        return {name: vector_P[start:end].view(self._sizes[name]) for name, (start, end) in self._ends.items()}

    def _of_blocks(self, vector_P: Tensor, name: str) -> Tensor:
        """A parameter of all blocks as one view: blocks are alike and follow each other."""
        layers, start = self.shape.layers, self._ends["blocks.0.norm_attention.weight"][0]
        end = self._ends[f"blocks.{layers - 1}.narrow.bias"][1]
        mine = slice(*(place - start for place in self._ends[f"blocks.0.{name}"]))
        return vector_P[start:end].view(layers, -1)[:, mine].view(layers, *self._sizes[f"blocks.0.{name}"])

    def forward(self, tokens_BL: Tensor, at_BK: Tensor, dropout: float) -> Tensor:
        """Logits [B, K, V] of the cells at `at_BK`; what `backward` needs is kept."""
        assert self.shape.dropout or not dropout  # otherwise there is no room for the sums that dropout needs
        batch, length = tokens_BL.shape
        self._half_P.copy_(self.weight_P)
        seed = seeds(self.shape.layers, at_BK.device)
        if dropout:  # drawn on the device, so that a captured graph draws new ones in every step
            seed.random_(2**31 - 1)
        alike = self.shape.layers - 1  # the last block has fewer rows
        stacks = Stacks(alike if alike >= BATCHED else 0, self._half_P)
        self._now = Pass(tokens_BL.contiguous(), rows_at(at_BK, length), seed, dropout, stacks)
        return self._forward(self._now).reshape(batch, -1, self.shape.vocab_size)

    def backward(self, gradient_BKV: Tensor) -> Tensor:
        """The gradient of every parameter, as one float32 vector, from that of the logits. Call it once."""
        now, tokens = self._now, self._forward.tokens
        assert now.blocks is not None
        assert now.last is not None
        gradient_P = torch.empty_like(self.weight_P)
        sums_left = gradient_P.new_empty(self._partials.cells)
        self._gradient_P, self._into = gradient_P, self._views(gradient_P)
        self._room = self._partials.views(sums_left)
        length, width, layers = now.tokens_BL.shape[1], self.shape.width, self.shape.layers
        x_MD, n_MD, table_WD = now.last
        gradient_MW = n_MD.new_zeros((len(n_MD), tokens))
        gradient_MW[:, : self.shape.vocab_size] = gradient_BKV.reshape(len(n_MD), -1)
        table_sums = self._room["tables"].view(-1, tokens, width)
        self._aside.product(gradient_MW, n_MD, table_sums[0])
        g_MD, p_grad_MD = self._norm_backward(2 * layers, x_MD, gradient_MW @ table_WD, None)
        for i in reversed(range(layers)):
            block = now.blocks.pop()
            g_MD, p_grad_MD = self._mlp_backward(i, block, g_MD, p_grad_MD)
            g_MD, p_grad_MD = self._attention_backward(i, block, g_MD, p_grad_MD)
        places = self._room["places"].view(-1, length, width)
        embedding.launch_embedding_backward(now.tokens_BL, p_grad_MD, table_sums[1:], places)
        self._into["position.weight"][length:] = 0
        self._aside.join()
        del self._now
        sums.launch_settle(sums_left, gradient_P, self._jobs)
        if self._summed == width:
            self._rest_of_biases(gradient_P)
        return gradient_P

    def _rest_of_biases(self, gradient_P: Tensor) -> None:
        """The gradients of the biases of keys and values, if nothing is dropped inside attention, without their sums.

        What is added to all keys changes no softmax, so the keys' part is 0. The softmax of a query sums to 1, so the
        gradients of all values add up to those of all outputs of attention: what the projection's weight makes of the
        gradient of its bias.
        """
        width, bias_GX = self.shape.width, self._of_blocks(gradient_P, "qkv.bias")
        bias_GX[:, width : 2 * width] = 0
        outer_G1D = self._of_blocks(gradient_P, "project.bias")[:, None]
        weight_GDD = self._of_blocks(self.weight_P, "project.weight")
        torch.bmm(outer_G1D, weight_GDD, out=bias_GX[:, None, 2 * width :])

    def _mlp_backward(self, i: int, block: KeptBlock, g_MD: Tensor, p_grad_MD: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of the stream before a block's MLP and of what attention added to it."""
        self._weight_gradient(i, "narrow", p_grad_MD, block.a_MF)
        h_grad_MF = self._widened_gradient(i, block.kept_MF, p_grad_MD)
        self._weight_gradient(i, "widen", h_grad_MF, block.n_mlp_MD)
        n_grad_MD = h_grad_MF @ self._half[f"blocks.{i}.widen.weight"]
        return self._norm_backward(2 * i + 1, block.x_mlp_MD, n_grad_MD, g_MD)

    def _widened_gradient(self, i: int, kept_MF: Tensor, p_grad_MD: Tensor) -> Tensor:
        """The gradient of the MLP's wide layer, from that of the narrow one; leaves sums for the wide one's bias."""
        weight_DF, sums_SF = self._half[f"blocks.{i}.narrow.weight"], self._room["widen"][i, :, 0]
        h_grad_MF = self._now.stacks.room("h_grad", i, kept_MF.shape)
        if self._forward.tiled:
            self._forward.tiled.launch_derivative(p_grad_MD, weight_DF, kept_MF, h_grad_MF, sums_SF)
        else:
            torch.mm(p_grad_MD, weight_DF, out=h_grad_MF)
            gelu.launch_gelu_backward(kept_MF, h_grad_MF, sums_SF)
        return h_grad_MF

    def _attention_backward(self, i: int, block: KeptBlock, g_MD: Tensor, p_grad_MD: Tensor) -> tuple[Tensor, Tensor]:
        """The gradients of the stream before a block and of what the block before it added."""
        name, width, batch = f"blocks.{i}", self.shape.width, len(self._now.tokens_BL)
        out_MD = block.attended.out_BQD.reshape(-1, width)
        self._weight_gradient(i, "project", p_grad_MD, out_MD)
        out_grad_BQD = (p_grad_MD @ self._half[f"{name}.project.weight"]).view(batch, -1, width)
        room = partial(self._now.stacks.room, "packed_grad", i)
        packed_grad_BLX, query_grad_BQD = block.attended.backward(out_grad_BQD, room)
        packed_grad_MX = packed_grad_BLX.flatten(0, 1)
        weight_XD, sums_SX = self._half[f"{name}.qkv.weight"], self._room["qkv"][i, :, 0]
        if query_grad_BQD is None:
            picked = None
            self._aside.sums(packed_grad_MX, sums_SX)
            self._weight_gradient(i, "qkv", packed_grad_MX, block.n_MD)
        else:
            assert block.n_query_MD is not None
            query_grad_MD, into_XD = query_grad_BQD.flatten(0, 1), self._into[f"{name}.qkv.weight"]
            self._aside.sums(query_grad_MD, sums_SX[:, :width])
            self._aside.product(query_grad_MD, block.n_query_MD, into_XD[:width])
            picked = self._place(len(packed_grad_MX)), query_grad_MD @ weight_XD[:width]
            weight_XD = weight_XD[width:]
            self._aside.sums(packed_grad_MX, sums_SX[:, width:])
            self._aside.product(packed_grad_MX, block.n_MD, into_XD[width:])
        return self._norm_backward(2 * i, block.x_MD, packed_grad_MX @ weight_XD, g_MD, picked)

    def _weight_gradient(self, i: int, layer: str, left_MN: Tensor, right_MK: Tensor) -> None:
        """Of a layer of block `i`, aside; where both factors of all blocks lie side by side, with the first block's."""
        lefts_GMN, rights_GMK = map(self._now.stacks.whole, STACKED[layer])
        if lefts_GMN is None or rights_GMK is None or i >= self._now.stacks.blocks:
            self._aside.product(left_MN, right_MK, self._into[f"blocks.{i}.{layer}.weight"])
        elif i == 0:
            outs_GNK = self._of_blocks(self._gradient_P, f"{layer}.weight")[: self._now.stacks.blocks]
            self._aside.product(lefts_GMN, rights_GMK, outs_GNK)

    def _norm_backward(
        self, number: int, x_MD: Tensor, n_grad_MD: Tensor, g_MD: Tensor | None,
        picked: tuple[Tensor, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The gradients of the stream before a norm and of what was added to it there."""
        adder, i = ("project", number // 2) if number % 2 else ("narrow", number // 2 - 1)
        p_grad_MD = self._now.stacks.room(f"{adder}_grad", i, n_grad_MD.shape)
        out_MD = torch.empty_like(n_grad_MD) if self._now.dropout else p_grad_MD
        seed = self._now.seed[number // 2 * 3 + (2 if number % 2 else 0)]
        place_M, picked_MD = picked or (None, None)
        given = x_MD, n_grad_MD, g_MD, place_M, picked_MD, self._forward.norm(number)[0], seed, self._now.dropout
        norm.launch_norm_backward(*given, out_MD, p_grad_MD, self._room["norms"][number])
        return out_MD, p_grad_MD

    def _place(self, rows: int) -> Tensor:
        """For each row of the whole sequences, its number among those that the last block computes, or -1."""
        at_M = self._now.at_M
        place_M = torch.full((rows,), -1, dtype=torch.int64, device=at_M.device)
        place_M[at_M] = torch.arange(len(at_M), device=at_M.device)
        return place_M
