"""The ledger and runs of a quarter of the steps: they count only where full runs are missing, and verdicts say so."""

import csv
import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hardtail.show.charts.legend import arms_at_first
from hardtail.show.claims import MORE, ledger_lines
from hardtail.show.page.judged import ledger
from hardtail.show.study_tables import study_tables
from hardtail.show.table_files import study_csv, study_latex, write_tables
from hardtail.study.claims import Judged, Results, Verdict, claim_named, judge
from hardtail.study.claims.base import BETTER_LACK_IT, Cell, Check, Claim
from hardtail.study.claims.evidence import UNLEARNED, Reading, arm_of, endings_of, repeats_the_paper
from hardtail.study.claims.facts import OfShipped
from hardtail.study.claims.figures import NO_RECORD, UNLIKE, Accuracy, Figure, Reached, failure_rate
from hardtail.study.claims.ledger import as_json, counts_table, evidence_tables, ledger_table, source_named
from hardtail.study.claims.ours.figures import Decoded
from hardtail.study.claims.plain import Learns
from hardtail.study.claims.rules import Level, above
from hardtail.study.grids import grid_named
from hardtail.study.names import THREE
from tests.planted_results import Planted, as_printed, together

BEHIND = claim_named("countdown.puma.overall")
"""Random masking and PAPL are ahead of PUMA."""
FULL, QUARTER = "", "-quarter"
SHORT, PUBLISHED, SHORT_PUBLISHED = (
    " ".join(f"{scheme}{ending}" for scheme in ("random", "papl", "puma"))
    for ending in (QUARTER, "-on-published", f"{QUARTER}-on-published")
)
"""Complete sets of arms: shortened, on published problems, and both."""


def planted(made: Planted, ending: str, figures: dict[Figure, float], seeds: tuple[int, ...] = (42, 43)) -> None:
    made.ending = ending
    for figure, value in figures.items():
        for seed in seeds:
            made.plant(figure, value, seed=seed)


def overall(scheme: str) -> Accuracy:
    return Accuracy("countdown", scheme, "top1", "heldout=1")


def all_at(value: float) -> dict[Figure, float]:
    return {overall(scheme): value for scheme in ("random", "papl", "puma")}


def judged_by(folder: Path, *endings: str, seeds: tuple[int, ...] = (42, 43)) -> tuple[Judged, Results]:
    """`BEHIND`, judged by runs with these endings."""
    made = Planted(folder)
    for ending in endings:
        planted(made, ending, together(BEHIND, as_printed), seeds)
    results = Results(made.written())
    return BEHIND.judge(results), results


# -- which runs count -----------------------------------------------------------------------------------------------


def chosen(schemes: str, recorded: str, task: str = "countdown", reading: Reading = "release") -> str:
    """The arms whose runs are compared if these schemes are; empty if none can be."""
    arms = {f"{task}-{arm}" for arm in recorded.split()}
    ways = endings_of(task, schemes.split(), reading, arms)[:1]
    found = [arm_of(task, scheme, endings, arms) for endings in ways for scheme in schemes.split()]
    return " ".join(arm.removeprefix(f"{task}-") for arm in found if arm)


