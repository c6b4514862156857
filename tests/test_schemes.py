"""Schemes against slow references written from their formulas; mixtures. PUMA's buffer is in `test_puma`."""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.noise import Moment
from hardtail.core.types import Instances
from hardtail.schemes import Corpus, Focal, Mixture, Papl, Puma, Random, Scheme, View
from hardtail.schemes.mixture import _MIXTURE, Mixed
from hardtail.schemes.puma import official, oracle_order
from hardtail.schemes.stages import Fixed, Stairs

CPU = torch.device("cpu")
TASK = hardtail.task("addition", digits=7)
MASK = TASK.vocabulary.mask_id


def corpus(n: int = 200, name: str = "addition", order: str = "lsb") -> Corpus:
    task = TASK if name == "addition" else hardtail.task(name)
    instances = task.sample(n, Streams(0).named("schemes"))
    return Corpus.on(CPU, instances, task.vocabulary.mask_id, order)


def now(step: int, steps: int = 1000) -> Moment:
    return Moment(5, torch.tensor(step), steps)


def views(scheme: Scheme, data: Corpus, steps: int, batch: int = 32) -> Iterator[tuple[View, dict[str, Tensor]]]:
    """What a scheme shows over a run in which the model's logits are random."""
    state = scheme.begin(data, batch, now(-1))
    generator = torch.Generator().manual_seed(0)
    for step in range(steps):
        view = scheme.corrupt(state, data, batch, now(step))
        yield view, state
        logits = torch.randn((*view.gold_BA.shape, 14), generator=generator)
        scheme.advance(state, logits, view, data, now(step))


# -- losses -------------------------------------------------------------------------------------------------------


def slow_loss(
    logits: Tensor, view: View, weight: str, alpha: float = 0.0, tau: float = 1.0, gamma: float = 0.0
) -> float:
    """The loss sequence by sequence and cell by cell."""
    total, batch = 0.0, len(logits)
    everything = int(view.hidden_BA.sum())
    for b in range(batch):
        cells = torch.nonzero(view.hidden_BA[b]).flatten().tolist()
        probabilities = {i: float(logits[b, i].double().softmax(-1)[view.gold_BA[b, i]]) for i in cells}
        norm = sum(p ** (1 / tau) for p in probabilities.values())
        for p in probabilities.values():
            base = {
                "masked": 1 / len(cells) / batch,
                "batch": 1 / everything,
                "rate": 1 / float(view.rate_B[b]) / int(view.maskable_BA[b].sum()) / batch
                if view.rate_B is not None
                else 0,
            }[weight]
            planned = p ** (1 / tau) / norm if alpha >= 0 else 1 / len(cells)
            total += base * (1 + abs(alpha) * planned) * (1 - p) ** gamma * -math.log(p)
    return total


