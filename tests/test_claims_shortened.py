"""The ledger and runs of a quarter of the steps: they count only where full runs are missing, and verdicts say so."""

import csv
import io
from pathlib import Path
from typing import Any

import pytest

from hardtail.show.claims import MORE, ledger_lines
from hardtail.show.page.judged import ledger
from hardtail.show.study_tables import study_tables
from hardtail.show.table_files import study_csv, study_latex, write_tables
from hardtail.study.claims import Judged, Results, Verdict, claim_named, judge
from hardtail.study.claims.base import Cell
from hardtail.study.claims.evidence import repeats_the_paper
from hardtail.study.claims.facts import OfShipped
from hardtail.study.claims.figures import Figure, ShareRight
from hardtail.study.claims.ledger import as_json, counts_table, evidence_tables, ledger_table, source_named
from hardtail.study.claims.ours.figures import Decoded
from hardtail.study.claims.plain import Learns
from hardtail.study.claims.rules import Level
from tests.planted_results import Planted, as_printed, together

BEHIND = claim_named("countdown.puma.overall")
"""Random masking and PAPL are ahead of PUMA."""
FULL, QUARTER = "", "-quarter"


def planted(made: Planted, ending: str, figures: dict[Figure, float], seeds: tuple[int, ...] = (42, 43)) -> None:
    made.ending = ending
    for figure, value in figures.items():
        for seed in seeds:
            made.plant(figure, value, seed=seed)


def overall(scheme: str) -> ShareRight:
    return ShareRight("countdown", scheme, "top1", "heldout=1")


def all_at(value: float) -> dict[Figure, float]:
    return {overall(scheme): value for scheme in ("random", "papl", "puma")}


def judged_by(folder: Path, *endings: str, seeds: tuple[int, ...] = (42, 43)) -> tuple[Judged, Results]:
    """`BEHIND`, judged by runs with these endings."""
    made = Planted(folder)
    for ending in endings:
        planted(made, ending, together(BEHIND, as_printed), seeds)
    results = Results(made.written())
    return BEHIND.judge(results), results


# -- what is drawn -------------------------------------------------------------------------------------------------


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
    assert any(line.startswith("not measured  ") for line in ledger_lines([judged]))
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
    planted(made, FULL, {ShareRight("maze", "puma", "top1", "natural"): 1.0})
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
