"""Picture the page for these docs: `python -m docs.theatre` in the root of the checkout, a minute on a CPU.

It needs Chromium (`make browser`). The page is about one shipped model; the theatre shows the failure that its story
names, as a still picture and as an animation.
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from PIL import Image
from playwright.sync_api import sync_playwright
from tests.conftest import BROWSER

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.show.page.data import page_content
from hardtail.show.page.page import write_page
from hardtail.show.sources import decoded, load_models

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

IMAGES = Path(__file__).resolve().parent / "images"
MODEL = "zoo:addition-papl-paper"
INSTANCES = 100
SIZE = (1280, 800)
WIDTH = 900
"""Of the animation, in pixels."""
MARGIN = 8
"""Around the two decoders, in pixels."""
STEP, AT_START, AT_MISTAKE, AT_END = 180, 800, 2800, 3600
"""How long the animation shows a step, in milliseconds."""
MOST_BYTES = 1_500_000


def write_example(path: Path) -> None:
    """Write the page that is pictured."""
    write_page(path, *page_content(None, (), list(decoded(load_models([MODEL]), INSTANCES))))


def frames(page: "Page") -> Iterator[tuple[Image.Image, int]]:
    """The two decoders after every step, each with the time that it is shown."""
    page.set_viewport_size({"width": SIZE[0], "height": SIZE[1] + 100})  # so that the drawings are as wide as they get
    slider, panes = page.locator("input[type=range]"), page.locator(".pane")
    first, last = panes.first.bounding_box(), panes.last.bounding_box()
    assert first is not None
    assert last is not None
    left, top = first["x"] - MARGIN, first["y"] - MARGIN
    wide, high = first["width"] + 2 * MARGIN, last["y"] + last["height"] + MARGIN - top
    clip: FloatRect = {"x": left, "y": top, "width": wide, "height": high}
    mistake, end = int(slider.input_value()), int(slider.get_attribute("max") or 0)
    for step in range(end + 1):
        slider.fill(str(step))
        page.wait_for_function(
            "step => document.querySelector('.steps').textContent.startsWith(step)", arg=f"step {step} "
        )
        shown = Image.open(BytesIO(page.screenshot(clip=clip))).convert("RGB")
        height = round(shown.height * WIDTH / shown.width)
        times = {0: AT_START, mistake: AT_MISTAKE, end: AT_END}
        yield shown.resize((WIDTH, height), Image.Resampling.LANCZOS), times.get(step, STEP)


def main() -> None:
    if BROWSER is None:
        raise HardtailError("the page cannot be pictured without Chromium; run `make browser` first")
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        write_example(path)
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        width, height = SIZE
        page = browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="light", reduced_motion="reduce"
        )
        for view in ("overview", "theatre"):
            page.goto(f"{path.as_uri()}#{view}")
            page.reload()
            page.wait_for_selector("body[data-ready]")
            with atomic(IMAGES / f"{view}.png") as file:
                file.write(page.screenshot())
        pictures, times = zip(*frames(page), strict=True)
        browser.close()
    held = BytesIO()
    pictures[0].save(
        held, "WEBP", save_all=True, append_images=pictures[1:], duration=list(times), loop=0, quality=60, method=6
    )
    if held.tell() > MOST_BYTES:
        raise HardtailError(f"the animation has {held.tell():,} bytes; it must have at most {MOST_BYTES:,}")
    with atomic(IMAGES / "theatre.webp") as file:
        file.write(held.getvalue())
    print(f"{IMAGES}: overview.png, theatre.png, theatre.webp ({held.tell():,} bytes)")


if __name__ == "__main__":
    main()