@pytest.mark.parametrize(
    ("recorded", "compared"),
    [
        (f"random papl puma {SHORT}", "random papl puma"),
        (SHORT, SHORT),
        (f"random {SHORT}", SHORT),
        (f"random papl {SHORT}", SHORT),
        ("random papl-quarter puma-quarter", ""),
        ("random-quarter puma-quarter", ""),
        ("random-tf32 papl puma-tf32", "random-tf32 papl puma-tf32"),
        ("random papl puma puma-tf32", "random papl puma"),
        ("random papl puma random-tf32 papl-tf32 puma-tf32", "random-tf32 papl-tf32 puma-tf32"),
        ("random-tf32 papl puma-quarter", ""),
        (f"random papl puma {PUBLISHED}", PUBLISHED),
        (f"random papl puma {SHORT} {SHORT_PUBLISHED}", "random papl puma"),
        (f"{SHORT} {SHORT_PUBLISHED}", SHORT_PUBLISHED),
        (f"{SHORT_PUBLISHED} {PUBLISHED}", PUBLISHED),
        ("random papl puma puma-on-published", "random papl puma"),
        (f"{SHORT} puma-quarter-on-published", SHORT),
        ("random-on-published papl-quarter-on-published puma-quarter", ""),
        ("random-on-mine papl-on-mine puma-on-mine", ""),
    ],
)
def test_schemes_are_compared_by_runs_of_one_kind(recorded: str, compared: str) -> None:
    """No shortened run is compared with a full one, and none on published problems with one on generated ones."""
    assert chosen("random papl puma", recorded) == compared


@pytest.mark.parametrize(
    ("schemes", "recorded", "compared"),
    [
        ("random", f"random {SHORT}", "random"),
        ("random papl", f"random papl {SHORT}", "random papl"),
        ("random puma", f"random papl {SHORT}", "random-quarter puma-quarter"),
        ("puma", f"random papl {SHORT}", "puma-quarter"),
        ("random puma", f"random-on-published puma-on-published {SHORT}", "random-on-published puma-on-published"),
        ("papl puma", f"random-on-published puma-on-published {SHORT}", "papl-quarter puma-quarter"),
        ("mixture puma", f"{SHORT} mixture", ""),
        ("mixture puma", f"{SHORT} mixture mixture-quarter", "mixture-quarter puma-quarter"),
        ("mixture puma", f"{PUBLISHED} mixture-on-published mixture", "mixture-on-published puma-on-published"),
        ("mixture", f"{SHORT} mixture mixture-quarter", "mixture"),
    ],
)
def test_fewer_schemes_may_have_better_runs(schemes: str, recorded: str, compared: str) -> None:
    assert chosen(schemes, recorded) == compared


def test_a_file_that_is_called_published_stands_for_no_other_task() -> None:
    assert chosen("random", PUBLISHED, task="maze") == ""
    assert chosen("random", f"random {PUBLISHED}", task="maze") == "random"


def test_the_text_has_no_shortened_runs() -> None:
    assert chosen("random", SHORT, reading="paper") == ""


@pytest.mark.parametrize("task", ["countdown", "sudoku"])
def test_the_grids_have_the_shortened_runs(task: str) -> None:
    entries = grid_named(f"{task}-quarter")
    arms = {entry.arm for entry in entries}
    compared = chosen("random papl puma", " ".join(arm.removeprefix(f"{task}-") for arm in arms), task)
    assert {f"{task}-{arm}" for arm in compared.split()} == arms
    assert {4 * entry.recipe.steps for entry in entries} == {entry.recipe.steps for entry in grid_named(task)}


def behind(check: Check, results: Results) -> list[str]:
    """The runs behind a check, which says so where they are shortened."""
    names = dict.fromkeys(run.name for cell in check.cells for run in cell.figure.runs(check.among(results)))
    assert check.judge(results).shortened is any(QUARTER in name for name in names)
    return [name.removeprefix("countdown-") for name in names]


def own(scheme: str, policy: str = "top1") -> Level:
    """A check of one scheme."""
    return Level(Cell(Accuracy("countdown", scheme, policy, "heldout=1"), 0.25))


def ahead(one: str, other: str, policy: str = "top1") -> Check:
    figures = (Accuracy("countdown", scheme, policy, "heldout=1") for scheme in (one, other))
    return above(*map(Cell, figures))


def test_each_check_has_the_best_runs_that_it_can_compare(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, {overall("random"): 0.75}, (42,))
    results = Results(made.written())
    assert behind(own("random"), results) == ["random-s42"]
    assert behind(ahead("random", "puma"), results) == ["random-quarter-s42", "puma-quarter-s42"]
    planted(made, FULL, {overall("puma"): 0.5}, (42,))
    assert behind(ahead("random", "puma"), Results(made.written())) == ["random-s42", "puma-s42"]


