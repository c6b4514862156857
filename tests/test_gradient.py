"""Only cells that may be hidden are predicted: the same training as predicting all answer cells."""

import numpy as np
import pytest
import torch

from hardtail.core.types import Instances
from hardtail.models.transformer import Shape, Transformer
from hardtail.schemes import Corpus, Papl, Puma, Random, Scheme
from hardtail.schemes.stages import Fixed
from hardtail.training.gradient import Predicted
from hardtail.training.optimiser import AdamW
from hardtail.training.step import Step

LENGTH, ANSWER, VOCABULARY = 20, 9, 7


def corpus(*, fixed: bool) -> Corpus:
    """Answers of which 1 to 6 of 9 cells are ever hidden, other cells in each instance."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(2, VOCABULARY, (60, LENGTH), dtype=np.uint8)
    starts = np.full(60, 8, np.int32) if fixed else rng.integers(4, LENGTH - ANSWER, 60, dtype=np.int32)
    maskable = np.arange(ANSWER) < rng.integers(1, 7, (60, 1))
    maskable[0, :6] = True
    maskable = rng.permuted(maskable, axis=1)
    return Corpus.on(torch.device("cpu"), Instances(tokens, starts, maskable, maskable), 1)


def step(scheme: Scheme, data: Corpus) -> Step:
    model = Transformer(Shape(2, 2, 16, VOCABULARY, LENGTH)).initialise(torch.Generator().manual_seed(0))
    return Step(model.train(), scheme, data, AdamW(lr=3e-3, warmup=1, ema=0.9), batch=16, steps=50, seed=1)


@pytest.mark.parametrize("fixed", [True, False])
@pytest.mark.parametrize("scheme", [Random(), Papl(), Puma(stages=Fixed(3))], ids=["random", "papl", "puma"])
def test_the_same_training_as_with_all_cells(scheme: Scheme, fixed: bool) -> None:
    few, every = step(scheme, corpus(fixed=fixed)), step(scheme, corpus(fixed=fixed))
    every._predicted.cell_NK = None
    for _ in range(6):
        few()
        every()
        torch.testing.assert_close(few.loss, every.loss)
    assert torch.equal(few.seen.rank_KR, every.seen.rank_KR)
    torch.testing.assert_close(few.flat.weight_P, every.flat.weight_P, rtol=1e-3, atol=1e-5)


def test_as_many_cells_as_the_fullest_instance_needs() -> None:
    data = corpus(fixed=True)
    cell_NK = Predicted(data).cell_NK
    assert cell_NK is not None
    assert cell_NK.shape[1] == 6
    for maskable_A, cell_K in zip(data.maskable_NA, cell_NK.long(), strict=True):
        assert set(maskable_A.nonzero().flatten().tolist()) <= set(cell_K.tolist())
        assert len(set(cell_K.tolist())) == 6
