"""Groups that a model chooses itself, against planted dependences and a slow reference.

Shapes: B batch, L sequence, A answer cells, D width, V vocabulary.
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

import hardtail
from hardtail.core.errors import HardtailError
from hardtail.core.seeds import Streams, below
from hardtail.decoding.loop import decode
from hardtail.measuring.influence import (
    DRAWS,
    WAYS,
    By,
    apart,
    attention,
    dependence,
    dependents,
    influence,
    with_groups,
)
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.denoiser import Function
from hardtail.models.transformer import Block, Shape, Transformer, looked_up
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.ladder import Ladder
from hardtail.policies.named import policy_named
from tests.decoding_toys import CELLS, MASK, TOY, VOCAB, problems


def test_cells_that_depend_on_each_other_are_apart() -> None:
    chain_AA = np.eye(33, k=1) + 0.5 * np.eye(33, k=2)
    for parts in (3, 4):
        groups = apart(chain_AA, parts)
        assert sorted(set(groups)) == [str(part) for part in range(parts)]
        assert max(map(groups.count, set(groups))) <= -(-33 // parts)
        near = sum(groups[i] == groups[i + 1] for i in range(32)) + sum(groups[i] == groups[i + 2] for i in range(31))
        assert near <= 2, groups  # a comb has none, a random division about 20


def test_the_division_is_as_good_as_the_best_of_all() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        dependence_AA = rng.random((8, 8)) ** 4

        def inside(groups: str, dependence_AA: np.ndarray = dependence_AA) -> float:
            return float(sum(dependence_AA[i, j] for i, j in product(range(8), repeat=2) if groups[i] == groups[j]))

        best = min(inside("".join(signs)) for signs in product("01", repeat=8) if signs.count("0") == 4)
        assert inside(apart(dependence_AA, 2)) <= 1.1 * best


def test_a_planted_dependence_is_found_by_influence() -> None:
    """The toy model says something about a cell only if the third cell after it is shown."""
    instances = problems(200)
    instances = replace(instances, tokens_NL=np.zeros_like(instances.tokens_NL))

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        shown_BA = (tokens_BL.gather(1, at_BA) != MASK).float().roll(-3, dims=1)
        first_V = torch.nn.functional.one_hot(torch.tensor(0), VOCAB)
        return shown_BA[..., None] * first_V

    found_AA = influence(Function(logits, MASK), instances, Streams(0).named("test"))
    strongest_A = found_AA.argmax(axis=1)
    assert strongest_A.tolist() == [(cell + 3) % CELLS for cell in range(CELLS)]


def test_hiding_is_its_definition() -> None:
    """Against loops over draws, problems and pairs of cells; cells that are never hidden depend on nothing."""
    instances = problems(5)
    at_NA, maskable_NA = instances.answer_at_NA, instances.maskable_NA
    drawn = below(Streams(3).named("test").keys(DRAWS * maskable_NA.size), 2).reshape(DRAWS, *maskable_NA.shape) == 0
    margin: dict[tuple[int, int, int], float] = {}
    for r, i in product(range(DRAWS), range(5)):
        hidden_A = drawn[r, i] & maskable_NA[i]
        tokens_L = instances.tokens_NL[i].astype(np.int64)
        tokens_L[at_NA[i][hidden_A]] = MASK
        said_AV = TOY.logits(torch.from_numpy(tokens_L)[None], torch.from_numpy(at_NA[i])[None])[0].numpy()
        for cell in np.flatnonzero(hidden_A).tolist():
            gold = int(instances.answer_NA[i, cell])
            margin[r, i, cell] = float(said_AV[cell, gold] - np.delete(said_AV[cell], gold).max())
    wanted_AA = np.zeros((CELLS, CELLS))
    for one, two in product(range(CELLS), repeat=2):
        means = {True: [0.0], False: [0.0]}
        for (r, i, cell), own in margin.items():
            if cell == one and maskable_NA[i, two]:
                every = [margin[other, i, one] for other in range(DRAWS) if (other, i, one) in margin]
                means[bool(drawn[r, i, two])].append(own - sum(every) / len(every))
        together, alone = (sum(means[hidden]) / max(len(means[hidden]) - 1, 1) for hidden in (True, False))
        wanted_AA[one, two] = 0.0 if one == two else abs(alone - together)
    found_AA = influence(TOY, instances, Streams(3).named("test"))
    np.testing.assert_allclose(found_AA, wanted_AA, atol=1e-5)


@pytest.mark.parametrize("parts", [0, CELLS + 1, 99])
def test_groups_that_cells_cannot_be_divided_into(parts: int) -> None:
    with pytest.raises(HardtailError, match=f"{parts} groups of 9 cells; give at least 1, and at most 9"):
        apart(np.zeros((CELLS, CELLS)), parts)
    assert apart(np.zeros((CELLS, CELLS)), CELLS) == "012345678"


def test_attention_is_that_of_the_model() -> None:
    model = Transformer(Shape(layers=2, heads=2, width=8, vocab_size=VOCAB, seq_len=8 + CELLS))
    model.initialise(torch.Generator().manual_seed(0)).eval()
    with torch.no_grad():
        for block in model.blocks:
            assert isinstance(block, Block)
            block.qkv.weight.mul_(40)  # far from uniform
    instances = problems(3)
    total_AA = np.zeros((CELLS, CELLS))
    for row in range(3):
        at = instances.answer_at_NA[row]
        x_LD = (
            looked_up(torch.from_numpy(instances.tokens_NL[row]).long(), model.embed.weight)
            + model.position.weight[:17]
        )
        for block in model.blocks:
            assert isinstance(block, Block)
            query, key, _ = block.qkv(block.norm_attention(x_LD)).detach().double().split(8, dim=-1)
            heads = [query[:, part] @ key[:, part].T / 2.0 for part in (slice(0, 4), slice(4, 8))]
            strongest = torch.stack([head.softmax(dim=-1) for head in heads]).amax(dim=0).numpy()
            total_AA += strongest[np.ix_(at, at)]
            x_LD = block(x_LD[None])[0]
    np.fill_diagonal(total_AA, 0)
    np.testing.assert_allclose(attention(model, instances), total_AA / 3, rtol=1e-4)


def test_a_shipped_model_keeps_neighbours_apart() -> None:
    groups = apart(dependence(load_subject("zoo:addition-papl"), n=16), 3)
    assert sum(one == other for one, other in pairwise(groups)) <= 2


def test_a_model_that_hides_its_attention_is_asked_by_hiding() -> None:
    task = hardtail.task("addition", digits=4)
    subject = Subject(task, Function(lambda tokens, at: torch.zeros(*at.shape, task.vocabulary.size), 12), "mine")
    with pytest.raises(HardtailError, match="hide=influence needs logits alone"):
        dependence(subject)
    asked_AA = dependence(subject, "influence", n=4)
    assert sorted(set(apart(asked_AA, 2))) == ["0", "1"]
    with pytest.raises(HardtailError, match="6 groups of 5 cells"):
        apart(asked_AA, 6)


def test_a_check_asks_the_model_for_its_groups_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    few = partial(dependence, n=4)

    def noted(subject: Subject, by: By) -> NDArray[np.float64]:
        asked.append(by)
        return few(subject, by)

    monkeypatch.setattr("hardtail.measuring.influence.dependence", noted)
    subject = load_subject("zoo:addition-random")
    names = [f"check,hide={by},rounds=1" for by in WAYS]
    table = hardtail.evaluate(subject, policies=names, strata=["natural", "chain>=28"], n=3)
    assert [record.policy for record in table.accuracies] == names * 2
    assert asked == list(WAYS)
    for by in WAYS.values():
        groups = apart(few(subject, by), 3)
        written = with_groups(Ladder((Top1(), policy_named(f"check,hide={by}"))), subject)
        assert written == Ladder((Top1(), Check(hide="given", groups=groups)))
    assert with_groups(Ladder(), subject) == Ladder()


def test_the_region_of_a_doubtful_cell_is_what_depends_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a chain where each cell waits for the next, and a little for the one after that."""
    chain_AA = np.eye(6, k=1) + 0.5 * np.eye(6, k=2)
    assert dependents(chain_AA, 2) == ((), (0,), (1, 0), (2, 1), (3, 2), (4, 3))
    assert dependents(chain_AA, 1) == ((), (0,), (1,), (2,), (3,), (4,))
    monkeypatch.setattr("hardtail.measuring.influence.dependence", lambda subject, by: chain_AA)
    settled = with_groups(policy_named("check,hide=attention,then=region,reach=1"), load_subject("zoo:addition-puma"))
    assert isinstance(settled, Check)
    assert (settled.hide, settled.regions) == ("given", dependents(chain_AA, 2))


def test_groups_that_nobody_chose_are_refused() -> None:
    with pytest.raises(HardtailError, match="a model chooses the groups, and no model has been asked"):
        decode(TOY, problems(2), Check(hide="attention"))
