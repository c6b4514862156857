"""Intervals and verdicts: what the rules of claims say of results made for them."""

from dataclasses import replace
from pathlib import Path
from statistics import stdev

import pytest

from hardtail.measuring.statistics import wilson
from hardtail.show.claims import ledger_lines
from hardtail.study.claims import Results, Verdict, claim_named
from hardtail.study.claims.base import Cell, overall
from hardtail.study.claims.confidence_shortcut.addition import median
from hardtail.study.claims.differences import contrast
from hardtail.study.claims.figures import LateLoss, Reached, ShareRight
from hardtail.study.claims.ledger import evidence_tables
from hardtail.study.claims.recovery import Recovery, Unrecovered
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, Ratio, similar
from tests.planted_results import Planted

PUMA_28 = ShareRight("addition", "puma", "top1", "chain>=28")
RANDOM_28 = ShareRight("addition", "random", "top1", "chain>=28")


def test_intervals_are_over_seeds_and_never_less_than_over_instances(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for seed, value in ((41, 0.8), (42, 0.9), (43, 1.0)):
        made.plant(PUMA_28, value, seed=seed, n=500)
        made.plant(RANDOM_28, 1.0, seed=seed, n=500)
    results = Results(made.written())
    puma, random = PUMA_28.estimate(results), RANDOM_28.estimate(results)
    assert puma is not None
    assert random is not None
    assert puma.seeds == 3
    assert puma.mean == pytest.approx(0.9)
    assert (puma.low, puma.high) == pytest.approx((0.9 - 4.303 * 0.1 / 3**0.5, 1.0), abs=1e-3)
    assert (random.low, random.high) == wilson(1500, 1500)  # three seeds without a failure are not certain


def test_one_seed_has_the_interval_of_its_instances(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(PUMA_28, 0.9, n=500)
    estimate = PUMA_28.estimate(Results(made.written()))
    assert estimate is not None
    assert (estimate.low, estimate.high) == wilson(450, 500)


def test_a_gap_is_taken_seed_by_seed(tmp_path: Path) -> None:
    """Seeds that vary together leave a clear difference, where two separate intervals would overlap."""
    made = Planted(tmp_path)
    for seed, value in ((41, 0.3), (42, 0.6), (43, 0.9)):
        made.plant(PUMA_28, value - 0.1, seed=seed)
        made.plant(RANDOM_28, value, seed=seed)
    results = Results(made.written())
    found = Gap((Cell(RANDOM_28, 0.992),), (Cell(PUMA_28, 0.908),)).judge(results)
    assert found.verdict is Verdict.HOLDS
    made.plant(RANDOM_28, 0.2, seed=44)
    assert Gap((Cell(RANDOM_28),), (Cell(PUMA_28),)).judge(Results(made.written())).seeds == 3


def test_with_one_seed_a_gap_has_newcombes_interval(tmp_path: Path) -> None:
    """d ± the root of the summed squares of each share's distance to the end of its own interval that matters."""
    made = Planted(tmp_path)
    made.plant(RANDOM_28, 0.9, n=100)
    made.plant(PUMA_28, 0.6, n=50)
    ours = contrast((Cell(RANDOM_28),), (Cell(PUMA_28),), Results(made.written()))
    one, two = wilson(90, 100), wilson(30, 50)
    assert ours.mean == pytest.approx(0.3)
    assert ours.low == pytest.approx(0.3 - ((0.9 - one.low) ** 2 + (two.high - 0.6) ** 2) ** 0.5)
    assert ours.high == pytest.approx(0.3 + ((one.high - 0.9) ** 2 + (0.6 - two.low) ** 2) ** 0.5)


def test_a_difference_of_steps_is_a_whole_number(tmp_path: Path) -> None:
    cells = [Cell(Reached("addition", scheme)) for scheme in ("random", "puma")]
    made = Planted(tmp_path)
    for cell in cells:
        made.plant(cell.figure, 49_000)
    assert Gap((cells[0],), (cells[1],)).judge(Results(made.written())).ours == "+0"


def test_a_single_seed_of_what_is_no_share_makes_nothing_certain(tmp_path: Path) -> None:
    """A step or a loss of one run has no interval: the sign alone holds weaker, half of the paper's size holds."""
    random, puma = (Cell(Reached("addition", scheme)) for scheme in ("random", "puma"))
    made = Planted(tmp_path)
    for cell, step in ((random, 50_000), (puma, 49_000)):
        made.plant(cell.figure, step)
    results = Results(made.written())
    assert Gap((random,), (puma,)).judge(results).verdict is Verdict.WEAKER
    for size, verdict in ((2000.0, Verdict.HOLDS), (2001.0, Verdict.NOT)):
        gap = Gap((replace(random, paper=size),), (replace(puma, paper=0.0),))
        assert gap.judge(results).verdict is verdict
    for seed, step in ((43, 30_000), (44, 80_000)):
        made.plant(random.figure, step, seed=seed)
        made.plant(puma.figure, 49_000, seed=seed)
    results = Results(made.written())
    assert Gap((random,), (puma,)).judge(results).verdict is Verdict.NOT  # within its interval
    estimate = random.figure.estimate(results)
    assert estimate is not None
    assert estimate.low == 0.0  # Student's would begin below, and no step does


@pytest.mark.parametrize(("values", "quantile"), [((5.0, 5.2), 12.706), ((5.0, 5.1, 5.2), 4.303)])
def test_student_over_two_and_three_seeds(values: tuple[float, ...], quantile: float, tmp_path: Path) -> None:
    """A loss has Student's interval alone: mean ± t · s / √n."""
    figure = LateLoss("addition", "papl", 0.9, 1.0)
    made = Planted(tmp_path)
    for seed, value in enumerate(values):
        made.plant(figure, value, seed=seed)
    found = figure.estimate(Results(made.written()))
    assert found is not None
    half = quantile * stdev(values) / len(values) ** 0.5
    assert (found.mean, found.low, found.high) == pytest.approx((5.1, 5.1 - half, 5.1 + half))


@pytest.mark.parametrize(("cases", "pooled"), [((160, 16), 0.3 + 0.6 * 16 / 176), ((16, 160), 0.3 + 0.6 * 160 / 176)])
def test_medians_are_pooled_by_cases_and_lie_between_those_of_the_runs(
    cases: tuple[int, int], pooled: float, tmp_path: Path
) -> None:
    """Records have medians alone; that of all cases together is never outside them."""
    made, figure = Planted(tmp_path), median("puma", "chain_masked")
    for seed, value, n in zip((42, 43), (0.3, 0.9), cases, strict=True):
        made.plant(figure, value, seed=seed, n=n)
    found = figure.estimate(Results(made.written()))
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx((pooled, 0.3, 0.9))


def test_shares_are_pooled_over_cases_not_over_runs(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(PUMA_28, 1.0, seed=42, n=900)
    made.plant(PUMA_28, 0.0, seed=43, n=100)
    found = PUMA_28.estimate(Results(made.written()))
    assert found is not None
    assert found.mean == pytest.approx(0.9)


def test_a_handful_of_cases_says_nothing(tmp_path: Path) -> None:
    claim, made = claim_named("addition.commits.masked.puma"), Planted(tmp_path)
    made.plant(median("puma", "chain_masked"), 1.0, n=9)
    judged = claim.judge(Results(made.written()))
    assert (judged.verdict, judged.says) == (Verdict.MOOT, "cannot be judged")
    assert "only 9 cases" in judged.findings[0].remark
    made.plant(median("puma", "chain_masked"), 1.0, n=10)
    assert claim.judge(Results(made.written())).verdict is Verdict.HOLDS


def test_the_list_says_what_a_claim_lacks(tmp_path: Path) -> None:
    claim, made = claim_named("discussion.readiness.addition"), Planted(tmp_path)
    judged = claim.judge(Results(made.written()))
    *_, line, sentence, why = ledger_lines([judged], width=200)
    assert line.split(maxsplit=3)[2:] == [claim.id, "no number · –"]
    assert sentence.strip() == claim.sentence
    assert why.strip() == f"({claim.checks[0].cells[0].figure.label}: no record)"
    for cell, n in zip((cell for check in claim.checks for cell in check.cells), (100, 7), strict=True):
        made.plant(cell.figure, 1.0, n=n)
    judged = claim.judge(Results(made.written()))
    few = f"1 of 2 checks: {claim.checks[1].cells[0].figure.label}: only 7 cases, and 10 are needed"
    *_, line, _, why = ledger_lines([judged], width=200)
    assert line.endswith(" no number · 1.000; –")
    assert why.strip() == f"({few})"
    assert ("why", few) in evidence_tables(judged, Results(made.written()))[0].rows


def test_one_seed_never_gets_the_full_word(tmp_path: Path) -> None:
    claim, made = claim_named("addition.puma.confidence.28"), Planted(tmp_path)
    made.plant(PUMA_28, 0.908, seed=42)
    assert claim.judge(Results(made.written())).says == "one seed: holds"
    made.plant(PUMA_28, 0.908, seed=43)
    assert claim.judge(Results(made.written())).says == "holds"


def test_no_interval_leaves_what_a_difference_can_be(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for seed, value in ((42, 0.0), (43, 0.6)):
        made.plant(PUMA_28, value, seed=seed, n=500)
        made.plant(RANDOM_28, 1.0, seed=seed, n=500)
    ours = contrast((Cell(RANDOM_28),), (Cell(PUMA_28),), Results(made.written()))
    assert (ours.low, ours.high) == (-1.0, 1.0)


def test_alike_is_shown_by_the_whole_interval_and_never_at_the_floor(tmp_path: Path) -> None:
    check = similar(Cell(RANDOM_28), Cell(PUMA_28), margin=0.05)
    for folder, value, n, verdict in (
        ("sure", 0.5, 10_000, Verdict.HOLDS),
        ("unsure", 0.5, 100, Verdict.WEAKER),
        ("floor", 0.01, 10_000, Verdict.MOOT),
    ):
        made = Planted(tmp_path / folder)
        for figure in (RANDOM_28, PUMA_28):
            made.plant(figure, value, n=n)
        assert check.judge(Results(made.written())).verdict is verdict


def test_few_failures_that_stay_are_no_collapse(tmp_path: Path) -> None:
    """One in ten that no order repairs is less than the paper's 97 in 100."""
    made = Planted(tmp_path)
    lsb = ShareRight("addition", "puma", "lsb", "chain>=28")
    check = Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))
    for figure in (PUMA_28, lsb):
        made.plant(figure, 0.9, n=500)
    assert check.judge(Results(made.written())).verdict is Verdict.WEAKER


def test_what_no_order_gets_right_is_not_shown_to_stay_unrepaired(tmp_path: Path) -> None:
    """Both at the floor: nothing tells a failure that no order repairs from a model that cannot do it at all."""
    lsb = ShareRight("addition", "puma", "lsb", "chain>=28")
    check = Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))
    for folder, after, verdict in (("floor", 0.01, Verdict.MOOT), ("above", 0.011, Verdict.HOLDS)):
        made = Planted(tmp_path / folder)
        made.plant(PUMA_28, 0.006)
        made.plant(lsb, after)
        assert check.judge(Results(made.written())).verdict is verdict


