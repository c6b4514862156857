"""The contract over all claims of the paper: each gives every verdict on results made for it."""

from pathlib import Path

import pytest

from hardtail.study.claims import Claim, Results, Verdict, all_claims, claim_named
from hardtail.study.claims.facts import Known
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.ledger import the_paper
from hardtail.study.claims.rules import AtLeast, AtMost, Gap
from hardtail.study.store import Store
from tests.planted_results import Planted, as_printed, opposite, planted, together, weaker
from tests.recorded_claims import RECORDED, recorded_parts

NOT_BORNE_OUT = {
    "maze.random.high": Verdict.WEAKER,
    "countdown.sequential": Verdict.WEAKER,
    "sudoku.orders.worse": Verdict.WEAKER,
    "sudoku.orders.propagation-ahead": Verdict.WEAKER,
    "abstract.alignment": Verdict.WEAKER,
}
"""Statements that the paper's own tables contradict in places; the claim's note says so."""
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
    parts = [part for figure in values for part in recorded_parts(figure) if not isinstance(part, Known)]
    schemes = {part.scheme for part in parts}
    if len(schemes) <= 1:
        return
    made = Planted(tmp_path)
    for figure, value in values.items():
        for part in recorded_parts(figure):
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


def test_claimed_numbers_are_written_as_ours_are() -> None:
    """Both as shares, and large ones in full."""
    assert claim_named("addition.commits.count").paper == "0.0144; 0.136"
    assert claim_named("data.training.countdown").paper == "~400,000"


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
    values = together(claim, as_printed) | {ShareRight("addition", "papl5", "top1", "chain>=4"): 0.5}
    judged = claim.judge(planted(tmp_path, values))
    assert judged.ours == "10 figures from 0.000 to 0.500: 9 hold, 1 does not hold"


def test_ids_are_unique() -> None:
    """A later claim would hide an earlier one."""
    assert len(all_claims()) == len(the_paper().claims())
