"""The ledger: every claim gives every verdict on results made for it, by the rules that it names."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from hardtail.measuring.statistics import wilson
from hardtail.study.claims import Claim, Results, Verdict, all_claims, claim_named
from hardtail.study.claims.base import Cell, overall
from hardtail.study.claims.combined import Pooled, Weighted
from hardtail.study.claims.confidence_shortcut.addition import median
from hardtail.study.claims.differences import contrast
from hardtail.study.claims.facts import Known, OfModel
from hardtail.study.claims.figures import Accuracy, Figure, LateLoss, Profiled, Reached
from hardtail.study.claims.ledger import FILES, source_named, the_paper
from hardtail.study.claims.ours.figures import Decoded
from hardtail.study.claims.ours.remedy import ADDITION
from hardtail.study.claims.plain import Computed, Learns
from hardtail.study.claims.recovery import Recovery, Unrecovered
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, Ratio, similar
from hardtail.study.claims.source_file import read_source
from hardtail.study.store import Store
from tests.planted_results import MANY, STEPS, Planted, as_printed, gate_of, opposite, planted, together, weaker

NOT_BORNE_OUT = {
    "maze.random.high": Verdict.WEAKER,
    "countdown.sequential": Verdict.WEAKER,
    "sudoku.orders.worse": Verdict.WEAKER,
    "sudoku.orders.propagation-ahead": Verdict.WEAKER,
    "abstract.alignment": Verdict.WEAKER,
}
"""Statements that the paper's own tables contradict in places; the claim's note says so."""


# -- the contract over all claims -----------------------------------------------------------------------------------

COMPUTED = [claim for claim in all_claims().values() if any(isinstance(check, Computed) for check in claim.checks)]
RECORDED = [claim for claim in all_claims().values() if claim not in COMPUTED]
EVERY = pytest.mark.parametrize("claim", RECORDED, ids=lambda claim: claim.id)


@EVERY
def test_not_measured_without_results(claim: Claim, tmp_path: Path) -> None:
    (tmp_path / "index.jsonl").write_text("")
    judged = claim.judge(Results(Store(tmp_path)))
    assert judged.verdict is Verdict.UNMEASURED
    assert judged.ours is None
    assert judged.seeds == 0


@EVERY
def test_not_measured_as_long_as_a_scheme_is_missing(claim: Claim, tmp_path: Path) -> None:
    """A sentence about several schemes is not judged by some of them."""
    values = together(claim, as_printed)
    parts = [part for figure in values for part in _recorded(figure) if not isinstance(part, Known)]
    schemes = {part.scheme for part in parts}
    if len(schemes) <= 1:
        return
    made = Planted(tmp_path)
    for figure, value in values.items():
        for part in _recorded(figure):
            if part.scheme != max(schemes):
                made.plant(part, value)
    assert claim.judge(Results(made.written())).verdict is Verdict.UNMEASURED


@EVERY
def test_holds_on_the_papers_own_numbers(claim: Claim, tmp_path: Path) -> None:
    judged = claim.judge(planted(tmp_path, together(claim, as_printed)))
    assert judged.verdict is NOT_BORNE_OUT.get(claim.id, Verdict.HOLDS), judged.findings
    assert judged.ours is not None
    assert judged.seeds == 2
    assert claim.caveat or claim.id not in NOT_BORNE_OUT


@EVERY
def test_does_not_hold_on_the_opposite(claim: Claim, tmp_path: Path) -> None:
    judged = claim.judge(planted(tmp_path, together(claim, opposite)))
    assert judged.verdict is Verdict.NOT, judged.findings


@EVERY
def test_holds_weaker_on_a_weaker_effect(claim: Claim, tmp_path: Path) -> None:
    values = together(claim, lambda check: weaker(check) or as_printed(check))
    judged = claim.judge(planted(tmp_path, values))
    possible = any(weaker(check) for check in claim.checks)
    assert judged.verdict is (Verdict.WEAKER if possible else Verdict.HOLDS), judged.findings


def _recorded(figure: Figure) -> list[Any]:
    return list(figure.parts) if isinstance(figure, Weighted | Pooled) else [figure]


def test_every_claim_says_what_and_where() -> None:
    listed = list(all_claims().values())
    assert len(listed) > 100
    for claim in listed:
        assert claim.sentence.endswith(".")
        assert not claim.sentence[0].islower()
        assert any(mark in claim.where for mark in ("§", "Table", "App.", "abstract")), claim.id
        assert claim.paper
        assert claim.checks


PRINTED_BOUNDS = (0.999, 0.99, 0.97, 0.91, 1.0, 0.0)


def test_a_bound_of_our_own_is_not_said_to_be_the_papers() -> None:
    """Where the paper says *nearly* or *consistently*, its words stand in its column, and the note has our bound."""
    for claim in all_claims().values():
        bounds = {check.bound for check in claim.checks if isinstance(check, AtLeast | AtMost)}
        if bounds - set(PRINTED_BOUNDS):
            assert claim.reports, claim.id
            assert "ead as" in claim.caveat or claim.id == "maze.commits.baseline", claim.id
        if any(check.paper_number is None and isinstance(check, Gap) for check in claim.checks):
            assert claim.reports, claim.id


def test_many_figures_are_told_by_their_range(tmp_path: Path) -> None:
    """Ours as well as the paper's; differences as differences."""
    for name, paper in (
        ("addition.papl5.zero", "0 to 0.006"),
        ("maze.commits.two-neighbours", "0.96; 0"),
        ("sudoku.orders.worse", "18 differences from -0.013 to +0.184"),
    ):
        assert claim_named(name).paper == paper
    claim = claim_named("addition.papl5.zero")
    values = together(claim, as_printed) | {Accuracy("addition", "papl5", "top1", "chain>=4"): 0.5}
    judged = claim.judge(planted(tmp_path, values))
    assert judged.ours == "10 figures from 0.000 to 0.500: 9 hold, 1 does not hold"