def test_a_card_has_the_records_of_every_comparison(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, {overall("random"): 0.75}, (42,))
    results = Results(made.written())
    checks = Level(Cell(overall("random"), 0.75)), above(Cell(overall("random")), Cell(overall("puma")))
    judged = Claim("mine", "Random masking is ahead.", "here", checks=checks).judge(results)
    row = as_json(judged, results, evidence=True)
    runs = [record["run"] for record in row["records"]]
    assert runs == ["countdown-random-s42", "countdown-random-quarter-s42", "countdown-puma-quarter-s42"]
    assert [figure["mean"] for figure in row["figures"]] == [0.75, 0.25, 0.25]
    assert [figure["runs"] for figure in row["figures"]] == [[run] for run in runs]
    _, _, figures, records = evidence_tables(judged, results)
    assert (len(figures.rows), len(records.rows)) == (3, 3)
    assert [runs[place] in str(figures.rows[place][0]) for place in range(3)] == [True, True, False]


def test_results_can_be_read_by_one_kind_alone(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, {overall("random"): 0.75, overall("puma"): 0.5}, (42,))
    results = Results(made.written())
    shortened = replace(results, endings=(("countdown", (QUARTER,)),))
    for check, runs in ((own("random"), ["random"]), (ahead("random", "puma"), ["random", "puma"])):
        assert behind(check, results) == [f"{run}-s42" for run in runs]
        assert behind(check, shortened) == [f"{run}-quarter-s42" for run in runs]


def test_what_the_best_runs_lack_is_taken_from_the_next(tmp_path: Path) -> None:
    """A figure that full runs were not measured for is that of shortened ones; one that they fail at is not."""
    made, hard = Planted(tmp_path), Accuracy("countdown", "random", "margin", "heldout=1")
    planted(made, QUARTER, {hard: 0.25}, (42,))
    planted(made, FULL, {overall("random"): 0.75}, (42,))
    found = Level(Cell(hard, 0.25)).judge(Results(made.written()))
    assert (found.verdict, found.shortened) == (Verdict.HOLDS, True)
    assert found.remark == f"runs of a quarter of the paper's steps; {BETTER_LACK_IT}"
    planted(made, FULL, {overall("random"): 0.0}, (42,))
    found = Level(Cell(overall("random"), 0.25)).judge(Results(made.written()))
    assert (found.verdict, found.left_out) == (Verdict.UNMEASURED, (("countdown-random-s42", UNLEARNED),))


def test_runs_that_are_not_alike_are_not_compared(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, FULL, {overall("random"): 0.75})
    planted(made, QUARTER, {overall("puma"): 0.25})
    found = above(Cell(overall("random")), Cell(overall("puma"))).judge(Results(made.written()))
    assert (found.verdict, found.remark) == (Verdict.UNMEASURED, f"{overall('random').label}: {UNLIKE}")
    nothing = above(Cell(overall("random")), Cell(overall("papl"))).judge(Results(made.written()))
    assert nothing.remark == f"{overall('papl').label}: {NO_RECORD}"


@pytest.mark.parametrize("lacks", ["one kind of weights", "all evaluations"])
def test_full_runs_that_were_not_measured_leave_the_check_to_shortened_ones(lacks: str, tmp_path: Path) -> None:
    """They have not shown whether they learned the task; that they have not learned it would decide."""
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, all_at(0.75), (42,))
    for scheme in THREE:
        held = made.evaluations[f"countdown-{scheme}-s42"]
        held[:] = [of for of in held if of["checkpoint"] == "best_probe" and lacks == "one kind of weights"]
    of_last = Results(made.written(), checkpoint="last")
    assert behind(own("random"), of_last) == ["random-quarter-s42"]
    assert Learns("countdown", "random").judge(Results(made.written())).verdict is Verdict.HOLDS


