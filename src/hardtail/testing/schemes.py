"""The contract of a scheme: `check_scheme(MyScheme())` tests yours exactly as ours are tested.

Shapes: B batch, L sequence, A answer cells, V vocabulary.
"""

import json
from dataclasses import fields
from typing import Any

import torch
from torch import Tensor

from hardtail.core.describe import describe
from hardtail.core.noise import Moment
from hardtail.core.seeds import Streams
from hardtail.schemes.base import Carried, Corpus, Scheme, View
from hardtail.tasks.base import Task
from hardtail.tasks.named import make_task
from hardtail.testing.host import forbid_host_reads

BATCH, STEPS = 16, 12


def check_scheme(scheme: Scheme, task: Task | None = None) -> None:
    """Everything that a training step relies on, over a few steps on problems of `task`, by default short sums."""
    task = task or make_task("addition", digits=8)
    instances = task.sample(5 * BATCH, Streams(7).named("contract/scheme"))
    corpus = Corpus.on(torch.device("cpu"), instances, task.vocabulary.mask_id, task.order_names[0])
    json.dumps(describe(scheme))  # its recipe is kept as JSON
    first, again, other = (_run(scheme, corpus, task.vocabulary.size, seed) for seed in (1, 1, 2))
    assert _same(first, again), "the same seed gives another batch, loss or state"
    assert not _same(first, other), "another seed gives the same batches"


def _run(scheme: Scheme, corpus: Corpus, vocabulary: int, seed: int) -> list[Tensor]:
    """Run a few steps and return every tensor that they gave."""
    found: list[Tensor] = []
    state = scheme.begin(corpus, BATCH, _moment(-1, seed))
    assert all(isinstance(tensor, Tensor) for tensor in state.values()), "begin does not return tensors by name"
    held = _storage(state)
    for step in range(STEPS):
        now = _moment(step, seed)
        with torch.no_grad(), forbid_host_reads("corrupt"):
            view = scheme.corrupt(state, corpus, BATCH, now)
        assert isinstance(view, View), "corrupt does not return a View"
        _check_view(view, corpus)
        generator = torch.Generator().manual_seed(step)
        logits_BAV = torch.randn((*view.gold_BA.shape, vocabulary), generator=generator).requires_grad_()
        loss = _check_loss(scheme, logits_BAV, view)
        before = _tensors(view)
        with torch.no_grad(), forbid_host_reads("advance"):
            scheme.advance(state, logits_BAV.detach(), view, corpus, now)
        assert _same(before, _tensors(view)), "advance changes the batch that was trained on"
        assert _storage(state) == held, "the scheme's state is not changed in place; a captured step would not see it"
        found += [*before, loss, *(tensor.clone() for tensor in state.values())]
    return found


def _storage(state: Carried) -> dict[str, tuple[int, torch.Size, torch.dtype]]:
    return {name: (tensor.data_ptr(), tensor.shape, tensor.dtype) for name, tensor in state.items()}


def _moment(step: int, seed: int) -> Moment:
    return Moment(seed, torch.tensor(step), STEPS)


def _check_view(view: View, corpus: Corpus) -> None:
    rows = corpus.rows(view.row_B)
    assert view.hidden_BA.shape == rows.maskable_BA.shape, "hidden_BA is not [batch, answer cells]"
    assert view.hidden_BA.dtype == torch.bool, "hidden_BA is not boolean"
    assert torch.equal(view.gold_BA, rows.gold_BA), "gold_BA is not the right answer"
    assert not (view.hidden_BA & ~rows.maskable_BA).any(), "a cell that is never hidden is hidden"
    assert view.open_BA.any(), "every cell of a whole batch shows its gold token"
    shown = rows.hide(view.hidden_BA, corpus)
    if view.written_BA is not None:
        token_BA = view.tokens_BL.gather(1, rows.at_BA)
        assert not (view.written_BA & (view.hidden_BA | ~rows.maskable_BA)).any(), "a written cell cannot be written"
        assert not (view.written_BA & (token_BA == corpus.mask_id)).any(), "a written cell shows the mask"
        shown = shown.with_tokens(view.written_BA, token_BA)
    assert torch.equal(view.tokens_BL, shown.tokens_BL), "the tokens are not the gold ones with the hidden cells masked"


def _check_loss(scheme: Scheme, logits_BAV: Tensor, view: View) -> Tensor:
    with forbid_host_reads("loss"):
        loss = scheme.loss(logits_BAV, view)
    assert isinstance(loss, Tensor), "the loss is not a tensor"
    assert loss.shape == (), "the loss is not a scalar"
    assert loss.requires_grad, "the loss does not depend on the logits"
    assert loss.dtype == torch.float32, "the loss is not float32"
    assert loss.isfinite(), "the loss is not finite"
    assert scheme.loss(logits_BAV.detach().bfloat16(), view).dtype == torch.float32, "bf16 logits do not give float32"
    (gradient_BAV,) = torch.autograd.grad(loss, logits_BAV)
    moved_BA = (gradient_BAV != 0).any(dim=-1)
    assert gradient_BAV.isfinite().all(), "a gradient is not finite"
    assert not (moved_BA & ~view.open_BA).any(), "a cell that shows its gold token has a gradient"
    assert moved_BA.any(), "no cell has a gradient"
    return loss.detach()


def _tensors(view: View) -> list[Tensor]:
    values: list[Any] = [getattr(view, item.name) for item in fields(view)]
    return [value.clone() for value in values if isinstance(value, Tensor)]


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    return len(one) == len(other) and all(map(torch.equal, one, other))
