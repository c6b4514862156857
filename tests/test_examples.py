"""The notebooks under `examples/` run as they are and show what is stored in them."""

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.shown import assert_shown

NOTEBOOKS = sorted((Path(__file__).parents[1] / "examples").glob("*.ipynb"))


def shown(cell: dict[str, Any]) -> str | None:
    """The value that a cell is stored with, as text."""
    outputs = cell["outputs"]
    assert [output["output_type"] for output in outputs] in ([], ["execute_result"])
    return "".join(outputs[0]["data"]["text/plain"]) if outputs else None


def run(source: str, names: dict[str, Any]) -> object:
    """Run a cell as a notebook does; return the value of an expression at its end."""
    code = ast.parse(source)
    last = code.body.pop() if isinstance(code.body[-1], ast.Expr) else None
    exec(compile(code, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if isinstance(last, ast.Expr) else None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_did(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words are equal; numbers, which another processor may round differently, are close."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    notebook = json.loads(path.read_text())
    names: dict[str, Any] = {"__name__": "notebook"}
    compared = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        value, stored = run("".join(cell["source"]), names), shown(cell)
        if stored is None:
            assert value is None, "the notebook was saved without this cell's result; run it again and save it"
            continue
        if type(value).__name__ == "DataFrame":
            assert "<table" in "".join(cell["outputs"][0]["data"]["text/html"])
            continue  # how wide pandas prints depends on the terminal
        told, said = (re.sub(r"[ \n]+", " ", text) for text in (stored, repr(value)))
        assert_shown(told, said)
        compared += 1
    assert compared >= 4


def test_there_is_a_notebook() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["own_model"]


def test_a_notebook_shows_a_table_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a notebook rich displays whatever is printed; our tables are texts and leave that to the notebook."""
    from hardtail.core.tables import Table

    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda segments, text: pytest.fail("it was displayed"))
    assert Table("a title", ("one", "two"), (("x", 1),)).plain().startswith("a title\none  two")
