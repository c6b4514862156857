"""One description of a chart, for the page and for paper: what each of them leaves out or puts together."""

from hardtail.show.charts.answers import answer
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, grouped
from hardtail.show.charts.colours import SCHEME_COLOURS
from hardtail.show.figures.panels import by_policy
from hardtail.show.page.curves import MOST_POINTS, charts_as_json


def chart(*lines: tuple[Series, Line], strata: tuple[str, ...] = ("natural", "chain>=4")) -> Chart:
    return Chart("accuracy", "Accuracy", "Accuracy", "", "addition", Axis("stratum", strata), SHARE, grouped(lines))


def test_lines_of_a_series_come_together_and_empty_ones_are_left_out() -> None:
    puma, papl = Series("puma", "puma", "top1"), Series("papl", "papl", "top1")
    one, other = Line("seed 1", (Point(0, 0.5),)), Line("seed 2", (Point(0, 0.6),))
    found = grouped([(puma, one), (papl, Line("", ())), (puma, other)])
    assert [(series.name, series.lines) for series in found] == [("puma", (one, other))]


def test_the_page_has_a_colour_for_a_group_and_nothing_that_the_paper_prints() -> None:
    line = Line("", (Point(0, 0.5),))
    drawn = chart(
        (Series("puma · top1", "puma", "top1", group="puma"), line),
        (Series("puma · lsb", "puma", "lsb", group="puma"), line),
        (Series("puma-mine · lsb", "puma", "lsb", group="puma-mine"), line),
        (Series("puma, paper", "puma", "top1", printed=True), line),
    )
    (entries,) = [held["series"] for held in charts_as_json([drawn], "addition")]
    assert [(one["group"], one["style"]) for one in entries] == [
        ("puma", "top1"),
        ("puma", "lsb"),
        ("puma-mine", "lsb"),
    ]
    first, again, other = (one["colour"] for one in entries)
    assert first == again == SCHEME_COLOURS["puma"]
    assert other != first, "another arm of the same scheme has its own shade"
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


# -- answers ----------------------------------------------------------------------------------------------------------


def _series(name: str, *values: float, style: str = "top1", shown: bool = True) -> tuple[Series, Line]:
    points = tuple(Point(place, value) for place, value in enumerate(values))
    return Series(f"{name} · {style}", name, style, group=name, shown=shown), Line("", points)


def test_a_chart_says_what_is_solved_least() -> None:
    drawn = chart(_series("puma", 1.0, 0.9), _series("papl", 1.0, 0.43), _series("old", 0.1, 0.1, shown=False))
    assert answer("decoded-accuracy", drawn) == "Lowest: papl · top1 solves 43 % of chain ≥ 4"
    fine = chart(_series("puma", 1.0, 0.995))
    assert answer("decoded-accuracy", fine) == "Everything shown is solved at 99 % or more"


def test_a_chart_of_training_says_how_it_ends() -> None:
    drawn = chart(
        _series("papl", 0.2, 0.57, style="confidence"),
        _series("papl", 0.5, 1.0, style="logical order"),
        _series("puma", 1.0, 1.0, style="confidence"),
        _series("puma", 1.0, 1.0, style="logical order"),
    )
    assert answer("hard", drawn) == "papl ends at 57 % by confidence, 100 % in logical order"
    assert answer("natural", drawn) == "papl ends at 78 %; 1 of 2 at 99 % or more"
    worse = chart(_series("puma", 0.64, style="confidence"), _series("puma", 0.16, style="logical order"))
    assert answer("hard", worse) == "puma ends at 64 % by confidence, 16 % in logical order"
    alike = chart(_series("puma", 0.5, style="confidence"), _series("puma", 0.499, style="logical order"))
    assert answer("hard", alike) == "In the end the two orders differ by less than 1 %"
    losses = chart(_series("papl", 2.0, 0.25), _series("puma", 2.0, 0.5))
    assert answer("loss", losses) == "papl ends at 0.25, puma ends at 0.5"
    assert answer("probe", losses) == "papl ends lowest, at 0.25"
    assert answer("guessed", losses) == "puma still guesses 0.5 cells at the end"


def test_a_chart_of_commits_says_how_many_came_too_early() -> None:
    early = chart(
        (Series("a", "a", "top1", group="a"), Line("", (Point(0, 0.68),))),
        (Series("b", "b", "top1", group="b"), Line("", (Point(0, 0.25),))),
        (Series("a", "a", "lsb", group="a"), Line("", (Point(1, 0.0),))),
        strata=("top1", "lsb"),
    )
    assert answer("premature", early) == "Too early: 25 to 68 % under top1, 0 % under lsb"
    never_misled = Series("a", "a", "top1", group="a"), Line("", (Point(1, 0.999), Point(3, 0.2)))
    right = [never_misled, _series("b", 1.0, 1.0, 0.3, 0.1)]
    assert answer("right", chart(*right, strata=("free", "ready", "misled", "unready"))) == (
        "Right: ready over 99 %, misled 30 %, unready 10 to 20 %"
    )
    along = chart(_series("a", 0.0, 0.5))
    assert answer("wrong-along", along) == "At worst 50 % are wrong: a · top1, 100 % of the way"
    assert answer("wrong-along", chart(_series("a", 0.0, 0.0))) == "No commit is wrong"
