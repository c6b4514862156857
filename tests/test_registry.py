"""Registries: names of ours, of plug-ins and of a user's own classes."""

import re
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest

import hardtail.core.registry
from hardtail import HardtailError
from hardtail.core import registry
from hardtail.core.registry import TASKS, Registry
from hardtail.tasks.addition.task import Addition


def test_a_registry_finds_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "somebodys_own.py").write_text("class Thing:\n    class Inner: ...\n")
    held: Registry[Any] = Registry(
        "thing", "hardtail.none", {"one": "math:pi", "two": 2}, lambda found: "too large" if found == 3 else None
    )
    assert held.names() == ["one", "two"]
    assert held.paths() == {"one": "math:pi"}
    assert (round(held.load("one"), 2), held.load("two")) == (3.14, 2)
    with pytest.raises(HardtailError, match=r"did you mean 'one'\? choose from one, two, or package\.module:NAME"):
        held.load("onne")
    with pytest.raises(HardtailError, match="there is no thing 'zzz'; choose from"):
        held.load("zzz")
    with pytest.raises(HardtailError, match="is not a thing: too large"):
        Registry("thing", "hardtail.none", {}, lambda found: "too large").load("math:pi")
    monkeypatch.setattr(registry, "SEARCHED", [str(tmp_path)])
    before = list(sys.path)
    assert held.admit("somebodys_own:Thing.Inner").__name__ == "Inner"
    assert sys.path == before
    assert held.names() == ["one", "two", "somebodys_own:Thing.Inner"]
    for wrong in ("..:x", ".:x", "a b:c", "math:", ":pi", "math:no_such", "no.such.module:x"):
        with pytest.raises(HardtailError, match=f"^the thing '{re.escape(wrong)}' cannot be loaded: "):
            held.load(wrong)
    (tmp_path / "somebodys_other.py").write_text("import math\n\nmath.pie\n")
    for wrong, told in (
        ("somebodys_own:Thimg", r"has no attribute 'Thimg'; did you mean 'Thing'\?"),
        ("somebodys_other:x", rf"has no attribute 'pie' \({tmp_path}/somebodys_other\.py:3\)$"),
        ("nobodys:x", "No module named 'nobodys'; modules are also looked for in the current folder"),
    ):
        with pytest.raises(HardtailError, match=told):
            held.load(wrong)
    del sys.modules["somebodys_own"]


def test_a_plug_in_does_not_take_a_name_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint(name, f"theirs:{name}", "hardtail.toys") for name in ("own", "new")]
    monkeypatch.setattr(hardtail.core.registry, "entry_points", EntryPoints(points).select)
    toys: Registry[Any] = Registry("toy", "hardtail.toys", {"own": "ours:own"}, lambda found: None)
    with pytest.warns(UserWarning, match="toy 'own': theirs:own is ignored for ours:own"):
        assert toys.names() == ["own", "new"]
    assert toys.paths() == {"own": "ours:own", "new": "theirs:new"}


def test_a_known_name_is_admitted_as_it_is() -> None:
    """Only a path is registered; a name that were its own path could not be loaded any more."""
    before = TASKS.paths()
    assert TASKS.admit("addition") is Addition
    assert TASKS.paths() == before
    assert TASKS.load("addition") is Addition