def test_few_failures_make_no_ratio_certain(tmp_path: Path) -> None:
    """No failure against seven is a ratio of 15 with half a case added, and may well be none."""
    made = Planted(tmp_path)
    made.plant(RANDOM_28, 1.0, n=500)
    made.plant(PUMA_28, 0.986, n=500)
    found = Ratio((Cell(PUMA_28),), (Cell(RANDOM_28),), 10.0, failures=True).judge(Results(made.written()))
    assert found.verdict is Verdict.WEAKER
    assert found.ours is not None
    assert found.ours.startswith("15 times [0.8")


@pytest.mark.parametrize("failures", [False, True])
def test_shares_at_the_floor_make_no_ratio(failures: bool, tmp_path: Path) -> None:
    """Two right answers against three of 500, or two failures against three, refute no ratio; five against six may."""
    for right, verdict in ((2, Verdict.MOOT), (5, Verdict.NOT)):
        made = Planted(tmp_path / str(right))
        for figure, one in ((PUMA_28, right), (RANDOM_28, right + 1)):
            made.plant(figure, 1 - one / 500 if failures else one / 500, n=500)
        found = Ratio((Cell(PUMA_28),), (Cell(RANDOM_28),), 10.0, failures=failures).judge(Results(made.written()))
        assert found.verdict is verdict
        assert found.ours is not None


