"""Which runs a check reads: of the kinds that all its schemes have, the best that was measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from hardtail.show.charts.legend import arms_at_first
from hardtail.show.study_tables import study_tables
from hardtail.study.claims import Results, Verdict
from hardtail.study.claims.base import BETTER_LACK_IT, Cell, Check, Claim
from hardtail.study.claims.evidence import UNLEARNED, Reading, arm_of, endings_of
from hardtail.study.claims.figures import NO_RECORD, UNLIKE, Figure, Reached, ShareRight, failure_rate
from hardtail.study.claims.ledger import as_json, evidence_tables
from hardtail.study.claims.plain import Learns
from hardtail.study.claims.rules import Level, above
from hardtail.study.grids import grid_named
from hardtail.study.names import THREE
from tests.planted_results import Planted
from tests.test_claims_shortened import FULL, QUARTER, all_at, overall, planted

SHORT, PUBLISHED, SHORT_PUBLISHED = (
    " ".join(f"{scheme}{ending}" for scheme in ("random", "papl", "puma"))
    for ending in (QUARTER, "-on-published", f"{QUARTER}-on-published")
)
"""Complete sets of arms: shortened, on published problems, and both."""


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
    return Level(Cell(ShareRight("countdown", scheme, policy, "heldout=1"), 0.25))


def ahead(one: str, other: str, policy: str = "top1") -> Check:
    figures = (ShareRight("countdown", scheme, policy, "heldout=1") for scheme in (one, other))
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
    made, hard = Planted(tmp_path), ShareRight("countdown", "random", "margin", "heldout=1")
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
    made, random_order = Planted(tmp_path), ShareRight("countdown", "random", "random", "heldout=1,m>=11")
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
        planted(made, ending, {ShareRight("addition", scheme, "lsb", "natural"): 1.0 for scheme in schemes}, (42,))
    shown = arms_at_first("addition", made.written().runs(), ())
    assert shown == {"random-tf32", "papl-tf32", "puma-tf32", "papl5"}


def test_plots_begin_with_runs_that_can_be_compared(tmp_path: Path) -> None:
    made = Planted(tmp_path)
    planted(made, QUARTER, all_at(0.25))
    planted(made, FULL, {overall("random"): 0.75})
    assert arms_at_first("countdown", made.written().runs(), ()) == {"random-quarter", "papl-quarter", "puma-quarter"}
    planted(made, FULL, all_at(0.75))
    assert arms_at_first("countdown", made.written().runs(), ()) == {"random", "papl", "puma"}
