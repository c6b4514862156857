"""Our own claims: registered with thresholds, judged from records of three sets of instances."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hardtail
from hardtail import zoo
from hardtail.core.records import Accuracy, DataFile, RunEntry, Trust, append_jsonl
from hardtail.policies.named import policy_named
from hardtail.study.claims import Results, Verdict, all_claims, claim_named
from hardtail.study.claims.base import Cell
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.ledger import source_named
from hardtail.study.claims.ours.figures import ANY_LIMIT, DATA_SEEDS, REGISTERED, Decoded
from hardtail.study.claims.ours.mixture import FAILS, LEADS
from hardtail.study.claims.ours.remedy import ADDITION, LATER, OTHERS
from hardtail.study.claims.rules import above
from hardtail.study.grids import entries_named
from hardtail.study.store import Store
from tests.conftest import Command
from tests.planted_results import Planted

OURS = source_named("ours")
RUN = ADDITION["addition-random"]


def planted(
    folder: Path,
    check: float = 1.0,
    passes: float = 20.0,
    area: float = 1.0,
    own: float = 0.6,
    n: int = 500,
    lacks: tuple[str, str] | None = None,
) -> Results:
    """Records of one run on every set of instances, and of other sets that do not count.

    It lacks the accuracy of one policy on one stratum if that is asked for.
    """
    (folder / RUN).mkdir()
    (folder / RUN / "log.jsonl").write_text("")
    entry = RunEntry(name=RUN, arm="addition-random-tf32", task="addition", seed=42, steps=1)
    append_jsonl(folder / "index.jsonl", [entry])
    for seed in (*DATA_SEEDS, 42):
        counted = seed in DATA_SEEDS
        about: dict[str, Any] = {"data_seed": seed, "seed": 42, "n": n, "checkpoint": "last"}
        share = {"check": check if counted else 0.0, "lsb": 1.0, "top1": 0.9}
        cost = {"check": passes, "lsb": 33.0, "top1": 33.0}
        made = [
            Accuracy(policy=name, stratum=stratum, exact_match=share[name], passes=cost[name], **about)
            for name in share
            for stratum in ("chain>=28", "natural")
            if (name, stratum) != lacks
        ]
        areas = [
            Trust(policy=name, stratum="chain>=28", score=score, passes=3, wrong=100, auroc=value, **about)
            for name in ("threshold", "top1")
            for score, value in (("comb energy", area), ("own doubt", own))
        ]
        append_jsonl(folder / RUN / "evaluations.jsonl", [*made, *areas])
    return Results(Store(folder))


@pytest.mark.parametrize(
    ("check", "passes", "verdict"),
    [
        (1.0, 20.0, Verdict.HOLDS),
        (0.99, 33.0, Verdict.HOLDS),
        (0.985, 20.0, Verdict.WEAKER),  # within the slack of .01
        (1.0, 33.1, Verdict.NOT),  # one check of three is enough
        (0.7, 40.0, Verdict.NOT),
    ],
)
def test_repair_is_judged_by_its_thresholds(tmp_path: Path, check: float, passes: float, verdict: Verdict) -> None:
    judged = claim_named("remedy.repair.addition-random", OURS).judge(planted(tmp_path, check, passes))
    assert judged.verdict is verdict
    assert (judged.seeds, judged.says) == (1, f"one seed: {verdict}")  # three sets of instances, one trained run


@pytest.mark.parametrize(
    ("area", "own", "verdict"),
    [
        (1.0, 0.6, Verdict.HOLDS),
        (0.7, 0.6, Verdict.NOT),
        (0.992, 0.999, Verdict.HOLDS),
        (0.5, 0.6, Verdict.NOT),
        (0.987, 0.6, Verdict.WEAKER),  # its interval reaches .99, but the mean does not
        (0.984, 0.6, Verdict.NOT),
    ],
)
def test_detection_is_judged_by_its_thresholds(tmp_path: Path, area: float, own: float, verdict: Verdict) -> None:
    judged = claim_named("remedy.detect.addition-random", OURS).judge(planted(tmp_path, area=area, own=own))
    assert judged.verdict is verdict


def test_a_part_that_fails_next_to_one_without_a_record_still_names_its_one_seed(tmp_path: Path) -> None:
    results = planted(tmp_path, 0.7, lacks=("check", "natural"))
    judged = claim_named("remedy.repair.addition-random", OURS).judge(results)
    assert [found.verdict for found in judged.findings] == [Verdict.NOT, Verdict.UNMEASURED, Verdict.HOLDS]
    assert (judged.seeds, judged.says) == (1, "one seed: does not hold")


@pytest.mark.parametrize(
    ("n", "said"), [(2000, ""), (500, "less than registered: 500 + 500 + 500 instances of 3 × 2,000")]
)
def test_a_verdict_on_less_than_was_registered_says_so(tmp_path: Path, n: int, said: str) -> None:
    judged = claim_named("remedy.repair.addition-random", OURS).judge(planted(tmp_path, n=n))
    assert [found.remark for found in judged.findings] == [said] * 3


def test_a_difference_on_three_sets_of_instances_rests_on_one_training_seed(tmp_path: Path) -> None:
    check, top1 = (Cell(Decoded(RUN, policy, "chain>=28", usual="last")) for policy in ("check", "top1"))
    results = planted(tmp_path)
    assert len(check.figure.values(results)) == len(DATA_SEEDS)
    found = above(check, top1).judge(results)
    assert (found.verdict, found.seeds) == (Verdict.HOLDS, 1)
    shown = check.figure.estimate(results)
    assert shown is not None
    assert shown.seeds == 1


def test_a_calibrated_ladder_is_one_with_any_limit_and_the_same_other_fields(tmp_path: Path) -> None:
    planted(tmp_path)
    of_stratum: dict[str, Any] = {"stratum": "chain>=28", "data_seed": 0, "seed": 42, "n": 500, "checkpoint": "last"}
    names = ("ladder,limit=0.02", "ladder,rungs=threshold/top1,limit=0.02", "ladder", "ladder,limit=0.02,again=3")
    append_jsonl(
        tmp_path / RUN / "evaluations.jsonl",
        [
            Accuracy(policy=name, exact_match=0.1 * at, calibrated=500 if "limit" in name else None, **of_stratum)
            for at, name in enumerate(names, 1)
        ],
    )
    results = Results(Store(tmp_path))
    found = [
        Decoded(RUN, policy, "chain>=28", usual="last").values(results) for policy in (f"ladder{ANY_LIMIT}", "ladder")
    ]
    assert [[sample.value for sample in values.values()] for values in found] == [[0.1], [pytest.approx(0.3)]]


@pytest.mark.parametrize(
    ("more", "counts"),
    [
        ({"calibrated": 500}, True),
        ({"calibrated": None}, False),
        ({"calibrated": 500, "restrict": True}, False),
        ({"calibrated": 500, "temperature": 0.7}, False),
        ({"calibrated": 500, "decode_seed": 3}, False),
        ({"calibrated": 500, "commit_rule": "4 a step"}, False),
        ({"calibrated": 500, "data": DataFile(file="mine.npz", sha256="0" * 64, count=500)}, False),
    ],
)
def test_only_plain_decodes_with_a_limit_that_natural_problems_set_count(
    more: dict[str, Any], counts: bool, tmp_path: Path
) -> None:
    planted(tmp_path)
    about: dict[str, Any] = {"stratum": "chain>=28", "seed": 42, "n": 500, "checkpoint": "last", "data_seed": 0}
    record = Accuracy(policy="ladder,limit=0.02", exact_match=0.5, **about, **more)
    append_jsonl(tmp_path / RUN / "evaluations.jsonl", [record])
    values = Decoded(RUN, f"ladder{ANY_LIMIT}", "chain>=28", usual="last").values(Results(Store(tmp_path)))
    assert [value.value for value in values.values()] == [0.5] * counts


def test_ladders_with_different_limits_are_not_mixed(tmp_path: Path) -> None:
    planted(tmp_path)
    about: dict[str, Any] = {"stratum": "chain>=28", "seed": 42, "n": 500, "checkpoint": "last", "calibrated": 500}
    figure = Decoded(RUN, f"ladder{ANY_LIMIT}", "chain>=28", usual="last")
    for limit, share, seeds in ((0.02, 0.5, (0, 1)), (0.03, 0.7, (0,)), (0.04, 0.9, (0, 1))):
        made = [Accuracy(policy=f"ladder,limit={limit}", exact_match=share, data_seed=s, **about) for s in seeds]
        append_jsonl(tmp_path / RUN / "evaluations.jsonl", made)
        values = figure.values(Results(Store(tmp_path)))
        assert {value.value for value in values.values()} == {0.5 if limit < 0.04 else 0.9}, "most sets, then the last"


def test_other_weights_are_other_figures(tmp_path: Path) -> None:
    """Neither the gate nor a figure takes a record of weights that nobody asked for."""
    claim, results = claim_named("remedy.repair.addition-random", OURS), planted(tmp_path)
    assert claim.judge(results).verdict is Verdict.HOLDS
    assert claim.judge(replace(results, checkpoint="last")).verdict is Verdict.HOLDS
    assert claim.judge(replace(results, checkpoint="best_probe")).verdict is Verdict.UNMEASURED
    natural = Accuracy(policy="top1", stratum="natural", exact_match=1.0, n=500, seed=42, checkpoint="best_probe")
    append_jsonl(tmp_path / RUN / "evaluations.jsonl", [natural])
    judged = claim.judge(Results(Store(tmp_path), checkpoint="best_probe"))
    assert (judged.verdict, judged.left_out, judged.ours) == (Verdict.UNMEASURED, (), None)


def test_what_has_no_record_is_not_measured(tmp_path: Path) -> None:
    results = planted(tmp_path)
    verdicts = {claim.id: claim.judge(results).verdict for claim in OURS.claims()}
    assert verdicts["remedy.margin.sudoku-random"] is Verdict.UNMEASURED
    assert verdicts["remedy.repair.addition-puma"] is Verdict.UNMEASURED
    assert sum(verdict is Verdict.UNMEASURED for verdict in verdicts.values()) == len(verdicts) - 2


def test_claims_name_policies_strata_and_models_that_exist() -> None:
    """A misspelt one would be *not measured* for ever."""
    shipped = {model.name: model.run for model in zoo.models()}
    assert {name: shipped[name] for name in (*ADDITION, *OTHERS)} == ADDITION | OTHERS
    assert {name: run for name, run in LATER.items() if name in shipped}.items() <= shipped.items()
    weights = {model.run: model.kind for model in zoo.models()}
    figures = [cell.figure for claim in OURS.claims() for check in claim.checks for cell in check.cells]
    for figure in figures:
        assert isinstance(figure, Decoded | ShareRight)
        if isinstance(figure, Decoded):
            assert figure.usual == weights.get(figure.run, "best_probe")
        else:
            entries_named([f"{figure.task}-{figure.scheme}-s42"])
        task = hardtail.task(figure.task if isinstance(figure, ShareRight) else figure.run.partition("-")[0])
        policy_named(figure.policy.replace(ANY_LIMIT, ",limit=1"), task.order_names)
        assert figure.stratum in task.strata(), figure


def test_ours_are_not_among_the_papers_claims(hardtail_command: Command) -> None:
    assert not any(name.startswith(("remedy.", "mixture.")) for name in all_claims())
    code, shown, complaint = hardtail_command("claims", "--source", "ours", "--json")
    assert not code, complaint
    assert [row["id"] for row in json.loads(shown)] == [claim.id for claim in OURS.claims()]


@pytest.mark.parametrize(
    ("sizes", "told"),
    [
        ([REGISTERED] * 3, ""),
        ([REGISTERED, REGISTERED + 5, REGISTERED - 1], "2,000 + 2,005 + 1,999 instances of 3 × 2,000"),
        ([REGISTERED] * 2, "2,000 + 2,000 instances of 3 × 2,000"),
    ],
)
def test_less_than_was_registered_is_said(sizes: list[int], told: str, tmp_path: Path) -> None:
    figure = Decoded("addition-papl-paper-s42", "check", "chain>=28", "exact_match")
    made = Planted(tmp_path)
    made.plant(figure, 0.9)
    held = made.evaluations[figure.run]
    planted = {of["data_seed"]: of for of in held if "data_seed" in of}
    made.evaluations[figure.run] = [of for of in held if "data_seed" not in of]
    made.evaluations[figure.run] += [planted[seed] | {"n": n} for seed, n in zip(DATA_SEEDS, sizes, strict=False)]
    assert figure.limits(Results(made.written())) == (f"less than registered: {told}" if told else "")


@pytest.mark.parametrize(("wrong", "cases"), [(7, 3), (3, 3), (5, 5), (0, 0)])
def test_an_area_is_as_sure_as_the_rarer_kind_of_answers_is_common(wrong: int, cases: int) -> None:
    trust = Trust(policy="top1", stratum="natural", n=10, score="halves energy", passes=4, wrong=wrong)
    figure = Decoded("addition-papl-paper-s42", "top1", "natural", "auroc", "halves energy")
    assert figure._cases(trust) == cases


@pytest.mark.parametrize(
    ("mixture", "verdict"),
    [
        (0.9, Verdict.HOLDS),
        (0.861, Verdict.WEAKER),  # within the slack of .01 of .95 times random masking's
        (0.8, Verdict.NOT),
        (0.69, Verdict.NOT),  # behind PUMA
    ],
)
@pytest.mark.parametrize("task", FAILS)
def test_what_the_mixture_repairs_is_judged_by_its_thresholds(
    task: str, mixture: float, verdict: Verdict, tmp_path: Path
) -> None:
    made = Planted(tmp_path)
    for scheme, value in (("random", 0.915), ("puma", 0.7), ("mixture", mixture)):
        made.plant(ShareRight(task, scheme, "top1", FAILS[task]), value)
    assert claim_named(f"mixture.repairs.{task}", OURS).judge(Results(made.written())).verdict is verdict


@pytest.mark.parametrize(("few", "some", "verdict"), [(0.3, 0.3, Verdict.HOLDS), (0.1, 0.3, Verdict.NOT)])
def test_the_mixture_keeps_a_lead_with_few_and_with_some_solutions(
    few: float, some: float, verdict: Verdict, tmp_path: Path
) -> None:
    made = Planted(tmp_path)
    for stratum, value in zip(LEADS, (few, some), strict=True):
        made.plant(ShareRight("countdown", "random", "top1", stratum), 0.2)
        made.plant(ShareRight("countdown", "mixture", "top1", stratum), value)
    assert claim_named("mixture.keeps.countdown", OURS).judge(Results(made.written())).verdict is verdict
