"""Checking what was written, against a slow reference.

Shapes: N instances, A answer cells, T events.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pytest
import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.subject import load_subject
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.ladder import Ladder
from hardtail.policies.named import policy_named
from hardtail.policies.orders import Logical
from hardtail.policies.parallel import Threshold
from hardtail.traces.states import hidden_before, visited
from tests.decoding_toys import CELLS, MASK, TOY, VOCAB, Row, best, problems, same_trace

Event = tuple[int, int, int]


@dataclass
class Story:
    """One row decoded in plain Python, with its events."""

    row: Row
    events: list[Event] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        return [int(self.row.tokens_L[self.row.at_A[cell]]) for cell in self.row.maskable]

    def note(self, cells: list[int]) -> None:
        step = len(self.row.history) - 1
        self.events += [(step, cell, int(self.row.tokens_L[self.row.at_A[cell]])) for cell in sorted(cells)]

    def hide(self, cells: list[int]) -> dict[int, int]:
        """Hide cells; return what was written there."""
        held = {cell: int(self.row.tokens_L[self.row.at_A[cell]]) for cell in cells}
        self.row.tokens_L[self.row.at_A[cells]] = MASK
        self.note(cells)
        return held

    def look(self, cells: list[int]) -> dict[int, int]:
        """Look with these cells hidden, write what the denoiser says; return what was written before."""
        held = self.hide(cells)
        self.row.step()
        self.row.write(cells)
        return held

    def look_at_all(self, cells: list[int], replace: bool) -> list[int]:
        """Look with nothing hidden, and write over every cell, if asked to what the denoiser says and otherwise what it
        was; return the cells that differ."""
        held = {cell: int(self.row.tokens_L[self.row.at_A[cell]]) for cell in cells}
        self.row.step()
        self.row.write(cells)
        differs = [cell for cell in cells if held[cell] != self.row.tokens_L[self.row.at_A[cell]]]
        if not replace:
            self.put(held)
        self.events += [(len(self.row.history) - 1, cell, MASK) for cell in cells]
        self.note(cells)
        return differs

    def put(self, tokens: dict[int, int]) -> None:
        for cell, token in tokens.items():
            self.row.tokens_L[self.row.at_A[cell]] = token

    def fill(self, p: float = 0.9) -> None:
        """By threshold."""
        while hidden := self.row.hidden():
            self.row.step()
            chosen = [cell for cell in hidden if self.row.top(cell) >= p] or best(hidden, self.row.top)
            self.row.write(chosen)
            self.note(chosen)


def groups_of(cells: list[int], policy: Check) -> list[list[int]]:
    parts = min(policy.parts, len(cells))
    if policy.hide == "none":
        return [cells] if cells else []
    if policy.groups and cells:
        found = [[cell for cell in cells if policy.groups[cell] == str(part)] for part in range(policy.parts)]
    elif policy.hide == "comb":
        found = [cells[part::parts] for part in range(parts)]
    else:
        found = [
            [cell for k, cell in enumerate(cells) if k * policy.parts // max(len(cells), policy.parts) == part]
            for part in range(parts)
        ]
    return found[::-1] if policy.sweep == "backward" else found


def slow_check(row: Row, policy: Check) -> tuple[Story, str]:
    """The story of a row, and how it ended."""
    story = Story(row)
    story.fill()
    answers: list[list[int]] = []
    quiet, power, groups = 0, 1, groups_of(row.maskable, policy)
    most = len(row.maskable) if policy.rounds is None else policy.rounds
    for number in range(1, most + 1):
        doubted: list[int] = []
        for group in groups:
            if policy.hide == "none":
                differs = story.look_at_all(group, policy.then == "replace")
            else:
                held = story.look(group)
                differs = [cell for cell in group if held[cell] != row.tokens_L[row.at_A[cell]]]
                if policy.then != "replace":
                    story.put(held)
                story.note(group)
            doubted += differs
            quiet = 0 if differs else quiet + 1
            if quiet == len(groups):
                return story, "settled"
        if answers and story.tokens == answers[-1]:
            return story, "circling"
        if number == power:
            answers.append(story.tokens)
            power *= 2
        if number == most:
            return story, "spent"
        if policy.then != "replace":
            reach = policy.reach if policy.then == "region" else 0
            story.hide([cell for cell in row.maskable if any(abs(cell - other) <= reach for other in doubted)])
            story.fill()
            quiet = 0
    return story, "nothing to do"


def in_order(events: Iterable[Event]) -> list[Event]:
    """Sorted within a step and kind of event."""
    return sorted(events, key=lambda event: (event[0], event[2] == MASK, event[1]))


def events_of(trace: Trace, i: int) -> list[Event]:
    """(step, cell, token) of every event."""
    columns = (array[i][trace.happened_NT[i]].tolist() for array in (trace.step_NT, trace.cell_NT, trace.token_NT))
    return in_order(zip(*columns, strict=True))


@pytest.mark.parametrize(
    "policy",
    [
        Check(),
        Check(sweep="backward", parts=2, rounds=6),
        Check(hide="block", parts=4, rounds=5),
        Check(then="refill", rounds=5),
        Check(then="region", reach=1, parts=2, rounds=4),
        Check(hide="given", groups="010221102", rounds=5),
        Check(hide="none"),
        Check(hide="none", then="refill", rounds=5),
    ],
    ids=str,
)
def test_a_check_is_its_definition(policy: Check) -> None:
    instances = problems(40)
    trace = decode(TOY, instances, policy)
    ends: list[str] = []
    assert trace.passes_N is not None
    for i in range(len(instances)):
        story, end = slow_check(Row(instances, i), policy)
        assert events_of(trace, i) == in_order(story.events)
        np.testing.assert_array_equal(story.row.tokens_L[story.row.at_A], trace.answer_NA[i])
        assert trace.passes_N[i] == len(story.row.history)
        assert trace.notes["settled"][i] == (end == "settled")
        ends.append(end)
    assert "settled" in ends
    assert {"circling", "spent"} & set(ends)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("hide=given", "hide=given needs groups"),
        ("groups=012", "hide=given needs groups"),
        ("hide=given,groups=0101", "every one of '012'"),
        ("hide=given,groups=012!", "every one of '012'"),
        ("hide=given,groups=012012", "has 6 signs, but answers have 9 cells"),
        ("hide=none,groups=012", "hide=given needs groups"),
        ("hide=none,parts=7", "hide=none with parts=7 and sweep=forward; it looks at the whole answer at once"),
        ("hide=none,sweep=backward", "hide=none with parts=3 and sweep=backward"),
    ],
)
def test_groups_that_do_not_fit_are_explained(fields: str, message: str) -> None:
    with pytest.raises(HardtailError, match=message):
        decode(TOY, problems(4), policy_named(f"check,{fields}"))


def test_a_look_at_the_whole_answer_is_one_step_of_a_round() -> None:
    """So answers as long as a trace can record are not refused for steps that are never taken."""
    whole, groups = Check(hide="none", rounds=5), Check(rounds=5)
    assert (whole.steps(9, Commit()), groups.steps(9, Commit())) == (9 + 5, 9 + 5 * 3)


def test_an_answer_that_comes_back_ends_the_check() -> None:
    """Two cells that each want to be what the other is not: hidden together, they change places for ever."""

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        token_BA = tokens_BL.gather(1, at_BA)
        wanted_BA = torch.where(token_BA[:, -1:] == 1, 2, 1).expand_as(token_BA).clone()
        wanted_BA[:, -1] = torch.where(token_BA[:, 0] == 1, 1, 2)
        return 9.0 * torch.nn.functional.one_hot(wanted_BA, VOCAB)

    instances = problems(200)
    full = instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1))[:4])
    trace = decode(Function(logits, MASK), full, Check(parts=CELLS))
    assert trace.passes_N is not None
    assert not trace.notes["settled"].any()
    assert (trace.notes["checks"] < CELLS * CELLS).all()  # long before its rounds are spent


@pytest.mark.parametrize("token", range(MASK))
def test_the_first_round_is_compared_with_nothing(token: int) -> None:
    """Whatever token it ends with everywhere, a second round follows in which nothing differs."""
    other = (token + 1) % MASK

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        hidden_BA = tokens_BL.gather(1, at_BA) == MASK
        wanted_B1 = torch.where(hidden_BA.all(dim=1, keepdim=True), other, token)
        return 9.0 * torch.nn.functional.one_hot(wanted_B1.expand_as(at_BA), VOCAB)

    instances = problems(200)
    full = instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1))[:2])
    trace = decode(Function(logits, MASK), full, Check())
    assert (trace.answer_NA == token).all()
    assert trace.notes["settled"].all()
    assert trace.notes["checks"].tolist() == [6, 6]


def test_a_look_without_hiding_sees_what_it_writes_over() -> None:
    """Within a step cells are hidden and written, so for a reader of the trace nothing was hidden when it looked."""
    trace = decode(TOY, problems(20), Check(hide="none", rounds=2))
    hidden_NSA, drafts = hidden_before(trace), decode(TOY, problems(20), Threshold())
    assert drafts.passes_N is not None
    for i in np.flatnonzero(trace.instances.maskable_NA.any(axis=1)).tolist():
        assert hidden_NSA[i, : drafts.passes_N[i]].any(axis=1).all()
        assert not hidden_NSA[i, drafts.passes_N[i] :].any()


def test_regions_that_are_given_replace_those_around_a_cell() -> None:
    around = tuple(tuple(cell for cell in (at - 1, at + 1) if 0 <= cell < CELLS) for at in range(CELLS))
    usual, given = (Check(then="region", reach=1, regions=regions, rounds=3) for regions in ((), around))
    assert same_trace(*(decode(TOY, problems(40), policy) for policy in (usual, given)))
    alone = Check(then="region", regions=((),) * CELLS, rounds=3)
    assert same_trace(*(decode(TOY, problems(40), policy) for policy in (alone, Check(then="refill", rounds=3))))
    with pytest.raises(HardtailError, match="regions needs then=region"):
        Check(regions=around)


def test_a_total_of_steps_is_that_of_each_refill() -> None:
    instances = problems(40)
    policy, commit = Check(draft=Top1(), then="refill", rounds=2), Commit(steps=3)
    trace, draft = (decode(TOY, instances, asked, Decoding(commit)) for asked in (policy, Top1()))
    assert trace.passes_N is not None
    assert draft.passes_N is not None
    caught_N, refilling_N = trace.notes["caught"], trace.passes_N - draft.passes_N - trace.notes["checks"]
    np.testing.assert_array_equal(refilling_N, caught_N.clip(max=3))
    assert caught_N.max() > 3


@pytest.mark.parametrize("then", ["replace", "refill", "region"])
def test_a_look_that_changes_nothing_is_in_the_trace(then: Literal["replace", "refill", "region"]) -> None:
    trace = decode(TOY, problems(40), Check(hide="none", then=then))
    assert trace.notes["settled"].any()
    np.testing.assert_array_equal(visited(trace).sum(axis=1), trace.passes_N)


def test_random_groups_ask_every_cell_once_a_round() -> None:
    trace = decode(TOY, problems(40), Check(hide="random", parts=2, rounds=3))
    redrawn = []
    for i in range(len(trace)):
        asked = [cell for _, cell, token in events_of(trace, i) if token == MASK]
        cells = np.flatnonzero(trace.instances.maskable_NA[i]).tolist()
        rounds = [asked[at : at + len(cells)] for at in range(0, len(asked), max(len(cells), 1))]
        assert all(sorted(part) == cells for part in rounds)
        if len(cells) == CELLS and len(rounds) > 1:
            redrawn.append(rounds[0] != rounds[1])
    assert sum(redrawn) > 0.8 * len(redrawn) > 0


def test_a_check_repairs_the_hard_tail_of_a_shipped_model() -> None:
    """And takes fewer passes than one cell a step; on ordinary sums it changes nothing, at one look more per group."""
    subject = load_subject("zoo:addition-papl-paper")
    hard, natural = (measured_instances(subject.task, stratum, 24, 0) for stratum in ("chain>=28", "natural"))
    draft, checked = (decode(subject.denoiser, hard, policy) for policy in (Threshold(), Check()))
    assert draft.exact_N.mean() < 0.3
    assert checked.exact_N.all()
    assert checked.passes_N is not None
    assert checked.passes_N.mean() < 25
    assert (checked.notes["caught"] > 0).tolist() == (~draft.exact_N).tolist()  # every wrong draft, and no right one
    usual = decode(subject.denoiser, natural, Check())
    assert usual.exact_N.all()
    assert usual.passes_N is not None
    assert np.median(usual.passes_N) == 4


# -- by name ------------------------------------------------------------------------------------------------------


def test_policies_inside_policies_have_names() -> None:
    assert policy_named("check,draft=lsb,parts=4", ["lsb"]) == Check(Logical("lsb"), parts=4)
    named = policy_named("ladder,rungs=threshold+p=0.8/check+parts=2+rounds=9/top1,limit=2")
    assert named == Ladder((Threshold(0.8), Check(parts=2, rounds=9), Top1()), limit=2.0)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("check,draft=treshold", "did you mean 'threshold'"),
        ("check,draft=top1/lsb", "one policy too many"),
        ("check,draft=top1,draft=eb", "one policy too many"),
        ("check,parts=0", "parts is 0"),
        ("ladder,rungs=top1", "give at least two"),
    ],
)
def test_wrong_names_are_explained(name: str, message: str) -> None:
    with pytest.raises(HardtailError, match=message):
        policy_named(name, ["lsb"])


def test_a_seed_redraws_random_groups() -> None:
    one, other = (decode(TOY, problems(20), Check(hide="random", rounds=2), Decoding(seed=seed)) for seed in (0, 1))
    assert one.cell_NT.shape != other.cell_NT.shape or (one.cell_NT != other.cell_NT).any()


@pytest.mark.parametrize("then", ["replace", "refill", "region"])
def test_a_settled_answer_survives_one_more_look(then: Literal["replace", "refill", "region"]) -> None:
    """Settled means that every group was looked at given all the tokens that are in the answer now."""
    policy = Check(then=then)
    trace = decode(TOY, problems(200), policy)
    settled = np.flatnonzero(trace.notes["settled"]).tolist()
    assert len(settled) > 10
    for i in settled:
        row = Row(trace.instances, i)
        row.tokens_L[row.at_A] = torch.from_numpy(trace.answer_NA[i].astype(np.int64))
        story = Story(row)
        for group in groups_of(row.maskable, policy):
            held = story.look(group)
            assert held == {cell: int(row.tokens_L[row.at_A[cell]]) for cell in group}
