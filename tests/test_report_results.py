"""What pages and figures show of recorded results, and what damaged ones lead to: one clear sentence."""

import json
import re
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from hardtail.core.errors import HardtailError
from hardtail.core.records import RunEntry, append_jsonl
from hardtail.show.charts.accuracy import recorded_accuracy
from hardtail.show.charts.legend import by_variant
from hardtail.show.charts.states import trained_states
from hardtail.show.figures.panels import by_policy
from hardtail.show.page.curves import run_charts
from hardtail.show.page.data import page_content
from hardtail.show.page.judged import ledger
from hardtail.show.sources import all_runs
from hardtail.show.study_tables import study_tables
from hardtail.show.table_files import write_tables
from hardtail.study.claims import Results
from hardtail.study.runs import Run, diagnosed_strata
from hardtail.study.store import Store
from hardtail.tasks.addition.task import Addition
from tests.planted_results import diagnosis_of
from tests.report_toys import lines, results


def test_tables_have_ours_the_papers_and_how_they_agree(tmp_path: Path) -> None:
    tables = study_tables(Results(Store(results(tmp_path))))
    first = tables[0]
    assert (first.task, first.groups, first.columns[:3]) == (
        "addition",
        ("Confidence", "LSB first"),
        ("Random", "PAPL α=1", "PUMA"),
    )
    rows = dict(first.rows)
    four, hard = rows["chain ≥ 4"][2], rows["chain ≥ 28"][2]
    assert (four.paper, four.seeds, four.agreement) == (0.868, 2, "holds")
    assert four.ours == pytest.approx(0.868)
    assert four.low is not None
    assert four.high is not None
    assert four.low < 0.868 < four.high
    assert hard.agreement == "does not hold"
    assert rows["chain ≥ 4"][3].ours is None  # PAPL α=5 was not run
    assert all(
        cell.ours is None for table in tables if table.task != "addition" for _, row in table.rows for cell in row
    )


def test_tables_list_runs_that_never_learned_and_leave_them_out(tmp_path: Path) -> None:
    folder = results(tmp_path / "results")
    assert not any(table.left_out for table in study_tables(Results(Store(folder))))
    evaluations = folder / "addition-puma-tf32-s42" / "evaluations.jsonl"
    kept = [json.loads(line) for line in evaluations.read_text().splitlines()]
    under_confidence = next(record for record in kept if record["policy"] == "top1")
    lines(evaluations, [*kept, {**under_confidence, "stratum": "natural", "exact_match": 0.0}])
    first, *_ = study_tables(Results(Store(folder)))
    assert first.left_out == "addition-puma-tf32-s42 (not learned)"
    four = dict(first.rows)["chain ≥ 4"][2]
    assert four.seeds == 1
    assert four.ours == pytest.approx(0.872), "the other seed alone"
    for path in write_tables(tmp_path / "tables", Results(Store(folder))):
        if path.stem == "addition-table-1" and path.suffix in (".md", ".tex"):
            assert "left out: addition-puma-tf32-s42 (not learned)" in path.read_text()
    chart = recorded_accuracy("addition", Store(folder).runs(), "best_probe")
    shown = chart.x.categories or ()
    assert shown == tuple(name for name in Addition().strata() if name in shown)
    puma = {one.name: one for one in chart.series if one.hue == "puma" and one.style == "top1" and not one.printed}
    assert set(puma) == {"puma-tf32 · top1", "puma-tf32, seed 42 (never learned) · top1"}
    (natural, four_or_more, *_) = puma["puma-tf32 · top1"].lines[0].points
    assert natural.y == pytest.approx(0.999)
    assert four_or_more.y == pytest.approx(0.872)
    for chart in run_charts(Store(folder).runs()):  # listed in all others as well, and in no mean
        arms = {one.group: [line.label for line in one.lines] for one in chart.series if one.hue == "puma"}
        assert "puma-tf32, seed 42 (never learned)" in arms or chart.section == "cost", chart.title
        assert not any("seed 42" in label for label in arms.get("puma-tf32", [])), chart.title
    gate = {"policy": "top1", "stratum": "natural"}
    lines(evaluations, [record for record in kept if {**record, **gate} != record])
    chart = recorded_accuracy("addition", Store(folder).runs(), "best_probe", ["puma-tf32"])
    unsure = [one for one in chart.series if one.group == "puma-tf32, seed 42 (not measured)"]
    assert unsure, "no record says that it learned, so it is in no mean either"
    assert any(one.shown for one in unsure), "it is shown with its arm"


