"""The house as the design page draws it: its packages, and tasks that know nothing of each other."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def test_the_design_page_shows_the_imports_of_today() -> None:
    command = [sys.executable, str(ROOT / "tools" / "import_graph.py")]
    drawn = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    shown = re.findall(r"```text\n(\d+ packages.*?)```", (ROOT / "docs" / "design.md").read_text(), re.DOTALL)
    assert [page.split() for page in shown] == [drawn.split()], "copy what tools/import_graph.py prints"


def test_the_walk_through_the_code_passes_files_that_exist() -> None:
    page = (ROOT / "docs" / "design.md").read_text()
    walk = page[page.index("## A walk") : page.index("## The import graph")]
    passed = set(re.findall(r"`([\w/]+\.(?:py|js))`", walk))
    assert all((ROOT / "src" / "hardtail" / name).is_file() for name in passed)
    assert f"| files that one sum passes through | 30 | {len(passed)} |" in page


def test_no_task_may_import_another() -> None:
    (independent,) = (contract["modules"] for contract in CONTRACTS if contract["type"] == "independence")
    folders = (ROOT / "src" / "hardtail" / "tasks").glob("*/task.py")
    assert sorted(independent) == sorted(f"hardtail.tasks.{path.parent.name}" for path in folders)


def test_no_import_is_exempt_from_the_layers() -> None:
    assert not any("ignore_imports" in contract for contract in CONTRACTS)
