"""Tests run side by side, one on each core: torch takes one thread, here and in the programs that tests start."""

import os
import shutil
from importlib.util import find_spec

import pytest

os.environ["OMP_NUM_THREADS"] = "1"

NO_BROWSER = "there is no browser, or no Playwright to drive it: `apt-get install chromium` (`make browser` does it)"
_FOUND = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
BROWSER = next(filter(None, _FOUND), None) if find_spec("playwright") else None
"""The browser that the page is tested in, driven by Playwright."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if BROWSER is None:
        terminalreporter.write_line(f"SKIPPED: the page was not tested, {NO_BROWSER}", yellow=True, bold=True)
