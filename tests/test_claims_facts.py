"""What claims rest on besides decodes: weights of a loss, parameter counts, probabilities, the spread of errors."""

from itertools import product

import numpy as np
import pytest
import torch

import hardtail
from hardtail.measuring.loss_weights import relative_weights
from hardtail.models.denoiser import Function
from hardtail.schemes.base import View
from hardtail.schemes.papl import Papl
from hardtail.schemes.random import Random
from hardtail.study.claims.confidence_shortcut.data import TEXT, by_hand, long_run
from hardtail.tasks.maze.profile import NEVER, spread


def test_the_bound_is_n_times_the_rate_weights() -> None:
    hidden_BA = torch.tensor([[True, False, True], [False, True, False]])
    nothing = torch.zeros((2, 3), dtype=torch.int64)
    view = View(nothing, nothing, nothing, hidden_BA, torch.ones(2, 3) > 0, torch.arange(2), torch.tensor([0.5, 0.25]))
    rate_BA, bound_BA = (Random(at_least_one=False, weighting=name).weights(view) for name in ("rate", "bound"))
    assert torch.allclose(bound_BA, 3 * rate_BA)
    assert bound_BA[0, 0] == 1 / 0.5 / 2


def test_papls_weights_are_its_formula_over_their_mean() -> None:
    """A model that is sure of the lowest digit alone: its weight is above the mean, all others are equally below."""
    task = hardtail.task("addition", digits=3)
    sums = task.sample(50, hardtail.Streams(0).named("weights"))
    gold_NA = torch.from_numpy(sums.answer_NA.astype(np.int64))

    def logits(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        logits_BAV = torch.zeros(*at_BA.shape, task.vocabulary.size)
        logits_BAV[:, -1].scatter_(1, gold_NA[:, -1:], 50.0)
        return logits_BAV

    denoiser = Function(logits, task.vocabulary.mask_id)
    weight_NA = relative_weights(denoiser, sums, Papl(alpha=1.0), np.random.default_rng(0))
    whole_N = ~np.isnan(weight_NA).any(axis=1)
    assert whole_N.any()
    p_A = np.array([1 / task.vocabulary.size] * 3 + [1.0])
    factor_A = 1 + p_A / p_A.sum()
    assert weight_NA[whole_N] == pytest.approx(np.tile(factor_A / factor_A.mean(), (whole_N.sum(), 1)), rel=1e-4)


def test_parameter_counts_are_those_of_the_models() -> None:
    """The counts of docs/study.md §1.3, which the tests of models take from real ones."""
    counted = {task: (model.counted(3), model.counted(4)) for task, model in TEXT.models.items()}
    assert counted["addition"] == (346_496, 412_288)
    assert counted["maze"] == (1_286_208, 1_507_968)
    assert counted["countdown"] == (17_790_720, 21_334_272)


@pytest.mark.parametrize(("length", "positions"), [(1, 4), (2, 5), (3, 3)])
def test_the_chance_of_a_long_run_is_that_of_counting(length: int, positions: int) -> None:
    total = 0.0
    for row in product((True, False), repeat=positions):
        chance = float(np.prod([0.1 if one else 0.9 for one in row]))
        total += chance if "1" * length in "".join(str(int(one)) for one in row) else 0.0
    assert long_run(length, positions) == pytest.approx(total)


def test_adding_by_hand_is_adding() -> None:
    assert [by_hand(a, b, 3) for a, b in ((999, 1), (0, 0), (123, 877))] == [1000, 0, 1000]


def test_errors_spread_where_a_later_one_touches_an_earlier_one() -> None:
    grid = np.full((1, 3, 3), NEVER)
    grid[0, 0, 0], grid[0, 0, 1], grid[0, 2, 2] = 5, 7, 9  # the second extends the first, the third is elsewhere
    assert spread(grid) == pytest.approx(0.5)
    grid[0, 0, 1] = 5  # one pass wrote both, so neither could see the other
    assert spread(grid) == 0.0
    assert spread(np.full((1, 3, 3), NEVER)) is None
