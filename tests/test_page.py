"""The page in a real browser, used as a person would."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hardtail.core.registry import TASKS
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from hardtail.study.claims import claim_named
from hardtail.study.store import Store
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from tests.conftest import BROWSER, NO_BROWSER
from tests.planted_results import Planted, as_printed, together
from tests.report_toys import EVIL, TASK, addition_traces, lines, markup_trace, results, rewritten_trace, wide_trace

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)

N = 12
SLIDER = "input[type=range]"
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about recorded results and planted decodes."""
    folder = tmp_path_factory.mktemp("page")
    path = folder / "report.html"
    write_page(path, *page_content(Store(results(folder / "results")), [], addition_traces(N)))
    return path


Open = Callable[..., "Page"]


@pytest.fixture
def opened(browser: "Browser", file: Path) -> Iterator[Open]:
    """Opens the page at an address; whatever the browser complains about fails the test, and so does any request."""
    complaints: list[str] = []
    contexts = []

    def go(address: str = "", path: Path = file, size: str = "desktop", scheme: Any = "light") -> "Page":
        width, height = SIZES[size]
        view = {"width": width, "height": height}
        context = browser.new_context(viewport=view, color_scheme=scheme, has_touch=size == "phone")  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: None if request.url.startswith("file:") else complaints.append(request.url))
        page.goto(f"{path.as_uri()}{address}")
        page.wait_for_selector("body[data-ready]")
        return page

    yield go
    for context in contexts:
        context.close()
    assert complaints == []


def steps(page: "Page") -> list[str]:
    """Where each decoder stands, as its heading says."""
    return [text.split(" ")[0] for text in page.locator(".state").all_inner_texts()]


def filled(page: "Page", pane: int = 0) -> int:
    """Answer cells that a drawing shows as committed."""
    return page.locator(".pane").nth(pane).locator(".tile:not(.hidden)").count()


def test_opens_from_a_file_with_the_story_of_its_decodes(opened: Open) -> None:
    page = opened()
    said = page.locator("h1").inner_text()
    assert said == (
        "By confidence, addition-random solves 100 % of ordinary sums but only 75 % of sums with a carry chain of 8 or "
        "more digits. Lowest digit first, it solves 100 %; with 12 sums this may be chance."
    )
    assert page.locator("h1 .way-0").count() == 2
    assert page.locator(".dots .model").all_inner_texts() == ["addition-random", "addition-puma"]
    numbers = [text.split() for text in page.locator(".dots .figure.way-1").all_inner_texts()]
    assert numbers == [["100", "%"]] * 4, "in logical order everything is right"
    assert page.locator("h1").bounding_box()["y"] < page.locator(".dots").bounding_box()["y"] < SIZES["desktop"][1] / 2  # type: ignore[index]
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


def test_who_asks_for_less_motion_sees_the_mistake_at_once(browser: "Browser", file: Path) -> None:
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    page.goto(file.as_uri())
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
    table = page.locator("figure", has_text="Ours by runs of a quarter of the paper's steps").first
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
    assert chart.locator("h3").inner_text() == "puma-tf32 ends lowest, at 0.02"
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


def test_the_slider_and_the_keys_step_through_the_trace(opened: Open) -> None:
    page = opened("#theatre")
    page.locator(SLIDER).fill("0")
    page.wait_for_function("() => document.querySelector('.steps').textContent.startsWith('step 0 ')")
    assert filled(page) == 0
    page.locator(SLIDER).fill("5")
    page.wait_for_function("() => document.querySelectorAll('.pane:first-child .tile:not(.hidden)').length === 5")
    page.locator("main").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => document.querySelectorAll('.pane:first-child .tile:not(.hidden)').length === 6")
    assert page.locator(SLIDER).input_value() == "6"
    page.keyboard.press("End")
    page.wait_for_function("() => !document.querySelector('.tile.hidden')")
    page.keyboard.press("Home")
    page.keyboard.press(" ")
    page.wait_for_function("() => document.querySelectorAll('.pane:first-child .tile:not(.hidden)').length >= 2")


