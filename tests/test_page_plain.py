"""The page's drawing of a task that has none of its own: words, long texts, spaces."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pytest
import torch

from hardtail.core.registry import TASKS
from hardtail.core.types import Instances
from hardtail.core.vocabulary import Vocabulary
from hardtail.decoding.loop import decode
from hardtail.models.denoiser import Function
from hardtail.policies.named import policy_named
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from tests.conftest import BROWSER, NO_BROWSER
from tests.page_toys import SIZES, SLIDER, Open
from tests.report_toys import Markup

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)


@dataclass(frozen=True)
class Copied(Markup):
    """The answer repeats a text, in characters or in words."""

    name: ClassVar[str] = "copied"
    text: str = ""
    in_words: bool = False

    @property
    def vocabulary(self) -> Vocabulary:
        signs = sorted(set(self.text.split() if self.in_words else self.text))
        return Vocabulary(signs if self.in_words else "".join(signs), pad="#", mask="?")

    @property
    def answer_len(self) -> int:
        return len(self.vocabulary.split(self.text))

    @property
    def seq_len(self) -> int:
        return 2 * self.answer_len

    def problem(self) -> Instances:
        everywhere_NA = np.ones((1, self.answer_len), dtype=np.bool_)
        length_N = np.array([self.answer_len], dtype=np.int32)
        return Instances(np.tile(self.vocabulary.encode(self.text), (1, 2)), length_N, everywhere_NA, everywhere_NA)


def page_of(task: Copied, opened: Open, path: Path, size: str = "desktop") -> "Page":
    """The theatre after a decode from left to right that wrote the first sign of the vocabulary everywhere."""

    def logits(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        return torch.eye(task.vocabulary.size)[0].expand(*at_BA.shape, -1)

    about = {"task": task.name, "config": task.config(), "policy": "l2r", "stratum": "natural", "model": "first"}
    denoiser = Function(logits, task.vocabulary.mask_id)
    write_page(path, *page_content(None, [], [decode(denoiser, task.problem(), policy_named("l2r"), about=about)]))
    page = opened("#theatre", path=path, size=size)
    page.locator(SLIDER).fill(str(task.answer_len))
    page.wait_for_function("() => !document.querySelector('.tile.hidden')")
    return page


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TASKS._known, Copied.name, "tests.test_page_plain:Copied")


def test_words_are_apart_in_the_problem_and_inside_their_cells(opened: Open, tmp_path: Path) -> None:
    text = "antidisestablishmentarianism has many signs"
    page = page_of(Copied(text=text, in_words=True), opened, tmp_path / "words.html")
    assert page.locator(".scene .prompt").all_text_contents() == [text]
    assert page.locator(".tile .sign").all_text_contents() == ["antidisestablishmentarianism"] * 4
    inside = """tiles => tiles.map((tile) => {
        const [sign, box] = [".sign", ".box"].map((part) => tile.querySelector(part).getBoundingClientRect());
        return sign.left >= box.left && sign.right <= box.right;
    })"""
    assert set(page.locator(".tile").evaluate_all(inside)) == {True}


@pytest.mark.parametrize("size", SIZES)
def test_a_long_text_stays_legible_and_follows_its_commits(opened: Open, tmp_path: Path, size: str) -> None:
    page = page_of(Copied(text="who needs many cells " * 25), opened, tmp_path / "long.html", size)
    drawn = page.locator(".tile .box").last.bounding_box()
    assert drawn is not None
    assert drawn["height"] > 16
    seen = """() => {
        const boxOf = (name) => document.querySelector(name).getBoundingClientRect();
        const [cell, frame] = [boxOf(".tile.now"), boxOf(".picture")];
        return cell.top >= frame.top && cell.bottom <= frame.bottom && cell.top >= 0 && cell.bottom <= innerHeight;
    }"""
    page.wait_for_function(seen)
    page.locator(SLIDER).fill("1")
    page.wait_for_function(seen)


def test_a_space_can_be_seen(opened: Open, tmp_path: Path) -> None:
    page = page_of(Copied(text="to be or not"), opened, tmp_path / "space.html")
    assert page.locator(".because").inner_text().startswith("AFailed. In step 1 of 12 it writes ␣ into c1 ")
    page.locator(".tile").nth(2).hover()
    told = page.locator(".told").inner_text()
    assert "A␣ in step 3, probability" in told
    assert "prerequisites" not in told + page.locator(".key.colours").inner_text(), "nothing is known of them"
    assert page.locator(".tile .sign").nth(2).text_content() == "␣"
