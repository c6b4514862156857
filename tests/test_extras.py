"""Packages that are not installed: a sentence names the extra that brings them."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.core import hub
from hardtail.core.frames import pandas_or_error
from hardtail.core.parquet import pyarrow_or_error


@pytest.mark.parametrize(
    ("package", "ask", "reason"),
    [
        ("pandas", pandas_or_error, r"pip install 'hardtail\[frames\]'"),
        ("pyarrow", pyarrow_or_error, r"pip install 'hardtail\[parquet\]'"),
        ("huggingface_hub", lambda: hub.fetch(hub.Address("me/model"), ["a"]), r"pip install 'hardtail\[hub\]'"),
    ],
)
def test_a_package_that_is_not_installed_is_named(
    package: str, ask: Callable[[], Any], reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(HardtailError, match=reason):
        ask()