def test_ids_are_unique() -> None:
    """A later claim would hide an earlier one."""
    assert len(all_claims()) == len(the_paper().claims())


# -- intervals and verdicts -----------------------------------------------------------------------------------------

PUMA_28 = Accuracy("addition", "puma", "top1", "chain>=28")
RANDOM_28 = Accuracy("addition", "random", "top1", "chain>=28")


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
    assert judged.verdict is Verdict.UNMEASURED
    assert "only 9 cases" in judged.findings[0].remark
    made.plant(median("puma", "chain_masked"), 1.0, n=10)
    assert claim.judge(Results(made.written())).verdict is Verdict.HOLDS


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
        ("floor", 0.01, 10_000, Verdict.UNMEASURED),
    ):
        made = Planted(tmp_path / folder)
        for figure in (RANDOM_28, PUMA_28):
            made.plant(figure, value, n=n)
        assert check.judge(Results(made.written())).verdict is verdict


def test_few_failures_that_stay_are_no_collapse(tmp_path: Path) -> None:
    """One in ten that no order repairs is less than the paper's 97 in 100."""
    made = Planted(tmp_path)
    lsb = Accuracy("addition", "puma", "lsb", "chain>=28")
    check = Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))
    for figure in (PUMA_28, lsb):
        made.plant(figure, 0.9, n=500)
    assert check.judge(Results(made.written())).verdict is Verdict.WEAKER


def test_what_no_order_gets_right_is_not_shown_to_stay_unrepaired(tmp_path: Path) -> None:
    """Both at the floor: nothing tells a failure that no order repairs from a model that cannot do it at all."""
    lsb = Accuracy("addition", "puma", "lsb", "chain>=28")
    check = Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))
    for folder, after, verdict in (("floor", 0.01, Verdict.UNMEASURED), ("above", 0.011, Verdict.HOLDS)):
        made = Planted(tmp_path / folder)
        made.plant(PUMA_28, 0.006)
        made.plant(lsb, after)
        found = check.judge(Results(made.written()))
        assert (found.verdict, found.moot) == (verdict, folder == "floor")


def test_few_failures_make_no_ratio_certain(tmp_path: Path) -> None:
    """No failure against seven is a ratio of 15 with half a case added, and may well be none."""
    made = Planted(tmp_path)
    made.plant(RANDOM_28, 1.0, n=500)
    made.plant(PUMA_28, 0.986, n=500)
    found = Ratio((Cell(PUMA_28),), (Cell(RANDOM_28),), 10.0, failures=True).judge(Results(made.written()))
    assert found.verdict is Verdict.WEAKER
    assert found.ours is not None
    assert found.ours.startswith("15 times [0.8")


