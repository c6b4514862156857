"""Rules of verdicts at their edges: what just holds, just holds weaker, and just does not; figures in words."""

from dataclasses import replace
from math import log10
from pathlib import Path

import pytest

from hardtail.measuring.statistics import Interval, wilson
from hardtail.study.claims import Results, Verdict
from hardtail.study.claims.base import Cell
from hardtail.study.claims.differences import contrast, log_ratio
from hardtail.study.claims.evidence import Estimate, Sample, Value, hull, mean_of, pooled_wilson
from hardtail.study.claims.figures import Reached, ShareRight
from hardtail.study.claims.plain import Computed
from hardtail.study.claims.recovery import Recovery, Unrecovered, repaired
from hardtail.study.claims.rules import AtLeast, AtMost, Level, Similar, above, of_effect
from tests.planted_results import Planted

HOLDS, WEAKER, NOT = Verdict.HOLDS, Verdict.WEAKER, Verdict.NOT
ONE, TWO = (ShareRight("addition", scheme, "top1", "chain>=28") for scheme in ("puma", "random"))


def estimate(mean: float, low: float | None = None, high: float | None = None) -> Estimate:
    return Estimate(mean, low, high, 1)


@pytest.mark.parametrize(
    ("ours", "paper", "verdict"),
    [
        (estimate(0.0, 0.0, 0.1), 0.1, NOT),
        (estimate(0.05, 0.001, 0.1), 0.1, HOLDS),
        (estimate(0.05 - 1e-10, 0.001, 0.1), 0.1, HOLDS),
        (estimate(0.049, 0.001, 0.1), 0.1, WEAKER),
        (estimate(0.05, 0.0, 0.1), 0.1, WEAKER),
        (estimate(0.049, 0.0, 0.1), 0.1, NOT),
        (estimate(0.049, 0.001, 0.1), None, HOLDS),
        (estimate(0.049, 0.0, 0.1), None, NOT),
        (estimate(0.049, 0.001, 0.1), 0.0, HOLDS),
        (estimate(0.049, 0.001, 0.1), -0.1, HOLDS),
        (estimate(0.05), 0.1, HOLDS),
        (estimate(0.049), 0.1, NOT),
        (estimate(0.049), None, WEAKER),
        (estimate(0.049), 0.0, WEAKER),
    ],
)
def test_an_effect(ours: Estimate, paper: float | None, verdict: Verdict) -> None:
    assert of_effect(ours, paper) is verdict


@pytest.mark.parametrize(
    ("ours", "n", "verdict"),
    [
        (estimate(0.55), None, WEAKER),
        (estimate(0.5501), None, NOT),
        (estimate(0.45), None, WEAKER),
        (estimate(0.4499), None, NOT),
        (estimate(0.525), None, HOLDS),
        (estimate(0.5251), None, WEAKER),
        (estimate(0.54, 0.525, 0.6), None, HOLDS),
        (estimate(0.54, 0.526, 0.6), None, WEAKER),
        (estimate(0.46, 0.4, 0.475), None, HOLDS),
        (estimate(0.46, 0.4, 0.474), None, WEAKER),
        (estimate(0.54, 0.53, 0.6), 100, HOLDS),  # Wilson's interval of 50 in 100 ends at .596
        (estimate(0.54, 0.53, 0.6), 10_000, WEAKER),  # and of 5,000 in 10,000 at .510
    ],
)
def test_a_level(ours: Estimate, n: int | None, verdict: Verdict) -> None:
    assert Level(Cell(ONE, 0.5, n))._verdict(ours) is verdict


