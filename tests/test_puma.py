"""PUMA's buffer against its promises, and the three readings of it (docs/study.md §1.8, §10.1)."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail import Streams
from hardtail.schemes import Corpus, Puma
from hardtail.schemes.chains import ranks
from hardtail.schemes.puma import official, oracle_order, paper
from hardtail.schemes.stages import Fixed, Ramp, Stages, Stairs
from tests.test_schemes import CPU, MASK, corpus, hidden_counts, now, views

READINGS = {
    "release": Puma(stages=Stairs(2, 4, 1)),
    "paper": paper(Ramp(2, 6)),
    "official": official(Fixed(4)),
    "collapse": official(Fixed(4), threshold=0.9),
    "oracle": oracle_order(Fixed(4)),
    "no-threshold": Puma(stages=Fixed(3), threshold=None),
}


@pytest.mark.parametrize("reading", READINGS)
def test_chains_only_ever_reveal(reading: str) -> None:
    """A chain that goes on keeps its sequence and hides a proper subset; a new one comes from the order, in turn."""
    scheme, data = READINGS[reading], corpus(300)
    seen: list[int] = []
    before: tuple[Tensor, Tensor] | None = None
    for view, _ in views(scheme, data, 60):
        if before is None:
            seen += view.row_B.tolist()
        else:
            for b in range(32):
                same = view.row_B[b] == before[0][b]
                if same and not (view.hidden_BA[b] & ~before[1][b]).any():
                    fewer = int(view.hidden_BA[b].sum()) < int(before[1][b].sum())
                    assert fewer or scheme.law == "interval"  # an interval may ask for no more than is revealed
                else:
                    seen.append(int(view.row_B[b]))
        before = (view.row_B, view.hidden_BA)
    # Without replacement: an epoch ends when fewer are left than a step needs, so no sequence comes twice before that.
    first_repeat = next((i for i, row in enumerate(seen) if row in seen[:i]), len(seen))
    assert first_repeat > 300 - 32


def test_release_counts() -> None:
    """n_reveal = max(1, ⌈n / (K - s)⌉), so 8 cells in 3 stages go 8, 5, 2 (docs/study.md §1.8)."""
    data = corpus(300)
    scheme = Puma(stages=Fixed(3), threshold=None)
    shown = [view.hidden_BA.sum(1) for view, _ in views(scheme, data, 7)]
    assert [int(count[0]) for count in shown] == [8, 5, 2, 8, 5, 2, 8]
    assert all((count == count[0]).all() for count in shown)


@pytest.mark.parametrize("cells", [1, 2, 33, 200])
def test_places_are_those_of_a_stable_sort(cells: int) -> None:
    score_BA = torch.randint(-3, 4, (50, cells), generator=torch.Generator().manual_seed(cells)).float()
    score_BA[score_BA == -3] = -torch.inf
    first_BA = score_BA.argsort(dim=1, descending=True, stable=True)
    assert torch.equal(ranks(score_BA).gather(1, first_BA), torch.arange(cells).expand(50, cells))


def test_the_surest_go_first_and_the_threshold_besides() -> None:
    data = corpus(100)
    scheme = Puma(stages=Fixed(8), threshold=0.9)
    state = scheme.begin(data, 4, now(-1))
    view = scheme.corrupt(state, data, 4, now(0))
    logits = torch.zeros(4, 8, 14)
    logits[:, 3, 2] = 3.0  # the surest, at a probability of 0.6
    logits[1, 5, 1] = 9.0
    logits[1, 6, 1] = 8.0  # two above the threshold
    logits[2, 4, MASK] = 50.0  # sure of the mask: does not count
    scheme.advance(state, logits, view, data, now(0))
    revealed = [torch.nonzero(view.hidden_BA[b] & ~state["hidden_BA"][b]).flatten().tolist() for b in range(4)]
    assert revealed == [[3], [5, 6], [3], [3]]


def test_oracle_order_follows_the_ranks() -> None:
    data = corpus(100)
    for view, _ in views(oracle_order(Fixed(8)), data, 20):
        count = view.hidden_BA.sum(1)
        for b in range(len(count)):
            assert view.hidden_BA[b].tolist() == [cell < int(count[b]) for cell in range(8)]  # lowest digits revealed


def test_stairs_match_the_study() -> None:
    """docs/study.md §1.8: addition climbs 3, 6, 9, 12, 15, 16 every 25,000 of 300,000 steps."""
    stairs = Stairs(3, 16, 3)
    steps = torch.tensor([0, 24_999, 25_000, 50_000, 75_000, 100_000, 125_000, 299_999])
    assert stairs.at(steps, 300_000).tolist() == [3, 3, 6, 9, 12, 15, 16, 16]
    assert Stairs(10, 40, 3).at(torch.tensor([1665, 1666, 16_659, 16_660]), 50_000).tolist() == [10, 13, 37, 40]
    assert Stairs(8, 40, 5).at(torch.tensor([16_665, 116_661, 116_662]), 300_000).tolist() == [8, 38, 40]
    assert Ramp(3, 16).at(torch.tensor([0, 50_000, 100_000, 200_000]), 300_000).tolist() == [3, 9, 16, 16]


def test_official_with_random_scores_is_uniform_masking() -> None:
    """docs/study.md §10.1: revealed = min(round(n·u), n-1) with u uniform, and any cell as likely as any other."""
    task = hardtail.task("addition", digits=19)
    data = Corpus.on(CPU, task.sample(2000, Streams(0).named("uniform")), MASK, "lsb")
    n = 20
    scheme = official(Fixed(5))
    scheme = Puma(**{**vars(scheme), "score": "random"})
    counts = hidden_counts(scheme, 120, data)
    expected = np.full(n + 1, 1 / n)
    expected[[0, 1, n]] = [0, 1.5 / n, 0.5 / n]
    assert counts == pytest.approx(expected, abs=0.008)
    hidden = torch.cat([view.hidden_BA for view, _ in views(scheme, data, 100, batch=200)]).float().mean(0)
    assert hidden.max() - hidden.min() < 0.05


def test_a_new_k_rebuilds_the_official_pool() -> None:
    data = corpus(300)
    scheme = official(Ramp(2, 8, over=0.01))
    rows = [view.row_B.clone() for view, _ in views(scheme, data, 12)]
    kept = [float((one == other).float().mean()) for one, other in pairwise(rows)]
    assert min(kept) == 0.0


@pytest.mark.parametrize("stages", [Stairs(3, 9, 3), Ramp(3, 9)], ids=["stairs", "ramp"])
def test_the_first_chains_are_spread_over_the_first_k(stages: Stages) -> None:
    """Before the first step K is what the first step's is: 32 chains over 3 stages, each in its third of the cells."""
    data = corpus(300)
    state = replace(official(), stages=stages).begin(data, 32, now(-1))
    assert state["stage_B"].bincount().tolist() == [11, 11, 10]
    revealed_B = 8 - state["hidden_BA"].sum(1)
    for stage, (least, most) in enumerate(((0, 3), (3, 5), (5, 7))):
        assert least <= int(revealed_B[state["stage_B"] == stage].min())
        assert int(revealed_B[state["stage_B"] == stage].max()) <= most