def test_a_gap_within_its_interval_holds_weaker(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(RANDOM_28, 0.95, n=60)
    made.plant(PUMA_28, 0.90, n=60)
    results = Results(made.written())
    assert Gap((Cell(RANDOM_28, 0.992),), (Cell(PUMA_28, 0.908),)).judge(results).verdict is Verdict.WEAKER
    assert Gap((Cell(RANDOM_28, 0.992),), (Cell(PUMA_28, 0.1),)).judge(results).verdict is Verdict.NOT
    assert Gap((Cell(RANDOM_28),), (Cell(PUMA_28),)).judge(results).verdict is Verdict.NOT


def test_nothing_fails_so_nothing_is_recovered(tmp_path: Path) -> None:
    """A model that is right in every order says nothing about recovery, whichever claim asks."""
    made = Planted(tmp_path)
    lsb = Accuracy("addition", "puma", "lsb", "chain>=28")
    for figure in (PUMA_28, lsb):
        made.plant(figure, 1.0, n=500)
    results = Results(made.written())
    for check in (Recovery(Cell(PUMA_28, 0.908), Cell(lsb, 1.0)), Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))):
        found = check.judge(results)
        assert (found.verdict, found.moot) == (Verdict.UNMEASURED, True)
        assert "nothing fails" in found.remark


def test_a_wide_interval_makes_no_level_hold(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for seed, value in ((42, 0.2), (43, 1.0)):
        made.plant(PUMA_28, value, seed=seed, n=500)
    assert Level(Cell(PUMA_28, 0.908, 500)).judge(Results(made.written())).verdict is Verdict.NOT


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [("HH", "H"), ("HW", "W"), ("HN", "N"), ("HHN", "W"), ("NNW", "N"), ("NHU", "U")],
)
def test_verdict_over_several_checks(verdicts: str, expected: str) -> None:
    by_letter = {"H": Verdict.HOLDS, "W": Verdict.WEAKER, "N": Verdict.NOT, "U": Verdict.UNMEASURED}
    assert overall([by_letter[letter] for letter in verdicts]) is by_letter[expected]


# -- the null -------------------------------------------------------------------------------------------------------


def _null(folder: Path, accuracy: float, *, learned: bool, claims: Sequence[Claim] = RECORDED) -> Results:
    """A model with one accuracy in all strata and orders, and schemes that nothing tells apart, for two seeds."""
    made, failures = Planted(folder), round(MANY * (1 - accuracy))
    cells = [cell for claim in claims for check in claim.checks for cell in check.cells]
    figures = dict.fromkeys(part for cell in cells for part in _recorded(cell.figure))
    of_models = [figure for figure in figures if not isinstance(figure, Known)]
    for figure, seed in product(of_models, (42, 43)):
        value = accuracy if isinstance(figure, Accuracy) else STEPS if isinstance(figure, Reached) else 0.0
        described = isinstance(figure, Profiled) and not any("instances" in path for path in figure.of)
        made.plant(figure, value, seed=seed, n=failures if described else MANY)
    learn = [check for claim in claims for check in claim.checks if isinstance(check, Learns)]
    for (task, scheme), seed in product({(held.task, held.scheme) for held in [*of_models, *learn]}, (42, 43)):
        made.plant(gate_of(task, scheme), float(learned), seed=seed, n=2 * MANY)
    return Results(made.written())


def _holding(results: Results, claims: Sequence[Claim] = RECORDED) -> set[str]:
    return {claim.id for claim in claims if claim.judge(results).verdict in (Verdict.HOLDS, Verdict.WEAKER)}


