"""Which records count, and what figures of diagnoses and logs are made of."""

import json
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hardtail.core.records import LogLine, as_json
from hardtail.study.claims import Results, Verdict, claim_named
from hardtail.study.claims.confidence_shortcut.discussion import ready
from hardtail.study.claims.evidence import Estimate
from hardtail.study.claims.figures import Figure, LateLoss, Profiled, Reached, ShareRight
from hardtail.study.runs import diagnosed_strata
from tests.planted_results import STEPS, Planted, as_printed, diagnosis_of, planted, together, whole

PUMA_28 = ShareRight("addition", "puma", "top1", "chain>=28")


def test_only_plain_decodes_count_and_of_those_the_largest(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for value, n in ((0.9, 500), (0.8, 1000), (0.7, 1000), (0.6, 100)):
        made.plant(PUMA_28, value, n=n)
    run = next(iter(made.runs))
    plain = list(made.evaluations[run])
    strange: list[dict[str, Any]] = [
        *({"commit_rule": "5 a step"}, {"temperature": 1.0}, {"restrict": True}),
        *({"decode_seed": 1}, {"data_seed": 7, "seed": 42}),
    ]
    for change in strange:
        made.evaluations[run] += [record | change | {"n": 5000} for record in plain]
    rounded = [record | {"decode_precision": "bf16", "exact_match": 0.5} for record in plain if record["n"] == 1000]
    made.evaluations[run] += rounded  # of as many instances, fp32 counts
    (sample,) = PUMA_28.samples(Results(made.written()))
    assert (sample.value, sample.n) == (0.7, 1000)
    made.evaluations[run] += [record | {"n": 2000} for record in rounded]
    assert [(sample.value, sample.n) for sample in PUMA_28.samples(Results(made.written()))] == [(0.5, 2000)]
    made.evaluations[run] = made.evaluations[run][: -len(rounded)]
    later = [record for record in plain if record["stratum"] != "natural"]
    made.evaluations[run] += [record | {"step": 7, "exact_match": 0.1} for record in later]  # of later weights
    assert [(sample.value, sample.n) for sample in PUMA_28.samples(Results(made.written()))] == [(0.1, 1000)]


@pytest.mark.parametrize(
    ("arm", "from_file"),
    [
        ("puma-on-published", True),
        ("puma-quarter-on-published", True),
        ("puma-on-mine", False),
        ("puma", False),
        ("puma-quarter", False),
    ],
)
def test_records_on_a_file_count_for_runs_that_were_trained_on_one(arm: str, from_file: bool, tmp_path: Path) -> None:
    """Those of its test file alone, if there are any: not those on drawn problems, even of more, or on another file."""
    hard, hardest = (ShareRight("sudoku", arm, "top1", f"tier={tier}") for tier in ("hard", "top1pct"))
    made = Planted(tmp_path)
    for figure in (hard, hardest):
        made.plant(figure, 0.75, n=1000)
    run = next(iter(made.runs))
    on_file = {"data": {"file": "published-test.npz", "sha256": "00"}, "exact_match": 0.25, "n": 500}
    filed = [record | on_file for record in made.evaluations[run] if record["stratum"] != hardest.stratum]
    made.evaluations[run] += [record | {"n": 300, "exact_match": 0.1} for record in filed]
    made.evaluations[run] += [*filed, *(record | {"commit_rule": "5 a step", "n": 5000} for record in filed)]
    elsewhere = {"data": {"file": "rated.csv", "sha256": "00"}, "n": 9000, "exact_match": 0.9}
    made.evaluations[run] += [record | elsewhere for record in filed]
    made.evaluations[run] += [record | {"exact_match": 0.7} for record in made.evaluations[run] if "data" not in record]
    results = Results(made.written())
    (sample,), others = hard.samples(results), hardest.samples(results)
    assert (sample.value, sample.n) == ((0.25, 500) if from_file else (0.7, 1000))
    assert [(other.value, other.n) for other in others] == ([] if from_file else [(0.7, 1000)])


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
    made.evaluations["faster"] = [record | {"exact_match": 0.5} for record in made.evaluations["addition-puma-s42"]]
    assert [sample.run for sample in PUMA_28.samples(Results(made.written()))] == ["faster"]


MASKED = Profiled("addition", "puma", "profile.wrong_commits.lowest_index.chain_masked_median", "masked", usual="last")


def _diagnosed(made: Planted, *kept: tuple[list[str], int, float, dict[str, Any]]) -> Results:
    """A run with several diagnoses in this order: strata, instances, value, what else they say."""
    made.plant(MASKED, 0.0)
    store, (run,) = made.written(), made.runs
    lines = [
        whole(
            as_json(diagnosis_of("addition", strata, n, checkpoint="last"))
            | {"profile": {"wrong_commits": {"lowest_index": {"chain_masked_median": value}}}}
        )
        | other
        for strata, n, value, other in kept
    ]
    (store.folder / run / "diagnoses.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return Results(store)


def test_the_diagnosis_that_counts_is_of_the_strata_of_its_claims(tmp_path: Path) -> None:
    """Neither a large one of a single stratum, nor one of more strata, nor one of other instances or a sampled one."""
    asked = list(diagnosed_strata("addition"))
    results = _diagnosed(
        Planted(tmp_path),
        (asked, 2700, 0.1, {}),
        (asked[::-1], 2700, 0.2, {}),
        (asked, 900, 0.3, {}),
        (["chain>=28"], 50_000, 0.4, {}),
        (["natural", *asked], 50_000, 0.5, {}),
        (asked, 50_000, 0.6, {"data_seed": 7}),
        (asked, 50_000, 0.7, {"temperature": 1.0}),
        (asked, 50_000, 0.8, {"decode_seed": 1}),
    )
    assert [sample.value for sample in MASKED.samples(results)] == [0.2]


def test_a_diagnosis_of_more_strata_counts_where_there_is_no_other(tmp_path: Path) -> None:
    results = _diagnosed(Planted(tmp_path), (["natural", *diagnosed_strata("addition")], 3000, 0.5, {}))
    assert [sample.value for sample in MASKED.samples(results)] == [0.5]


def test_what_a_diagnosis_lacks_is_read_from_a_smaller_one_that_has_it(tmp_path: Path) -> None:
    """But not from one of the weights of an earlier step."""
    asked, lacking = list(diagnosed_strata("addition")), {"step": 50, "profile": None}
    more = [*asked, "natural"]
    for n, (strata, step, values) in enumerate(((asked, 50, [0.1]), (more, 50, [0.1]), (asked, 40, []))):
        made = Planted(tmp_path / str(n))
        results = _diagnosed(made, (strata, 70, 0.1, {"step": step}), (asked, 2700, 0.2, lacking))
        assert [sample.value for sample in MASKED.samples(results)] == values


def test_a_diagnosis_of_some_strata_measures_no_claim(tmp_path: Path) -> None:
    results = _diagnosed(Planted(tmp_path), (["chain>=28"], 50_000, 1.0, {}))
    judged = claim_named("addition.commits.masked.puma").judge(results)
    assert judged.verdict is Verdict.UNMEASURED
    assert "not on all of chain>=4" in judged.findings[0].remark


def test_a_profile_without_failures_cannot_be_judged_and_says_so(tmp_path: Path) -> None:
    claim = claim_named("addition.commits.step.puma")
    (figure,) = _figures(claim.id)
    made = Planted(tmp_path)
    made.plant(figure, 3.0)
    for diagnosis in made.diagnoses.values():
        diagnosis["profile"]["wrong_commits"]["lowest_index"]["long_step_median"] = None
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.MOOT
    assert "no failure is of this kind" in judged.findings[0].remark


def test_what_was_not_measured_is_named_before_what_did_not_fail(tmp_path: Path) -> None:
    check, made = claim_named("addition.commits.same-profile").checks[1], Planted(tmp_path)
    random, puma = (cell.figure for cell in check.cells)
    made.plant(random, 0.5)
    for diagnosis in made.diagnoses.values():
        diagnosis["profile"]["wrong_commits"]["lowest_index"]["plus_one_at_g"] = None
    found = check.judge(Results(made.written()))
    assert (found.verdict, found.remark) == (Verdict.UNMEASURED, f"{puma.label}: no record")


def test_a_diagnosis_without_coverage_measures_no_coverage(tmp_path: Path) -> None:
    """It is not that nothing failed: the states of training were not at hand when the run was diagnosed."""
    claim = claim_named("discussion.coverage.maze")
    made = Planted(tmp_path)
    for figure in _figures(claim.id):
        made.plant(figure, 0.5)
    assert claim.judge(Results(made.written())).verdict is not Verdict.UNMEASURED
    for diagnosis in made.diagnoses.values():
        diagnosis["coverage"] = None
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.UNMEASURED
    assert judged.findings[0].remark.endswith("diagnosed, but the record has no coverage")


def test_cells_of_one_answer_are_not_cases_of_their_own(tmp_path: Path) -> None:
    figure, made = ready("addition").figure, Planted(tmp_path)
    for seed, value in ((42, 0.4), (43, 0.6)):
        made.plant(figure, value, seed=seed, n=10_000)
    for diagnosis in made.diagnoses.values():
        diagnosis["result"]["instances"] = 100
    results = Results(made.written())
    assert [(sample.value, sample.n) for sample in figure.samples(results)] == [(0.4, 100), (0.6, 100)]
    ours = figure.estimate(results)
    assert ours is not None
    assert ours == Estimate.of(figure.values(results).values(), share=True)


@pytest.mark.parametrize("task", ["addition", "maze"])
def test_readiness_is_that_of_the_commit_that_went_wrong_first(task: str, tmp_path: Path) -> None:
    """On addition, too, where the most significant wrong digit often follows from a wrong one below it."""
    claim = claim_named(f"discussion.readiness.{task}")
    made = Planted(tmp_path)
    for figure in _figures(claim.id):
        made.plant(figure, 1.0)
    for diagnosis in made.diagnoses.values():
        top = diagnosis.setdefault("profile", {}).setdefault("wrong_commits", {}).setdefault("lowest_index", {})
        top.update({"failures": 1000, "premature": 0.4})
    judged = claim.judge(Results(made.written()))
    assert judged.verdict is Verdict.HOLDS


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
                diagnosis["profile"]["wrong_commits"]["lowest_index"] |= {"plus_one_at_g": None, "minus_one_at_k": None}
        return Results(made.written())

    unlike: dict[Figure, float] = {
        figure: 0.0 for figure in values if isinstance(figure, Profiled) and figure.scheme == "puma"
    }
    judged = claim.judge(results("unlike", unlike))
    assert [finding.verdict is Verdict.MOOT for finding in judged.findings] == [False, True, True, False, False]
    assert (judged.verdict, judged.seeds) == (Verdict.NOT, 1)
    alike = claim.judge(results("alike", {}))
    assert (alike.verdict, alike.seeds) == (Verdict.MOOT, 0)


def _wrong_digits(made: Planted, scheme: str, roles: Mapping[str, Mapping[str, int]]) -> None:
    """A diagnosis of addition with this many wrong digits, by role and direction."""
    made.plant(Profiled("addition", scheme, "result.instances", "sums"), 2700)
    no_signs = {"plus_one": 0, "minus_one": 0}
    failures = sum(sum(signs.values()) for signs in roles.values())
    counted = {
        role: no_signs | dict(signs) | {"failures": sum(signs.values())}
        for role, signs in ({"g": no_signs, "k": no_signs} | dict(roles)).items()
    }
    for (run, _, _), diagnosis in made.diagnoses.items():
        if run.startswith(f"addition-{scheme}-"):
            diagnosis["profile"] = {"wrong_commits": {"lowest_index": {"failures": failures, "roles": counted}}}


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


def test_off_by_one_counts_both_ways_in_cells_that_can_lie_above_a_chain(tmp_path: Path) -> None:
    """A p cell would continue the chain; it is off by nine and does not count."""
    made = Planted(tmp_path)
    _wrong_digits(made, "random", {"g": {"plus_one": 2, "minus_one": 1}, "k": {"minus_one": 1, "other": 2}})
    _wrong_digits(made, "puma", {"carry_out": {"plus_one": 2}, "p_above_p": {"plus_nine": 2}})
    claim = claim_named("addition.commits.by-one")
    estimate = claim.checks[0].cells[0].figure.estimate(Results(made.written()))
    assert estimate is not None
    assert estimate.mean == pytest.approx(6 / 8)


def test_alike_but_no_more_often_is_not_the_same_profile(tmp_path: Path) -> None:
    claim = claim_named("addition.commits.same-profile")
    values = together(claim, as_printed)
    failed = [figure for figure in values if isinstance(figure, Profiled) and figure.path == "profile.failures"]
    assert len(failed) == 2
    judged = claim.judge(planted(tmp_path, values | dict.fromkeys(failed, 0.1)))
    assert judged.verdict is Verdict.WEAKER


def test_a_median_says_how_many_failures_it_is_over(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    (masked,), (step,) = _figures("addition.commits.masked.puma"), _figures("addition.commits.step.puma")
    made.plant(masked, 1.0)
    made.plant(step, 3.0)
    for diagnosis in made.diagnoses.values():
        diagnosis["profile"]["wrong_commits"]["lowest_index"] |= {"failures": 7, "long_failures": 5}
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


def logged(patience: int | None, *lines: tuple[int, float | None, float | None]) -> Any:
    """A run of a hundred steps whose log has these steps, losses and accuracies."""
    log = [LogLine(step=step, loss=loss, natural=natural) for step, loss, natural in lines]
    return SimpleNamespace(log=log, watched="", entry=SimpleNamespace(steps=100, patience=patience))


def test_the_loss_of_a_part_of_training_includes_its_ends() -> None:
    figure = LateLoss("addition", "random", 0.2, 0.4)
    lines = (19, 9.0, None), (20, 1.0, None), (30, None, 0.5), (40, 3.0, None), (41, 9.0, None)
    assert figure._value(logged(None, *lines)) == 2.0
    assert figure._value(logged(5, *lines)) is None
    assert figure._value(logged(None, (10, 1.0, None))) is None


def test_the_step_that_reached_an_accuracy() -> None:
    figure = Reached("addition", "random", 0.5)
    lines = (0, None, 0.1), (10, None, 0.5), (20, None, 0.4), (30, 1.0, None)
    assert figure._value(logged(None, *lines)) == 10.0
    assert figure._value(logged(None, (0, None, 0.7))) == 1.0  # a ratio divides by it
    assert figure._value(logged(None, (0, None, 0.1), (20, None, 0.4))) == 20.0  # the last, if none did
    assert figure._value(logged(7, (0, None, 0.1), (20, None, 0.4))) is None  # it might have, later
    assert figure._value(logged(7, *lines)) == 10.0
    assert figure._value(logged(None, (30, 1.0, None))) is None
