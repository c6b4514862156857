"""Figures for a paper: what they show is what was measured, and files are fit to print.

Shapes: N instances, A answer cells, K hidden counts, R ranks.
"""

import re
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

from hardtail import cli
from hardtail.core.errors import HardtailError
from hardtail.core.records import DataFile, LogLine, lines_of
from hardtail.core.types import Trace
from hardtail.show.charts.accuracy import recorded_accuracy
from hardtail.show.charts.answers import LOGICAL
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, grouped
from hardtail.show.charts.colours import SCHEME_COLOURS, colours
from hardtail.show.charts.states import trained_and_visited
from hardtail.show.charts.training import training
from hardtail.show.figures import style as pen
from hardtail.show.figures import write_figures
from hardtail.show.figures.panels import by_policy, charts_figure, difficulty
from hardtail.show.figures.states import chance_hidden
from hardtail.show.figures.style import save, slug, style
from hardtail.show.page.curves import charts_as_json
from hardtail.show.stages import Stage, stages
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.study.runs import Run
from hardtail.study.store import Store
from hardtail.tasks.addition.figures import failures_figure
from tests.planted_results import Planted
from tests.report_toys import TASK, addition_traces, results, saved
from tests.shown import words


@pytest.fixture(scope="module")
def stage() -> Stage:
    return stages(addition_traces())[0]


