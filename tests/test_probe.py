"""The probe that a run takes of itself: its NLL, and which cells are no more than guessed."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail import Streams
from hardtail.core.types import Instances
from hardtail.measuring.looking import Model
from hardtail.schemes.base import Corpus
from hardtail.tasks.addition.task import Addition
from hardtail.training.probe import CHUNK, Probe

TASK = hardtail.task("addition", digits=4)
VOCAB = TASK.vocabulary.size


def corpus(instances: Instances) -> Corpus:
    return Corpus.on(torch.device("cpu"), instances, TASK.vocabulary.mask_id)


def knows_all_but(instances: Instances, cells: list[int]) -> Model:
    """Probability 1 for every gold token, but for some cells, where all ten digits are alike."""
    prompt = instances.answer_at_NA[0, 0]
    gold = {row[:prompt].tobytes(): row[prompt:] for row in instances.tokens_NL}

    def model(tokens_BL: Tensor, at: Tensor | slice) -> Tensor:
        golds_BA = np.stack([gold[row.astype(np.uint8)[:prompt].tobytes()] for row in tokens_BL.numpy()])
        logits_BAV = torch.full((*golds_BA.shape, VOCAB), -100.0)
        logits_BAV.scatter_(2, torch.from_numpy(golds_BA).long()[..., None], 0.0)
        logits_BAV[:, cells, :10] = 0.0
        return logits_BAV

    return model


@pytest.mark.parametrize("cells", [[], [2], [1, 4]])
def test_cells_that_are_guessed_are_counted(cells: list[int]) -> None:
    """Over more than one chunk, the last one short."""
    instances = TASK.sample(CHUNK + 70, Streams(0).named("probe"))
    found = Probe(corpus(instances), VOCAB).of(knows_all_but(instances, cells))
    assert found.guessed == len(cells)
    assert found.nll == pytest.approx(len(cells) * math.log(10) / TASK.answer_len, rel=1e-5)


def test_only_hidden_cells_count() -> None:
    """A cell that is shown in some instances is judged by the others; one that is always the same cannot be guessed."""
    instances = TASK.sample(90, Streams(0).named("probe"))
    hidden_NA = np.ones((90, TASK.answer_len), dtype=np.bool_)
    hidden_NA[:, 3] = False
    hidden_NA[30:, 2] = False
    tokens_NL = instances.tokens_NL.copy()
    tokens_NL[:, instances.answer_at_NA[0, 0]] = 0  # the carry-out cell
    instances = replace(instances, maskable_NA=hidden_NA, tokens_NL=tokens_NL)
    found = Probe(corpus(instances), VOCAB).of(knows_all_but(instances, [0, 2, 3]))
    assert found.guessed == 1
    assert found.nll == pytest.approx((90 + 30) * math.log(10) / hidden_NA.sum(), rel=1e-5)


def test_what_is_the_same_everywhere_takes_no_guess() -> None:
    """Of a cell that one problem has, its token is known; of one that two have, what they have in common."""
    task = Addition(digits=4)
    for prompts, guessed in ((["1234+1111"], 0.0), (["1234+1111", "1235+1111"], math.log(2)), (["1234+1111"] * 2, 0.0)):
        corpus = Corpus.on(torch.device("cpu"), task.parse(prompts), task.vocabulary.mask_id)
        guess_A = Probe(corpus, task.vocabulary.size).guess_A
        assert float(guess_A.max()) == pytest.approx(guessed)
        assert int((guess_A > 0).sum()) == (guessed > 0)
