"""The page's theatre in a real browser: stepping through decodes, choosing problems, drawings."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pytest

from hardtail.core.types import Trace
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from tests.conftest import BROWSER, NO_BROWSER
from tests.page_toys import SLIDER, N, Open, filled, steps
from tests.report_toys import TASK, addition_traces, rewritten_trace, wide_trace

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator

pytestmark = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)


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


def test_the_list_of_problems_is_one_stop_for_the_keyboard(opened: Open) -> None:
    page = opened("#theatre")
    chosen, focused = page.locator(".problems [aria-selected=true]"), page.locator(":focus")
    before = int(chosen.get_attribute("data-problem") or 0)
    page.get_by_label("First wrong role").focus()
    page.keyboard.press("Tab")
    assert focused.get_attribute("data-problem") == str(before)
    page.keyboard.press("ArrowDown")
    assert focused.get_attribute("data-problem") == chosen.get_attribute("data-problem") == str(before + 1)
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    assert focused.get_attribute("data-problem") == chosen.get_attribute("data-problem") == str(before - 1)
    page.keyboard.press("Tab")
    assert page.locator(".middle :focus, .middle:focus").count() == 1, "past it, without a stop for each problem"


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


@pytest.mark.parametrize("size", [(1280, 800), (1366, 720), (820, 1180), (1024, 768)])
def test_both_decoders_are_seen_whole_and_level(opened: Open, tmp_path: Path, size: tuple[int, int]) -> None:
    """However long a name is, next to each other or, as with 32 digits, one below the other."""
    named = [about(one, policy="a_rather_long_name_of_a_policy") for one in addition_traces(2)[1:2]]
    wide = [about(wide_trace(), policy=name) for name in ("one", "other")]
    path = tmp_path / "level.html"
    write_page(path, *page_content(None, [], [*addition_traces(2)[:1], *named, *wide]))
    page = opened("#theatre", path=path)
    width, height = size
    page.set_viewport_size({"width": width, "height": height})
    for task in range(2):
        page.goto(f"{path.as_uri()}#theatre?stage={task}")
        page.wait_for_function("task => document.querySelector('[name=task]').value === String(task)", arg=task)
        below = box_of(page.locator(".transport .row"))["y"]
        assert below + 30 <= height, "with the slider"
        for strip in page.locator(".pane .strip").all():
            held = box_of(strip)
            assert held["y"] + held["height"] <= below
        first, second = map(box_of, page.locator(".pane .scene").all())
        assert first["x"] == second["x"] or first["y"] == second["y"]


def test_decoders_can_be_told_apart_whatever_their_model_is_called(opened: Open, tmp_path: Path) -> None:
    name = "an-organisation/a-model-with-a-very-long-name-that-was-trained-further-for-100000-steps"
    path = tmp_path / "names.html"
    write_page(path, *page_content(None, [], [about(one, model=name) for one in addition_traces(2)[:2]]))
    page = opened("#theatre", path=path)
    chosen = "boxes => boxes.map((box) => box.selectedOptions[0].text)"
    assert page.locator(".controls .long select").evaluate_all(chosen) == ["top1", "lsb"]
    for pane in page.locator(".pane").all():
        letter, title = box_of(pane.locator(".letter")), box_of(pane.locator("h2"))
        assert letter["y"] < title["y"] + 24
        assert letter["x"] + letter["width"] < title["x"]
        assert pane.locator("h2").inner_text() == name


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


CONTRAST = """node => {
    const light = (colour) => {
        const [red, green, blue] = colour.match(/[0-9.]+/g).map((part) => part / 255);
        const linear = (part) => (part <= 0.04 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue) + 0.05;
    };
    const box = light(getComputedStyle(node.querySelector(".box")).fill);
    const written = [...node.querySelectorAll("text")].filter((text) => text.textContent);
    const ink = written.map((text) => light(getComputedStyle(text).fill));
    return Math.min(...ink.map((one) => Math.max(one, box) / Math.min(one, box)));
}"""
"""How far what is written on a tile stands out from it, from 1 to 21, as WCAG defines it."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_what_is_written_on_a_tile_can_be_read(opened: Open, tmp_path: Path, scheme: str) -> None:
    """From the first commit, dark, to the last, light; wrong ones, struck out ones and small numbers too."""
    path = tmp_path / "read.html"
    write_page(path, *page_content(None, [], [rewritten_trace(), _recited("sudoku")]))
    page = opened("#theatre", path=path, scheme=scheme)

    def least() -> float:
        return min(tile.evaluate(CONTRAST) for tile in page.locator(".tile:not(.given):not(.hidden)").all())

    page.get_by_label("Task").select_option(label="addition")
    page.locator(SLIDER).fill(str(TASK.answer_len))
    page.wait_for_selector(".tile.wrong")
    assert least() > 4
    for task, at_the_end in (("addition", ".tile.replaced"), ("sudoku", ".tile.now .level")):
        page.get_by_label("Task").select_option(label=task)
        page.locator("main").focus()
        page.keyboard.press("End")
        page.wait_for_selector(at_the_end)
        page.wait_for_function("() => !document.querySelector('.tile.hidden')")
        assert least() > 4


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
        assert page.locator(".key-dot").count() == (trace.about["task"] == "maze"), "its mark, not a corner"
        assert "✓ solved" in page.locator(".state").first.inner_text()


def test_a_maze_shows_tokens_that_are_no_answer_as_what_they_are(opened: Open, tmp_path: Path) -> None:
    """A wall in place of the path does not leave the path: it is neither on nor off."""
    trace = _recited("maze", {"1": "#"})
    path = tmp_path / "maze.html"
    write_page(path, *page_content(None, [], [trace]))
    page = opened("#theatre", path=path)
    page.locator("main").focus()
    page.keyboard.press("End")
    page.wait_for_function("() => !document.querySelector('.room.unknown')")
    assert page.locator(".room.strange").count() > 0
    assert page.locator(".room.removes, .room.adds").count() == 0


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
    assert ("in step 1" in told, "probability" in told) == (True, False)
    assert "NaN" not in page.content()


def box_of(node: "Locator") -> "FloatRect":
    """Where a node is."""
    found = node.bounding_box()
    assert found is not None
    return found


def about(trace: Trace, **more: Any) -> Trace:
    """The trace with other words about it."""
    return replace(trace, about={**trace.about, **more})


def _recited(name: str, written: Mapping[str, str] = MappingProxyType({})) -> Any:
    """A decode that is right in every cell, or writes other signs in place of some."""
    import numpy as np

    import hardtail
    from hardtail.decoding.loop import decode
    from hardtail.policies.named import policy_named
    from tests.planted_other import reciting

    task = hardtail.task("maze", size=3) if name == "maze" else hardtail.task(name)
    instances = task.sample(2, hardtail.Streams(1).named(name), task.gallery()[0])
    answer_NA = instances.answer_NA.copy()
    for gold, sign in written.items():
        answer_NA[instances.answer_NA == task.vocabulary.id(gold)] = task.vocabulary.id(sign)
    denoiser = reciting(task, instances, answer_NA, np.full(instances.maskable_NA.shape, 0.9))
    about = {"task": name, "config": task.config(), "policy": "top1", "stratum": "some", "model": "right"}
    return decode(denoiser, instances, policy_named("top1"), about=about)
