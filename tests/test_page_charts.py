"""The page's plots in a real browser: what is drawn where, and that it can be read."""

from pathlib import Path

import pytest

from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, grouped
from hardtail.show.page.curves import charts_as_json
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from tests.conftest import BROWSER, NO_BROWSER
from tests.page_toys import Open

pytestmark = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)

STRATA = ("natural", *(f"chain>={chain}" for chain in (2, 3, 4, 6, 8, 12, 20, 28)))


def written(path: Path, *charts: Chart) -> Path:
    """A page of these charts alone."""
    content, arrays = page_content(None, [], [])
    write_page(path, content | {"charts": charts_as_json(charts, "addition")}, arrays)
    return path


def test_marks_stay_at_their_stratum_however_many_models_there_are(opened: Open, tmp_path: Path) -> None:
    series = [
        (
            Series(f"m{n}", f"m{n}", "top1", group=f"m{n}"),
            Line("", tuple(Point(at, 0.1 * n) for at in range(len(STRATA)))),
        )
        for n in range(8)
    ]
    words = ("accuracy", "Accuracy", "Accuracy", "", "addition")
    chart = Chart(*words, Axis("stratum", STRATA), SHARE, grouped(series), marks=True)
    page = opened("#curves", path=written(tmp_path / "many.html", chart))
    marks = page.locator(".plot circle")
    assert marks.count() == len(series) * len(STRATA)
    names = (
        page.locator(".plot .axes text", has_text="≥").all()
        + page.locator(".plot .axes text", has_text="natural").all()
    )
    centres = [float(name.get_attribute("x") or 0) for name in names]
    assert len(centres) == len(STRATA)
    for place, mark in enumerate(marks.all()):
        at = float(mark.get_attribute("cx") or 0)
        nearest = min(centres, key=lambda centre: abs(centre - at))
        assert sorted(centres).index(nearest) == place % len(STRATA)