def test_every_verdict_leads_to_its_records(tmp_path: Path) -> None:
    held = ledger(Results(Store(results(tmp_path))))
    lower = next(claim for claim in held["claims"] if claim["id"] == "addition.puma.lower")
    assert lower["verdict"] == "holds"
    runs = {dict(zip(held["columns"], held["records"][number], strict=True))["run"] for number in lower["records"]}
    assert runs == {f"addition-{scheme}-tf32-s{seed}" for scheme in ("random", "puma") for seed in (41, 42)}
    assert len(set(held["records"])) == len(held["records"])


def test_curves_show_what_runs_logged(tmp_path: Path) -> None:
    charts = {chart.title: chart for chart in run_charts(Store(results(tmp_path)).runs())}
    loss = charts["Training loss"]
    assert [series.name for series in loss.series] == ["random-tf32", "papl-tf32", "puma-tf32"]
    assert [len(series.lines) for series in loss.series] == [2, 2, 2]  # one a seed
    logged = next(run for run in Store(tmp_path).runs() if run.name == "addition-puma-tf32-s41").log
    assert [(x, y) for x, y, *_ in loss.series[2].lines[0].points] == [(line.step, line.loss) for line in logged]
    guessed = charts["Answer cells that are guessed"].series[2].lines[0].points
    assert (guessed[0][1], guessed[-1][1]) == (33, 0)
    accuracy = charts["Accuracy by stratum and policy, best probe weights"]
    puma = next(series for series in accuracy.series if series.name == "puma-tf32 · top1")
    assert accuracy.x.categories is not None
    at = accuracy.x.categories.index("chain>=4")
    _, share, low, high = next(point for point in puma.lines[0].points if point[0] == at)
    assert share == pytest.approx(0.868)
    assert low is not None
    assert high is not None
    assert low < 0.868 < high
    early = charts["Commits before their prerequisites, in recorded runs"]
    assert [series.lines[0].points[0][1] for series in early.series] == [0.2, 0.4, 0.6]
    assert charts["Mask states in training"].series[0].lines[0].points[0][:2] == pytest.approx((1, 1 / 561))


def test_curves_and_figures_count_what_the_ledger_counts(tmp_path: Path) -> None:
    """A sampled decode, one on other instances and a smaller repetition stand beside the record, not for it."""
    folder = results(tmp_path, seeds=(42,))
    path = folder / "addition-puma-tf32-s42" / "evaluations.jsonl"
    record = json.loads(path.read_text().splitlines()[0])
    others: tuple[dict[str, Any], ...] = (
        {"temperature": 1.0},
        {"seed": 42, "data_seed": 7},
        {"restrict": True},
        {"n": 20},
    )
    with path.open("a") as file:
        file.writelines(json.dumps(record | {"exact_match": 0.1} | other) + "\n" for other in others)
    runs = Store(folder).runs()
    charts = {chart.title: chart for chart in run_charts(runs)}
    on_page = charts["Accuracy by stratum and policy, best probe weights"]
    panels = by_policy(recorded_accuracy("addition", runs, "best_probe"))
    (on_paper,) = [chart for chart in panels if chart.panel == "top1"]
    for chart, name in ((on_page, "puma-tf32 · top1"), (on_paper, "puma-tf32")):  # a panel has one policy
        (puma,) = [series for series in chart.series if series.name == name]
        shares = [share for _, share, *_ in puma.lines[0].points]
        assert record["exact_match"] in shares
        assert 0.1 not in shares


