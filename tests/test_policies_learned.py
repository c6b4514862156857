"""Heads and planners on frozen models, and the policies that ask them, against slow references.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail.core.errors import HardtailError
from hardtail.core.seeds import Streams
from hardtail.decoding.loop import decode
from hardtail.measuring.subject import Subject
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.learned import TILE, Planned, Suspects
from hardtail.policies.orders import Logical
from hardtail.policies.parallel import Threshold
from hardtail.schemes.base import Corpus, Rows
from hardtail.testing import check_policy
from hardtail.training.heads import Agreeing, Fit, InOrder, Written, fitted
from tests.decoding_toys import MASK, TOY, Row, best, problems, same_trace

TASK = hardtail.task("addition", digits=4)
SIZE, MASK_ID = TASK.vocabulary.size, TASK.vocabulary.mask_id


def by_place(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
    """The middle cells first, as in the order `zigzag`."""
    return -(torch.arange(at_BA.shape[1]) - at_BA.shape[1] // 2).abs().float().expand(at_BA.shape)


def test_a_planner_that_knows_the_order_decodes_in_it() -> None:
    instances = problems(40)
    told, known = decode(TOY, instances, Planned(by_place)), decode(TOY, instances, Logical("zigzag"))
    ranks = np.abs(np.arange(9) - 4)
    for trace in (told, known):
        for i in range(len(instances)):
            cells = trace.cell_NT[i][trace.happened_NT[i]]
            assert (np.diff(ranks[cells]) >= 0).all()
    check_policy(Planned(by_place))


@pytest.mark.parametrize("k", [2, 9])
def test_suspects_are_looked_at_alone(k: int) -> None:
    instances = problems(30)
    policy = Suspects(head=by_place, k=k, rounds=4, p=0.3)
    trace = decode(TOY, instances, policy)
    repaired = 0
    assert trace.passes_N is not None
    for i in range(len(instances)):
        row, passes = Row(instances, i), 0
        while hidden := row.hidden():
            row.step()
            passes += 1
            row.write([cell for cell in hidden if row.top(cell) >= 0.3] or best(hidden, row.top))
        for _ in range(4 if row.maskable else 0):
            new: dict[int, int] = {}
            suspects = sorted(row.maskable, key=lambda cell: (-abs(cell - 4), cell))[:k]
            for cell in suspects:
                alone_L = row.tokens_L.copy()
                alone_L[row.at_A[cell]] = MASK
                new[cell] = int(row.look(alone_L)[cell].argmax())
            differs = {cell: token for cell, token in new.items() if token != row.tokens_L[row.at_A[cell]]}
            passes += 1 + len(suspects) + bool(differs)
            if not differs:
                break
            repaired += 1
            for cell, token in differs.items():
                row.tokens_L[row.at_A[cell]] = token
        assert trace.answer_NA[i].tolist() == row.tokens_L[row.at_A].tolist()
        assert trace.passes_N[i] == passes
    assert repaired
    check_policy(policy)


def test_suspects_that_agree_cost_one_round() -> None:
    steady = Function(lambda tokens_BL, at_BA: torch.eye(8)[at_BA % 7] * 20, MASK)
    instances = problems(20)
    draft, asked = decode(steady, instances, Threshold()), decode(steady, instances, Suspects(head=by_place, k=3))
    assert draft.passes_N is not None
    assert asked.passes_N is not None
    np.testing.assert_array_equal(draft.answer_NA, asked.answer_NA)
    cells_N = instances.maskable_NA.sum(axis=1)
    np.testing.assert_array_equal(asked.passes_N - draft.passes_N, np.where(cells_N > 0, 1 + np.minimum(cells_N, 3), 0))


def subject() -> Subject:
    model = Transformer(Shape(layers=1, heads=2, width=32, vocab_size=SIZE, seq_len=TASK.seq_len))
    model.initialise(torch.Generator().manual_seed(1))
    return Subject(TASK, ModelDenoiser(model, MASK_ID), "tiny")


def some_rows() -> tuple[Rows, Tensor]:
    instances = TASK.sample(32, Streams(5).named("test/heads"))
    corpus = Corpus.on(torch.device("cpu"), instances, MASK_ID, "lsb")
    assert corpus.rank_NA is not None
    return corpus.rows(torch.arange(32)), corpus.rank_NA


def test_lessons_say_what_is_true() -> None:
    rows, rank_BA = some_rows()
    denoiser, draw = subject().denoiser, torch.Generator().manual_seed(0)
    written = Written().lesson(denoiser, rows, None, draw)
    shown_BA = written.tokens_BL.gather(1, rows.at_BA)
    assert not (shown_BA == MASK_ID).any()
    assert torch.equal(written.label_BA.bool(), shown_BA == rows.gold_BA)
    assert (shown_BA == rows.gold_BA)[~written.judged_BA].all()
    assert not written.label_BA[written.judged_BA].all()  # an untrained model writes wrong tokens

    order = InOrder().lesson(denoiser, rows, rank_BA, draw)
    hidden_BA = order.tokens_BL.gather(1, rows.at_BA) == MASK_ID
    assert torch.equal(hidden_BA, order.judged_BA)
    for hidden_A, rank_A, label_A in zip(hidden_BA, rank_BA, order.label_BA, strict=True):
        lowest = min(rank_A[hidden_A].tolist())
        assert [bool(label) for label in label_A[hidden_A]] == [rank == lowest for rank in rank_A[hidden_A].tolist()]

    agreeing = Agreeing().lesson(denoiser, rows, None, draw)
    assert (agreeing.judged_BA.sum(dim=1) == 1).all()
    for i in range(32):
        (cell,) = agreeing.judged_BA[i].nonzero()[:, 0].tolist()
        alone_1L = rows.tokens_BL[i : i + 1].clone()
        alone_1L[0, rows.at_BA[i, cell]] = MASK_ID
        said = [
            int(denoiser.logits(tokens_1L, rows.at_BA[i : i + 1])[0, cell].argmax())
            for tokens_1L in (agreeing.tokens_BL[i : i + 1], alone_1L)
        ]
        assert bool(agreeing.label_BA[i, cell]) == (said[0] == said[1])


def test_a_head_learns_and_its_model_stays_as_it_is() -> None:
    tiny = subject()
    assert isinstance(tiny.denoiser, ModelDenoiser)
    before = {name: tensor.clone() for name, tensor in tiny.denoiser.model.state_dict().items()}
    how = Fit(problems=200, steps=150, batch=32, rate=0.01)
    head, losses = fitted(tiny, InOrder(), how)
    assert sum(losses[-20:]) < 0.8 * sum(losses[:20])
    again, _ = fitted(tiny, InOrder(), how)
    for one, other in zip(head.layers.parameters(), again.layers.parameters(), strict=True):
        assert torch.equal(one, other)
    assert all(torch.equal(before[name], tensor) for name, tensor in tiny.denoiser.model.state_dict().items())
    instances = TASK.sample(16, Streams(6).named("test/heads"))
    planned = decode(tiny.denoiser, instances, Planned(head))
    assert same_trace(planned, decode(tiny.denoiser, instances, Planned(head)))


def test_a_head_needs_features_and_an_order() -> None:
    with pytest.raises(HardtailError, match="not our own transformer"):
        fitted(Subject(TASK, Function(lambda tokens, at: tokens, MASK_ID), "mine"), Written())
    rows, _ = some_rows()
    with pytest.raises(HardtailError, match="no logical order"):
        InOrder().lesson(subject().denoiser, rows, None, torch.Generator())


def test_what_a_head_says_of_a_row_does_not_depend_on_other_rows() -> None:
    """It is asked in tiles of one size, as matrix products round differently at others."""
    asked: list[int] = []

    def head(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        asked.append(len(tokens_BL))
        return by_place(tokens_BL, at_BA)

    decode(TOY, problems(70), Suspects(head=head, k=2, rounds=4, p=0.3))
    assert set(asked) == {TILE}
