"""The page's plots in a real browser: what is drawn where, and that it can be read."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, grouped
from hardtail.show.page.curves import charts_as_json
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from tests.conftest import BROWSER, NO_BROWSER
from tests.page_toys import SIZES, Open

pytestmark = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)

STRATA = ("natural", *(f"chain>={chain}" for chain in (2, 3, 4, 6, 8, 12, 20, 28)))


def written(path: Path, *charts: Chart) -> Path:
    """A page of these charts alone."""
    content, arrays = page_content(None, [], [])
    write_page(path, content | {"charts": charts_as_json(charts, "addition")}, arrays)
    return path


def drawn(section: Literal["accuracy", "cost"], series: list[tuple[Series, Line]]) -> Chart:
    """A chart of accuracies over strata."""
    axes, words = (Axis("stratum", STRATA), SHARE), ("Accuracy", "Accuracy", "")
    return Chart(section, *words, "addition", *axes, grouped(series), marks=True)


def test_marks_stay_at_their_stratum_however_many_models_there_are(opened: Open, tmp_path: Path) -> None:
    points = tuple(Point(place, 0.5) for place in range(len(STRATA)))
    series = [(Series(name, name, "top1", group=name), Line("", points)) for name in "abcdefgh"]
    page = opened("#curves", path=written(tmp_path / "many.html", drawn("accuracy", series)))
    names = page.locator(".plot .axes text", has_text=re.compile("natural|≥"))
    centres = names.evaluate_all("nodes => nodes.map(node => Number(node.getAttribute('x')))")
    marks = page.locator(".plot circle").evaluate_all("nodes => nodes.map(node => Number(node.getAttribute('cx')))")
    assert (len(centres), len(marks)) == (len(STRATA), len(STRATA) * len(series))
    for place, mark in enumerate(marks):
        assert min(centres, key=lambda centre: abs(centre - mark)) == centres[place % len(STRATA)]


def test_no_line_crosses_a_stratum_that_was_not_measured(opened: Open, tmp_path: Path) -> None:
    line = Line("", tuple(Point(place, 0.5) for place in (0, 1, 3, 4)))
    chart = drawn("accuracy", [(Series("m", "m", "top1", group="m"), line)])
    path = opened("#curves", path=written(tmp_path / "gap.html", chart)).locator(".plot path[stroke-width='2']")
    assert re.sub(r"[^ML]", "", path.get_attribute("d") or "") == "MLML"


def test_ten_policies_have_ten_marks_and_fit_a_phone(opened: Open, tmp_path: Path) -> None:
    names = ["top1", *(f"ladder,hide=comb,parts=3,splits=1,limit=0.00{n}1,again=2" for n in range(9))]
    series = [(Series(f"m · {name}", "m", name, group="m"), Line("", (Point(0, 0.5),))) for name in names]
    path = written(tmp_path / "policies.html", drawn("cost", series))
    for size, (width, _) in SIZES.items():
        page = opened("#curves", path=path, size=size)
        for holder in (".legend", ".plot"):
            marks = page.locator(f"{holder} .mark").all()
            looks = {(mark.get_attribute("d"), mark.get_attribute("class")) for mark in marks}
            assert len(looks) == len(marks) == len(names)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_of_axes_and_their_numbers_do_not_cover_each_other(opened: Open, tmp_path: Path) -> None:
    axes, words = (Axis("stratum", ("natural", "chain>=28")), Axis("share of states", log=True)), ("States", "", "")
    series = grouped([(Series("m", "m", "top1", group="m"), Line("", (Point(0, 0.00001), Point(1, 1.0))))])
    path = written(tmp_path / "log.html", Chart("coverage", *words, "addition", *axes, series))
    texts = opened("#curves", path=path).locator(".plot .axes text")
    found = texts.evaluate_all("""texts => texts.map((text) => {
        const { left, right, top, bottom } = text.getBoundingClientRect();
        return [left, right, top, bottom];
    })""")
    for place, (left, right, top, bottom) in enumerate(found):
        for other in found[:place]:
            assert right <= other[0] or other[1] <= left or bottom <= other[2] or other[3] <= top
    assert {"0.001", "natural", "chain ≥ 28", "share of states"} <= set(texts.all_text_contents())


def test_a_plot_says_what_it_counts_to_who_has_no_mouse(opened: Open) -> None:
    page = opened("#curves?of=addition%2C%20runs", size="phone")
    plot = page.locator('[data-chart^="Right commits by readiness"]')
    note = plot.get_by_text("Free cells wait for nothing")
    assert not note.is_visible()
    plot.locator("summary").focus()
    page.keyboard.press("Enter")
    assert note.is_visible()


def test_a_plot_of_what_is_hidden_is_not_drawn_empty(opened: Open, tmp_path: Path) -> None:
    """Its heading would be about curves that are not there."""
    line = Line("", (Point(0, 0.5),))
    shown, hidden = (Series(name, name, "top1", shown=name == "a", group=name) for name in "ab")
    charts = [drawn("cost", [(shown, line)]), replace(drawn("cost", [(hidden, line)]), title="About b")]
    page = opened("#curves", path=written(tmp_path / "hidden.html", *charts))
    assert page.locator(".chart").count() == 1
    page.get_by_text("1 more plot shows nothing of what is chosen.").wait_for()
    page.get_by_text("Showing 1 of 2 runs and models").click()
    page.get_by_label("b", exact=True).check()
    page.locator('[data-chart="About b"] .mark').wait_for()
    assert page.get_by_text("nothing of what is chosen").count() == 0