def test_a_rebuilt_pool_is_spread_over_the_new_k() -> None:
    """K goes from 2 to 4 after step 999: the pool of step 1000 has chains at all four stages."""
    data = corpus(300)
    scheme = official(Stairs(2, 4, 2))
    state = scheme.begin(data, 32, now(-1, 3000))
    view = scheme.corrupt(state, data, 32, now(999, 3000))
    scheme.advance(state, torch.zeros((*view.gold_BA.shape, 14)), view, data, now(999, 3000))
    assert state["stage_B"].bincount().tolist() == [8, 8, 8, 8]


def test_without_a_threshold_a_chain_goes_on_by_one_stage() -> None:
    """Also one whose last cell was revealed by rounding up, as if it had reached the next stage already."""
    data, scheme = corpus(300), official(Fixed(5))
    state = scheme.begin(data, 200, now(-1))
    passed = 0
    for step in range(4):
        before_B = state["stage_B"].clone()
        view = scheme.corrupt(state, data, 200, now(step))
        scheme.advance(state, torch.zeros((*view.gold_BA.shape, 14)), view, data, now(step))
        stays_B = state["row_B"] == view.row_B
        assert torch.equal(state["stage_B"][stays_B], before_B[stays_B] + 1)
        revealed_B = 8 - state["hidden_BA"].sum(1)
        passed += int((stays_B & (revealed_B * 5 // 8 > state["stage_B"])).sum())
    assert passed > 0


def _stage_sizes(scheme: Puma) -> list[int]:
    """How many of 20 cells a stage reveals, where a chain goes on; a chain ends only when nothing is hidden."""
    task = hardtail.task("addition", digits=19)
    data = Corpus.on(CPU, task.sample(2000, Streams(0).named("around")), MASK, "lsb")
    sizes: list[int] = []
    before: tuple[Tensor, Tensor] | None = None
    for view, _ in views(scheme, data, 60):
        count_B = view.hidden_BA.sum(1)
        if before is not None:
            goes_on_B = (view.row_B == before[0]) & (before[1] > 5)
            sizes += (before[1] - count_B)[goes_on_B].tolist()
            fresh_B = view.row_B != before[0]
            assert (count_B[fresh_B] == 20).all()
            assert (before[1][fresh_B] <= 5).all()  # no chain is given up while more is hidden than a stage may reveal
        before = view.row_B, count_B
    return sizes


def test_stage_sizes_are_centred_on_n_over_k() -> None:
    """The text's stochastic stage, 20 cells in 6 stages: 3 or 4 with mean 10/3, then one more or less."""
    sizes = _stage_sizes(paper(Fixed(6)))
    expected = np.array([2, 3, 3, 1]) / 9  # 3 in two of three draws and 4 in one, each changed by -1, 0 or 1
    assert np.bincount(sizes, minlength=6)[2:] / len(sizes) == pytest.approx(expected, abs=0.05)
    assert np.mean(sizes) == pytest.approx(20 / 6, abs=0.1)
    few = _stage_sizes(paper(Fixed(15)))
    assert set(few) == {1, 2, 3}
    assert np.mean(few) == pytest.approx(20 / 15, abs=0.05)


def test_recorded_stage_sizes_are_around_the_mean() -> None:
    """The law of the recorded runs: 2 to 5 at a time, each size as often, until none is left."""
    sizes = _stage_sizes(Puma(Fixed(6), law="around", threshold=None))
    assert np.bincount(sizes, minlength=6)[2:] / len(sizes) == pytest.approx(np.full(4, 0.25), abs=0.05)
    assert set(sizes) == {2, 3, 4, 5}
    assert set(_stage_sizes(Puma(Fixed(19), law="around", threshold=None))) == {
        1,
        2,
        3,
    }  # at least one


def test_a_threshold_leaps_over_stages() -> None:
    """Mode `confidence_collapse`: the phase follows what is revealed, so that intervals already passed are skipped."""
    data = corpus(300)
    scheme = official(Fixed(4), threshold=0.9)
    state = scheme.begin(data, 32, now(-1))
    view = scheme.corrupt(state, data, 32, now(0))
    state["stage_B"].zero_()
    logits = torch.zeros((*view.gold_BA.shape, 14))
    logits[:, :6, 2] = 20.0  # sure of the first six of eight cells
    scheme.advance(state, logits, view, data, now(0))
    stays_B = state["row_B"] == view.row_B
    assert stays_B.any()
    assert (state["stage_B"][stays_B] == 3).all()


def test_pumas_authors_have_eight_stages() -> None:
    assert official().stages == Fixed(8)
