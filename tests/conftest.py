"""Tests run side by side, one on each core: torch takes one thread, here and in the programs that tests start."""

import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.page_toys import SIZES, N, Open

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs, and in what they start
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HARDTAIL_PROGRESS"] = "off"  # a line a second would make a slow machine's output another one

NO_BROWSER = "there is no browser, or no Playwright to drive it: `apt-get install chromium` (`make browser` does it)"
_FOUND = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
BROWSER = next(filter(None, _FOUND), None) if find_spec("playwright") else None
"""The browser that the page is tested in, driven by Playwright."""


Command = Callable[..., tuple[int, str, str]]
REGISTRIES = (
    *(("hardtail.core.registry", name) for name in ("TASKS", "POLICIES", "SCHEMES")),
    ("hardtail.study.names", "RECIPES"),
)


@pytest.fixture(autouse=True)
def nothing_stays_registered() -> Iterator[None]:
    """What a test admits to a registry, such as a task of its own, is unknown to the next one. Imports nothing."""
    loaded = [(sys.modules[module], name) for module, name in REGISTRIES if module in sys.modules]
    before = [(getattr(module, name), dict(getattr(module, name)._known)) for module, name in loaded]
    yield
    for registry, known in before:
        registry._known.clear()
        registry._known.update(known)


@pytest.fixture
def hardtail_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """`hardtail WORDS` in this process, with nothing to read: exit code, standard output, standard error."""
    from hardtail import cli

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["hardtail", *words])
        monkeypatch.setattr(sys, "stdin", io.StringIO())
        code: Any = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code
        out, err = capsys.readouterr()
        return int(code or 0), out, err

    return run


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """The browser; tests that use it are skipped where there is none."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium's sandbox refuses to run as root
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=BROWSER, args=flags)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page about recorded results and planted decodes."""
    from hardtail.show.page.data import page_content
    from hardtail.show.page.page import write_page
    from hardtail.study.store import Store
    from tests.report_toys import addition_traces, results

    folder = tmp_path_factory.mktemp("page")
    path = folder / "report.html"
    write_page(path, *page_content(Store(results(folder / "results")), [], addition_traces(N)))
    return path


@pytest.fixture
def opened(browser: "Browser", page_file: Path) -> Iterator[Open]:
    """Opens the page at an address; whatever the browser complains about fails the test, and so does any request."""
    complaints: list[str] = []
    contexts = []

    def go(address: str = "", path: Path = page_file, size: str = "desktop", scheme: Any = "light") -> "Page":
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if BROWSER is None:
        terminalreporter.write_line(f"SKIPPED: the page was not tested, {NO_BROWSER}", yellow=True, bold=True)