def test_runs_without_a_common_seed_leave_the_check_to_others(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, {overall("random"): 0.75}, (42,))
    planted(made, FULL, {overall("puma"): 0.75}, (43,))
    check = ahead("random", "puma")
    assert behind(check, Results(made.written())) == ["random-quarter-s42", "puma-quarter-s42"]
    planted(made, FULL, {overall("puma"): 0.75}, (42,))
    made.gate("countdown-puma-s42", 0.0)  # a seed that has not learned keeps its place
    assert check.judge(Results(made.written())).verdict is Verdict.UNMEASURED


def test_a_diagnosis_of_some_strata_leaves_the_check_to_others(tmp_path: Path) -> None:
    made, failures = Planted(tmp_path), failure_rate("countdown", "random")
    planted(made, QUARTER, {failures: 0.25}, (42,))
    planted(made, FULL, {failures: 0.75}, (42,))
    check = Level(Cell(failures, 0.25))
    assert behind(check, Results(made.written())) == ["random-s42"]
    for (run, *_), diagnosis in made.diagnoses.items():
        if run == "countdown-random-s42":
            diagnosis["strata"] = diagnosis["strata"][:1]
    assert behind(check, Results(made.written())) == ["random-quarter-s42"]


def on_published(made: Planted, figures: dict[Figure, float]) -> None:
    """Figures of runs that were trained and measured on published problems."""
    planted(made, "-on-published", figures, (42,))
    for run, records in made.evaluations.items():
        if "-on-published" in run:
            records[:] = [
                of | {"data": {"file": "published-test.npz", "sha256": "0" * 64, "count": 9}} for of in records
            ]


def test_a_log_of_decodes_from_a_file_says_nothing_of_natural_problems(tmp_path: Path) -> None:
    made, reached = Planted(tmp_path), Reached("countdown", "random", level=0.5)
    on_published(made, {reached: 3000.0})
    assert behind(Level(Cell(reached, 3000.0)), Results(made.written())) == ["random-on-published-s42"]
    watched = {"file": "published-test.npz", "sha256": "0" * 64, "count": 3300}
    made.logs["countdown-random-on-published-s42"].insert(0, {"step": 0, "watched": watched})
    planted(made, QUARTER, {reached: 5000.0}, (42,))
    assert behind(Level(Cell(reached, 3000.0)), Results(made.written())) == ["random-quarter-s42"]


def test_an_arm_that_is_named_with_its_ending_is_meant_as_it_is(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, all_at(0.75), (42,))
    results = Results(made.written())
    found = ahead("random-quarter", "puma").judge(results)
    assert (found.shortened, found.remark) == (
        True,
        "runs of a quarter of the paper's steps, next to runs of all steps",
    )
    assert ahead("random-quarter", "puma-quarter").judge(results).remark == "runs of a quarter of the paper's steps"


def test_the_remark_names_published_problems(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    on_published(made, all_at(0.25))
    assert ahead("random", "puma").judge(Results(made.written())).remark == "runs on published problems"


def test_a_table_leaves_out_runs_of_the_kind_that_it_shows(tmp_path: Path) -> None:
    made, random_order = Planted(tmp_path), Accuracy("countdown", "random", "random", "heldout=1,m>=11")
    planted(made, QUARTER, {random_order: 0.25})
    planted(made, FULL, {overall("random"): 0.75})
    for ending in ("-quarter", ""):
        made.gate(f"countdown-random{ending}-s43", 0.0)
    shown = [
        table for table in study_tables(Results(made.written())) if any(c.ours for _, row in table.rows for c in row)
    ]
    assert shown
    assert all(f"countdown-random-quarter-s43 ({UNLEARNED})" in table.left_out for table in shown)


def test_a_table_says_which_columns_are_no_comparison(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25), (42,))
    planted(made, FULL, {overall("random"): 0.75, overall("papl"): 0.75}, (42,))
    [limits] = {table.limits for table in study_tables(Results(made.written())) if table.limits}
    assert limits == ("PUMA: runs of a quarter of the paper's steps, not to be compared with the rest",)


