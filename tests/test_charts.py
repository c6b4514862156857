"""One description of a chart, for the page and for paper: what each of them leaves out or puts together."""

from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, grouped
from hardtail.show.figures.panels import by_policy
from hardtail.show.page.curves import MOST_POINTS, charts_as_json


def chart(*lines: tuple[Series, Line], strata: tuple[str, ...] = ("natural", "chain>=4")) -> Chart:
    return Chart("accuracy", "Accuracy", "Accuracy", "", "addition", Axis("stratum", strata), SHARE, grouped(lines))


def test_lines_of_a_series_come_together_and_empty_ones_are_left_out() -> None:
    puma, papl = Series("puma", "puma", "top1"), Series("papl", "papl", "top1")
    one, other = Line("seed 1", (Point(0, 0.5),)), Line("seed 2", (Point(0, 0.6),))
    found = grouped([(puma, one), (papl, Line("", ())), (puma, other)])
    assert [(series.name, series.lines) for series in found] == [("puma", (one, other))]


def test_the_page_has_one_entry_for_a_name_and_nothing_that_the_paper_prints() -> None:
    line = Line("", (Point(0, 0.5),))
    drawn = chart(
        (Series("puma", "puma", "top1"), line),
        (Series("puma", "puma", "lsb"), line),
        (Series("puma, paper", "puma", "top1", printed=True), line),
    )
    ((entry,),) = [held["series"] for held in charts_as_json([drawn], "addition")]
    assert (entry["name"], len(entry["lines"])) == ("puma", 2)
    assert not {"log_on_paper", "label_on_paper"} & charts_as_json([drawn], "addition")[0]["x"].keys()


def test_long_lines_are_thinned_on_the_page_and_keep_their_ends() -> None:
    points = tuple(Point(step, 0.5) for step in range(5 * MOST_POINTS))
    (held,) = charts_as_json([chart((Series("puma", "puma", ""), Line("", points)))], "addition")
    kept = held["series"][0]["lines"][0]["points"]
    assert len(kept) <= MOST_POINTS + 1
    assert (kept[0], kept[-1]) == (points[0], points[-1])


def test_on_paper_every_policy_has_its_panel_with_strata_at_their_difficulty() -> None:
    ours, printed = Line("", (Point(0, 1.0), Point(1, 0.5))), Line("", (Point(1, 0.4),))
    first, second = by_policy(
        chart(
            (Series("puma · top1", "puma", "top1"), ours),
            (Series("puma · top1, paper", "puma", "top1", printed=True), printed),
            (Series("puma · lsb", "puma", "lsb"), ours),
            strata=("chain>=4", "natural"),
        )
    )
    assert [(panel.panel, len(panel.series)) for panel in (first, second)] == [("top1", 2), ("lsb", 1)]
    assert first.x.label == "chain ≥ … (0: natural)"
    assert [(point.x, point.y) for point in first.series[0].lines[0].points] == [(0, 0.5), (4, 1.0)]
    assert [(point.x, point.y) for point in first.series[1].lines[0].points] == [(0, 0.4)]