@pytest.mark.parametrize(
    ("printed", "tolerance"), [(0.5, 0.05), (0.9, 0.05), (0.94, 0.03), (0.06, 0.03), (0.97, 0.02), (0, 0.02), (1, 0.02)]
)
def test_a_level_next_to_an_end(printed: float, tolerance: float) -> None:
    """What fails once in a hundred is not what fails once in twenty; a figure that is no share has no ends."""
    rule = Level(Cell(ONE, printed))
    assert rule._verdict(estimate(printed + tolerance, 0, 1)) is HOLDS
    assert rule._verdict(estimate(printed - tolerance, 0, 1)) is HOLDS
    assert rule._verdict(estimate(printed + tolerance + 0.001, 0, 1)) is NOT
    assert replace(rule, given=0.2)._verdict(estimate(printed + 0.2, 0, 1)) is HOLDS
    assert Level(Cell(Reached("addition", "puma"), printed)).tolerance == 0.05


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("beyond", "verdict"), [(-0.1, HOLDS), (0.0, HOLDS), (0.001, WEAKER), (0.02, WEAKER), (0.021, NOT)]
)
def test_a_bound(sign: int, beyond: float, verdict: Verdict) -> None:
    rule = (AtMost if sign > 0 else AtLeast)(Cell(ONE), 0.5)
    mean = 0.5 + sign * beyond
    assert rule._verdict(estimate(mean)) is verdict
    reached = sorted((mean, 0.5))
    assert rule._verdict(estimate(mean, *reached)) is (verdict if verdict is NOT else HOLDS)
    assert replace(rule, by_mean=True)._verdict(estimate(mean, *reached)) is verdict
    assert (AtMost(Cell(ONE), 0.5).printed, AtLeast(Cell(ONE), 1.0).printed) == ("≤ 0.5", "1")
    assert (AtMost(Cell(ONE), 0.0).printed, AtLeast(Cell(ONE), 0.5).printed) == ("0", "≥ 0.5")


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (estimate(0.0, -0.05, 0.05), HOLDS),
        (estimate(0.0, -0.051, 0.05), WEAKER),
        (estimate(0.0, -0.05, 0.051), WEAKER),
        (estimate(0.1, 0.0, 0.2), WEAKER),
        (estimate(-0.1001, -0.2, 0.0), NOT),
        (estimate(0.0), WEAKER),
    ],
)
def test_nearly_the_same(ours: Estimate, verdict: Verdict) -> None:
    assert Similar((Cell(ONE),), (Cell(TWO),))._verdict(ours) is verdict


def test_a_recovery() -> None:
    rule = Recovery(Cell(ONE, 0.5), Cell(TWO, 0.9))  # the paper repairs .8 of the failures, a gain of .4
    strong = estimate(0.36, 0.1, 0.5)
    assert rule._verdict(0.5, strong, 0.72) is HOLDS
    assert rule._verdict(0.5, strong, 0.719) is WEAKER
    assert rule._verdict(0.5, strong, 0.4) is WEAKER
    assert rule._verdict(0.5, strong, 0.399) is NOT
    assert rule._verdict(0.5, estimate(-0.1, -0.2, 0.0), 0.9) is NOT
    level = replace(rule, at_least=0.88)
    assert level._verdict(0.5, strong, 0.72) is HOLDS
    assert level._verdict(0.5, estimate(0.359, 0.1, 0.5), 0.72) is WEAKER
    assert repaired(0.5, 0.4) == 0.8
    assert repaired(1.0, 0.4) == 0.0
    assert rule.repaired_in_paper == pytest.approx(0.8)


def test_no_recovery() -> None:
    rule = Unrecovered(Cell(ONE, 0.5), Cell(TWO, 0.5))
    gain = estimate(0.0, -0.1, 0.1)
    for before, share, verdict in (
        (0.75, 0.25, HOLDS),
        (0.751, 0.25, WEAKER),
        (0.75, 0.251, WEAKER),
        (0.75, 0.5, WEAKER),
        (0.75, 0.501, NOT),
    ):
        assert rule._verdict(before, gain, share) is verdict


@pytest.mark.parametrize(("before", "moot"), [(0.99, False), (0.991, True)])
def test_ten_failures_are_enough_to_be_repaired(before: float, moot: bool, tmp_path: Path) -> None:
    made = Planted(tmp_path)
    after = ShareRight("addition", "puma", "lsb", "chain>=28")
    made.plant(ONE, before, n=1000)
    made.plant(after, 1.0, n=1000)
    found = Recovery(Cell(ONE, 0.5), Cell(after, 1.0)).judge(Results(made.written()))
    assert (found.verdict is Verdict.MOOT) == moot
    assert ("only 9 fail" in found.remark) == moot


