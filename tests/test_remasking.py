"""Policies that hide committed cells again, against their definitions.

Shapes: N instances, A answer cells, T events.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit
from hardtail.policies.remask import P2, LeaveOneOut, ReMDM
from tests.decoding_toys import CELLS, MASK, TOY, VOCAB, Row, best, problems, same_trace

Event = tuple[int, int, int]


def events_of(trace: Trace, row: int) -> list[Event]:
    """(step, cell, token) of every event, sorted within a step and kind of event."""
    happened_T = trace.happened_NT[row]
    columns = (array[row][happened_T].tolist() for array in (trace.step_NT, trace.cell_NT, trace.token_NT))
    return sorted(zip(*columns, strict=True), key=lambda event: (event[0], event[2] == MASK, event[1]))


@pytest.mark.parametrize("rounds", [0, 1, 4, 33])
def test_leave_one_out(rounds: int) -> None:
    instances = problems(30)
    trace = decode(TOY, instances, LeaveOneOut(rounds=rounds))
    used = []
    for i in range(len(instances)):
        row, doubts = Row(instances, i), 0
        events: list[Event] = []
        doubted: tuple[int, int] | None = None
        while hidden := row.hidden():
            row.step()
            [cell] = best(hidden, row.top)
            row.write([cell])
            written = (cell, int(row.tokens_L[row.at_A[cell]]))
            events.append((len(row.history) - 1, *written))
            if row.hidden() or written == doubted or doubts == rounds:
                continue
            doubts += 1
            worst = min(row.maskable, key=lambda cell: (left_out(row, cell), cell))
            doubted = (worst, int(row.tokens_L[row.at_A[worst]]))
            row.tokens_L[row.at_A[worst]] = MASK
            events.append((len(row.history) - 1, worst, MASK))
        used.append(doubts)
        assert events_of(trace, i) == events
        np.testing.assert_array_equal(row.tokens_L[row.at_A], trace.answer_NA[i])
    assert max(used) == rounds if rounds < 33 else len(set(used)) >= 3  # some stop at the limit, some before it


def test_a_denoiser_that_answers_for_all_cells_at_once_is_looked_at_as_one_that_need_not() -> None:
    """A function may ignore the places it is asked for, or take the first as the end of the prompt, as models of other
    projects do: a look at one cell was that of another cell, or of a sequence that was cut there."""

    def all_at_once(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return TOY.logits(tokens_BL, torch.arange(6, 6 + CELLS).expand(len(tokens_BL), -1))

    instances = replace(problems(30), prompt_len_N=np.full(30, 6, dtype=np.int32))
    usual, found = (decode(toy, instances, LeaveOneOut()) for toy in (TOY, Function(all_at_once, MASK)))
    assert usual.steps_N.max() > CELLS, "nothing was revised"
    assert same_trace(found, usual)


def left_out(row: Row, cell: int) -> float:
    """The probability of the cell's token given all others."""
    tokens_L = row.tokens_L.copy()
    tokens_L[row.at_A[cell]] = MASK
    logits_V = row.look(tokens_L)[cell]
    return float(np.exp(logits_V[row.tokens_L[row.at_A[cell]]]) / np.exp(logits_V).sum())