@pytest.fixture(scope="module")
def failing(stage: Stage) -> Trace:
    """The planted shortcut with the shorter sight, by confidence."""
    return next(held.trace for held in stage.decoders if held.name == "addition-puma · top1")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(results(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def runs(store: Store) -> list[Run]:
    return store.runs()


def series(axes: Any, colour: str) -> list[tuple[list[float], list[float]]]:
    """The lines of a panel in one colour."""
    lines = [line for line in axes.lines if mpl.colors.same_color(line.get_color(), colour)]
    return [(list(line.get_xdata()), list(line.get_ydata())) for line in lines]


# -- files ------------------------------------------------------------------------------------------------------------


def test_files_are_fit_for_a_paper_and_the_same_every_time(failing: Trace, tmp_path: Path) -> None:
    paths = save(style()(failures_figure)(TASK, failing, pen), tmp_path / "one", "figure")
    with mpl.rc_context({"font.size": 20, "pdf.fonttype": 3, "font.family": "DejaVu Serif"}):  # a person's own settings
        again = save(style()(failures_figure)(TASK, failing, pen), tmp_path / "two", "figure")
    pdf, png, svg = (path.read_bytes() for path in paths)
    assert [path.suffix for path in paths] == [".pdf", ".png", ".svg"]
    assert [path.read_bytes() for path in again] == [pdf, png, svg]
    assert b"/FontFile2" in pdf, "the fonts are embedded as TrueType"
    assert b"/Type3" not in pdf, "which journals refuse"
    assert b"CreationDate" not in pdf
    assert b"<dc:date>" not in svg
    assert b"<text" not in svg, "an SVG needs no font of the reader's"
    assert png[16:20] == int(6.75 * 300).to_bytes(4, "big"), "as wide as a page of two columns"


def test_every_figure_that_there_is_data_for(stage: Stage, runs: list[Run], tmp_path: Path) -> None:
    written = write_figures(tmp_path, runs, [stage])
    assert {path.stem for path in written} == {
        "training-addition",
        "accuracy-addition-best-probe",
        "readiness-addition-last",
        "coverage-addition",
        "states-addition",
        "readiness-addition-decoded",
        "failures-addition-puma-top1",
        "failures-addition-random-top1",
    }
    assert all(path.stat().st_size > 1000 for path in written)


def test_text_from_data_is_shown_not_read(failing: Trace, tmp_path: Path) -> None:
    hostile = replace(failing, about={**failing.about, "model": r"$\frac{$ <script> ../../x"})
    (held,) = stages([hostile])
    written = write_figures(tmp_path / "figures", [], [held])
    assert {path.parent for path in written} == {tmp_path / "figures"}
    assert r"$\frac{$ <script>" in words(style()(failures_figure)(TASK, hostile, pen))
    assert slug("../../etc", "a b") == "etc-a-b"


def test_nothing_to_draw_and_no_matplotlib_are_sentences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HardtailError, match="nothing to draw"):
        write_figures(tmp_path, [], [])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(HardtailError, match=re.escape("pip install 'hardtail[report]'")):
        write_figures(tmp_path, [], [])


# -- curves -----------------------------------------------------------------------------------------------------------


def test_accuracy_is_drawn_with_intervals_beside_what_the_paper_prints(runs: list[Run]) -> None:
    charts = by_policy(recorded_accuracy("addition", runs, "best_probe"))
    panels = {chart.panel: chart for chart in charts}
    assert set(panels) == {"top1", "lsb", "random"}
    top1 = {(one.hue, one.printed): one.lines[0].points for one in panels["top1"].series}
    printed = printed_accuracy()["addition", "papl", "top1"]
    chains, shown = [4, 12, 20, 24, 28], [(x, y) for x, y, _, _ in top1["papl", True]]
    assert shown == [(0, printed["natural"]), *((k, printed[f"chain>={k}"]) for k in chains)]
    assert [x for x, *_ in top1["papl", False]] == [0, *chains], "at the chain's length, not in a row"
    assert all(low is not None and low <= y <= (high or 0) for _, y, low, high in top1["papl", False])
    figure = charts_figure(charts)
    panel = next(axes for axes in figure.axes if axes.get_title(loc="left") == "top1")
    ((xs, ys),) = series(panel, SCHEME_COLOURS["papl"])[:1]
    assert list(zip(xs, ys, strict=True)) == [(x, y) for x, y, _, _ in top1["papl", False]]
    assert "printed in the paper" in words(figure)


def alike(*places: str, policies: tuple[str, ...] = ("top1", "lsb")) -> Chart:
    """Accuracy of two arms of one scheme by each policy, on these strata."""
    line = Line("", tuple(Point(place, 0.5) for place in range(len(places))))
    arms = [f"puma{more}" for more in ("", "-mine")]
    held = [(Series(f"{arm} · {name}", "puma", name, group=arm), line) for arm in arms for name in policies]
    axes = Axis("stratum", places), SHARE
    return Chart("accuracy", "Accuracy", "Accuracy", "", "addition", *axes, grouped(held), marks=True)


def test_no_line_crosses_a_stratum_that_was_not_measured() -> None:
    points = tuple(Point(place, 0.5) for place in (0, 1, 3))
    strata = tuple(f"tier={name}" for name in ("easy", "medium", "hard", "extreme"))
    one = Series("puma · top1", "puma", "top1", group="puma")
    axes = Axis("stratum", strata), SHARE
    chart = Chart(
        "accuracy", "Accuracy", "Accuracy", "", "sudoku", *axes, grouped([(one, Line("", points))]), marks=True
    )
    (panel,) = charts_figure([chart]).axes
    (drawn,) = [line for line in panel.lines if len(line.get_xdata()) > 2]
    assert np.isnan(drawn.get_xdata()).tolist() == [False, False, True, False]


@pytest.mark.parametrize("names", [("natural", "tier=hard"), tuple(f"tier=number_{n}" for n in range(8))])
def test_names_of_strata_do_not_lie_on_each_other(names: tuple[str, ...]) -> None:
    figure = charts_figure(by_policy(alike(*names)))
    figure.draw_without_rendering()
    for axes in figure.axes:
        labels = axes.get_xticklabels()
        assert [label.get_text() for label in labels] == list(names)
        found = [label.get_window_extent() for label in labels]
        apart = all(one.x1 < other.x0 for one, other in pairwise(found))
        assert apart or {label.get_rotation() for label in labels} == {35}
        assert min(box.y0 for box in found) >= 0
        assert axes.bbox.height > 0.5 * figure.dpi, "and leave room for the curves"


def test_a_legend_names_arms_of_one_scheme_once() -> None:
    panels = by_policy(alike("natural", "chain>=4"))
    named = alike("natural", policies=("top1",))
    unnamed = replace(named, series=tuple(replace(one, name=one.group) for one in named.series))

    def entries(*charts: Chart) -> list[str]:
        return [text.get_text() for text in charts_figure(charts).legends[0].get_texts() if text.get_text()]

    assert entries(*panels) == ["PUMA", "puma", "puma-mine"], "the titles of the panels are the policies"
    assert sorted(entries(named, unnamed)) == ["PUMA", "puma · top1", "puma-mine · top1"]


def test_strata_that_are_no_numbers_stand_in_a_row() -> None:
    axis, places = difficulty(["natural", "tier=easy", "rating>=106"])
    assert axis.categories == ("natural", "tier=easy", "rating>=106")
    assert places == [0, 1, 2]


def test_training_curves_are_the_logs(runs: list[Run]) -> None:
    charts = {chart.panel: chart for chart in training("addition", runs)}
    hard = {(one.hue, one.style): one.lines for one in charts["Hard-tail accuracy"].series}
    puma = next(run for run in runs if run.arm.startswith("puma"))
    logged = [(line.step, line.hard_logical) for line in puma.log]
    assert [(x, y) for x, y, *_ in hard["puma", "logical order"][0].points] == logged
    assert len(hard["puma", "confidence"]) == 2, "a line for each seed"


def test_curves_on_problems_of_a_file_are_drawn_apart_and_named(tmp_path: Path) -> None:
    """A probe on the file of one run must not look better or worse than one that another run drew."""
    folder = results(tmp_path)
    log = folder / "addition-puma-tf32-s42" / "log.jsonl"
    began = LogLine(step=0, how="recipe", watched=DataFile(file="sums-test.npz", sha256="0" * 64))
    log.write_bytes(lines_of([began]) + log.read_bytes())
    charts = {chart.title: chart for chart in training("addition", Store(folder).runs())}

    def seeds(title: str) -> dict[str, list[str]]:
        return {one.hue: [line.label for line in one.lines] for one in charts[title].series if one.style != LOGICAL}

    both = ["seed 41", "seed 42"]
    assert seeds("Training loss")["puma"] == both, "a loss is of training data"
    for title in ("Accuracy on natural instances", "Accuracy on the hard tail", "Probe loss"):
        assert seeds(title) == {"random": both, "papl": both, "puma": ["seed 41"]}
        assert seeds(f"{title}, problems of sums-test.npz") == {"puma": ["seed 42"]}
        assert charts[f"{title}, problems of sums-test.npz"].note.endswith(
            "from sums-test.npz; kinds that it lacks are drawn."
        )
        assert "sums-test" not in charts[title].note
    figure = charts_figure([*charts.values()])
    assert "Probe loss\nsums-test.npz" in [axes.get_title(loc="left") for axes in figure.axes]


def test_a_scheme_has_the_colour_of_the_page(runs: list[Run]) -> None:
    charts = training("addition", runs)
    on_page = {one["colour"] for chart in charts_as_json(charts, "") for one in chart["series"]}
    drawn = {mpl.colors.to_hex(line.get_color()) for axes in charts_figure(charts).axes for line in axes.lines}
    assert on_page == drawn == {SCHEME_COLOURS[scheme] for scheme in ("random", "papl", "puma")}


def test_names_of_no_scheme_take_free_colours_first() -> None:
    found = colours(["puma", "mine", "yours", *map(str, range(9))])
    assert found["puma"] == SCHEME_COLOURS["puma"]
    assert len({found[name] for name in ("puma", "mine", "yours", "0", "1", "2")}) == 6
    many = colours([*map(str, range(20))])
    assert len(set(many.values())) == 20, "no two look alike"


def test_states_visited_least_significant_first_are_a_staircase(stage: Stage) -> None:
    held = {one.series.name: one.histogram for one in trained_and_visited("addition", [], stage)}
    hidden_KR = chance_hidden(held["addition-puma · lsb"])
    cells = TASK.answer_len
    expected_KR = np.arange(cells) >= cells - np.arange(1, cells + 1)[:, None]
    np.testing.assert_array_equal(hidden_KR[1:], expected_KR.astype(float))


@pytest.mark.parametrize(("ranks", "together"), [((2, 3), [[0, 0, 0], [5, 4, 3]]), ((1, 3), [[0], [10]])])
def test_seeds_whose_data_have_other_ranks_are_counted_together(
    ranks: tuple[int, int], together: list[list[int]], tmp_path: Path
) -> None:
    made = Planted(tmp_path)
    for seed, (held, number) in enumerate(zip(ranks, ([4, 2, 9], [1, 2, 3]), strict=True)):
        made.plant(ShareRight("listops", "puma", "top1", "natural"), 1.0, seed=seed)
        counted = {"by_count": [0, 3], "by_count_and_rank": [[0] * held, number[:held]]}
        made.coverage[f"listops-puma-s{seed}"] = counted
    (one,) = trained_and_visited("listops", made.written().runs(), None)
    assert one.histogram.count_K.tolist() == [0, 6]
    assert one.histogram.rank_KR.tolist() == together


# -- the command ------------------------------------------------------------------------------------------------------


def test_report_draws_figures_when_asked(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = saved(tmp_path, addition_traces(4)[-2:])
    monkeypatch.setattr(sys, "argv", ["hardtail", "report", *names, "--results", str(store.folder), "--figures", "out"])
    cli.main()
    assert "out: " in capsys.readouterr().out
    made = {path.name for path in Path("out").iterdir()}
    assert {"training-addition.pdf", "coverage-addition.svg", "claims.tex", "addition-table-1.csv"} <= made