def test_plots_begin_with_the_best_of_a_scheme_beside_the_three(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    for ending, schemes in (("-tf32", THREE), ("", ("papl5",))):
        planted(made, ending, {Accuracy("addition", scheme, "lsb", "natural"): 1.0 for scheme in schemes}, (42,))
    shown = arms_at_first("addition", made.written().runs(), ())
    assert shown == {"random-tf32", "papl-tf32", "puma-tf32", "papl5"}


def test_plots_begin_with_runs_that_can_be_compared(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25))
    planted(made, FULL, {overall("random"): 0.75})
    assert arms_at_first("countdown", made.written().runs(), ()) == {"random-quarter", "papl-quarter", "puma-quarter"}
    planted(made, FULL, all_at(0.75))
    assert arms_at_first("countdown", made.written().runs(), ()) == {"random", "papl", "puma"}


def test_the_papers_numbers_are_not_drawn_as_those_of_shortened_runs() -> None:
    assert [repeats_the_paper(variant) for variant in ("", "tf32", "paper", "quarter")] == [True, True, True, False]


# -- what a verdict says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("endings", "seeds", "says"),
    [
        ((FULL,), (42, 43), "holds"),
        ((FULL, QUARTER), (42, 43), "holds"),
        ((FULL,), (42,), "one seed: holds"),
        ((QUARTER,), (42, 43), "a quarter of the steps: holds"),
        ((QUARTER,), (42,), "one seed, a quarter of the steps: holds"),
    ],
)
def test_a_verdict_says_that_it_rests_on_shortened_runs(
    endings: tuple[str, ...], seeds: tuple[int, ...], says: str, tmp_path: Path
) -> None:
    judged, results = judged_by(tmp_path, *endings, seeds=seeds)
    shortened, single = "quarter" in says, "one seed" in says
    assert (judged.verdict, judged.says, judged.shortened) == (Verdict.HOLDS, says, shortened)
    row = as_json(judged, results)
    assert (row["verdict"], row["says"], row["shortened"]) == ("holds", says, shortened)
    assert all(("a quarter" in (part["remark"] or "")) is shortened for part in row["parts"])
    assert ledger_table([judged], results).rows[0][-1] == says
    card, parts, *_ = evidence_tables(judged, results)
    about = {row[0]: row[1] for row in card.rows}
    assert (about["verdict"], about.get("steps")) == (says, "a quarter of the paper's" if shortened else None)
    assert ("remark" in parts.columns) is shortened, "a column in which nothing is said is left out"
    assert counts_table([judged]).rows[0] == ("holds", 1, int(single), int(shortened), 0)


@pytest.mark.parametrize(
    ("ending", "seeds", "head"),
    [
        (FULL, (42, 43), [MORE, "", "holds  "]),
        (QUARTER, (42, 43), ["² by a quarter of the paper's steps", MORE, "", "holds²  "]),
        (QUARTER, (42,), ["¹ by one seed alone; ² by a quarter of the paper's steps", MORE, "", "holds¹²  "]),
    ],
)
def test_the_list_has_a_mark_and_explains_it(
    ending: str, seeds: tuple[int, ...], head: list[str], tmp_path: Path
) -> None:
    judged, _ = judged_by(tmp_path, ending, seeds=seeds)
    counts, *told, line, sentence = ledger_lines([judged], 80)
    assert counts == ("1 claim: holds 1 (1¹)" if len(seeds) == 1 else "1 claim: holds 1")
    assert told == head[:-1]
    assert line.startswith(f"{head[-1]}{BEHIND.id}")
    assert sentence.strip() == BEHIND.sentence
    assert max(map(len, [counts, *told, line, sentence])) <= 80


