"""The ledger: every claim gives every verdict on results made for it, and the right records count."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from statistics import stdev
from typing import Any

import pytest

from hardtail.statistics import wilson
from hardtail.study.claims import (
    Claim,
    Results,
    Verdict,
    addition,
    all_claims,
    claim_named,
    countdown,
    discussion,
    listops,
    maze,
    sudoku,
)
from hardtail.study.claims.addition_commits import median
from hardtail.study.claims.base import Cell, overall
from hardtail.study.claims.combined import Pooled, Weighted
from hardtail.study.claims.differences import contrast
from hardtail.study.claims.evidence import DIAGNOSED
from hardtail.study.claims.figures import Accuracy, Figure, LateLoss, Profiled, Reached
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, Ratio, Recovery, Unrecovered
from hardtail.study.store import Store
from tests.planted_results import STEPS, Planted, as_printed, opposite, planted, together, weaker

NOT_BORNE_OUT = {
    "maze.random.high": Verdict.WEAKER,
    "countdown.sequential": Verdict.WEAKER,
    "sudoku.orders.worse": Verdict.WEAKER,
    "sudoku.orders.propagation-ahead": Verdict.WEAKER,
}
"""Statements that the paper's own tables contradict in places; the claim's note says so."""


# -- the contract over all claims -----------------------------------------------------------------------------------

EVERY = pytest.mark.parametrize("claim", all_claims().values(), ids=lambda claim: claim.id)


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
    schemes = {part.scheme for figure in values for part in _recorded(figure)}
    if len(schemes) == 1:
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
        if any(check.told is None and isinstance(check, Gap) for check in claim.checks):
            assert claim.reports, claim.id


def test_many_figures_are_told_by_their_range(tmp_path: Path) -> None:
    """Ours as well as the paper's; differences as differences."""
    for name, paper in (
        ("addition.papl5.zero", "0 to 0.006"),
        ("maze.puma.recovered", "≥ 0.91; 0.884 → 0.952"),
        ("sudoku.orders.worse", "18 differences from -0.013 to +0.184"),
    ):
        assert claim_named(name).paper == paper
    claim = claim_named("addition.papl5.zero")
    values = together(claim, as_printed) | {Accuracy("addition", "papl5", "top1", "chain>=4"): 0.5}
    judged = claim.judge(planted(tmp_path, values))
    assert judged.ours == "10 figures from 0.000 to 0.500: 9 hold, 1 does not hold"


def test_ids_are_unique() -> None:
    """A later claim would hide an earlier one."""
    parts = (addition, maze, listops, countdown, sudoku, discussion)
    assert len(all_claims()) == sum(len(part.claims()) for part in parts)


# -- which records count --------------------------------------------------------------------------------------------

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


@pytest.mark.parametrize(
    ("name", "values", "told"),
    [("chain_masked", (0.3, 0.9), (0.6, 0.0, 1.0)), ("long_step", (8.0, 29.0), (18.5, 0.0, 32.0))],
)
def test_no_interval_leaves_what_a_figure_can_be(
    name: str, values: tuple[float, float], told: tuple[float, ...], tmp_path: Path
) -> None:
    """Two seeds far apart make a wide one; a part of a chain still lies between nothing and all, a step among 33."""
    made = Planted(tmp_path)
    figure = median("puma", name)
    for seed, value in zip((42, 43), values, strict=True):
        made.plant(figure, value, seed=seed)
    found = figure.estimate(Results(made.written()))
    assert found is not None
    assert (found.mean, found.low, found.high) == pytest.approx(told)


def test_few_failures_that_stay_are_no_collapse(tmp_path: Path) -> None:
    """One in ten that no order repairs is less than the paper's 97 in 100."""
    made = Planted(tmp_path)
    lsb = Accuracy("addition", "puma", "lsb", "chain>=28")
    check = Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03))
    for figure in (PUMA_28, lsb):
        made.plant(figure, 0.9, n=500)
    assert check.judge(Results(made.written())).verdict is Verdict.WEAKER


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
    """A model that is right in every order shows no recovery, and no failure that could not be recovered."""
    made = Planted(tmp_path)
    lsb = Accuracy("addition", "puma", "lsb", "chain>=28")
    for figure in (PUMA_28, lsb):
        made.plant(figure, 1.0, n=500)
    results = Results(made.written())
    assert Recovery(Cell(PUMA_28, 0.908), Cell(lsb, 1.0)).judge(results).verdict is Verdict.NOT
    assert Unrecovered(Cell(PUMA_28, 0.026), Cell(lsb, 0.03)).judge(results).verdict is Verdict.NOT


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


