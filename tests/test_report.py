"""The report's data and its file: what goes in comes out, and what cannot go in is one clear sentence.

Shapes: N instances, T events.
"""

import base64
import gzip
import hashlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from hardtail import cli
from hardtail.core.errors import HardtailError
from hardtail.core.records import RunEntry, append_jsonl
from hardtail.core.registry import TASKS
from hardtail.core.trace_files import load_trace
from hardtail.core.types import Trace
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.policies.named import policy_named
from hardtail.show.charts.accuracy import recorded_accuracy
from hardtail.show.charts.legend import by_variant
from hardtail.show.figures.panels import by_policy
from hardtail.show.page.curves import run_charts
from hardtail.show.page.data import page_content
from hardtail.show.page.judged import ledger
from hardtail.show.page.page import SCRIPTS, page_of, write_page
from hardtail.show.stages import ready_events, stages
from hardtail.show.study_tables import study_tables
from hardtail.show.table_files import write_tables
from hardtail.study.claims import Results
from hardtail.study.runs import Run, diagnosed_strata
from hardtail.study.store import Store
from hardtail.tasks.addition.task import Addition
from tests.planted_results import diagnosis_of
from tests.report_toys import EVIL, TASK, addition_traces, lines, markup_trace, results, saved

WEB = Path(cli.__file__).parents[1] / "show" / "page" / "web"
KINDS = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "i2": np.int16}


@pytest.fixture(scope="module")
def traces() -> list[Trace]:
    return addition_traces()


@pytest.fixture(scope="module")
def content(traces: list[Trace]) -> tuple[dict[str, Any], bytes]:
    content, arrays = page_content(None, [], traces)
    return content, gzip.decompress(base64.b64decode(arrays))


def unpacked(place: dict[str, Any], raw: bytes) -> NDArray[Any]:
    return np.frombuffer(raw, KINDS[place["type"]], place["n"], place["at"])


# -- traces -----------------------------------------------------------------------------------------------------------


def test_a_page_holds_every_event_of_every_trace(content: tuple[dict[str, Any], bytes], traces: list[Trace]) -> None:
    (stage,), raw = content[0]["stages"], content[1]
    tokens_PL = unpacked(stage["tokens"], raw).reshape(-1, stage["length"])
    by_name = {decoder["name"]: decoder for decoder in stage["decoders"]}
    assert set(by_name) == {
        f"addition-{model} · {policy}" for model in ("random", "puma") for policy in ("top1", "lsb")
    }
    for trace in traces:
        decoder = by_name[f"{trace.about['model']} · {trace.about['policy']}"]
        row_N, end_N = (unpacked(decoder[name], raw) for name in ("row", "end"))
        at_N = np.flatnonzero(np.array(stage["strata"])[row_N] == trace.about["stratum"])
        np.testing.assert_array_equal(tokens_PL[row_N[at_N]], trace.instances.tokens_NL)
        np.testing.assert_array_equal(unpacked(decoder["exact"], raw)[at_N], trace.exact_N)
        event_NT = (end_N[at_N] - trace.cell_NT.shape[1])[:, None] + np.arange(trace.cell_NT.shape[1])
        for name, held in (("cell", trace.cell_NT), ("step", trace.step_NT), ("token", trace.token_NT)):
            np.testing.assert_array_equal(unpacked(decoder[name], raw)[event_NT], held)
        for name, share in (("prob", trace.prob_NT), ("goldProb", trace.gold_prob_NT)):
            np.testing.assert_allclose(unpacked(decoder[name], raw)[event_NT] / 65535, share, atol=1e-5)


def test_decoders_of_the_same_problems_share_them(traces: list[Trace]) -> None:
    (stage,) = stages(traces)
    assert len(stage.problems) == 2 * len(traces[0])
    for rows in stage.rows[1:]:
        np.testing.assert_array_equal(rows, stage.rows[0])


def test_models_of_one_name_are_told_apart(traces: list[Trace]) -> None:
    early, late = (replace(traces[0], about={**traces[0].about, "step": step, "seed": 1}) for step in (10, 20))
    (stage,) = stages([early, late])
    names = {decoder.model for decoder in stage.decoders}
    assert len(names) == 2
    assert any("step 10" in name for name in names)


def test_unready_commits_are_those_that_the_diagnosis_counts(traces: list[Trace]) -> None:
    for trace in traces:
        assert int((~ready_events(TASK, trace)).sum()) == readiness(TASK, trace).premature
    assert any(not ready_events(TASK, trace).all() for trace in traces)


def test_the_first_wrong_commit_is_known(content: tuple[dict[str, Any], bytes]) -> None:
    (stage,), raw = content[0]["stages"], content[1]
    role_PA = unpacked(stage["role"], raw).reshape(-1, stage["cells"])
    decoder = next(one for one in stage["decoders"] if one["name"] == "addition-puma · top1")
    wrong_N, row_N = (unpacked(decoder[name], raw) for name in ("firstWrong", "row"))
    failed_N = unpacked(decoder["exact"], raw) == 0
    assert failed_N.any()
    np.testing.assert_array_equal(wrong_N >= 0, failed_N)
    roles = {stage["roleNames"][role] for role in role_PA[row_N[failed_N], wrong_N[failed_N]]}
    assert roles <= {"g", "k"}  # the planted shortcut guesses there, and nowhere else