def test_two_decoders_stay_in_step_on_one_problem(opened: Open) -> None:
    page = opened("#theatre")
    for step in ("3", "9", "4"):
        page.locator(SLIDER).fill(step)
        page.wait_for_function(
            "step => document.querySelector('.steps').textContent.startsWith(`step ${step} `)", arg=step
        )
        assert steps(page) == [f"{step}/13"] * 2
        assert (filled(page, 0), filled(page, 1)) == (int(step), int(step))
    operands = [pane.locator(".digit").all_text_contents() for pane in page.locator(".pane").all()]
    assert operands[0] == operands[1]
    was = "".join(operands[0])
    page.keyboard.press("n")
    digits = "[...document.querySelectorAll('.pane:first-child .digit')].map(one => one.textContent).join('')"
    page.wait_for_function(f"was => {digits} !== was", arg=was)
    again = [pane.locator(".digit").all_text_contents() for pane in page.locator(".pane").all()]
    assert again[0] == again[1]


def test_filters_narrow_the_problems(opened: Open) -> None:
    page = opened("#theatre")
    problems = page.locator(".problems [data-problem]")
    assert problems.count() == 2 * N
    page.get_by_label("Stratum").select_option("chain>=8")
    assert problems.count() == N
    page.get_by_label("Outcome").select_option("failures")
    failures = problems.count()
    assert 0 < failures < N
    assert all("✗" in text for text in problems.all_inner_texts())
    roles = page.get_by_label("First wrong role").locator("option").all_inner_texts()[1:]
    narrowed = []
    for role in roles:
        page.get_by_label("First wrong role").select_option(role)
        narrowed.append(problems.count())
    assert set(roles) <= {"g", "k"}
    assert sum(narrowed) == failures
    page.get_by_label("Outcome").select_option("solved")
    assert "No problem" in page.locator(".panes").inner_text()


def test_opens_on_a_problem_that_only_one_decoder_solves_at_its_first_wrong_commit(opened: Open) -> None:
    page = opened("#theatre")
    pane = page.locator(".pane").first
    assert "✗✓" in page.locator(".problems [aria-selected=true]").inner_text()
    because = page.locator(".transport .because").all_inner_texts()
    assert [text[:8] for text in because] == ["AFailed.", "BSolved."]
    assert "1 wrong" in pane.locator(".state").inner_text()
    wrong = pane.locator(".tile.wrong.now.unready")
    assert wrong.count() == 1
    wrong.hover()
    told = page.locator(".told").inner_text()
    assert "before its prerequisites" in told
    assert "waits for 10^" in told
    assert pane.locator(".tile.parent").count() == 1
    assert page.locator(".tile.inspected").count() == 2  # the same cell, outlined in both


def test_the_address_restores_a_view(opened: Open) -> None:
    page = opened("#theatre")
    page.get_by_label("Decoder A").select_option(label="addition-random · top1")
    page.get_by_label("Decoder B").select_option(label="addition-puma · top1")
    page.get_by_label("Stratum").select_option("chain>=8")
    page.locator(".problems [data-problem]").nth(4).click()
    page.locator(SLIDER).fill("7")
    page.wait_for_function("() => location.hash.includes('step=7')")
    shown = [page.locator(".pane").all_inner_texts(), page.locator(".count").inner_text()]
    other = opened(page.evaluate("location.hash"))
    assert [other.locator(".pane").all_inner_texts(), other.locator(".count").inner_text()] == shown
    assert steps(other) == ["7/13", "7/13"]
    assert other.get_by_label("Decoder A").evaluate("box => box.selectedOptions[0].text") == "addition-random · top1"


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


def test_a_phone_has_everything_within_its_width(opened: Open) -> None:
    for view in ("#overview", "#curves", "#study", "#theatre"):
        page = opened(view, size="phone")
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES["phone"][0]
        ends = page.evaluate(
            "[...document.querySelectorAll('.views a, #theme')].map(a => a.getBoundingClientRect().right)"
        )
        assert ends == sorted(ends), "the way to every view is on the screen"
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


