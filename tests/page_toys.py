"""What tests of the page in a browser share; `opened` in conftest opens it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

N = 12
"""Problems of each stratum on the page."""
SLIDER = "input[type=range]"
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
Open = Callable[..., "Page"]


def steps(page: "Page") -> list[str]:
    """Where each decoder stands, as its heading says."""
    return [text.split(" ")[0] for text in page.locator(".state").all_inner_texts()]


def filled(page: "Page", pane: int = 0) -> int:
    """Answer cells that a drawing shows as committed."""
    return page.locator(".pane").nth(pane).locator(".tile:not(.hidden)").count()