def test_only_plain_decodes_count_and_of_those_the_largest(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for value, n in ((0.9, 500), (0.8, 1000), (0.7, 1000), (0.6, 100)):
        made.plant(PUMA_28, value, n=n)
    run = next(iter(made.runs))
    plain = list(made.evaluations[run])
    strange = {"commit_rule": "5 a step"}, {"temperature": 1.0}, {"restrict": True}, {"decode_precision": "bf16"}
    for change in strange:
        made.evaluations[run] += [record | change | {"n": 5000} for record in plain]
    (sample,) = PUMA_28.samples(Results(made.written()))
    assert (sample.value, sample.n) == (0.7, 1000)
    made.evaluations[run] += [record | {"step": 7, "exact_match": 0.1} for record in plain]  # of later weights
    assert [(sample.value, sample.n) for sample in PUMA_28.samples(Results(made.written()))] == [(0.1, 1000)]


def test_weights_are_those_of_the_paper_unless_told(tmp_path: Path) -> None:
    """Tables: the selected weights; addition's wrong commits: the last; the text as written: the last throughout."""
    commits = next(figure for figure in _figures("addition.commits.masked.puma") if isinstance(figure, Profiled))
    for reading, tables in (("release", "best_probe"), ("paper", "last")):
        made = Planted(tmp_path / reading, reading=reading)
        for kind, value in (("last", 0.25), ("best_probe", 0.75)):
            made.plant(PUMA_28, value, kinds=[kind])
            made.plant(commits, value, kinds=[kind])
        store = made.written()
        held = Results(store, "paper" if reading == "paper" else "release")
        assert [sample.checkpoint for sample in PUMA_28.samples(held)] == [tables]
        assert [sample.checkpoint for sample in commits.samples(held)] == ["last"]
        told = Results(store, held.reading, "best_probe")
        assert [sample.value for figure in (PUMA_28, commits) for sample in figure.samples(told)] == [0.75, 0.75]
        assert not PUMA_28.samples(Results(store, "release" if reading == "paper" else "paper"))


def test_tf32_runs_come_before_fp32_runs(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    made.plant(PUMA_28, 0.9)
    plain = made.runs["addition-puma-s42"]
    assert PUMA_28.samples(Results(made.written()))[0].run == "addition-puma-s42"
    made.runs["faster"] = plain | {"name": "faster", "arm": "addition-puma-tf32"}
    made.evaluations["faster"] = [made.evaluations["addition-puma-s42"][1] | {"exact_match": 0.5}]
    assert [sample.run for sample in PUMA_28.samples(Results(made.written()))] == ["faster"]


MASKED = Profiled(
    "addition", "puma", ("profile", "wrong_commits", "top", "chain_masked_median"), "masked", usual="last"
)


def _diagnosed(made: Planted, *kept: tuple[list[str], int, float, dict[str, Any]]) -> Results:
    """A run with several diagnoses in this order: strata, instances, value, what else they say."""
    made.plant(MASKED, 0.0)
    store, (run,) = made.written(), made.runs
    head = {"policy": "top1", "checkpoint": "last"}
    lines = [
        head
        | {"strata": strata, "result": {"instances": n}}
        | {"profile": {"wrong_commits": {"top": {"chain_masked_median": value}}}}
        | other
        for strata, n, value, other in kept
    ]
    (store.folder / run / "diagnoses.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Results(store)


def test_the_diagnosis_that_counts_is_of_the_strata_of_its_claims(tmp_path: Path) -> None:
    """Neither a large one of a single stratum, nor one of more strata, nor one of other instances or a sampled one."""
    asked = list(DIAGNOSED["addition"])
    results = _diagnosed(
        Planted(tmp_path),
        (asked, 2700, 0.1, {}),
        (asked[::-1], 2700, 0.2, {}),
        (asked, 900, 0.3, {}),
        (["chain>=28"], 50_000, 0.4, {}),
        (["natural", *asked], 50_000, 0.5, {}),
        (asked, 50_000, 0.6, {"data_seed": 7}),
        (asked, 50_000, 0.7, {"temperature": 1.0}),
    )
    assert [sample.value for sample in MASKED.samples(results)] == [0.2]


def test_a_diagnosis_of_more_strata_counts_where_there_is_no_other(tmp_path: Path) -> None:
    results = _diagnosed(Planted(tmp_path), (["natural", *DIAGNOSED["addition"]], 3000, 0.5, {}))
    assert [sample.value for sample in MASKED.samples(results)] == [0.5]


def test_a_diagnosis_of_some_strata_measures_no_claim(tmp_path: Path) -> None:
    results = _diagnosed(Planted(tmp_path), (["chain>=28"], 50_000, 1.0, {}))
    judged = claim_named("addition.commits.masked.puma").judge(results)
    assert judged.verdict is Verdict.UNMEASURED
    assert "not on all of chain>=4" in judged.findings[0].remark


def test_a_profile_without_failures_is_not_measured_and_says_so(tmp_path: Path) -> None:
    claim = claim_named("addition.commits.step.puma")
    (figure,) = _figures(claim.id)
    made = Planted(tmp_path)
    made.plant(figure, 3.0)
    for diagnosis in made.diagnoses.values():
        diagnosis["profile"]["wrong_commits"]["top"]["long_step_median"] = None
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.UNMEASURED
    assert "nothing to take it of" in judged.findings[0].remark


def test_parts_with_nothing_to_take_them_of_leave_a_verdict_that_others_settle(tmp_path: Path) -> None:
    """PUMA has no wrong g or k cells, so that its signs cannot be like random masking's; place and rate are unlike."""
    claim = claim_named("addition.commits.same-profile")
    values = together(claim, as_printed)

    def results(folder: str, changed: dict[Figure, float]) -> Results:
        made = Planted(tmp_path / folder)
        for figure, value in (values | changed).items():
            made.plant(figure, value)
        for (run, _, _), diagnosis in made.diagnoses.items():
            if run == "addition-puma-s42":
                diagnosis["profile"]["wrong_commits"]["top"] |= {"plus_one_at_g": None, "minus_one_at_k": None}
        return Results(made.written())

    unlike: dict[Figure, float] = {
        figure: 0.0 for figure in values if isinstance(figure, Profiled) and figure.scheme == "puma"
    }
    judged = claim.judge(results("unlike", unlike))
    assert [finding.moot for finding in judged.findings] == [False, True, True, False, False]
    assert (judged.verdict, judged.seeds) == (Verdict.NOT, 1)
    alike = claim.judge(results("alike", {}))
    assert (alike.verdict, alike.seeds) == (Verdict.UNMEASURED, 0)


def _wrong_digits(made: Planted, scheme: str, roles: Mapping[str, Mapping[str, int]]) -> None:
    """A diagnosis of addition with so many wrong digits, by role and direction."""
    made.plant(Profiled("addition", scheme, ("result", "instances"), "sums"), 2700)
    no_signs = {"plus_one": 0, "minus_one": 0}
    failures = sum(sum(signs.values()) for signs in roles.values())
    counted = {
        role: no_signs | dict(signs) | {"failures": sum(signs.values())}
        for role, signs in ({"g": no_signs, "k": no_signs} | dict(roles)).items()
    }
    for (run, _, _), diagnosis in made.diagnoses.items():
        if run.startswith(f"addition-{scheme}-"):
            diagnosis["profile"] = {"wrong_commits": {"top": {"failures": failures, "roles": counted}}}


@pytest.mark.parametrize(
    ("at_g", "at_k", "verdict"),
    [
        ({"plus_one": 6, "minus_one": 5}, {"plus_one": 4, "minus_one": 7}, Verdict.HOLDS),
        ({"plus_one": 500}, {"minus_one": 500}, Verdict.NOT),
        ({"minus_one": 500}, {"plus_one": 500}, Verdict.NOT),
    ],
)
def test_a_consistent_sign_is_one_either_way(
    at_g: dict[str, int], at_k: dict[str, int], verdict: Verdict, tmp_path: Path
) -> None:
    made = Planted(tmp_path)
    _wrong_digits(made, "papl", {"g": at_g, "k": at_k})
    assert claim_named("addition.papl.commits.no-sign").judge(Results(made.written())).verdict is verdict


def test_off_by_one_counts_both_ways_in_every_cell(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    _wrong_digits(made, "random", {"g": {"plus_one": 2, "minus_one": 1}, "k": {"minus_one": 1}})
    _wrong_digits(made, "puma", {"carry_out": {"plus_one": 2}, "p_above_p": {"plus_nine": 2}})
    claim = claim_named("addition.commits.by-one")
    estimate = claim.checks[0].cells[0].figure.estimate(Results(made.written()))
    assert estimate is not None
    assert estimate.mean == pytest.approx(6 / 8)


def test_alike_but_no_more_often_is_not_the_same_profile(tmp_path: Path) -> None:
    claim = claim_named("addition.commits.same-profile")
    values = together(claim, as_printed)
    failed = [figure for figure in values if isinstance(figure, Profiled) and figure.path == ("profile", "failures")]
    assert len(failed) == 2
    judged = claim.judge(planted(tmp_path, values | dict.fromkeys(failed, 0.1)))
    assert judged.verdict is Verdict.WEAKER


def test_a_median_says_how_many_failures_it_is_over(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    (masked,), (step,) = _figures("addition.commits.masked.puma"), _figures("addition.commits.step.puma")
    made.plant(masked, 1.0)
    made.plant(step, 3.0)
    for diagnosis in made.diagnoses.values():
        diagnosis["profile"]["wrong_commits"]["top"] |= {"failures": 7, "long_failures": 5}
    results = Results(made.written())
    assert [sample.n for figure in (masked, step) for sample in figure.samples(results)] == [7, 5]
    assert all(sample.interval is None for figure in (masked, step) for sample in figure.samples(results))


def test_a_run_that_never_converges_counts_with_its_last_step(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    figure = Reached("addition", "random")
    made.plant(figure, STEPS + 1)
    assert [sample.value for sample in figure.samples(Results(made.written()))] == [STEPS]


def _figures(name: str) -> list[Figure]:
    return [cell.figure for check in claim_named(name).checks for cell in check.cells]
