"""Only cells that may be hidden are predicted: the same training as predicting all answer cells."""

import numpy as np
import pytest
import torch

import hardtail
from hardtail.core.types import Instances
from hardtail.models.transformer import Shape, Transformer
from hardtail.schemes import Corpus, Papl, Puma, Random, Scheme
from hardtail.schemes.base import Rows
from hardtail.schemes.stages import Fixed
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.maze.task import Maze
from hardtail.training.gradient import Predicted
from hardtail.training.optimiser import AdamW
from hardtail.training.step import Step
from tests.test_schemes import now

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


def test_a_step_predicts_the_answer_as_one_piece_where_every_cell_can_be_hidden() -> None:
    """A piece of each sequence is a view; cells that are picked out one by one are copies."""
    task = hardtail.task("addition", digits=5)
    corpus = Corpus.on(torch.device("cpu"), task.sample(8, "natural", seed=0), task.vocabulary.mask_id)
    view = Random().corrupt({}, corpus, 4, now(0))
    assert isinstance(view.at_BA, slice)
    assert Predicted(corpus).at(view) is view.at_BA


def test_only_cells_that_may_be_hidden_are_predicted() -> None:
    task = Maze(size=3)
    corpus = Corpus.on(torch.device("cpu"), task.sample(5, "natural", seed=1), task.vocabulary.mask_id)
    predicted, rows = Predicted(corpus), corpus.rows(torch.tensor([3, 1]))
    assert isinstance(rows, Rows)
    view = rows.hide(rows.maskable_BA, corpus)
    at_BK = predicted.at(view)
    most = int(corpus.maskable_NA.sum(dim=1).max())
    assert isinstance(at_BK, torch.Tensor)
    assert at_BK.shape == (2, most)
    spread_BAV = predicted.spread(at_BK[..., None].float(), view)
    for row in range(2):
        for cell, place in enumerate(rows.at_BA[row].tolist()):
            if rows.maskable_BA[row, cell]:
                assert spread_BAV[row, cell, 0] == place
            else:
                assert spread_BAV[row, cell, 0] in (0, place)
    whole = Addition(digits=4)
    every = Predicted(Corpus.on(torch.device("cpu"), whole.sample(3, "natural", seed=1), whole.vocabulary.mask_id))
    assert every.cell_NK is None