@pytest.mark.parametrize(
    ("scheme", "reference"),
    [
        (Random(), {"weight": "masked"}),
        (Random(draw="count"), {"weight": "masked"}),
        (Random(weighting="batch"), {"weight": "batch"}),
        (Random(weighting="rate", at_least_one=False), {"weight": "rate"}),
        (Random(weighting="rate", draw="count"), {"weight": "rate"}),
        (Papl(alpha=5.0), {"weight": "masked", "alpha": 5.0}),
        (Papl(alpha=2.0, tau=0.5), {"weight": "masked", "alpha": 2.0, "tau": 0.5}),
        (Papl(alpha=3.0, planner="matched"), {"weight": "masked", "alpha": -3.0}),
        (Focal(gamma=2.0), {"weight": "masked", "gamma": 2.0}),
        (Puma(), {"weight": "masked"}),
    ],
)
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_loss_against_the_formula(scheme: Scheme, reference: dict[str, float], uneven: bool) -> None:
    data = corpus()
    if uneven:  # as in a Sudoku: another number of maskable cells in every instance
        maskable_NA = torch.rand(data.maskable_NA.shape, generator=torch.Generator().manual_seed(2)) < 0.6
        maskable_NA[:, 0] = True
        data = replace(data, maskable_NA=maskable_NA)
    view, _ = next(views(scheme, data, 1))
    assert not (view.hidden_BA & ~view.maskable_BA).any()
    logits = 2 * torch.randn((*view.gold_BA.shape, 14), generator=torch.Generator().manual_seed(1))
    assert float(scheme.loss(logits, view)) == pytest.approx(slow_loss(logits, view, **reference), rel=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("scheme", [Papl(alpha=5.0), Focal()])
def test_weights_carry_no_gradient(scheme: Scheme) -> None:
    """The gradient is that of a weighted NLL whose weights are constants."""
    data = corpus()
    view, _ = next(views(scheme, data, 1))
    logits = torch.randn((*view.gold_BA.shape, 14), generator=torch.Generator().manual_seed(1), requires_grad=True)
    (gradient,) = torch.autograd.grad(scheme.loss(logits, view), logits)
    nll = -logits.log_softmax(-1).gather(-1, view.gold_BA[..., None])[..., 0]
    probability = (-nll).detach().exp()
    base = view.hidden_BA / view.hidden_BA.sum(1, keepdim=True) / len(logits)
    if isinstance(scheme, Papl):
        planned = (probability * view.hidden_BA) / (probability * view.hidden_BA).sum(1, keepdim=True)
        weight = base * (1 + 5.0 * planned)
    else:
        weight = base * (1 - probability) ** 2
    (expected,) = torch.autograd.grad((weight * nll).sum(), logits)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("weighting", ["batch", "masked"])
@pytest.mark.parametrize(("hidden", "total"), [([], 0.0), ([(1, 2)], 1.0), ([(1, 2), (1, 3), (0, 5)], 1.0)])
def test_the_weights_of_few_hidden_cells(weighting: str, hidden: list[tuple[int, int]], total: float) -> None:
    """Of one cell, or of none at all, in a batch of two sequences."""
    view, _ = next(views(Random(), corpus(), 1, batch=2))
    hidden_BA = torch.zeros_like(view.hidden_BA)
    for row, cell in hidden:
        hidden_BA[row, cell] = True
    weight_BA = Random(weighting=weighting).weights(replace(view, hidden_BA=hidden_BA))  # type: ignore[arg-type]
    shares = total if weighting == "batch" else len({row for row, _ in hidden}) / 2
    assert float(weight_BA.sum()) == pytest.approx(shares)
    assert not weight_BA[~hidden_BA].any()


def test_loss_ignores_what_is_shown() -> None:
    data = corpus()
    view, _ = next(views(Random(), data, 1))
    logits = torch.randn((*view.gold_BA.shape, 14))
    changed = torch.where(view.hidden_BA[..., None], logits, logits + 7 * torch.randn_like(logits))
    for scheme in (Random(), Papl(), Focal(), Random(weighting="batch")):
        torch.testing.assert_close(scheme.loss(logits, view), scheme.loss(changed, view))


# -- masking ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["addition", "listops"])
def test_a_view_hides_answer_cells_only(name: str) -> None:
    """Prompt and padding stay, hidden cells read as the mask and shown ones as gold, wherever the answer sits."""
    data = corpus(name=name, order="lsb" if name == "addition" else "post_order")
    for scheme in (Random(), Puma(stages=Fixed(4)), official(Fixed(4)), Mixture(Puma(stages=Fixed(4)), Random(), 0.5)):
        for view, _ in views(scheme, data, 6):
            gold = data.tokens_NL[view.row_B].long()
            at = data.answer_at_NA[view.row_B].long()
            expected = gold.scatter(1, at, torch.where(view.hidden_BA, data.mask_id, gold.gather(1, at)))
            assert torch.equal(view.tokens_BL, expected)
            assert not (view.hidden_BA & ~data.maskable_NA[view.row_B]).any()
            assert view.hidden_BA.any(dim=1).all()


def hidden_counts(scheme: Scheme, steps: int, data: Corpus) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    counts = np.zeros(data.maskable_NA.shape[1] + 1)
    for view, _ in views(scheme, data, steps, batch=200):
        counts += np.bincount(view.hidden_BA.sum(1).numpy(), minlength=len(counts))
    return counts / counts.sum()


def test_rates_give_uniform_counts_and_none_is_mended() -> None:
    """With t uniform the number of hidden cells is uniform on 0 … n; "at least one" moves 0 to 1."""
    data = corpus()
    n = 8
    free = hidden_counts(Random(at_least_one=False), 100, data)
    assert free == pytest.approx(np.full(n + 1, 1 / (n + 1)), abs=0.012)
    mended = hidden_counts(Random(), 100, data)
    assert mended == pytest.approx([0, 2 / (n + 1), *[1 / (n + 1)] * (n - 1)], abs=0.012)
    assert hidden_counts(Random(draw="count"), 100, data) == pytest.approx([0, *[1 / n] * n], abs=0.012)


def test_cells_are_hidden_alike() -> None:
    data = corpus()
    for scheme in (Random(), Random(draw="count")):
        hidden = torch.cat([view.hidden_BA for view, _ in views(scheme, data, 200, batch=100)]).float().mean(0)
        assert hidden.max() - hidden.min() < 0.03


def test_an_epoch_shows_everything_once() -> None:
    data = corpus(200)
    rows = torch.cat([view.row_B for view, _ in views(Random(), data, 12, batch=32)])
    for epoch in rows.split(6 * 32):  # type: ignore[no-untyped-call]
        assert epoch.unique().numel() == 6 * 32
    assert not torch.equal(rows[: 6 * 32], rows[6 * 32 :])


# -- mixtures -----------------------------------------------------------------------------------------------------


def test_answers_far_into_a_sequence_are_found() -> None:
    """Places are kept in two bytes where they fit, and these do not."""
    tokens_NL = np.zeros((2, 40_000), dtype=np.uint8)
    tokens_NL[:, -4:] = [[1, 2, 3, 4], [5, 6, 7, 8]]
    cells_NA = np.ones((2, 4), dtype=bool)
    far = Instances(tokens_NL, np.full(2, 39_996, dtype=np.int32), cells_NA, cells_NA)
    rows = Corpus.on(CPU, far, MASK).rows(torch.arange(2))
    assert rows.gold_BA.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]