@pytest.mark.parametrize("commit", [Commit(), Commit(each=2), Commit(steps=4)], ids=str)
@pytest.mark.parametrize("eta", [0.0, 0.5, 1.0, 3.0])
def test_p2(eta: float, commit: Commit) -> None:
    instances = problems(60)
    trace = decode(TOY, instances, P2(eta=eta), Decoding(commit))
    hidden_again = 0
    for i in range(len(instances)):
        row, step = Row(instances, i), 0
        events: list[Event] = []
        while hidden := row.hidden():
            row.step()
            asked = commit.each if commit.steps is None else -(-len(hidden) // (commit.steps - step))
            stay = len(row.maskable) - len(hidden) + min(asked, len(hidden))

            def score(cell: int, row: Row = row) -> float:
                token = row.tokens_L[row.at_A[cell]]
                return float(np.log(row.top(cell)) if token == MASK else eta * np.log(row.p_AV[cell, token]))

            kept = sorted(row.maskable, key=lambda cell: (-score(cell), cell in hidden, cell))[:stay]
            again = [cell for cell in row.maskable if cell not in kept and cell not in hidden]
            new = [cell for cell in kept if cell in hidden]
            row.write(new)
            events += [(step, cell, int(row.tokens_L[row.at_A[cell]])) for cell in sorted(new)]
            row.tokens_L[row.at_A[again]] = MASK
            events += [(step, cell, MASK) for cell in again]
            hidden_again += len(again)
            step += 1
        assert events_of(trace, i) == events
        np.testing.assert_array_equal(row.tokens_L[row.at_A], trace.answer_NA[i])
    assert (hidden_again > 0) == (eta > 0)


@pytest.mark.parametrize("eta", [0.0, 1.0])
def test_p2_keeps_what_stands_where_a_hidden_cell_is_only_as_sure(eta: float) -> None:
    """Sure of the last cell at first, then of every cell with log p = 0: nothing speaks for hiding the last again."""

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        begun_B1 = (tokens_BL.gather(1, at_BA) != MASK).any(dim=1, keepdim=True)
        sure_BA = torch.where(begun_B1, 200.0, torch.arange(CELLS, dtype=torch.float32))
        return torch.nn.functional.pad(sure_BA[..., None], (0, VOCAB - 1))

    trace = decode(Function(logits, MASK), everything_hidden(5), P2(eta=eta))
    assert (trace.cell_NT == [CELLS - 1, *range(CELLS - 1)]).all()


def everything_hidden(n: int) -> Instances:
    instances = problems(3 * n)
    return instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1))[:n])


def hidden_again_NT(trace: Trace, step: int) -> NDArray[np.bool_]:
    return trace.happened_NT & ~trace.commit_NT & (trace.step_NT == step)


def test_remdm_never_hides_what_it_has_just_committed() -> None:
    trace = decode(TOY, problems(100), ReMDM(eta=1.0))
    again = 0
    for i in range(len(trace)):
        events = events_of(trace, i)
        for step in {event[0] for event in events}:
            committed = {cell for at, cell, token in events if at == step and token != MASK}
            hidden = {cell for at, cell, token in events if at == step and token == MASK}
            assert not committed & hidden
            again += len(hidden)
    assert again > 100


@pytest.mark.parametrize(("step", "sigma"), [(1, 0.2), (3, 0.2), (7, 1 / 7), (8, 0.0)])
def test_remdm_cap(step: int, sigma: float) -> None:
    """After `step` steps as many cells are revealed; σ = min(η, hidden afterwards / revealed), at most all of those."""
    trace = decode(TOY, everything_hidden(800), ReMDM(eta=0.2))
    left = CELLS - step - 1
    rng = np.random.default_rng(0)
    expected = np.minimum((rng.random((200_000, step)) < sigma).sum(axis=1), left)
    observed_N = hidden_again_NT(trace, step).sum(axis=1)
    assert abs(observed_N.mean() - expected.mean()) <= 4 * expected.std() / np.sqrt(len(trace))
    assert observed_N.max() <= left


def test_remdm_conf() -> None:
    """Who is hidden again follows softmax(-ψ) over the revealed cells, times σ_max: 1 in these steps.

    Sampled tokens are more and less probable ones, so that ψ differs.
    """
    trace = decode(TOY, everything_hidden(1500), ReMDM(variant="conf"), Decoding(temperature=2.0))
    chances: list[float] = []
    uniform: list[float] = []
    hidden: list[bool] = []
    for step in (2, 3, 4):
        again_NT = hidden_again_NT(trace, step)
        for i in range(len(trace)):
            psi: dict[int, float] = {}
            for event in np.flatnonzero(trace.happened_NT[i] & (trace.step_NT[i] < step)):
                cell = int(trace.cell_NT[i, event])
                psi.pop(cell, None)
                if trace.commit_NT[i, event]:
                    psi[cell] = float(trace.prob_NT[i, event])
            again = set(trace.cell_NT[i][again_NT[i]].tolist())
            assert again <= set(psi)
            weights = np.exp(-np.array(list(psi.values())))
            chances += (weights / weights.sum()).tolist()
            uniform += [1 / len(psi)] * len(psi)
            hidden += [cell in again for cell in psi]
    chance, was = np.array(chances), np.array(hidden)
    tilt = chance - np.array(uniform)
    for weight in (np.ones_like(tilt), tilt):  # how many in all, and how many more of the less sure
        spread = np.sqrt((weight**2 * chance * (1 - chance)).sum())
        assert abs((weight * (was - chance)).sum()) <= 4 * spread
    assert (tilt**2).sum() > 8 * np.sqrt((tilt**2 * chance * (1 - chance)).sum())  # uniform choice would be noticed
