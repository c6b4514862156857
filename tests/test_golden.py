"""Figures and settings are what they were. `tests/golden/` has them; a change that is meant to change them records it
anew with `python -m tests.golden_figures` or `python -m tests.golden_settings`, and says so in its commit."""

import json

import pytest

from hardtail.core.registry import TASKS
from tests import golden_figures, golden_settings


@pytest.mark.parametrize("name", TASKS.names())
def test_figures_of_a_task(name: str) -> None:
    was = json.loads((golden_figures.FOLDER / f"{name}.json").read_bytes())
    assert golden_figures.differences(was, golden_figures.figures(name)) == []


@pytest.mark.parametrize("part", golden_settings.PARTS)
def test_settings(part: str) -> None:
    was = json.loads(golden_settings.PATH.read_bytes())[part]
    assert golden_figures.differences(was, golden_settings.settings(part)) == []
