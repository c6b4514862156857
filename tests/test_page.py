"""The page in a real browser, used as a person would; the theatre has tests of its own."""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hardtail.core.registry import TASKS
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from hardtail.study.claims import claim_named
from hardtail.study.store import Store
from tests.conftest import BROWSER, NO_BROWSER
from tests.page_toys import SIZES, SLIDER, N, Open, filled, steps
from tests.planted_results import Planted, as_printed, together
from tests.report_toys import EVIL, addition_traces, lines, markup_trace, results

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)


def test_opens_from_a_file_with_the_story_of_its_decodes(opened: Open) -> None:
    page = opened()
    said = page.locator("h1").inner_text()
    assert said == (
        "By confidence, addition-random solves 100 % of ordinary sums but only 75 % of sums with a carry chain of 8 or "
        "more digits. Lowest digit first, it solves 100 %; with 12 sums this may be chance."
    )
    assert page.locator("h1 .way-0").count() == 2
    assert page.locator(".dots .model").all_inner_texts() == ["addition-random", "addition-puma"]
    page.get_by_text(f"n = {N}, with 95 % intervals").wait_for()
    numbers = [text.split() for text in page.locator(".dots .figure.way-1").all_inner_texts()]
    assert numbers == [["100", "%"]] * 4, "in logical order everything is right"
    assert page.locator("h1").bounding_box()["y"] < page.locator(".dots").bounding_box()["y"] < SIZES["desktop"][1] / 2  # type: ignore[index]
    ring = "node => getComputedStyle(node).backgroundColor"
    ordinary, hard = (page.locator(".dots .panel").nth(place).locator(".dot.way-1") for place in range(2))
    assert ordinary.evaluate(ring) == "rgba(0, 0, 0, 0)", "both marks are seen where both orders solve the same share"
    assert hard.evaluate(ring) == "rgb(255, 255, 255)"
    assert page.locator(".three b").first.inner_text() == "100 %"
    page.get_by_role("link", name="addition-puma").click()
    page.wait_for_selector(".pane")
    assert page.get_by_label("Decoder A").evaluate("box => box.selectedOptions[0].text") == "addition-puma · top1"


def test_a_failure_plays_by_itself_and_can_be_paused(opened: Open) -> None:
    page = opened()
    page.clock.install()  # so that seconds pass at once
    page.reload()
    page.wait_for_selector("body[data-ready]")
    player = page.locator(".player")
    failed, solved = player.locator(".because").all_inner_texts()
    assert re.match(r"AFailed\. In step \d+ of 13 it writes \d into 10\^\d+ with probability", failed)
    assert "It waits for 10^" in failed
    assert re.match(r"BSolved\. It writes 10\^\d+ in step \d+ of 13, when 10\^\d+ is known\.", solved)
    player.scroll_into_view_if_needed()
    page.wait_for_function(
        "() => document.querySelectorAll('.player .pane:first-child .tile:not(.hidden)').length >= 2"
    )
    player.get_by_role("button", name="Pause").click()
    standing = steps(page)
    assert len(set(standing)) == 1, "in step"
    page.clock.run_for(20_000)
    assert steps(page) == standing
    player.get_by_role("button", name="Play").click()
    page.clock.run_for(8_000)  # it rests at the mistake and at the end
    assert steps(page) != standing
    player.get_by_role("link", name="theatre").click()
    page.wait_for_selector(".theatre .pane")
    assert page.locator(".theatre .because").first.inner_text() == failed


def test_one_way_of_decoding_is_not_called_both(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "one.html"
    write_page(path, *page_content(None, [], addition_traces(N)[::2]))
    page = opened(path=path)
    assert page.locator(".player h2").first.inner_text() == "One failure, step by step"
    assert page.locator(".player .pane").count() == 1
    assert opened().locator(".player h2").first.inner_text() == "One failure, both ways in step"


def test_a_link_to_another_view_keeps_the_keyboard_in_the_page(opened: Open) -> None:
    """The link is gone with its view; the next press of Tab must not begin at the top."""
    page = opened()
    page.locator(".player").get_by_role("link", name="theatre").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".theatre .pane")
    assert page.locator("main:focus").count() == 1
    page.keyboard.press("Tab")
    assert page.locator(".theatre :focus").count() == 1