def test_a_gap_within_its_interval_holds_weaker(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(RANDOM_28, 0.95, n=60)
    made.plant(PUMA_28, 0.90, n=60)
    results = Results(made.written())
    assert Gap((Cell(RANDOM_28, 0.992),), (Cell(PUMA_28, 0.908),)).judge(results).verdict is Verdict.WEAKER
    assert Gap((Cell(RANDOM_28, 0.992),), (Cell(PUMA_28, 0.1),)).judge(results).verdict is Verdict.NOT
    assert Gap((Cell(RANDOM_28),), (Cell(PUMA_28),)).judge(results).verdict is Verdict.NOT


def test_a_gain_on_long_corridors_is_more_than_the_absence_of_a_loss(tmp_path: Path) -> None:
    """Dead-end filling that costs short corridors and gives long ones nothing has no gain that could grow."""
    made = Planted(tmp_path)
    for policy, short in (("top1", 0.9), ("dead_end_filling", 0.8)):
        made.plant(ShareRight("maze", "puma", policy, "corridor>=4"), short)
        made.plant(ShareRight("maze", "puma", policy, "corridor>=30"), 0.3)
    judged = claim_named("maze.puma.widening").judge(Results(made.written()))
    assert [finding.verdict for finding in judged.findings] == [Verdict.HOLDS, Verdict.NOT]
    assert judged.verdict is Verdict.NOT


def test_nothing_fails_so_nothing_is_recovered(tmp_path: Path) -> None:
    """A model that is right in every order says nothing about recovery, whichever claim asks."""
    made = Planted(tmp_path)
    lsb = ShareRight("addition", "puma", "lsb", "chain>=28")
    for figure in (PUMA_28, lsb):
        made.plant(figure, 1.0, n=500)
    results = Results(made.written())
    for check in (Recovery(Cell(PUMA_28, 0.908), Cell(lsb, 1.0)), Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))):
        found = check.judge(results)
        assert found.verdict is Verdict.MOOT
        assert "nothing fails" in found.remark