def test_a_number_that_is_computed() -> None:
    def verdict(ours: float) -> Verdict:
        return Computed("it", ours, 0.1, 0.2, "said")._found(None).verdict  # type: ignore[arg-type]

    assert [verdict(ours) for ours in (0.1, 0.2, 0.0999, 0.2001)] == [HOLDS, HOLDS, NOT, NOT]


def test_means_and_intervals_over_seeds() -> None:
    values = [Value(0.9, 100), Value(0.6, 300)]
    assert mean_of(values) == pytest.approx(0.675)
    assert mean_of([Value(0.9, None), Value(0.6, 300)]) == pytest.approx(0.75)
    assert pooled_wilson([Value(0.5, None)]) is None
    interval = pooled_wilson(values)
    assert interval is not None
    assert interval == pytest.approx((0.6277, 0.7191), abs=1e-4)
    assert hull([None, Interval(0.2, 0.5), Interval(0.3, 0.7)]) == (0.2, 0.7)
    assert hull([None]) == (None, None)
    one = Estimate.of([Value(1.0, 50)], share=True)
    assert (one.mean, one.high, one.seeds) == (1.0, 1.0, 1)
    assert one.low == pytest.approx(0.9287, abs=1e-4)
    two = Estimate.of([Value(0.5, 50), Value(0.7, 50)], share=True)
    assert (two.low, two.high) == (0.0, 1.0)  # Student's interval of two seeds is wider than what a share can be
    assert Estimate.of([Value(7.0, None)], share=False).interval is None
    assert (one.text(), estimate(1234.5).text(), estimate(0.5).text(signed=True)) == (
        "1.000 [0.929, 1.000]",
        "1,234",
        "+0.500",
    )


def test_the_interval_of_one_record() -> None:
    sample = Sample("run", 42, "last", "top1", "natural", 200, 0.9, True, "abc", "cpu")
    assert sample.interval == wilson(180, 200)
    assert replace(sample, share=False).interval is None
    assert replace(sample, n=None).interval is None


def test_differences_and_ratios(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(ONE, 0.9, n=1000)
    made.plant(TWO, 0.6, n=500)
    results, plus, minus = Results(made.written()), (Cell(ONE, 0.9),), (Cell(TWO, 0.5),)
    found = contrast(plus, minus, results)
    assert found.mean == pytest.approx(0.3)
    assert found.interval == pytest.approx((0.2534, 0.3468), abs=2e-4)
    back = contrast(minus, plus, results)
    assert back.interval == pytest.approx((-0.3468, -0.2534), abs=2e-4)
    ratio = log_ratio(minus, plus, results, failures=True)
    failing = [(1000 * 0.1 + 0.5) / 1001, (500 * 0.4 + 0.5) / 501]
    assert ratio.mean == pytest.approx(log10(failing[1]) - log10(failing[0]))
    assert ratio.interval is not None
    assert 10**ratio.interval.low == pytest.approx(3.22, abs=0.02)
    assert 10**ratio.interval.high == pytest.approx(4.93, abs=0.02)
    assert above(*plus, *minus).paper_number == pytest.approx(0.4)
    assert above(*plus, *minus).printed == "+0.400"
    assert above(Cell(ONE), *minus).printed == "greater"


@pytest.mark.parametrize(
    ("mean", "signed", "shown"),
    [(99.94, False, "99.940"), (100.0, False, "100"), (-100.0, True, "-100"), (50_000.0, True, "+50,000")],
)
def test_large_figures_are_shown_without_decimals(mean: float, signed: bool, shown: str) -> None:
    assert Estimate(mean, None, None, 1).text(signed=signed) == shown


def test_the_interval_of_a_figure_is_shown_with_both_ends() -> None:
    assert Estimate(0.984, 0.9694, 0.9922, 3).text() == "0.984 [0.969, 0.992]"
    for one_end in (Estimate(0.5, None, 0.6, 1), Estimate(0.5, 0.4, None, 1)):
        assert one_end.text() == "0.500"