def test_who_asks_for_less_motion_sees_the_mistake_at_once(browser: "Browser", page_file: Path) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(page_file.as_uri())
    page.wait_for_selector("body[data-ready]")
    assert page.locator(".player .tile.wrong.now").count() == 1
    page.get_by_role("button", name="Play").wait_for()
    context.close()


def test_the_study_has_a_view_of_its_own(opened: Open, tmp_path: Path) -> None:
    page = opened("#study")
    assert page.get_by_role("row", name=re.compile("addition-puma-tf32-s41")).count() == 1
    cell = page.locator("table.study").first.get_by_role("row", name=re.compile("chain ≥ 28")).locator("td").first
    assert cell.locator(".paper").text_content() == "0.992"
    assert (cell.locator("b").text_content() or "").startswith("0.69")
    assert "not" in (cell.get_attribute("class") or "")


def test_a_page_without_the_study_leads_to_none(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "decodes.html"
    write_page(path, *page_content(None, [], addition_traces(2)))
    for size in SIZES:
        page = opened(path=path, size=size)
        assert page.locator(".views a:visible").all_inner_texts() == ["Overview", "Theatre", "Curves"]


def test_the_study_begins_with_links_to_its_parts(opened: Open) -> None:
    from playwright.sync_api import expect

    page = opened("#study")
    page.set_viewport_size({"width": 390, "height": 844})
    links = page.get_by_role("navigation", name="Contents").get_by_role("link")
    assert links.all_inner_texts()[:3] == ["Tables", "Claims", "addition"]
    assert links.all_inner_texts()[-1] == "Recorded runs"
    for name, heading in {"Claims": "The paper's claims", "Recorded runs": "Recorded runs"}.items():
        expect(page.get_by_role("heading", name=heading)).not_to_be_in_viewport()
        for _ in range(2):  # the second time, the address does not change
            links.get_by_text(name, exact=True).click()
            expect(page.get_by_role("heading", name=heading)).to_be_in_viewport()
            page.evaluate("scrollTo(0, 0)")
    page = opened("#study?part=claims-addition")
    expect(page.locator("#claims-addition")).to_be_in_viewport()


def test_a_verdict_opens_its_evidence(opened: Open) -> None:
    page = opened("#study?claim=addition.puma.lower")
    claim = page.locator("details.claim[open]")
    assert claim.locator(".verdict").inner_text() == "= holds"
    level = page.locator("details.claim", has_text="PAPL has this accuracy on chains of 20").first
    assert level.locator(".numbers").inner_text() == "46.2 % (paper) · 46.2 % (ours)"
    longest = level.locator(".verdict")
    longest.evaluate("badge => (badge.textContent = '≠ one seed, a quarter of the steps: does not hold')")
    badge, numbers = longest.bounding_box(), level.locator(".numbers").bounding_box()
    assert badge is not None
    assert numbers is not None
    assert badge["x"] + badge["width"] < numbers["x"]
    assert "addition-random-tf32-s42" in claim.inner_text()
    everything = page.locator("details.claim").count()
    page.get_by_role("link", name=re.compile("^does not hold")).click()
    page.wait_for_function("all => document.querySelectorAll('details.claim').length < all", arg=everything)
    assert set(page.locator(".claim .verdict").all_inner_texts()) == {"≠ does not hold"}


def test_the_study_says_what_rests_on_shortened_runs(opened: Open, tmp_path: Path) -> None:
    made = Planted(tmp_path / "results")
    made.ending = "-quarter"
    for figure, value in together(claim_named("countdown.puma.overall"), as_printed).items():
        made.plant(figure, value)
    path = tmp_path / "page.html"
    write_page(path, *page_content(made.written(), [], []))
    page = opened("#study?claim=countdown.puma.overall", path=path)
    claim = page.locator("details.claim[open]")
    assert claim.locator(".verdict").inner_text() == "= one seed, a quarter of the steps: holds"
    assert "steps\na quarter of the paper's" in claim.locator("dl").inner_text()
    table = page.locator("figure", has_text=": runs of a quarter of the paper's steps").first
    assert table.locator("td.agreement").first.get_attribute("title") == "agrees; 1 seed, a quarter of the steps"


def test_tables_and_claims_are_of_the_chosen_weights(opened: Open, tmp_path: Path) -> None:
    from playwright.sync_api import expect

    folder = results(tmp_path / "results")
    for seed in (41, 42):
        kept = folder / f"addition-random-tf32-s{seed}" / "evaluations.jsonl"
        records = [json.loads(line) for line in kept.read_text().splitlines()]
        last = [record | {"checkpoint": "last"} for record in records]
        last = [of if of["stratum"] == "natural" else of | {"exact_match": 0.25} for of in last]
        lines(kept, records + last)
    path = tmp_path / "page.html"
    write_page(path, *page_content(Store(folder), [], []))
    page = opened(path=path)
    figure = page.locator("table.study td b").first
    claim = page.locator("details.claim", has_text="PUMA is below random masking")
    verdicts = page.locator("details.claim .verdict")
    expect(figure).to_have_text(re.compile(r"^0\.99"))
    expect(claim).to_have_count(1)
    page.click('nav[aria-label="Weights"] >> text="last"')  # a link: what it shows comes a moment later
    expect(figure).to_have_text("0.250 ≠")
    expect(claim).to_have_count(0)  # PUMA's last weights are not measured
    page.click('nav[aria-label="Verdicts"] >> text=/^does not hold/')
    expect(verdicts.filter(has_not_text="does not hold")).to_have_count(0)
    expect(figure).to_have_text("0.250 ≠")  # a filter of claims leaves the weights alone
    page.click('nav[aria-label="Weights"] >> text="as in the paper"')
    expect(figure).to_have_text(re.compile(r"^0\.99"))


def test_a_chooser_shows_and_hides_runs_and_hovering_shows_numbers(opened: Open) -> None:
    page = opened("#curves?of=addition%2C%20runs")
    chart = page.locator('[data-chart="Training loss"]')
    ends = {"random": 0.02, "papl": 0.0267, "puma": 0.02}
    assert chart.locator("h3").inner_text() == ", ".join(f"{name}-tf32 ends at {end}" for name, end in ends.items())
    curves = chart.locator(".plot path").count()
    page.get_by_text("Showing 3 of 3 runs and models").click()
    page.get_by_label("puma-tf32").uncheck()
    page.get_by_text("Showing 2 of 3 runs and models").wait_for()
    assert chart.locator(".plot path").count() == curves - 2  # both seeds
    assert "puma-tf32" not in page.locator(".legend").first.inner_text()
    chart.locator(".plot").hover(position={"x": 200, "y": 80})
    tip = page.locator("#tip").inner_text()
    assert "training step" in tip
    assert "papl-tf32, seed 42" in tip
    assert "puma" not in tip


def test_an_address_of_another_page_is_no_error(opened: Open) -> None:
    page = opened("#theatre?stage=7&a=nobody&problem=99999&step=abc&role=x")
    assert page.locator(".pane").count() >= 1
    assert "By confidence" in opened("#nonsense").locator("h1").inner_text()


def test_dark_and_light(opened: Open) -> None:
    def background(page: "Page") -> int:
        colour = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3]))

    page = opened("#theatre", scheme="dark")
    assert background(page) < 150
    page.locator("#theme").click()
    assert background(page) > 600
    assert background(opened(scheme="light")) > 600
    ink = "getComputedStyle(document.querySelector('.digit')).fill"
    assert opened("#theatre", scheme="dark").evaluate(ink) != opened("#theatre").evaluate(ink)


