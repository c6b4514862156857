"""Each policy against its definition: slow obvious references on hashed distributions, and cases worked out by hand.

Shapes: A answer cells, V vocabulary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit, Guess, Policy, State
from hardtail.policies.check import Check
from hardtail.policies.confidence import Entropy, Margin, MaxLogit, Noisy, RandomOrder, Top1
from hardtail.policies.named import policy_named
from hardtail.policies.orders import Blocks, LeftToRight, Logical, RightToLeft
from hardtail.policies.parallel import EntropyBounded, Factor, Klass, Threshold, TopK
from tests.decoding_toys import CELLS, MASK, TOY, VOCAB, Row, best, problems

Choose = Callable[[Row, list[int]], list[int]]


def slow_margin(row: Row, hidden: list[int]) -> list[int]:
    return best(hidden, lambda cell: float(np.diff(np.sort(row.p_AV[cell])[-2:])[0]))


def slow_logical(row: Row, hidden: list[int]) -> list[int]:
    return sorted(hidden, key=lambda cell: (row.rank_A[cell], -row.top(cell), cell))[:1]


def slow_block(row: Row, hidden: list[int]) -> list[int]:
    return best([cell for cell in hidden if cell // 4 == hidden[0] // 4], row.top)


def slow_threshold(row: Row, hidden: list[int]) -> list[int]:
    return [cell for cell in hidden if row.top(cell) >= 0.9] or best(hidden, row.top)


def slow_factor(row: Row, hidden: list[int]) -> list[int]:
    order = best(hidden, row.top, len(hidden))
    passing = [n for n in range(1, len(order) + 1) if (n + 1) * (1 - row.top(order[n - 1])) < 1]
    return order[: max(passing, default=1)]


def slow_eb(row: Row, hidden: list[int]) -> list[int]:
    order = best(hidden, lambda cell: -row.entropy(cell), len(hidden))
    count = 1
    while count < len(order):
        entropies = [row.entropy(cell) for cell in order[: count + 1]]
        if sum(entropies) - max(entropies) > 0.5:
            break
        count += 1
    return order[:count]


def slow_klass(row: Row, hidden: list[int]) -> list[int]:
    def kl(cell: int, step: int) -> float:
        now, before = row.history[step][cell], row.history[step - 1][cell]
        return sum(p * math.log(p / q) for p, q in zip(now, before, strict=True) if p > 0)

    step = len(row.history) - 1
    steady = [cell for cell in hidden if step >= 2 and kl(cell, step) < 4 and kl(cell, step - 1) < 4]
    return [cell for cell in steady if row.top(cell) > 0.6] or best(hidden, row.top)


REFERENCES: dict[Policy, Choose] = {
    Top1(): lambda row, hidden: best(hidden, row.top),
    Noisy(t=0.0): lambda row, hidden: best(hidden, row.top),
    MaxLogit(): lambda row, hidden: best(hidden, lambda cell: float(row.logits_AV[cell].max())),
    Margin(): slow_margin,
    Entropy(): lambda row, hidden: best(hidden, lambda cell: -row.entropy(cell)),
    LeftToRight(): lambda row, hidden: hidden[:1],
    RightToLeft(): lambda row, hidden: hidden[-1:],
    Logical("zigzag"): slow_logical,
    Blocks(size=4): slow_block,
    TopK(k=3): lambda row, hidden: best(hidden, row.top, 3),
    Threshold(): slow_threshold,
    Factor(): slow_factor,
    EntropyBounded(gamma=0.5): slow_eb,
    Klass(p=0.6, kl=4.0): slow_klass,
}


@pytest.mark.parametrize("policy", REFERENCES, ids=str)
def test_a_policy_is_its_definition(policy: Policy) -> None:
    instances = problems(60)
    trace = decode(TOY, instances, policy)
    sizes = set()
    for i in range(len(instances)):
        row, step = Row(instances, i), 0
        while hidden := row.hidden():
            row.step()
            chosen = REFERENCES[policy](row, hidden)
            row.write(chosen)
            assert sorted(trace.cell_NT[i][trace.happened_NT[i] & (trace.step_NT[i] == step)]) == sorted(chosen)
            sizes.add(len(chosen))
            step += 1
        np.testing.assert_array_equal(row.tokens_L[row.at_A], trace.answer_NA[i])
    parallel = isinstance(policy, Threshold | Factor | EntropyBounded | Klass)
    assert len(sizes) >= 3 or not parallel  # the rule really decides how many


def test_random_order_is_uniform() -> None:
    instances = problems(3000, cells=4)
    full = instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1)))
    orders = [tuple(row) for row in decode(TOY, full, RandomOrder()).cell_NT.tolist()]
    counts = np.array([orders.count(order) for order in set(orders)])
    expected = len(orders) / 24
    assert len(counts) == 24
    assert ((counts - expected) ** 2 / expected).sum() < 60  # chi-square with 23 degrees of freedom


# -- worked out by hand -------------------------------------------------------------------------------------------


def seen(p_BAV: Tensor) -> tuple[Guess, State]:
    """A first step with these probabilities, every cell hidden."""
    log_p_BAV = p_BAV.log()
    top_BA, token_BA = log_p_BAV.max(dim=-1)
    hidden_BA = torch.ones_like(token_BA, dtype=torch.bool)
    b, a = hidden_BA.shape
    state = State(
        token_BA, torch.arange(a).expand(b, -1), hidden_BA, hidden_BA, torch.zeros(b).long(), torch.tensor(0), MASK
    )
    return Guess(log_p_BAV, log_p_BAV, token_BA, top_BA), state


def counted(policy: Policy, p_BAV: Tensor) -> list[int]:
    guess, state = seen(p_BAV)
    return policy.count(guess, policy.score(guess, state), state, Commit()).tolist()


def sure(p_BA: list[list[float]]) -> Tensor:
    """Distributions with these largest probabilities."""
    p = torch.tensor(p_BA, dtype=torch.float64)
    return torch.stack([p, *[(1 - p) / 6] * 6], dim=-1).float()


def test_noise_takes_a_cell_in_proportion_to_a_power_of_its_probability() -> None:
    top, draws = [0.9, 0.8, 0.5, 0.3], 20_000
    guess, state = seen(sure([top]).expand(draws, -1, -1))
    taken_A = Noisy(t=0.25).score(guess, replace(state, key_B=torch.arange(draws))).argmax(dim=1).bincount()
    expected_A = draws * torch.tensor(top) ** 4 / (torch.tensor(top) ** 4).sum()
    assert ((taken_A - expected_A) ** 2 / expected_A).sum() < 16  # chi-square with 3 degrees of freedom


def with_entropy(entropy: float) -> float:
    """The larger probability of a coin with this entropy."""
    low, high = 0.5, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        over = -middle * math.log(middle) - (1 - middle) * math.log(1 - middle) > entropy
        low, high = (middle, high) if over else (low, middle)
    return low


def coins(entropy_BA: list[list[float]]) -> Tensor:
    p = torch.tensor([[with_entropy(entropy) for entropy in row] for row in entropy_BA], dtype=torch.float64)
    return torch.stack([p, 1 - p], dim=-1).float()


def test_the_senses_of_sure_differ() -> None:
    """Cell 0 has the largest p, cell 1 the largest margin, cell 2 the smallest entropy."""
    p_BAV = torch.tensor([[[0.5, 0.48, 0.01, 0.01], [0.46, 0.18, 0.18, 0.18], [0.495, 0.495, 0.005, 0.005]]])
    guess, state = seen(p_BAV)
    assert [int(policy.score(guess, state).argmax()) for policy in (Top1(), Margin(), Entropy())] == [0, 1, 2]


def test_factor_by_hand() -> None:
    """(n+1)(1-c_n): .02, .6, 1.2, 3.5 in the first row; in the second the best fails and is committed all the same."""
    p_BAV = sure([[0.7, 0.99, 0.3, 0.8], [0.4, 0.45, 0.3, 0.35]])
    assert counted(Factor(), p_BAV) == [2, 0]
    assert counted(Factor(f=1.5), p_BAV) == [3, 1]
    assert counted(Factor(f=0.5), p_BAV) == [1, 0]


def test_threshold_by_hand() -> None:
    p_BAV = sure([[0.95, 0.89, 0.91], [0.5, 0.6, 0.7]])
    assert counted(Threshold(), p_BAV) == [2, 0]
    assert counted(Threshold(p=0.55), p_BAV) == [3, 2]


def test_entropy_bound_is_by_row() -> None:
    """Sums before each cell: 0 .02 .07 .27, and 0 .06 .12 .18. A maximum over the batch would let the second row by."""
    p_BAV = coins([[0.4, 0.02, 0.2, 0.05], [0.06, 0.06, 0.06, 0.06]])
    assert counted(EntropyBounded(), p_BAV) == [3, 2]
    assert counted(EntropyBounded(), p_BAV[:1]) == [3]
    assert counted(EntropyBounded(gamma=0.0), p_BAV) == [1, 1]
    assert counted(EntropyBounded(gamma=0.3), p_BAV) == [4, 4]


def by_step(p_SAV: Tensor) -> Function:
    """A denoiser whose distributions depend on nothing but how many cells are revealed."""
    padded_SAV = torch.nn.functional.pad(p_SAV, (0, VOCAB - p_SAV.shape[-1]))

    def logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        revealed_B = (tokens_BL.gather(1, at_BA) != MASK).sum(dim=1)
        return padded_SAV[revealed_B.clamp(max=len(padded_SAV) - 1)].log()

    return Function(logits, MASK)


def whole(cells: int) -> Instances:
    """One instance with every cell hidden."""
    instances = problems(30, cells=cells)
    return instances.take(np.flatnonzero(instances.maskable_NA.all(axis=1))[:1])


def steps_of(trace: Trace) -> list[list[int]]:
    steps = trace.step_NT[0][trace.happened_NT[0]]
    return [sorted(trace.cell_NT[0][: len(steps)][steps == step].tolist()) for step in range(steps.max() + 1)]


def test_klass_waits_for_two_steady_steps() -> None:
    """All cells are sure and nothing moves, but 3, 4 and 6 in step 2: they are steady from step 4 on."""
    early = [0.99, 0.98, 0.97, 0.91, 0.92, 0.96, 0.91]
    late = [0.99, 0.98, 0.97, 0.985, 0.98, 0.96, 0.975]
    denoiser = by_step(sure([early, early, late]))
    assert steps_of(decode(denoiser, whole(7), Klass())) == [[0], [1], [2, 5], [3], [4, 6]]
    assert steps_of(decode(denoiser, whole(7), Klass(history=1))) == [[0], [1, 2, 3, 4, 5, 6]]
    assert steps_of(decode(denoiser, whole(7), Klass(p=0.999))) == [[0], [1], [3], [4], [6], [2], [5]]
    assert steps_of(decode(denoiser, whole(7), Klass(kl=1.0))) == [[0], [1], [2, 3, 4, 5, 6]]
    assert steps_of(decode(denoiser, whole(7), Klass(p=0.999), Decoding(Commit(each=3)))) == [[0, 1, 2], [3, 4, 6], [5]]


def test_a_commit_is_by_the_step_or_by_the_steps() -> None:
    with pytest.raises(HardtailError, match="each=2 and steps=3"):
        Commit(each=2, steps=3)


@pytest.mark.parametrize("commit", [Commit(), Commit(each=3), Commit(each=50), Commit(steps=2)], ids=str)
def test_blocks_are_finished_one_after_another(commit: Commit) -> None:
    instances = problems(60)
    trace = decode(TOY, instances, Blocks(size=4), Decoding(commit))
    block_NT = np.where(trace.happened_NT, trace.cell_NT // 4, CELLS)
    assert (np.diff(block_NT, axis=1) >= 0).all()
    for step in range(int(trace.step_NT.max()) + 1):
        now_NT = trace.happened_NT & (trace.step_NT == step)
        lowest_N = np.where(now_NT, block_NT, CELLS).min(axis=1)
        assert ((block_NT == lowest_N[:, None]) | ~now_NT).all()
        assert now_NT.sum(axis=1).max() <= (4 if commit.steps else min(4, commit.each))
    # The runner-up is one that could have been committed: a cell of the same block, or none.
    waits_NT = trace.happened_NT & (trace.runner_up_NT >= 0)
    np.testing.assert_array_equal(trace.runner_up_NT[waits_NT] // 4, trace.cell_NT[waits_NT] // 4)
    assert (np.abs(trace.margin_NT[waits_NT]) < 20).all()


@pytest.mark.parametrize(("commit", "most"), [(Commit(steps=9), 5), (Commit(steps=3), 3), (Commit(each=2), 3)])
def test_the_most_steps_of_a_row(commit: Commit, most: int) -> None:
    assert Top1().steps(5, commit) == most


@dataclass(frozen=True)
class OneForAll(Policy):
    """Keeps one number for the whole batch."""

    def begin(self, state: State) -> dict[str, Tensor]:
        return {"once": torch.zeros(1)}

    def score(self, guess: Guess, state: State) -> Tensor:
        return guess.top_BA


def test_a_policy_inside_another_keeps_something_for_every_row() -> None:
    with pytest.raises(HardtailError, match=r"keeps 'once' \[1\]; inside another policy"):
        decode(TOY, problems(30), Check(OneForAll(), then="refill", rounds=3))


@pytest.mark.parametrize("policy", ["check,draft=top1,then=refill,rounds=4", "ladder,rungs=top1/margin,limit=0"])
def test_a_schedule_that_has_ended_goes_on_with_its_last_step(policy: str) -> None:
    """A policy that fills cells again does so after the last of its steps."""
    trace = decode(TOY, problems(20), policy_named(policy), Decoding(commit=Commit(steps=3, schedule="dream")))
    assert trace.step_NT.max() > 6
    assert (trace.answer_NA != trace.mask_id).all()
