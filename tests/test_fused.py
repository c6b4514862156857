"""The passes that are written out are the transformer: logits and every gradient, dropout included.

The kernels run on a GPU in bf16, or on a CPU in Triton's interpreter in float32: where Triton is installed and
TRITON_INTERPRET=1 is set. (The interpreter of Triton 3.6 needs numpy below 2.4.)
"""

import os
from copy import deepcopy
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from hardtail.models.attention import HAS_TRITON, HEADS
from hardtail.models.kernels import GLUON, tiled_products
from hardtail.models.transformer import Block, Shape, Transformer, pick
from hardtail.training.gradient import flatten
from hardtail.training.optimiser import Flat
from tests.test_attention import formula, kept

GPU = torch.cuda.is_available()
DEVICE = torch.device("cuda" if GPU else "cpu")
KIND = torch.bfloat16 if GPU else torch.float32
TOLERANCE = 1e-2 if GPU else 1e-5
pytestmark = pytest.mark.skipif(
    not (HAS_TRITON and (GPU or os.environ.get("TRITON_INTERPRET") == "1")),
    reason="there is neither a GPU nor Triton's interpreter",
)
HOPPER = GPU and torch.cuda.get_device_capability()[0] == 9
BATCH, LENGTH, CELLS = 3, 37, 11


def tiled() -> ModuleType:
    """The products in Gluon; on Hopper a test that needs them fails where Triton has another version."""
    found = tiled_products(DEVICE, KIND)
    assert found is not None, f"they run with Triton {GLUON}* only: try this one, and extend `kernels.GLUON`"
    return found


@pytest.fixture(autouse=True)
def few_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that each program takes several blocks of these small tensors, and some take none."""
    if HAS_TRITON:
        for module, number in (("norm", 5), ("gelu", 3), ("sums", 2)):
            monkeypatch.setattr(f"hardtail.models.kernels.{module}.PROGRAMS", number)
        monkeypatch.setattr("hardtail.models.kernels.embedding.SPLITS", 2)
    if tiled_products(DEVICE, KIND) is not None:
        monkeypatch.setattr("hardtail.models.kernels.linear.PROGRAMS", 6)


def heads(width: int) -> int:
    """Heads of a size that our attention takes."""
    return max(2, width // 64)


def model(dropout: float, width: int = 64, layers: int = 2) -> Transformer:
    shape = Shape(layers, heads(width), width, 11, LENGTH, dropout=dropout)
    made = Transformer(shape).initialise(torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    for parameter in made.parameters():  # no bias is 0 and no norm 1
        parameter.data += 0.05 * torch.randn(parameter.shape, generator=generator)
    return made.to(DEVICE).train()


def batch() -> tuple[Tensor, Tensor]:
    """Tokens, and different cells to predict in each sequence."""
    generator = torch.Generator().manual_seed(2)
    tokens = torch.randint(0, 11, (BATCH, LENGTH), generator=generator)
    at = torch.stack([torch.randperm(LENGTH, generator=generator)[:CELLS].sort().values for _ in range(BATCH)])
    return tokens.to(DEVICE), at.to(DEVICE)


class Factors:
    """What dropout multiplies by, read off the kernels themselves with the seeds of a pass."""

    def __init__(self, seeds: Tensor, width: int, dropout: float) -> None:
        self.seeds, self.width, self.dropout = seeds, width, dropout

    def stream(self, site: int, rows: int) -> Tensor:
        from hardtail.models.kernels.norm import launch_add_norm

        zero, one = (torch.full((rows, self.width), value, device=DEVICE) for value in (0.0, 1.0))
        norm = torch.ones(self.width, device=DEVICE), torch.zeros(self.width, device=DEVICE)
        out = torch.empty_like(zero)
        launch_add_norm(zero, one, None, norm, self.seeds[site], self.dropout, out, torch.empty_like(zero))
        return out.double().view(BATCH, -1, self.width)

    def attention(self, site: int, queries: int) -> Tensor:
        count = heads(self.width)
        left = kept(queries, LENGTH, count, self.width // count, self.seeds[site], self.dropout, BATCH)
        return left.double() / (1 - self.dropout)


def reference(model: Transformer, tokens: Tensor, at: Tensor, factors: Factors | None) -> Tensor:
    """The transformer in its own precision, with given factors of dropout."""

    def stream(site: int, rows: int) -> Tensor | float:
        return 1.0 if factors is None else factors.stream(site, BATCH * rows)

    x = (model.embed(tokens) + model.position.weight[:LENGTH]) * stream(0, LENGTH)
    for i, block in enumerate(model.blocks):
        assert isinstance(block, Block)
        normed = block.norm_attention(x)
        packed = block.qkv(normed)
        query, rest = packed[..., : model.shape.width], packed[..., model.shape.width :]
        if i == len(model.blocks) - 1:
            query, x = pick(query, at), pick(x, at)
        rows = query.shape[1]
        mixed = formula(query, rest, model.shape.heads, 1.0 if factors is None else factors.attention(3 * i + 1, rows))
        x = x + block.project(mixed) * stream(3 * i + 2, rows)
        x = x + block.narrow(F.gelu(block.widen(block.norm_mlp(x)))) * stream(3 * i + 3, rows)
    return F.linear(model.norm(x), model.embed.weight)


@pytest.mark.parametrize(("width", "layers"), [(64, 2), (128, 2), (256, 2), (64, 1), (64, 4), (192, 4)])
@pytest.mark.parametrize(("dropout", "heads"), [(0.0, HEADS), (0.0, ()), (0.3, HEADS)])
def test_passes_are_the_transformer(
    dropout: float, heads: tuple[int, ...], width: int, layers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With our attention, with torch's, and with dropout, against float64; three blocks in batches of all layers."""
    from hardtail.models.fused import Passes

    monkeypatch.setattr("hardtail.models.fused.BATCHED", 3)
    monkeypatch.setattr("hardtail.models.attended.HEADS", heads)
    ours, exact = model(dropout, width, layers), model(dropout, width, layers).double()
    flat = Flat(ours)
    tokens, at = batch()
    passes = Passes(ours, flat.weight_P, LENGTH, KIND)
    with torch.no_grad():
        logits = passes.forward(tokens, at, dropout)
        seeds = passes._now.seed
        gradient = torch.randn(logits.shape, generator=torch.Generator().manual_seed(3)).to(DEVICE)
        found = passes.backward(gradient)
    factors = Factors(seeds, width, dropout) if dropout else None
    expected = reference(exact, tokens, at, factors)
    assert ((logits - expected).norm() / expected.norm()).item() < TOLERANCE
    wanted = flatten(torch.autograd.grad(expected, list(exact.parameters()), gradient.double()))
    for name, part in flat.views(found).items():
        theirs = flat.views(wanted)[name]
        if name.endswith("qkv.bias"):  # the keys' part is exactly 0, so that with dropout only rounding is left of it
            assert dropout or not part[width : 2 * width].any()
            part, theirs = (torch.cat([x[:width], x[2 * width :]]) for x in (part, theirs))
        assert ((part - theirs).norm() / theirs.norm().clamp(min=1e-12)).item() < 2 * TOLERANCE, name