def test_a_caveat_of_a_run_is_told_with_every_verdict_that_rests_on_it(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, FULL, together(BEHIND, as_printed), (42, 43))
    made.runs["countdown-puma-s43"]["caveat"] = "its test is known to it"
    results = Results(made.written())
    judged = BEHIND.judge(results)
    assert (judged.verdict, judged.says) == (Verdict.HOLDS, "with a caveat: holds")
    assert as_json(judged, results)["run_caveats"] == ["its test is known to it"]
    about = {row[0]: row[1] for row in evidence_tables(judged, results)[0].rows}
    assert about["caveat"] == "its test is known to it"
    lines = ledger_lines([judged], 80)
    assert "³ with a caveat" in lines
    assert any(line.startswith("holds³  ") for line in lines)
    assert counts_table([judged]).rows[0] == ("holds", 1, 0, 0, 1)
    by_others = Level(Cell(overall("random"), 0.75)).judge(results)
    assert by_others.caveats == ()


def test_a_list_can_have_whole_sentences(tmp_path: Path) -> None:
    judged, _ = judged_by(tmp_path, QUARTER, seeds=(42,))
    lines = ledger_lines([judged], 60, whole=True)
    at = next(i for i, line in enumerate(lines) if line.endswith(BEHIND.id))
    assert " ".join(" ".join(lines[at + 1 :]).split()).startswith(BEHIND.sentence)
    assert f"{BEHIND.paper} · " in " ".join(" ".join(lines[at + 1 :]).split())
    assert max(map(len, lines[at:])) <= 60


def test_what_is_not_measured_has_no_mark(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, {overall("puma"): 0.29})
    results = Results(made.written())
    judged = BEHIND.judge(results)
    assert (judged.says, judged.shortened) == ("not measured", False)
    assert ledger_lines([judged])[-2].startswith("not measured  ")
    assert Level(Cell(overall("puma"), 0.29)).judge(results).shortened, "what is recorded is judged"


def test_a_part_of_another_task_is_not_said_to_be_shortened(tmp_path: Path) -> None:
    """Countdown and Sudoku next to addition, mazes and ListOps: one shortened part is enough for the verdict."""
    claim, made = claim_named("abstract.alignment"), Planted(tmp_path)
    for place, check in enumerate(claim.checks):  # two of each task
        planted(made, QUARTER if place >= 6 else FULL, as_printed(check))
    judged = claim.judge(Results(made.written()))
    assert judged.says == "a quarter of the steps: holds weaker"
    assert [finding.shortened for finding in judged.findings] == [False] * 6 + [True] * 4


def test_tasks_of_different_length_may_be_compared(tmp_path: Path) -> None:
    """Each task has its own number of steps anyway, so that the remark names no other runs next to these."""
    claim, made = claim_named("discussion.readiness.sudoku"), Planted(tmp_path)
    for figure, value in together(claim, as_printed).items():
        planted(made, QUARTER if "sudoku" in figure.label else FULL, {figure: value})
    judged = claim.judge(Results(made.written()))
    assert judged.says == "a quarter of the steps: holds"
    assert {finding.remark for finding in judged.findings} == {"runs of a quarter of the paper's steps"}


@pytest.mark.parametrize(("task", "shortened"), [("countdown", True), ("maze", False)])
def test_whether_shortened_runs_learn(task: str, shortened: bool, tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.5))
    planted(made, FULL, {Accuracy("maze", "puma", "top1", "natural"): 1.0})
    found = Learns(task, "puma").judge(Results(made.written()))
    assert (found.verdict, found.shortened) == (Verdict.HOLDS, shortened)


@pytest.mark.parametrize(
    ("arm", "shortened"), [("puma-quarter-on-mine", True), ("puma-on-a-quarter", False), ("puma-little", False)]
)
def test_an_arm_of_other_data_is_still_shortened(arm: str, shortened: bool, tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, FULL, {overall(arm): 0.25})
    assert Level(Cell(overall(arm), 0.25)).judge(Results(made.written())).shortened is shortened