def test_runs_of_another_kind_are_drawn_apart_and_without_the_papers_marks(tmp_path: Path) -> None:
    """A small trial recorded beside the study is neither a line of its figures nor compared with the paper."""
    folder = results(tmp_path, seeds=(42,))
    index = folder / "index.jsonl"
    trial = json.loads(index.read_text().splitlines()[-1]) | {"name": "trial", "arm": "addition-puma-smoke"}
    (folder / "addition-puma-tf32-s42").rename(folder / "trial")
    index.write_text("".join(line + "\n" for line in index.read_text().splitlines()[:-1]) + json.dumps(trial) + "\n")
    apart = by_variant(Store(folder).runs())
    assert {variant: len(held) for variant, held in apart.items()} == {"tf32": 2, "smoke": 1}
    marks = {variant: recorded_accuracy("addition", held, "best_probe").series for variant, held in apart.items()}
    assert any(series.printed for series in marks["tf32"])
    assert {(series.hue, series.printed) for series in marks["smoke"]} == {("puma", False)}


def _broken(file: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / file
        path.write_text(change(path.read_text()))

    return damage


def _without(key: str) -> Callable[[str], str]:
    return lambda text: "".join(
        json.dumps({name: value for name, value in json.loads(line).items() if name != key}) + "\n"
        for line in text.splitlines()
    )


RUN = "addition-puma-tf32-s41"
UNREADABLE = '{"policy": "top1", "strata": ["chain>=28"], "result": {"instances": 5}, "readiness": 5}\n'


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (_broken("index.jsonl", lambda text: text[:40]), "index.jsonl, line 1"),
        (_broken("index.jsonl", _without("arm")), "missing required field `arm`"),
        (
            _broken(f"{RUN}/log.jsonl", lambda text: text.replace('"loss": ', '"loss": "x", "y": ')),
            "loss: expected",
        ),
        (_broken(f"{RUN}/log.jsonl", lambda text: "[1, 2]\n"), "log.jsonl, line 1: this is not a JSON object"),
        (_broken(f"{RUN}/evaluations.jsonl", _without("stratum")), "missing required field `stratum`"),
        (_broken(f"{RUN}/evaluations.jsonl", _without("exact_match")), "missing required field `exact_match`"),
        (
            _broken(f"{RUN}/evaluations.jsonl", lambda text: text.replace('"n": 500', '"n": NaN')),
            "line 1: this is not valid JSON",
        ),
        (
            _broken(f"{RUN}/evaluations.jsonl", lambda text: text.replace('match": 0', 'match": 7')),
            "expected `float` <= 1",
        ),
        (_broken(f"{RUN}/diagnoses.jsonl", lambda text: UNREADABLE), "readiness: expected `object`"),
        (
            _broken(f"{RUN}/diagnoses.jsonl", lambda text: text.replace('right":400', 'right":800')),
            "800 right commits are more than the 500 commits",
        ),
        (
            _broken(f"{RUN}/coverage.json", lambda text: text.replace("33]", "Infinity]")),
            f"{RUN}/coverage.json: this is not valid JSON",
        ),
        (_broken(f"{RUN}/coverage.json", lambda text: "{"), "coverage.json: this is not valid JSON"),
        (_broken(f"{RUN}/coverage.json", lambda text: '{"something": 1}'), f"{RUN}/coverage.json: object missing"),
    ],
)
def test_damaged_results_are_one_sentence(tmp_path: Path, damage: Callable[[Path], None], told: str) -> None:
    folder = results(tmp_path)
    damage(folder)
    with pytest.raises(HardtailError, match=re.escape(told)):
        page_content(Store(folder), [], [])


def test_the_reading_of_the_text_is_shown_where_it_was_run(tmp_path: Path) -> None:
    folder = results(tmp_path / "results", seeds=(42,))
    content, _ = page_content(Store(folder), [], [])
    assert [choice["weights"] for choice in content["study"]["judged"]] == ["as in the paper", "last"]
    index = folder / "index.jsonl"
    index.write_text(index.read_text().replace('-tf32"', '-paper"'))
    content, _ = page_content(Store(folder), [], [])
    assert [choice["weights"] for choice in content["study"]["judged"]][2:] == ["last, reading paper"]


