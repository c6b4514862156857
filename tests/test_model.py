"""The denoiser: its size, weights and precision, and that computing answer cells only changes nothing."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.precision import Precision, computing
from hardtail.models.transformer import SMALL_TABLE, Block, Shape, Transformer, looked_up, parameter_count, pick


@pytest.mark.parametrize(
    ("layers", "heads", "width", "vocab", "length", "ratio", "expected"),
    [
        (2, 2, 128, 14, 99, 4, 412_288),
        (2, 2, 128, 14, 99, 3, 346_496),
        (3, 3, 192, 9, 884, 4, 1_507_968),
        (3, 3, 192, 37, 200, 4, 1_382_016),
        (8, 8, 384, 37, 200, 4, 14_290_560),
        (12, 12, 384, 36, 60, 4, 21_334_272),
        (8, 8, 256, 13, 163, 4, 6_365_696),
        (8, 8, 256, 13, 163, 3, 5_315_072),
    ],
)
def test_parameter_counts_of_the_study(
    layers: int, heads: int, width: int, vocab: int, length: int, ratio: int, expected: int
) -> None:
    with torch.device("meta"):
        assert parameter_count(Transformer(Shape(layers, heads, width, vocab, length, ratio))) == expected


def blocks_of(model: Transformer) -> list[Block]:
    return [block for block in model.blocks if isinstance(block, Block)]


def full_logits(model: Transformer, tokens: torch.Tensor) -> torch.Tensor:
    """The plain computation, every position through every block."""
    x = model.embed(tokens) + model.position(torch.arange(tokens.shape[1]))
    for block in blocks_of(model):
        h = block.norm_attention(x)
        q, k, v = (part.unflatten(-1, (block.heads, -1)).transpose(1, 2) for part in block.qkv(h).chunk(3, -1))
        attention = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        x = x + block.project((attention @ v).transpose(1, 2).flatten(-2))
        x = x + block.narrow(torch.nn.functional.gelu(block.widen(block.norm_mlp(x))))
    return model.norm(x) @ model.embed.weight.T


@pytest.mark.parametrize("layers", [1, 3])
def test_answer_cells_alone_are_the_full_computation(layers: int) -> None:
    model = Transformer(Shape(layers, 2, 32, 11, 20)).initialise(torch.Generator().manual_seed(0)).double()
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 11, (5, 20), generator=generator)
    expected = full_logits(model, tokens)
    torch.testing.assert_close(model(tokens, slice(12, 20)), expected[:, 12:20])
    at = torch.stack([torch.randperm(20, generator=generator)[:6] for _ in range(5)])
    torch.testing.assert_close(model(tokens, at), pick(expected, at))


def test_every_token_is_attended_to_both_ways() -> None:
    model = Transformer(Shape(2, 2, 32, 11, 10)).initialise(torch.Generator().manual_seed(0)).double()
    tokens = torch.zeros((1, 10), dtype=torch.int64)
    base = model(tokens, slice(4, 5))
    for place in range(10):
        changed = tokens.clone()
        changed[0, place] = 7
        assert not torch.equal(model(changed, slice(4, 5)), base)


def test_initial_weights() -> None:
    model = Transformer(Shape(2, 2, 64, 11, 50)).initialise(torch.Generator().manual_seed(0))
    assert blocks_of(model)[0].qkv.weight.std().item() == pytest.approx(0.02, rel=0.05)
    assert model.embed.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert not blocks_of(model)[1].widen.bias.any()
    assert (model.norm.weight == 1).all()


def test_bad_shapes() -> None:
    with pytest.raises(HardtailError, match="5 heads"):
        Shape(2, 5, 128, 14, 99)
    with pytest.raises(HardtailError, match="dropout"):
        Shape(2, 2, 128, 14, 99, dropout=1.0)
    for sizes, name in (((0, 2, 128), "layers"), ((2, 0, 128), "heads"), ((2, 2, 0), "width")):
        with pytest.raises(HardtailError, match=f"{name} is 0"):
            Shape(*sizes, 14, 99)


def test_the_embedding_gradient_is_torchs() -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(11, 8, generator=generator, dtype=torch.float64, requires_grad=True)
    tokens = torch.randint(0, 9, (3, 20), generator=generator)  # two rows are never looked up
    gradient = torch.randn(3, 20, 8, generator=generator, dtype=torch.float64)
    ours = torch.autograd.grad(looked_up(tokens, table), table, gradient)[0]
    theirs = torch.autograd.grad(torch.nn.functional.embedding(tokens, table), table, gradient)[0]
    torch.testing.assert_close(ours, theirs)


def test_attention_alone_in_bf16() -> None:
    """Rounding of attention, and of nothing else: close to the full precision, and gradients reach every weight."""
    model = Transformer(Shape(2, 2, 32, 11, 20)).initialise(torch.Generator().manual_seed(0))
    tokens = torch.randint(0, 11, (5, 20), generator=torch.Generator().manual_seed(1))
    exact, rounded = model(tokens, slice(12, 20)), model(tokens, slice(12, 20), torch.bfloat16)
    assert rounded.dtype == torch.float32
    error = ((rounded - exact).norm() / exact.norm()).item()
    assert 0 < error < 1e-3
    torch.autograd.backward(rounded.square().sum())
    assert all(parameter.grad is not None and parameter.grad.any() for parameter in blocks_of(model)[0].parameters())


@pytest.mark.parametrize(("rows", "way"), [(SMALL_TABLE, "_LookUpBackward"), (SMALL_TABLE + 1, "EmbeddingBackward0")])
def test_only_the_gradient_of_a_small_table_is_a_product(rows: int, way: str) -> None:
    """The one-hot vectors of a large one would fill the memory."""
    table_VD, tokens_BL = torch.randn(rows, 3, requires_grad=True), torch.tensor([[0, rows - 1, 0]])
    out_BLD = looked_up(tokens_BL, table_VD)
    assert type(out_BLD.grad_fn).__name__ == way
    assert torch.equal(out_BLD, table_VD[tokens_BL])
    (gradient_VD,) = torch.autograd.grad(out_BLD.sum(), table_VD)
    assert gradient_VD[[0, 1, rows - 1], 0].tolist() == [2.0, 0.0, 1.0]


class Asked(nn.Module):
    """Says in which precision it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = list[tuple[str, bool]]()

    def forward(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        self.seen.append((torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")))
        return torch.zeros((*at_BA.shape, 8))


@pytest.mark.parametrize(
    ("precision", "products", "rounded"), [("fp32", "highest", False), ("tf32", "high", False), ("bf16", "high", True)]
)
def test_a_model_is_asked_in_the_precision_that_is_named(precision: Any, products: str, rounded: bool) -> None:
    before = torch.get_float32_matmul_precision()
    model: Any = Asked()
    zero = torch.zeros((1, 3), dtype=torch.int64)
    ModelDenoiser(model, 7, precision).logits(zero, zero)
    assert model.seen == [(products, rounded)]
    assert torch.get_float32_matmul_precision() == before
    assert not torch.is_autocast_enabled("cpu")


def test_precision_holds_while_it_lasts() -> None:
    before = torch.get_float32_matmul_precision()
    kinds: tuple[tuple[Precision, str, torch.dtype], ...] = (
        ("fp32", "highest", torch.float32),
        ("tf32", "high", torch.float32),
        ("bf16", "high", torch.bfloat16),
    )
    for precision, wanted, kind in kinds:
        with computing(precision, torch.device("cpu")):
            assert torch.get_float32_matmul_precision() == wanted
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == kind
        assert torch.get_float32_matmul_precision() == before


def test_initial_weights_do_not_depend_on_what_was_there() -> None:
    shape = Shape(layers=1, heads=2, width=8, vocab_size=5, seq_len=4)
    fresh, used = Transformer(shape), Transformer(shape)
    with torch.no_grad():
        for parameter in used.parameters():
            parameter.fill_(3.0)
    for model in (fresh, used):
        model.initialise(torch.Generator().manual_seed(1))
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(tensor, used.state_dict()[name]), name
    assert fresh.norm.weight.tolist() == [1.0] * 8
    assert not fresh.blocks[0].qkv.bias.any()  # type: ignore[union-attr, operator]