# -- other sources --------------------------------------------------------------------------------------------------

MINE = """
title = "Mine"

[claims."mine.ahead"]
sentence = "Random masking is ahead."
where = "here"

[[claims."mine.ahead".checks]]
rule = "above"
of = { task = "countdown", scheme = "random", stratum = "heldout=1" }
than = { task = "countdown", scheme = "puma", stratum = "heldout=1" }
"""


def test_a_source_of_ones_own_says_it(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(MINE)
    made = Planted(tmp_path / "results")
    planted(made, QUARTER, all_at(0.25) | {overall("random"): 0.5})
    (judged,) = judge(Results(made.written()), source_named(str(tmp_path / "mine.toml")).claims())
    assert judged.says == "a quarter of the steps: holds"


@pytest.mark.parametrize(
    ("run", "shortened"), [("countdown-random-s42", False), ("countdown-random-quarter-s42", True)]
)
def test_a_named_run_says_it(run: str, shortened: bool, tmp_path: Path) -> None:
    made, figure = Planted(tmp_path), Decoded(run, "check", "natural")
    made.plant(figure, 0.5)
    found = Level(Cell(figure, 0.5)).judge(Results(made.written()))
    assert (found.verdict, found.shortened) == (Verdict.HOLDS, shortened)


def test_a_fact_about_a_shipped_model_is_of_its_run(tmp_path: Path) -> None:
    figure, made = OfShipped("papl.weight", "weights", "addition-papl"), Planted(tmp_path)
    made.plant(figure, 0.5)
    results = Results(made.written())
    assert [run.name for run in figure.runs(results)] == [figure.listed.run]
    assert not Level(Cell(figure, 0.5)).judge(results).shortened
    made.runs[figure.listed.run]["arm"] = "addition-papl-quarter"
    assert Level(Cell(figure, 0.5)).judge(Results(made.written())).shortened


# -- tables and the page --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ending", "shortened"), [(FULL, False), (QUARTER, True)])
def test_tables_say_it(ending: str, shortened: bool, tmp_path: Path) -> None:
    made = Planted(tmp_path / "results")
    planted(made, ending, all_at(0.25))
    results = Results(made.written())
    tables = {table.task: table for table in reversed(study_tables(results))}
    countdown = tables.pop("countdown")
    note = "Random, PAPL, PUMA: runs of a quarter of the paper's steps"
    assert countdown.limits == (note,) * shortened
    assert not any(table.limits for table in tables.values())
    rows = list(csv.DictReader(io.StringIO(study_csv(countdown))))
    assert {row["shortened"] for row in rows if row["ours"]} == {str(shortened)}
    assert {row["shortened"] for row in rows if not row["ours"]} == {"False"}
    assert (note in study_latex(countdown)) is shortened
    written = [path.read_text() for path in write_tables(tmp_path / "tables", results) if path.suffix == ".md"]
    assert any(note in text for text in written) is shortened


def test_tables_have_the_caveats_of_their_runs(tmp_path: Path) -> None:
    made = Planted(tmp_path / "results")
    planted(made, FULL, all_at(0.25))
    made.runs["countdown-puma-s42"]["caveat"] = "its test is known to it"
    results = Results(made.written())
    assert {table.limits for table in study_tables(results)} == {(), ("PUMA: its test is known to it",)}
    paths = write_tables(tmp_path / "tables", results)
    assert any("its test is known to it" in path.read_text() for path in paths if path.suffix == ".md")


@pytest.mark.parametrize(("ending", "shortened"), [(FULL, False), (QUARTER, True)])
def test_the_page_has_it(ending: str, shortened: bool, tmp_path: Path) -> None:
    _, results = judged_by(tmp_path, ending)
    claims: dict[str, Any] = {claim["id"]: claim for claim in ledger(results)["claims"]}
    assert claims[BEHIND.id]["shortened"] is shortened
    assert claims["addition.puma.lower"]["shortened"] is False