@pytest.mark.parametrize("section", ["training", "accuracy", "readiness", "coverage"])
def test_plots_show_at_first_what_the_ledger_reads(section: str, tmp_path: Path) -> None:
    """Runs beside the study's own, here a superseded one, are there to be asked for."""
    folder = results(tmp_path, seeds=(42,))
    index = folder / "index.jsonl"

    def shown(asked: Collection[str] = ()) -> set[str]:
        charts = [chart for chart in run_charts(Store(folder).runs(), asked) if chart.section == section]
        return {re.split("[ ,]", series.name)[0] for chart in charts for series in chart.series if series.shown}

    assert "puma-tf32" in shown()
    index.write_text(index.read_text().replace('"addition-puma-tf32"', '"addition-puma-first"'))
    assert shown() == {"random-tf32", "papl-tf32"}
    assert shown({"addition-puma-tf32-s42"}) == {"random-tf32", "papl-tf32", "puma-first"}
    index.write_text(re.sub(r'"arm": "([a-z-]+)-tf32"', r'"arm": "\1-mine"', index.read_text()))
    assert shown() == {"random-mine", "papl-mine", "puma-first"}


def test_each_run_is_explained_once_for_an_order_and_its_weights(tmp_path: Path) -> None:
    """By the diagnosis that the ledger takes: of its claims' strata, however large another is."""
    whole = diagnosis_of("addition", diagnosed_strata("addition"), 2700, checkpoint="last")
    part = diagnosis_of("addition", ["chain>=28"], 5000, checkpoint="last")
    logical = diagnosis_of("addition", ["chain>=28"], 5000, checkpoint="last", policy="lsb")
    append_jsonl(tmp_path / "diagnoses.jsonl", [whole, part, logical])
    run = Run(RunEntry(name="run", task="addition", arm="addition-puma", seed=42, steps=1), tmp_path)
    assert run.explained == {("top1", "last"): whole, ("lsb", "last"): logical}


def test_the_recipe_says_which_scheme_a_run_was_trained_by(tmp_path: Path) -> None:
    """`hardtail train addition-random --scheme papl,alpha=5` is called `addition-random-papl-alpha=5`."""
    lines(tmp_path / "evaluations.jsonl", [])
    run = Run(RunEntry(name="a", arm="addition-random-papl-alpha=5", task="addition", seed=42, steps=1), tmp_path)
    assert run.scheme == "random", "there is no recipe"
    for arm, scheme, name in (
        ("random-papl-alpha=5", "Papl", "papl"),
        ("papl5-tf32", "hardtail.schemes.papl:Papl", "papl5"),
        ("oracle-quarter", "Puma", "oracle"),
        ("large-puma", "Puma", "puma"),
        ("random-then-own", "mine:Own", "mine:Own"),
    ):
        recipe = {
            "class": "Recipe",
            "fields": {"task": {"name": "addition", "fields": {}}, "scheme": {"class": scheme}},
        }
        (tmp_path / "recipe.json").write_text(json.dumps(recipe))
        made = Run(RunEntry(name="a", arm=f"addition-{arm}", task="addition", seed=42, steps=1), tmp_path)
        assert made.scheme == name


def test_a_run_that_was_stopped_before_its_first_step_is_shown(tmp_path: Path) -> None:
    folder = results(tmp_path, seeds=(42,))
    nothing = {"by_count": [0] * 34, "by_count_and_rank": [[0] * 33] * 34}
    (folder / "addition-puma-tf32-s42" / "coverage.json").write_text(json.dumps(nothing))
    trained = trained_states(Store(folder).runs())
    assert [one.series.group for one in trained] == ["random-tf32", "papl-tf32"]


def test_a_run_of_ones_own_is_not_mistaken_for_a_recorded_one(tmp_path: Path) -> None:
    store = Store(results(tmp_path / "results", seeds=(42,)))
    recorded = store.runs()
    (mine := tmp_path / "runs" / recorded[0].name).mkdir(parents=True)
    assert all_runs(store, recorded[:1]) == recorded
    same = Run(recorded[0].entry, mine)
    assert all_runs(store, [same]) == recorded
    with pytest.raises(HardtailError, match="has the name of a recorded run"):
        all_runs(store, [Run(structs.replace(recorded[0].entry, wall=1.0), mine)])
