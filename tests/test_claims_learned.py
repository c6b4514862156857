"""The ledger and runs that have not learned their task: they fail everywhere, and tell nothing of a hard tail."""

from itertools import product
from pathlib import Path

import pytest

from hardtail.study.claims import Claim, Results, Verdict, claim_named, judge
from hardtail.study.claims.evidence import gate_of
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.ledger import as_json, evidence_tables, ledger_table
from tests.planted_results import Planted, as_printed, together

NOT_MEASURED = "not measured on natural problems"
NATURAL = {scheme: ShareRight("addition", scheme, "top1", "natural") for scheme in ("random", "puma")}


def test_failures_of_a_run_that_has_not_learned_describe_no_hard_tail(tmp_path: Path) -> None:
    """Guessed digits fail everywhere: neither how often nor where is judged, and the ledger says whose they are."""
    profile, count = claim_named("addition.commits.same-profile"), claim_named("addition.commits.count")
    pooled = claim_named("addition.commits.chain-msb")
    made = Planted(tmp_path)
    for claim in (profile, count, pooled):
        for figure, value in together(claim, as_printed).items():
            made.plant(figure, value)
    made.plant(NATURAL["random"], 0.999)
    made.plant(NATURAL["puma"], 0.999)
    assert profile.judge(Results(made.written())).verdict is Verdict.HOLDS
    made.plant(NATURAL["puma"], 0.1)
    results = Results(made.written())
    for claim in (profile, pooled, count):
        judged = claim.judge(results)
        assert judged.verdict is Verdict.UNMEASURED
        assert any("no run has learned the task" in finding.remark for finding in judged.findings)


def two_seeds(folder: Path, claim: Claim) -> Planted:
    made = Planted(folder)
    for seed in (42, 43):
        for figure, value in together(claim, as_printed).items():
            made.plant(figure, value, seed=seed)
    return made


def test_only_more_often_is_of_runs_that_have_learned(tmp_path: Path) -> None:
    claim = claim_named("addition.commits.same-profile")
    made = two_seeds(tmp_path, claim)
    made.plant(NATURAL["puma"], 0.0, seed=43)
    judged = claim.judge(Results(made.written()))
    assert [finding.seeds for finding in judged.findings] == [1] * len(judged.findings)
    assert all("left out: addition-puma-s43 (not learned)" in finding.remark for finding in judged.findings)


def test_means_over_corridors_leave_out_what_is_not_learned(tmp_path: Path) -> None:
    claim = claim_named("maze.papl.recovered")
    made = Planted(tmp_path)
    for figure, value in together(claim, as_printed).items():
        made.plant(figure, value)
    made.plant(ShareRight("maze", "papl", "top1", "natural"), 0.0)
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.UNMEASURED
    assert "no run has learned the task" in judged.findings[-1].remark


def test_the_row_says_that_runs_were_left_out(tmp_path: Path) -> None:
    """A row whose runs do not count is not taken for one without records."""
    made = Planted(tmp_path)
    lower, absent = claim_named("addition.puma.lower"), claim_named("maze.puma.lower")
    for figure, value in together(lower, as_printed).items():
        made.plant(figure, value)
    made.plant(NATURAL["puma"], 0.0)
    results = Results(made.written())
    judged = judge(results, [lower, absent])
    rows = [
        dict(zip(table.columns, row, strict=True)) for table in [ledger_table(judged, results)] for row in table.rows
    ]
    unlearned, unrecorded = (str(row["ours"]).partition(": ")[2] for row in rows)
    assert (unlearned, unrecorded) == ("no run has learned the task", "no record")
    assert as_json(judged[0], results)["left_out"] == [{"run": "addition-puma-s42", "why": "not learned"}]
    assert as_json(judged[1], results)["left_out"] == []
    about = {row[0]: row[1] for row in evidence_tables(judged[0], results)[0].rows}
    assert about["left out"] == "addition-puma-s42 (not learned)"


def test_a_run_that_was_never_measured_on_natural_instances_has_not_shown_that_it_learned(tmp_path: Path) -> None:
    made = two_seeds(tmp_path, claim_named("addition.puma.confidence.28"))
    for records in made.evaluations.values():
        records[:] = [record for record in records if record["stratum"] != "natural"]
    judged = claim_named("addition.puma.confidence.28").judge(Results(made.written()))
    assert judged.verdict is Verdict.UNMEASURED
    assert dict(judged.left_out) == dict.fromkeys(made.runs, NOT_MEASURED)


def test_a_run_that_was_never_measured_is_not_called_unlearned(tmp_path: Path) -> None:
    """One that was measured and has not learned is next to it, each with its own reason."""
    claim = claim_named("addition.puma.confidence.28")
    made = two_seeds(tmp_path, claim)
    made.evaluations["addition-puma-s42"] = []
    results = Results(made.written())
    judged = claim.judge(results)
    assert (judged.verdict, judged.seeds) == (Verdict.HOLDS, 1)
    assert judged.findings[0].remark == f"left out: addition-puma-s42 ({NOT_MEASURED})"
    made.evaluations["addition-puma-s43"] = []
    results = Results(made.written())
    judged = claim.judge(results)
    table = ledger_table([judged], results)
    assert table.rows[0][table.columns.index("ours")] == judged.why
    assert judged.why.endswith(": no run has shown that it learned the task")
    made.plant(NATURAL["puma"], 0.0, seed=43)
    results = Results(made.written())
    about = {row[0]: row[1] for row in evidence_tables(claim.judge(results), results)[0].rows}
    assert about["left out"] == f"addition-puma-s42 ({NOT_MEASURED}); addition-puma-s43 (not learned)"