@pytest.mark.parametrize(("width", "layers"), [(64, 1), (128, 2), (192, 2), (256, 3)])
def test_a_pass_that_keeps_nothing_is_the_transformer(width: int, layers: int) -> None:
    """What a decode asks for, with weights that change in place; dropout is training's alone."""
    from hardtail.models.forward import logits

    ours, (tokens, at) = model(0.3, width, layers), batch()
    for _ in range(2):
        with torch.inference_mode():
            found = logits(ours, tokens, at, KIND)
        expected = reference(deepcopy(ours).double(), tokens, at, None)
        assert ((found - expected).norm() / expected.norm()).item() < 2 * TOLERANCE
        for parameter in ours.parameters():
            parameter.data.mul_(0.9)


@pytest.mark.parametrize("layers", [2, 4])
def test_the_same_seed_gives_the_same_bytes(layers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from hardtail.models.fused import Passes

    monkeypatch.setattr("hardtail.models.fused.BATCHED", 3)
    found = []
    for _ in range(2):
        ours = model(0.3, layers=layers)
        passes = Passes(ours, Flat(ours).weight_P, LENGTH, KIND)
        torch.manual_seed(5)
        with torch.no_grad():
            found.append(passes.backward(passes.forward(*batch(), 0.3)))
    assert torch.equal(*found)


@pytest.mark.parametrize(("dropout", "heads", "shared"), [(0.3, HEADS, 4), (0.0, HEADS, 4), (0.0, (), 2)])
def test_blocks_of_deep_models_share_products(
    dropout: float, heads: tuple[int, ...], shared: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gradients of weights of all blocks but the last are one batched product, and what they are one by one.

    Torch's attention has memory of its own, so that only the MLP's are shared then.
    """
    from hardtail.models.fused import Passes

    monkeypatch.setattr("hardtail.models.attended.HEADS", heads)
    found: list[Tensor] = []
    sizes: list[int] = []

    def counted(*given: Tensor, multiply: Any = torch.bmm, **how: Any) -> Tensor:
        if given[0].shape[1] > 1:  # not that of biases
            sizes.append(len(given[0]))
        return multiply(*given, **how)

    monkeypatch.setattr(torch, "bmm", counted)
    for deep, expected in (3, [3] * shared), (4, []):
        monkeypatch.setattr("hardtail.models.fused.BATCHED", deep)
        ours = model(dropout, layers=4)
        passes = Passes(ours, Flat(ours).weight_P, LENGTH, KIND)
        torch.manual_seed(5)
        with torch.no_grad():
            logits = passes.forward(*batch(), dropout)
            found.append(passes.backward(logits))
        assert sizes == expected
        sizes.clear()
    together, alone = found
    assert ((together - alone).norm() / alone.norm()).item() < TOLERANCE


@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
@pytest.mark.parametrize("programs", [1, 6, 132])
@pytest.mark.parametrize(
    ("rows", "columns", "depth"), [(1, 128, 64), (1000, 256, 192), (700, 384, 384), (1664, 384, 512)]
)
def test_linear_layers_with_what_follows_them(
    rows: int, columns: int, depth: int, programs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against float64: rows that fill no tile, groups of warps without a tile, a depth of more chunks than places.

    The last depth is too large for the weight to be kept in shared memory next to two halves of a tile.
    """
    linear = tiled()
    monkeypatch.setattr(linear, "PROGRAMS", programs)
    generator = torch.Generator(DEVICE).manual_seed(0)

    def drawn(*shape: int, scale: float = 1.0) -> Tensor:
        return (scale * torch.randn(shape, generator=generator, device=DEVICE)).to(KIND)

    def unwritten(*shape: int, kind: torch.dtype = KIND) -> Tensor:
        return torch.full(shape, float("nan"), device=DEVICE, dtype=kind)

    def agree(found: Tensor, exact: Tensor) -> None:
        assert ((found.double() - exact).norm() / exact.norm()).item() < 5e-3

    x, weight, bias = drawn(rows, depth), drawn(columns, depth, scale=depth**-0.5), drawn(columns)
    out, a, slope = unwritten(rows, columns), unwritten(rows, columns), unwritten(rows, columns, kind=linear.SLOPE)
    linear.launch_linear(x, weight, bias, out)
    linear.launch_gelu(x, weight, bias, slope, a)
    exact = F.linear(x.double(), weight.double(), bias.double()).requires_grad_()
    value = F.gelu(exact)
    (exact_slope,) = torch.autograd.grad(value.sum(), exact)
    agree(out, exact.detach())
    agree(a, value.detach())
    agree(slope, exact_slope)
    alone = unwritten(rows, columns)
    linear.launch_gelu(x, weight, bias, None, alone)
    assert torch.equal(alone, a)
    sums, gradient = unwritten(linear.partial_sums(columns), columns, kind=torch.float32), unwritten(rows, columns)
    linear.launch_derivative(x, weight.T.contiguous(), slope, gradient, sums)
    wanted = (x.double() @ weight.double().T) * slope.double()
    agree(gradient, wanted)
    agree(sums.sum(0), wanted.sum(0))


@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
def test_gelu_inside_a_product_is_exact() -> None:
    """Far into both tails, and its derivative, up to the rounding of what is written."""
    linear = tiled()
    h = torch.cat([torch.linspace(-12, 12, 1001), torch.tensor([0.0, -50.0, 50.0, 1e-4])]).to(DEVICE, KIND)
    x, weight = (torch.zeros(rows, 64, device=DEVICE, dtype=KIND) for rows in (len(h), 128))
    x[:, 0], weight[:, 0] = h, 1.0
    a = torch.empty(len(h), 128, device=DEVICE, dtype=KIND)
    slope = torch.empty_like(a, dtype=linear.SLOPE)
    linear.launch_gelu(x, weight, a.new_zeros(128), slope, a)
    exact = h.double()[:, None].expand(a.shape).requires_grad_()
    value = F.gelu(exact)
    (exact_slope,) = torch.autograd.grad(value.sum(), exact)
    torch.testing.assert_close(a.double(), value.detach(), rtol=2**-8, atol=1e-6)
    torch.testing.assert_close(slope.double(), exact_slope, rtol=2**-11, atol=1e-6)


@pytest.mark.skipif(not HOPPER, reason="needs a Hopper GPU")
def test_linear_layers_give_the_same_bytes_next_to_other_work() -> None:
    """Groups of warps that overtook each other would show here: many launches, while another stream is busy."""
    linear, other = tiled(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    generator = torch.Generator(DEVICE).manual_seed(0)
    x, weight, bias, busy = (
        torch.randn(shape, generator=generator, device=DEVICE).to(KIND)
        for shape in ((20_000, 256), (1024, 256), (1024,), (4096, 4096))
    )
    found: list[list[Tensor]] = []
    for _ in range(100):
        with torch.cuda.stream(other):
            busy @ busy
        a, gradient = (x.new_empty((len(x), len(bias))) for _ in range(2))
        slope = torch.empty_like(a, dtype=linear.SLOPE)
        sums = torch.empty((linear.partial_sums(len(bias)), len(bias)), device=DEVICE)
        linear.launch_gelu(x, weight, bias, slope, a)
        linear.launch_derivative(x, weight.T.contiguous(), slope, gradient, sums)
        found = [*found[:1], [slope, a, gradient, sums]]
        assert all(torch.equal(one, two) for one, two in zip(found[0], found[-1], strict=True))


def test_gelu_is_exact() -> None:
    """Far into both tails, and its derivative."""
    from hardtail.models.kernels.gelu import PROGRAMS, launch_gelu, launch_gelu_backward

    h = torch.cat([torch.linspace(-12, 12, 6001), torch.tensor([0.0, -50.0, 50.0, 1e-4])])[:6004].view(4, -1).to(DEVICE)
    exact = h.double().requires_grad_()
    value = F.gelu(exact)
    (slope,) = torch.autograd.grad(value.sum(), exact)
    found, gradient = torch.empty_like(h), torch.ones_like(h)
    partial = torch.empty(PROGRAMS, h.shape[1], device=DEVICE)
    launch_gelu(h, found)
    launch_gelu_backward(h, gradient, partial)
    torch.testing.assert_close(found.double(), value.detach(), rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(gradient.double(), slope, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(partial.sum(0).double(), slope.sum(0), rtol=1e-4, atol=1e-5)


def dropped(kernel: str, seed: Tensor, dropout: float) -> Tensor:
    """Which of 256 × 128 cells a kernel drops: those of a norm, or those of four heads of two sequences."""
    if kernel == "attention":
        return kept(32, 128, 4, 32, seed, dropout).flatten(0, 2) == 0
    from hardtail.models.kernels.norm import launch_add_norm

    zero, one = (torch.full((256, 128), value, device=DEVICE) for value in (0.0, 1.0))
    norm: Any = one[0], zero[0]
    out = torch.empty_like(zero)
    launch_add_norm(zero, one, None, norm, seed, dropout, out, torch.empty_like(zero))
    assert sorted(set(out.flatten().tolist())) == pytest.approx([0.0, 1 / (1 - dropout)])
    return out == 0


@pytest.mark.parametrize("kernel", ["norm", "attention"])
def test_dropout_is_drawn_by_a_generator_for_each_row(kernel: str) -> None:
    """Its definition, one number after the other."""

    def mixed(word: int) -> int:
        for shift, factor in [(16, 0x7FEB352D), (15, 0x846CA68B)]:
            word = (word ^ word >> shift) * factor % 2**32
        return word ^ word >> 16

    seed, dropout = 7, 0.1
    expected = torch.zeros(256, 128, dtype=torch.bool)
    for row in range(256):
        word = mixed(mixed(row) ^ seed) | 1
        for column in range(128):
            expected[row, column] = word < dropout * 2**32
            word = word * 0x93D765DD % 2**32
    found = dropped(kernel, torch.tensor([seed], dtype=torch.int32, device=DEVICE), dropout)
    assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("kernel", ["norm", "attention"])
def test_dropout_is_even_and_independent(kernel: str) -> None:
    """The share of dropped cells, and the correlations of rows and of columns, as independent draws would have them."""
    dropout = 0.1
    cells = dropped(kernel, torch.zeros(1, dtype=torch.int32, device=DEVICE), dropout)
    drawn = (cells.double() - dropout) / (dropout * (1 - dropout)) ** 0.5
    assert abs(drawn.mean().item()) < 4 / drawn.numel() ** 0.5
    for matrix in (drawn, drawn.T):
        together = (matrix @ matrix.T / matrix.shape[1] ** 0.5).cpu()
        apart = together[~torch.eye(len(together), dtype=torch.bool)]
        assert apart.std().item() == pytest.approx(1.0, abs=0.05)
        assert apart.abs().max().item() < 8
    for lag in range(1, drawn.shape[1] - 1):  # along a row, where a generator's numbers follow each other
        pairs = drawn[:, lag:] * drawn[:, :-lag]
        assert abs(pairs.sum().item()) < 5 * pairs.numel() ** 0.5