def test_a_mixture_has_its_share_and_chains_wait() -> None:
    data = corpus(300)
    scheme = Mixture(Puma(stages=Fixed(4), threshold=None), Random(), share=0.25)
    shares = []
    before: tuple[Tensor, Tensor] | None = None
    for view, state in views(scheme, data, 80):
        assert isinstance(view, Mixed)
        if before is not None:
            waited = before[1]
            assert torch.equal(state["first/hidden_BA"][waited], before[0][waited])
        shares.append(float(view.second_B.float().mean()))
        before = (state["first/hidden_BA"].clone(), view.second_B)
    assert np.mean(shares) == pytest.approx(0.25, abs=0.03)


def test_a_mixtures_loss_is_the_sum_of_its_parts() -> None:
    data = corpus(300)
    scheme = Mixture(Puma(stages=Fixed(4)), Papl(alpha=5.0), share=0.5)
    view, _ = next(views(scheme, data, 1))
    assert isinstance(view, Mixed)
    logits = torch.randn((*view.gold_BA.shape, 14), generator=torch.Generator().manual_seed(1))
    total = 0.0
    for part, mine in ((Random(), ~view.second_B), (Papl(alpha=5.0), view.second_B)):
        alone = View(
            view.tokens_BL, view.at_BA, view.gold_BA, view.hidden_BA & mine[:, None], view.maskable_BA, view.row_B
        )
        total += float(part.loss(logits, alone))
    assert float(scheme.loss(logits, view)) == pytest.approx(total, rel=1e-5)


def test_one_mean_over_the_batch_keeps_its_share_in_a_mixture() -> None:
    """Each scheme's mean counts by the part of the batch that it has, so that the whole weighs as one batch."""
    data = corpus(300)
    alone, mixed = Random(weighting="batch"), Mixture(Random(weighting="batch"), Random(weighting="batch"), share=0.25)
    view, _ = next(views(mixed, data, 1))
    assert isinstance(view, Mixed)
    assert 0 < view.second_B.float().mean() < 0.5
    logits = torch.zeros((*view.gold_BA.shape, 14))  # log 14 at every cell, so that only the weights' sum matters
    assert float(alone.loss(logits, view)) == pytest.approx(math.log(14), rel=1e-5)
    assert float(mixed.loss(logits, view)) == pytest.approx(math.log(14), rel=1e-5)


def test_a_sequence_is_the_seconds_if_its_number_is_below_the_share() -> None:
    data = corpus(300)
    draw_B = now(0).uniform(_MIXTURE, 8)
    scheme = Mixture(Random(), Random(), share=float(draw_B[3]))
    view = scheme.corrupt(scheme.begin(data, 8, now(-1)), data, 8, now(0))
    assert isinstance(view, Mixed)
    assert torch.equal(view.second_B, draw_B < draw_B[3])


def test_share_moves_to_its_end() -> None:
    data = corpus(300)
    scheme = Mixture(Random(), Random(), share=1.0, share_end=0.0)
    state = scheme.begin(data, 200, now(-1))
    for step, share in ((0, 1.0), (500, 0.5), (999, 0.0)):
        view = scheme.corrupt(state, data, 200, now(step))
        assert isinstance(view, Mixed)
        assert float(view.second_B.float().mean()) == pytest.approx(share, abs=0.12)


def test_nonsense_is_refused() -> None:
    with pytest.raises(HardtailError, match="threshold"):
        Puma(threshold=1.5)
    with pytest.raises(HardtailError, match="must not decrease"):
        Stairs(5, 3, 1)
    with pytest.raises(HardtailError, match=r"share is 2\.0; it must be at least 0 and at most 1"):
        Mixture(Random(), Random(), share=2.0)
    with pytest.raises(HardtailError, match="no-at-least-one"):
        Random(weighting="rate")  # one batch in two thousand would weigh a thousand others
    with pytest.raises(HardtailError, match=r"no order 'msb'; they have lsb$"):
        corpus(order="msb")
    without = TASK.sample(5, Streams(0).named("bare")).bare()
    with pytest.raises(HardtailError, match=r"no order 'lsb'; they have none: build the data without --bare$"):
        Corpus.on(CPU, without, MASK, "lsb")
    bare = Corpus.on(CPU, without, MASK)
    given = TASK.sample(5, Streams(0).named("given"))
    given.maskable_NA[3] = False
    with pytest.raises(HardtailError, match="problem 4 has no cell that may be hidden"):
        Corpus.on(CPU, given, MASK)
    with pytest.raises(HardtailError, match="--bare"):
        oracle_order(Fixed(2)).begin(bare, 2, now(0))


@pytest.mark.parametrize("place", ["first", "second"])
def test_a_mixture_of_mixtures_is_refused(place: str) -> None:
    with pytest.raises(HardtailError, match="must not be mixtures themselves"):
        Mixture(**{place: Mixture()})  # type: ignore[arg-type]
