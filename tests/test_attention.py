"""Attention: both ways of packing are the formula, and our kernels are it too, dropout and gradients included.

The kernels run on a GPU, or on a CPU in Triton's interpreter: where Triton is installed and TRITON_INTERPRET=1 is set.
"""

import os

import pytest
import torch
from torch import Tensor

from hardtail.models.attention import HAS_TRITON, attend, fused, pays, rounds

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
runs = HAS_TRITON and (torch.cuda.is_available() or os.environ.get("TRITON_INTERPRET") == "1")
kernels = pytest.mark.skipif(not runs, reason="there is neither a GPU nor Triton's interpreter")


def formula(query: Tensor, packed: Tensor, heads: int, factor: Tensor | float = 1.0) -> Tensor:
    """softmax(q·kᵀ/√E)·v, head by head; `factor` is what dropout multiplies the probabilities by."""
    parts = (query, *packed.chunk(2, -1))
    q, k, v = (part.reshape(*part.shape[:2], heads, -1).transpose(1, 2) for part in parts)
    probability = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1) * factor
    return (probability @ v).transpose(1, 2).flatten(-2)


def inputs(queries: int, keys: int, heads: int, head: int, kind: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    """A query tensor, keys and values side by side, and a gradient."""
    generator = torch.Generator().manual_seed(0)
    shapes = (2, queries, heads * head), (2, keys, 2 * heads * head), (2, queries, heads * head)
    query, packed, gradient = (torch.randn(shape, generator=generator).to(DEVICE, kind) for shape in shapes)
    return query.requires_grad_(), packed.requires_grad_(), gradient


def test_both_packings_are_the_formula() -> None:
    query, packed, _ = inputs(5, 9, 2, 16, torch.float64)
    expected = formula(query, packed, 2)
    torch.testing.assert_close(attend(packed, query, 2, 0.0), expected)
    everything = torch.cat([torch.nn.functional.pad(query, (0, 0, 0, 4)), packed], -1)
    torch.testing.assert_close(attend(everything, None, 2, 0.0)[:, :5], expected)


def test_long_sequences_in_bf16_are_left_to_torch() -> None:
    short, long = [(60, 32), (99, 64), (163, 32)], [(884, 64), (200, 64)]
    assert all(pays(length, head, torch.bfloat16) for length, head in short)
    assert not any(pays(length, head, torch.bfloat16) for length, head in [*long, (60, 48)])
    assert all(pays(length, head, torch.float32) for length, head in short + long)
    assert not pays(60, 48, torch.float32)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")  # torch 2.11's compiler itself
def test_only_rounded_products_are_ours() -> None:
    """bf16, and float32 where tf32 is allowed; compiled code follows when the setting changes."""
    compiled = torch.compile(lambda x: x + rounds(x.dtype), backend="eager", fullgraph=True)
    before = torch.get_float32_matmul_precision()
    try:
        for setting, expected in [("high", 1), ("highest", 0), ("high", 1)]:
            torch.set_float32_matmul_precision(setting)
            assert rounds(torch.float32) == expected
            assert compiled(torch.zeros(1)).item() == expected
            assert rounds(torch.bfloat16)
            assert not rounds(torch.float64)
    finally:
        torch.set_float32_matmul_precision(before)
        torch.compiler.reset()


def kept(queries: int, keys: int, heads: int, head: int, seed: Tensor, dropout: float, batch: int = 2) -> Tensor:
    """Which probabilities dropout leaves: with equal scores and one-hot values, the output shows them."""
    left = torch.zeros(batch, heads, queries, keys, device=DEVICE)
    query = torch.zeros(batch, queries, heads * head, device=DEVICE)
    for first in range(0, keys, head):
        n = min(head, keys - first)
        value = torch.zeros(batch, keys, heads, head, device=DEVICE)
        value[:, range(first, first + n), :, range(n)] = 1.0
        packed = torch.cat([torch.zeros(batch, keys, heads * head, device=DEVICE), value.flatten(2)], -1)
        shown = fused(packed, query, seed, heads, dropout)[0].view(batch, queries, heads, head).transpose(1, 2)
        left[..., first : first + n] = (shown[..., :n] > 0).float()
    return left


UNEQUAL = {"forward": (128, 64, 8, 1), "queries": (128, 32, 8, 1), "keys": (32, 128, 4, 1)}
"""Tiles in which each kernel draws dropout by other steps."""


@kernels
@pytest.mark.parametrize(("held", "held_backward"), [(10**6, 10**6), (10**6, 0), (0, 0), (0, -1)])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize(("queries", "keys", "heads", "head"), [(9, 21, 2, 16), (70, 131, 3, 32), (33, 99, 2, 64)])
def test_kernels_are_the_formula(
    queries: int,
    keys: int,
    heads: int,
    head: int,
    dropout: float,
    held: int,
    held_backward: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those that hold all keys of a head, and those that walk over them, in equal and in unequal tiles."""
    if held_backward < 0:
        monkeypatch.setattr("hardtail.models.kernels.attention.LOOPING", {4: UNEQUAL})
    monkeypatch.setattr("hardtail.models.kernels.attention.HELD", held)
    monkeypatch.setattr("hardtail.models.kernels.attention.HELD_BACKWARD", {4: held_backward})
    query, packed, gradient = inputs(queries, keys, heads, head, torch.float32)
    seed = torch.tensor([5], dtype=torch.int32, device=DEVICE)
    factor: Tensor | float = 1.0
    if dropout:
        left = kept(queries, keys, heads, head, seed, dropout)
        assert left.mean().item() == pytest.approx(1 - dropout, abs=4 * (dropout / left.numel()) ** 0.5)
        factor = left.double() / (1 - dropout)
    out = fused(packed, query, seed, heads, dropout)[0]
    d_query, d_packed = torch.autograd.grad(out, (query, packed), gradient)

    exact_query, exact_packed = query.detach().double(), packed.detach().double()
    exact_query.requires_grad_()
    exact_packed.requires_grad_()
    exact = formula(exact_query, exact_packed, heads, factor)
    expected = torch.autograd.grad(exact, (exact_query, exact_packed), gradient.double())
    tolerance = 3e-3 if DEVICE.type == "cuda" else 1e-5  # a GPU multiplies float32 in tf32 here
    for ours, theirs in zip((out, d_query, d_packed), (exact, *expected), strict=True):
        assert ((ours - theirs).norm() / theirs.norm()).item() < tolerance


@kernels
def test_the_kernels_keep_the_operator_contract() -> None:
    """Shapes under the compiler, registration of gradients, no hidden mutation; queries packed with the rest too."""
    seed = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    query, packed, _ = inputs(7, 20, 2, 16, torch.float32)
    torch.library.opcheck(fused, (packed, query, seed, 2, 0.0))
    torch.library.opcheck(fused, (torch.randn(2, 20, 96, device=DEVICE, requires_grad=True), None, seed, 2, 0.25))


@pytest.mark.skipif(not (HAS_TRITON and torch.cuda.is_available()), reason="there is no GPU")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float32])
def test_gpu_replays_draw_another_dropout(kind: torch.dtype) -> None:
    """A captured, compiled step must not drop the same probabilities for ever."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    packed = torch.randn(4, 99, 3 * 128, device=DEVICE, dtype=kind)
    compiled = torch.compile(lambda: attend(packed, None, 2, 0.5), dynamic=False)
    try:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        with torch.cuda.stream(stream):
            compiled()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            out = compiled()
        seen: list[Tensor] = []
        for _ in range(3):
            graph.replay()
            seen.append(out.clone())
    finally:
        torch.set_float32_matmul_precision(before)
        torch.compiler.reset()
    assert not torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[1], seen[2])