def test_paper_has_nothing_to_press_and_nothing_cut(opened: Open) -> None:
    for view in ("#overview", "#theatre", "#curves", "#study"):
        page = opened(view, scheme="dark")
        page.locator("#theme").click()
        page.locator("#theme").click()  # dark, whatever the system prefers
        page.emulate_media(media="print")
        assert page.evaluate("getComputedStyle(document.documentElement).backgroundColor") == "rgb(255, 255, 255)"
        pressed = page.locator("button:not(.legend *), select, nav, input")  # those of a legend explain strokes
        assert not any(node.is_visible() for node in pressed.all())
        for card in page.locator(".pane, .chart").all():
            height, whole = card.evaluate("node => [node.clientHeight, node.scrollHeight]")
            assert height >= whole > 100
            assert card.evaluate("node => getComputedStyle(node).breakInside") == "avoid"


def test_a_phone_has_everything_within_its_width(opened: Open) -> None:
    for view in ("#overview", "#curves", "#study", "#theatre"):
        page = opened(view, size="phone")
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]
        ends = page.evaluate(
            "[...document.querySelectorAll('.views a, #theme')].map(a => a.getBoundingClientRect().right)"
        )
        assert ends == sorted(ends), "the way to every view is on the screen"
        width, shown = page.locator(".views").evaluate("bar => [bar.scrollWidth, bar.clientWidth]")
        assert width <= shown, "and none is cut off"
    assert page.locator(SLIDER).is_visible()
    assert filled(page) > 0
    for pane in page.locator(".pane").all():
        box = pane.bounding_box()
        assert box is not None
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= SIZES["phone"][1], "both decoders without scrolling"
    row = page.locator(".transport .row").bounding_box()
    assert row is not None
    assert row["y"] + row["height"] <= SIZES["phone"][1], "with the slider"
    page.locator(".pane").first.locator(".tile").nth(4).tap()
    assert "10^8" in page.locator(".told .cell-name").inner_text()