def test_bare_instances_are_shown_without_annotations(traces: list[Trace]) -> None:
    bare = replace(traces[0], instances=traces[0].instances.bare())
    content, _ = page_content(None, [], [bare])
    assert content["stages"][0]["roleNames"] == []
    assert content["stages"][0]["parentSlots"] == 0


# -- recorded results -------------------------------------------------------------------------------------------------


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
    early = charts["Commits before their prerequisites, recorded runs"]
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
    for chart in (on_page, on_paper):
        (puma,) = [series for series in chart.series if series.name == "puma-tf32 · top1"]
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


# -- the file ---------------------------------------------------------------------------------------------------------


def test_the_page_asks_nothing_of_the_network(tmp_path: Path, traces: list[Trace]) -> None:
    page = page_of(*page_content(Store(results(tmp_path)), [], traces))
    addresses = set(re.findall(r"\w+://[^\s\"'`)]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a language, never fetched
    assert not re.search(r"\s(?:src|href)=[\"']?(?!#)\w", page)
    assert "import(" not in page
    assert "@import" not in page
    assert "url(" not in page


def test_only_the_pages_own_script_may_run(traces: list[Trace]) -> None:
    page = page_of(*page_content(None, [], traces))
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    program = re.search(r'<script type="module">(.*?)</script>', page, re.DOTALL)
    assert policy is not None
    assert program is not None
    digest = base64.b64encode(hashlib.sha256(program[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in policy[1]
    assert policy[1].startswith("default-src 'none'")


def test_markup_in_data_stays_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._known, "markup", "tests.report_toys:Markup")
    content, arrays = page_content(None, [], [markup_trace()])
    page = page_of(content, arrays)
    assert EVIL not in page
    assert page.count("<script") == page.count("</script>") == 3
    held = re.search(r'id="content">(.*?)</script>', page, re.DOTALL)
    assert held is not None
    assert json.loads(held[1])["stages"][0]["decoders"][0]["model"] == EVIL


def test_modules_import_what_others_before_them_export() -> None:
    assert {path.stem for path in WEB.glob("*.js")} == set(SCRIPTS)
    exported = {"palette": {"STEP_RAMP"}}

    def check(text: str, folder: str) -> None:
        imports = re.findall(rf'^import \{{([^}}]*)\}} from "{folder}/(\w+)\.js";$', text, re.MULTILINE)
        assert len(imports) == len(re.findall(r"^import\b", text, re.MULTILINE)), (
            "an import that the bundle cannot read"
        )
        for names, module in imports:
            assert {word.strip() for word in names.split(",")} <= exported[module]

    for name in SCRIPTS:
        text = (WEB / f"{name}.js").read_text()
        check(text, r"\.")
        exported[name] = set(re.findall(r"^export (?:async )?(?:function|const|class) (\w+)", text, re.MULTILINE))
        if name == "scenes":  # the tasks' scenes are put in here
            for task in TASKS.builtin:
                scene = TASKS.load(task).scene()
                assert scene is not None
                check(scene.script, "hardtail")
                assert f'register("{task}", ' in scene.script


def test_a_page_has_the_scenes_of_its_own_tasks_only(traces: list[Trace]) -> None:
    page = page_of(*page_content(None, [], traces))
    assert 'register("addition", ' in page
    assert 'register("maze", ' not in page


def test_the_page_is_there_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "report.html"
    path.write_text("the old page")

    def fail(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_page(path, {"stages": []}, "")
    assert path.read_text() == "the old page"
    assert list(tmp_path.iterdir()) == [path]


def test_traces_are_shown_without_torch(tmp_path: Path, traces: list[Trace]) -> None:
    paths = saved(tmp_path, traces[:2])
    assert load_trace(Path(paths[0])).exact_N.shape == traces[0].exact_N.shape
    program = (
        "import sys; from pathlib import Path; from hardtail.show.page.data import page_content\n"
        "from hardtail.show.sources import load_traces\n"
        "page_content(None, [], load_traces([Path(name) for name in sys.argv[1:]]))\n"
        "assert 'torch' not in sys.modules, 'torch was imported'"
    )
    subprocess.run([sys.executable, "-c", program, *paths], check=True)


def test_a_policy_that_hides_cells_again_is_replayed(traces: list[Trace]) -> None:
    from hardtail.decoding.loop import decode
    from tests.planted import lookahead

    about = {**traces[0].about, "policy": "remdm"}
    instances = traces[2].instances.take(slice(0, 4))
    trace = decode(lookahead(TASK, 2), instances, policy_named("remdm", TASK.order_names), about=about)
    assert trace.cell_NT.shape[1] > TASK.answer_len
    content, arrays = page_content(None, [], [trace])
    raw = gzip.decompress(base64.b64decode(arrays))
    (decoder,) = content["stages"][0]["decoders"]
    assert unpacked(decoder["end"], raw)[-1] == int(trace.happened_NT.sum())