ABOUT_NATURAL = {"addition.learned", "addition.natural"}
SAYS_ZERO = {
    "addition.papl.confidence.28",
    "addition.papl5.zero",
    *(f"addition.papl5.{order}.{chain}" for order in ("confidence", "lsb") for chain in (4, 12, 20, 24, 28)),
    "addition.papl.lsb.28",
    *(f"addition.{scheme}.random" for scheme in ("random", "papl", "puma", "papl5")),
}
"""Claims of no accuracy; of the rows in random order, four cells in five are printed as nothing."""
SAYS_PERFECT = {
    "addition.random.confidence",
    "addition.random.lsb",
    *(f"addition.{who}.{k}" for who in ("random.confidence", "random.lsb", "puma.lsb") for k in (4, 12, 20, 24, 28)),
    "maze.random.high",
    "maze.random.confidence",
    "maze.random.dead-end",
    "maze.papl.dead-end",
    "countdown.reveal",
    "countdown.table.reveal",
    "countdown.sequential",
    "listops.random-decode",
}
"""Claims of full accuracy, or of two orders that give the same above the floor."""


def test_the_null_loses(tmp_path: Path) -> None:
    """An untrained model bears out nothing; none of the hard tail right, or all of it, only what says just that."""
    assert _holding(_null(tmp_path / "untrained", 0.0, learned=False)) == set()
    assert _holding(_null(tmp_path / "zero", 0.0, learned=True)) == ABOUT_NATURAL | SAYS_ZERO
    assert _holding(_null(tmp_path / "perfect", 1.0, learned=True)) == ABOUT_NATURAL | SAYS_PERFECT
    assert not SAYS_ZERO & SAYS_PERFECT


def test_the_null_loses_in_facts_about_models(tmp_path: Path) -> None:
    """Weights that are the mean everywhere bear out nothing; nor do the paper's, of a model that has not learned."""
    claims = [claim_named(name) for name in ("addition.papl.starved", "addition.papl.starved.training")]
    of_models = {figure for claim in RECORDED for figure in together(claim, as_printed) if isinstance(figure, OfModel)}
    assert of_models == {figure for claim in claims for figure in together(claim, as_printed)}
    for claim, even, learned in product(claims, (True, False), (True, False)):
        made = Planted(tmp_path / f"{claim.id}-{even}-{learned}")
        for figure, value in together(claim, as_printed).items():
            made.plant(figure, 1.0 if even else value)
        for fact in made.facts:
            fact |= {"value": float(learned)} if fact["fact"].endswith(".natural") else {}
        for run in made.runs:
            made.gate(run, float(learned))
        judged = claim.judge(Results(made.written()))
        assert (judged.verdict in (Verdict.HOLDS, Verdict.WEAKER)) == (learned and not even), claim.id
        assert bool(judged.left_out) is not learned


LEARNED_ELSEWHERE = {"papl.default.addition"}
"""Claims that every seed learns."""


@pytest.mark.parametrize(
    ("accuracy", "learned", "holding"),
    [
        (0.0, False, set()),
        (0.0, True, LEARNED_ELSEWHERE),
        (1.0, True, LEARNED_ELSEWHERE | {"puma.as-good.addition", "ar.sudoku"}),
    ],
    ids=["untrained", "zero", "perfect"],
)
def test_the_null_loses_in_other_peoples_claims(
    accuracy: float, learned: bool, holding: set[str], tmp_path: Path
) -> None:
    claims = [claim for path in FILES.glob("*.toml") for claim in read_source(path).claims()]
    assert _holding(_null(tmp_path, accuracy, learned=learned, claims=claims), claims) == holding


OWN = source_named("ours").claims()
AS_GOOD = {f"remedy.repair.{model}" for model in ADDITION}
"""Claims that one decoder is no worse than another, in at most 33 passes."""


@pytest.mark.parametrize(
    ("accuracy", "learned", "holding"),
    [(0.0, False, set()), (1.0, False, set()), (0.0, True, set()), (1.0, True, AS_GOOD)],
    ids=["untrained", "unlearned", "zero", "perfect"],
)
def test_the_null_loses_in_our_own_claims(accuracy: float, learned: bool, holding: set[str], tmp_path: Path) -> None:
    """All decoders are equally good and take the passes of one cell a step, and no score tells anything."""
    made, value = Planted(tmp_path), {"exact_match": accuracy, "passes": 33.0, "auroc": 0.5}
    for figure in {cell.figure for claim in OWN for check in claim.checks for cell in check.cells}:
        assert isinstance(figure, Decoded)
        made.plant(figure, value[figure.metric])
    for run in made.runs:
        made.gate(run, float(learned))
    results = Results(made.written())
    assert _holding(results, OWN) == holding
    assert learned or all(claim.judge(results).left_out for claim in OWN)
