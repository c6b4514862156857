"""The ladder over policies, against a slow reference.

Shapes: N instances, A answer cells.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit, Policy, State
from hardtail.policies.check import Check
from hardtail.policies.confidence import Noisy, Top1
from hardtail.policies.ladder import Ladder
from hardtail.policies.parallel import Threshold
from hardtail.policies.remask import LeaveOneOut
from tests.decoding_toys import MASK, TOY, VOCAB, Row, problems
from tests.test_policies_check import Story, events_of, groups_of


def energy(story: Story, groups: list[list[int]]) -> float:
    """Look at each group hidden, write it back, and add up how unlikely it is."""
    total = 0.0
    for group in groups:
        held = story.look(group)
        total -= sum(float(np.log(story.row.p_AV[cell, token])) for cell, token in held.items())
        story.put(held)
        story.note(group)
    return total


def slow_ladder(row: Row, limit: float) -> tuple[Story, int, int]:
    """`threshold`, then `check,rounds=2`, then `top1`, with energies over a comb of two; the rung that gave the answer
    and the last one tried."""
    story, check = Story(row), Check(rounds=2)
    found: list[tuple[float, int, list[int]]] = []
    for rung in range(3):
        if rung == 0:
            story.fill()
        elif rung == 1:
            quiet, groups = 0, groups_of(row.maskable, check)
            for group in groups * 2:
                held = story.look(group)
                story.note(group)
                quiet = quiet + 1 if all(row.tokens_L[row.at_A[cell]] == held[cell] for cell in group) else 0
                if quiet == len(groups):
                    break
        else:
            story.hide(row.maskable)
            story.fill(p=2.0)
        found.append((energy(story, [row.maskable[::2], row.maskable[1::2]]), rung, story.tokens))
        if found[-1][0] <= limit:
            return story, rung, rung
    _, rung, tokens = min(found)
    if changed := [cell for cell, old, new in zip(row.maskable, story.tokens, tokens, strict=True) if old != new]:
        story.look(changed)
        story.put(dict(zip(row.maskable, tokens, strict=True)))
        story.note(changed)
    return story, rung, 2


@pytest.mark.parametrize("limit", [0.0, 6.0, 20.0])
def test_a_ladder_is_its_definition(limit: float) -> None:
    instances = problems(50)
    policy = Ladder((Threshold(), Check(rounds=2), Top1()), limit=limit, hide="comb", parts=2, splits=1)
    trace = decode(TOY, instances, policy)
    rungs: set[tuple[int, int]] = set()
    assert trace.passes_N is not None
    for i in np.flatnonzero(instances.maskable_NA.sum(axis=1) > 1).tolist():
        story, rung, tried = slow_ladder(Row(instances, i), limit)
        assert events_of(trace, i) == story.events
        np.testing.assert_array_equal(story.row.tokens_L[story.row.at_A], trace.answer_NA[i])
        assert trace.passes_N[i] == len(story.row.history)
        assert (trace.notes["rung"][i], trace.notes["tried"][i]) == (rung, tried)
        rungs.add((rung, tried))
    wanted = {0.0: {(0, 2), (1, 2), (2, 2)}, 6.0: {(0, 0), (1, 2), (2, 2)}, 20.0: {(0, 0), (1, 1)}}
    assert wanted[limit] <= rungs


def test_an_answer_that_the_denoiser_finds_impossible_is_still_its_answer() -> None:
    def fickle(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        """Rules out token 5 where something is written, and everything else where nothing is."""
        fresh_B11 = (tokens_BL.gather(1, at_BA) == MASK).all(dim=1)[:, None, None]
        five_V = torch.arange(VOCAB) == 5
        return torch.where(fresh_B11 == five_V, 0.0, -torch.inf).expand(*at_BA.shape, -1)

    instances = problems(8)
    instances = replace(instances, maskable_NA=np.ones_like(instances.maskable_NA))
    trace = decode(Function(fickle, MASK), instances, Ladder((Threshold(), Threshold())))
    assert (trace.answer_NA == 5).all()
    assert np.isinf(trace.notes["energy"]).all()


def test_a_trusted_draft_costs_its_proof() -> None:
    instances = problems(30)
    ladder, draft = (decode(TOY, instances, policy) for policy in (Ladder(limit=1e9), Threshold()))
    np.testing.assert_array_equal(ladder.answer_NA, draft.answer_NA)
    assert ladder.passes_N is not None
    assert draft.passes_N is not None
    np.testing.assert_array_equal(ladder.passes_N - draft.passes_N, 4 * instances.maskable_NA.any(axis=1))


@pytest.mark.parametrize("last", [Noisy(t=0.5), Top1(), Check(rounds=1)], ids=str)
@pytest.mark.parametrize("limit", [0.0, 12.0])
def test_trying_again_is_another_rung_of_the_same_kind(last: Policy, limit: float) -> None:
    instances = problems(40)
    short, long = Ladder((Threshold(), last), limit, again=2), Ladder((Threshold(), last, last, last), limit)
    one, two = decode(TOY, instances, short), decode(TOY, instances, long)
    np.testing.assert_array_equal(one.answer_NA, two.answer_NA)
    np.testing.assert_array_equal(one.passes_N, two.passes_N)
    for name in ("rung", "tried", "energy"):
        np.testing.assert_array_equal(one.notes[name], two.notes[name])
    assert all(events_of(one, i) == events_of(two, i) for i in range(len(instances)))
    assert one.notes["tried"].max() == 3
    assert short.steps(9, Commit()) == long.steps(9, Commit())


def test_noise_finds_answers_that_are_trusted_more() -> None:
    instances = problems(60)
    ladders = (Ladder((Top1(), Noisy(t=1.0)), 0.0, hide="comb", again=more) for more in (0, 5))
    once, often = (decode(TOY, instances, ladder) for ladder in ladders)
    assert (often.notes["energy"] <= once.notes["energy"]).all()
    assert (often.notes["energy"] < once.notes["energy"]).any()


def test_a_total_of_steps_is_that_of_one_try() -> None:
    """Each try of a row takes as many steps as its first, also in a ladder inside a ladder."""
    instances = problems(300)
    full = instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1)))
    flat = Ladder((Top1(), Noisy()), 0.0, hide="comb", parts=2, splits=1, again=2)
    for policy, passes in ((flat, 4 * (3 + 2)), (Ladder((Top1(), flat), 0.0, hide="comb", splits=1), 5 * (3 + 2) + 2)):
        trace = decode(TOY, full, policy, Decoding(Commit(steps=3)))
        assert trace.passes_N is not None
        assert set(trace.passes_N - passes) <= {0, 1, 2}, "in each ladder a better answer may be written again"


def test_further_looks_of_a_rung_count_for_its_own_rows() -> None:
    """Leave-one-out looks at every cell alone, which is counted for the rows that are on its rung and no others."""
    instances = problems(60)
    trace = decode(TOY, instances, Ladder((Threshold(), LeaveOneOut(rounds=1)), limit=8.0, hide="comb", splits=1))
    assert trace.passes_N is not None
    climbed_N = trace.notes["tried"] == 1
    assert climbed_N.any()
    assert not climbed_N.all()
    steps_N = np.array([len(set(trace.step_NT[i][trace.happened_NT[i]])) for i in range(len(trace))])
    extra_N = np.where(climbed_N, instances.maskable_NA.sum(axis=1), 0)
    enough_N = instances.maskable_NA.sum(axis=1) > 1  # a single cell leaves the second group empty
    np.testing.assert_array_equal((trace.passes_N - extra_N)[enough_N], steps_N[enough_N])


@dataclass(frozen=True)
class Hasty(Top1):
    """Says that it has nothing left to do while cells are hidden."""

    def finished(self, state: State) -> Tensor:
        return torch.ones_like(state.key_B, dtype=torch.bool)


def test_a_rung_is_judged_when_everything_is_written() -> None:
    """Not when its policy says that it has ended: the energy of a hidden cell would be that of the mask token."""
    instances = problems(30)
    hasty, patient = (decode(TOY, instances, Ladder((rung, Threshold()), limit=1e9)) for rung in (Hasty(), Top1()))
    np.testing.assert_array_equal(hasty.answer_NA, patient.answer_NA)
    np.testing.assert_array_equal(hasty.notes["energy"], patient.notes["energy"])
    assert events_of(hasty, 0) == events_of(patient, 0)