def test_a_wide_interval_makes_no_level_hold(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for seed, value in ((42, 0.2), (43, 1.0)):
        made.plant(PUMA_28, value, seed=seed, n=500)
    assert Level(Cell(PUMA_28, 0.908, 500)).judge(Results(made.written())).verdict is Verdict.NOT


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ((0.9, 0.9), Verdict.HOLDS),
        ((0.86, 0.94), Verdict.HOLDS),
        ((0.84, 0.96), Verdict.WEAKER),
        ((0.7, 1.0), Verdict.WEAKER),
        ((0.5, 1.0), Verdict.NOT),
    ],
)
def test_seeds_that_disagree_do_not_bear_a_level_out_by_their_mean(
    values: tuple[float, float], verdict: Verdict, tmp_path: Path
) -> None:
    """Two seeds that are far off on either side have a wide interval and the right mean."""
    made = Planted(tmp_path)
    for seed, value in zip((42, 43), values, strict=True):
        made.plant(PUMA_28, value, seed=seed, n=500)
    results = Results(made.written())
    found = Level(Cell(PUMA_28, 0.9, 500)).judge(results)
    assert found.verdict is verdict
    told = f"the seeds disagree: {values[0]:.3g} (42), {values[1]:.3g} (43)"
    assert (found.remark == told) is (verdict is Verdict.WEAKER)


def test_a_seed_with_a_handful_of_cases_says_nothing_against_the_others(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(PUMA_28, 0.9, seed=42, n=500)
    made.plant(PUMA_28, 0.0, seed=43, n=1)
    level = Level(Cell(PUMA_28, 0.9, 500))
    assert level.judge(Results(made.written())).verdict is Verdict.HOLDS
    made.plant(PUMA_28, 0.5, seed=43, n=10)
    assert level.judge(Results(made.written())).verdict is Verdict.WEAKER


@pytest.mark.parametrize(("apart", "verdict"), [(0.0, Verdict.HOLDS), (0.02, Verdict.HOLDS), (0.03, Verdict.WEAKER)])
@pytest.mark.parametrize("rule", [AtLeast, AtMost])
def test_seeds_that_disagree_do_not_bear_a_bound_out_by_their_mean(
    rule: type[AtLeast | AtMost], apart: float, verdict: Verdict, tmp_path: Path
) -> None:
    made = Planted(tmp_path)
    for seed, value in ((42, 0.9 - apart), (43, 0.9 + apart)):
        made.plant(PUMA_28, value, seed=seed, n=500)
    assert rule(Cell(PUMA_28), 0.9).judge(Results(made.written())).verdict is verdict


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ("HH", "H"),
        ("HW", "W"),
        ("HN", "N"),
        ("HHN", "W"),
        ("NNW", "N"),
        ("NHU", "U"),
        ("HHM", "M"),
        ("NM", "N"),
        ("MU", "U"),
    ],
)
def test_verdict_over_several_checks(verdicts: str, expected: str) -> None:
    by_letter = dict(zip("HWNMU", Verdict, strict=True))
    assert overall([by_letter[letter] for letter in verdicts]) is by_letter[expected]