def test_a_wide_drawing_moves_with_its_commits_on_a_phone(opened: Open, tmp_path: Path) -> None:
    """Lowest digit first, the first commit and the last are at opposite ends of a sum of 32 digits."""
    path = tmp_path / "wide.html"
    write_page(path, *page_content(None, [], [wide_trace()]))
    page = opened("#theatre", path=path, size="phone")
    for step in (1, 33):
        page.locator(SLIDER).fill(str(step))
        page.wait_for_function(
            """() => [...document.querySelectorAll(".pane")].every((pane) => {
                const box = pane.querySelector(".tile.now").getBoundingClientRect();
                return box.left >= 0 && box.right <= innerWidth;
            })""",
            timeout=3000,
        )


def test_a_cell_that_is_written_again_plays_as_a_replacement(opened: Open, tmp_path: Path) -> None:
    path, trace = tmp_path / "rewritten.html", rewritten_trace()
    write_page(path, *page_content(None, [], [trace]))
    page = opened("#theatre", path=path)
    before, after = trace.token_NT[0, [0, -1]].tolist()
    cell = page.locator(f'[data-cell="{TASK.answer_len - 1}"]')
    page.locator(SLIDER).fill(str(TASK.answer_len))
    page.wait_for_function("() => document.querySelectorAll('.tile.wrong').length === 1")
    assert cell.locator(".sign").text_content() == str(before)
    assert page.locator(".tile.replaced").count() == 0
    page.locator(SLIDER).fill(str(TASK.answer_len + 1))
    page.wait_for_selector(".tile.replaced")
    assert (cell.locator(".sign").text_content(), cell.locator(".old").text_content()) == (str(after), str(before))
    assert page.locator(".tile.wrong").count() == 0
    assert "1 replaced · ✓ solved" in page.locator(".state").inner_text()
    assert page.locator(".strip .replaced").count() == 1
    assert "replaces a token once" in page.locator(".because").inner_text()
    cell.hover()
    assert f"{after} instead of {before} in step {TASK.answer_len + 1}" in page.locator(".told").inner_text()


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


def test_every_task_has_its_drawing(opened: Open, tmp_path: Path) -> None:
    traces = [_recited(name) for name in ("maze", "listops", "countdown", "sudoku")]
    path = tmp_path / "tasks.html"
    write_page(path, *page_content(None, [], traces))
    page = opened("#theatre", path=path)
    for place, trace in enumerate(traces):
        page.get_by_label("Task").select_option(str(place))
        page.locator("main").focus()
        page.keyboard.press("End")
        cells = page.locator(".scene [data-cell]")
        assert cells.count() == trace.instances.answer_len
        page.wait_for_function("() => !document.querySelector('.tile.hidden, .room.unknown')")
        assert "✓ solved" in page.locator(".state").first.inner_text()


@pytest.mark.filterwarnings("error")
def test_unknown_probabilities_are_not_shown_as_zero(opened: Open, tmp_path: Path) -> None:
    trace = _recited("sudoku")
    unknown = trace_of_canvases(trace.instances, list(canvases_of(trace)), trace.mask_id, trace.about)
    path = tmp_path / "unknown.html"
    write_page(path, *page_content(None, [], [unknown]))
    page = opened("#theatre", path=path)
    page.locator("main").focus()
    page.keyboard.press("End")
    page.locator(f".scene [data-cell='{unknown.cell_NT[0, 0]}']").hover()
    told = page.locator(".told").inner_text()
    assert ("in step 1; " in told, "probability" in told) == (True, False)
    assert "NaN" not in page.content()


def _recited(name: str) -> Any:
    """A decode that is right in every cell."""
    import numpy as np

    import hardtail
    from hardtail.decoding.loop import decode
    from hardtail.policies.named import policy_named
    from tests.planted_other import reciting

    task = hardtail.task("maze", size=3) if name == "maze" else hardtail.task(name)
    instances = task.sample(2, hardtail.Streams(1).named(name), task.gallery()[0])
    denoiser = reciting(task, instances, instances.answer_NA, np.full(instances.maskable_NA.shape, 0.9))
    about = {"task": name, "config": task.config(), "policy": "top1", "stratum": "some", "model": "right"}
    return decode(denoiser, instances, policy_named("top1"), about=about)
