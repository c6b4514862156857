"""The prepared forward pass on a CPU: the model's logits, whatever else is in the batch, where it may be used."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hardtail.models import packed
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.packed import Packed, packs
from hardtail.models.transformer import Block, Shape, Transformer, untouched

VOCAB, LENGTH = 11, 20


def random_model(layers: int = 3) -> Transformer:
    """Large weights, biases and norms, so that nothing that is left out goes unnoticed."""
    model = Transformer(Shape(layers, 2, 32, VOCAB, LENGTH)).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.3)
    return model


def batch(rows: int = 6) -> tuple[Tensor, Tensor]:
    """Tokens, and answers that are at another place in every row."""
    generator = torch.Generator().manual_seed(1)
    tokens_BL = torch.randint(0, VOCAB, (rows, LENGTH), generator=generator)
    return tokens_BL, torch.stack([torch.randperm(LENGTH, generator=generator)[:7] for _ in range(rows)])


needs_onednn = pytest.mark.skipif(not packs(random_model()), reason="PyTorch has no oneDNN here")


@needs_onednn
@pytest.mark.parametrize("most_rows", [0, packed.MOST_ROWS])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_same_logits_as_the_model(layers: int, most_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MOST_ROWS", most_rows)
    model = random_model(layers)
    prepared = Packed(model)
    assert (prepared.first_RX is not None) == (layers > 1 and most_rows > 0)
    exact_BAV = random_model(layers).double()(*batch())
    torch.testing.assert_close(prepared(*batch()).double(), exact_BAV, rtol=1e-4, atol=1e-4)
    assert exact_BAV.std() > 0.3


@needs_onednn
def test_a_row_does_not_depend_on_its_neighbours() -> None:
    prepared = Packed(random_model())
    tokens_BL, at_BA = batch(16)
    order_B = torch.randperm(16, generator=torch.Generator().manual_seed(2))
    assert torch.equal(prepared(tokens_BL, at_BA)[order_B], prepared(tokens_BL[order_B], at_BA[order_B]))


def hooked(model: Transformer) -> None:
    model.blocks[1].register_forward_hook(lambda part, inputs, output: output * 2)


def replaced(model: Transformer) -> None:
    block = model.blocks[0]
    assert isinstance(block, Block)
    block.widen = nn.Sequential(block.widen)  # type: ignore[assignment]


def patched(model: Transformer) -> None:
    vars(model)["forward"] = lambda tokens_BL, at_BA: torch.zeros((*at_BA.shape, VOCAB))


def shortened(model: Transformer) -> None:
    del model.blocks[1]


def lengthened(model: Transformer) -> None:
    model.blocks.append(Block(model.shape))


def shared(model: Transformer) -> None:
    model.blocks[1] = model.blocks[0]


def strided(model: Transformer) -> None:
    model.embed.weight = nn.Parameter(model.embed.weight.T.contiguous().T, requires_grad=False)


def steadied(model: Transformer) -> None:
    model.norm.eps = 1e-3


CHANGES = (
    *(hooked, replaced, patched, shortened, lengthened, shared, strided, steadied),
    *(Transformer.double, Transformer.bfloat16),
)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_model_that_was_changed_computes_by_itself(change: Callable[[Transformer], object]) -> None:
    """Both here and in bf16 on a GPU, where the kernels know of no other model (`models.forward`)."""
    model = random_model()
    assert untouched(model)
    change(model)
    assert not untouched(model)
    denoiser = ModelDenoiser(model, 1)
    assert denoiser.packed() is denoiser


@pytest.mark.parametrize("fault", [TypeError, RuntimeError, None])
def test_products_that_are_not_what_they_were_are_not_used(
    fault: type[Exception] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They have no public name: another PyTorch may have others under it."""

    def other(self: Any, x: Tensor) -> Tensor:
        if fault:
            raise fault("another signature")
        return torch.zeros(len(x), 32)

    monkeypatch.setattr(packed._PackedLinear, "gelu", other)
    packed._has_products.cache_clear()
    assert not packs(random_model())
    monkeypatch.undo()
    packed._has_products.cache_clear()


def test_only_fp32_is_prepared() -> None:
    assert all((same := ModelDenoiser(random_model(), 1, kind)).packed() is same for kind in ("tf32", "bf16"))


@needs_onednn
def test_weights_that_change_later_are_seen_by_the_next_decode() -> None:
    denoiser = ModelDenoiser(random_model(), 1)
    before = denoiser.packed().logits(*batch())
    for parameter in denoiser.model.parameters():
        parameter.mul_(0.5)
    after = denoiser.packed().logits(*batch())
    torch.testing.assert_close(after, denoiser.logits(*batch()), rtol=1e-4, atol=1e-4)
    assert (before - after).abs().max() > 0.1