@pytest.mark.parametrize(
    ("task", "words"),
    [("sudoku", "not measured on tier=easy problems"), ("countdown", "not measured on heldout=1 problems")],
)
def test_the_gate_says_what_was_not_measured(task: str, words: str) -> None:
    assert gate_of(task).bars_share(None) == words


def test_how_many_seeds_learn_is_a_figure_of_its_own(tmp_path: Path) -> None:
    claim = claim_named("addition.learned")
    made = two_seeds(tmp_path, claim)
    assert claim.judge(Results(made.written())).says == "holds"
    made.plant(NATURAL["puma"], 0.0, seed=43)
    judged = claim.judge(Results(made.written()))
    assert (judged.verdict, judged.ours) == (Verdict.WEAKER, "2 of 2; 2 of 2; 1 of 2")
    assert not judged.left_out


def test_a_seed_that_was_not_measured_neither_learned_nor_failed_to(tmp_path: Path) -> None:
    claim = claim_named("addition.learned")
    made = two_seeds(tmp_path, claim)
    made.evaluations["addition-puma-s43"] = []
    judged = claim.judge(Results(made.written()))
    assert (judged.says, judged.ours) == ("one seed: holds", "2 of 2; 2 of 2; 1 of 1")
    assert judged.left_out == (("addition-puma-s43", NOT_MEASURED),)
    made.evaluations["addition-puma-s42"] = []
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.UNMEASURED
    assert "no run has shown that it learned" in judged.findings[-1].remark


def test_a_small_run_that_learned_nothing_decides_nothing_about_training(tmp_path: Path) -> None:
    """Its weights are recorded; the ledger names it and leaves it out."""
    claim, made = claim_named("addition.papl.starved.training"), Planted(tmp_path)
    for seed, cell in product((41, 42), (cell for check in claim.checks for cell in check.cells)):
        made.plant(cell.figure, 1.0, seed=seed)
    for fact in made.facts:
        fact |= {"value": 0.42} if fact["fact"].endswith(".natural") and fact["seed"] == 42 else {}
    judged = claim.judge(Results(made.written()))
    assert judged.left_out == (("addition-papl-small-s42", "not learned"),)
    assert judged.seeds == 1
    made.facts = [fact for fact in made.facts if not (fact["fact"].endswith(".natural") and fact["seed"] == 42)]
    assert claim.judge(Results(made.written())).left_out == (("addition-papl-small-s42", NOT_MEASURED),)


def test_no_seed_in_common_is_said(tmp_path: Path) -> None:
    claim = claim_named("addition.commits.chain-msb")
    made = two_seeds(tmp_path, claim)
    made.plant(NATURAL["random"], 0.0, seed=42)
    made.plant(NATURAL["puma"], 0.0, seed=43)
    remark = claim.judge(Results(made.written())).findings[0].remark
    assert "no seed has all" in remark
    assert "left out: addition-random-s42, addition-puma-s43 (not learned)" in remark


def test_a_pooled_share_lists_the_records_that_count_and_says_why_others_do_not(tmp_path: Path) -> None:
    """Seed 43 of random masking has no counterpart: it is no part of the share, and none of its records."""
    claim = claim_named("addition.commits.by-one")
    made = two_seeds(tmp_path, claim)
    made.plant(NATURAL["puma"], 0.0, seed=43)
    results = Results(made.written())
    judged = claim.judge(results)
    assert judged.seeds == 1
    assert {record["seed"] for record in as_json(judged, results, evidence=True)["records"]} == {42}
    assert dict(judged.left_out) == {
        "addition-puma-s43": "not learned",
        "addition-random-s43": "its seed lacks another part of the figure",
    }


@pytest.mark.parametrize("name", ["random-decode.collapses", "papl.collapses", "papl.unrecovered", "puma.lower"])
def test_a_scheme_that_has_learned_nothing_has_no_hard_tail(name: str, tmp_path: Path) -> None:
    claim = claim_named(f"addition.{name}")
    made = Planted(tmp_path)
    for figure, value in together(claim, as_printed).items():
        made.plant(figure, value)
    assert claim.judge(Results(made.written())).verdict is not Verdict.UNMEASURED
    for scheme in ("papl", "puma"):
        made.plant(ShareRight("addition", scheme, "top1", "natural"), 0.0)
    assert claim.judge(Results(made.written())).verdict is Verdict.UNMEASURED


def test_a_seed_that_has_learned_nothing_is_left_out_and_named(tmp_path: Path) -> None:
    claim = claim_named("addition.puma.lower")
    made = Planted(tmp_path)
    for figure, value in together(claim, as_printed).items():
        made.plant(figure, value, seed=42)
        assert isinstance(figure, ShareRight)
        made.plant(figure, 0.0 if figure.scheme == "puma" else value, seed=43)
    made.plant(NATURAL["puma"], 0.0, seed=43)
    judged = claim.judge(Results(made.written()))
    assert (judged.verdict, judged.seeds) == (Verdict.HOLDS, 1)
    assert "left out: addition-puma-s43 (not learned)" in judged.findings[0].remark
