"""Tests run side by side, one on each core: torch takes one thread, here and in the programs that tests start."""

import io
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if BROWSER is None:
        terminalreporter.write_line(f"SKIPPED: the page was not tested, {NO_BROWSER}", yellow=True, bold=True)