def test_a_phone_shows_which_order_the_first_columns_are_of(opened: Open) -> None:
    group = opened("#study", size="phone").locator("table.study .group").first
    words = """node => {
        const range = document.createRange();
        range.selectNodeContents(node);
        return range.getBoundingClientRect().right;
    }"""
    assert group.evaluate(words) < SIZES["phone"][0]


def test_the_scale_of_a_picture_is_as_wide_as_what_it_measures(opened: Open, tmp_path: Path) -> None:
    """With one stratum or with two, on a phone and on a desktop."""
    for n, traces in enumerate((addition_traces(N)[:2], addition_traces(N))):
        path = tmp_path / f"{n}.html"
        write_page(path, *page_content(None, [], traces))
        for size in SIZES:
            page = opened("#overview", path=path, size=size)
            scales, tracks = (
                {
                    (round(box["x"]), round(box["width"]))
                    for part in page.locator(name).all()
                    if (box := part.bounding_box())
                }
                for name in (".dots .scale", ".dots .track")
            )
            assert scales == tracks != set()


def test_markup_in_data_is_shown_and_not_run(opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._known, "markup", "tests.report_toys:Markup")
    path = tmp_path / "markup.html"
    write_page(path, *page_content(None, [], [markup_trace()]))
    page = opened("#theatre", path=path)
    assert page.locator(".pane h2").inner_text() == EVIL
    assert page.locator(".scene .prompt").first.text_content() == EVIL
    page.goto(f"{path.as_uri()}#curves")
    page.get_by_text("Curves").first.wait_for()
    assert page.title() == "hardtail report"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2  # the data and the program; the arrays are unpacked by then
