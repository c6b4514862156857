"""The Python in the documentation runs as it stands there."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL), start=1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks marked `python`; those that need files which only their reader has are marked `py`."""
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "documentation", "exec"), {"__name__": "documentation"})


def test_the_examples_of_bringing_your_own_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks marked `py` use what earlier blocks define: a task is trained on and loaded, contracts are kept."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "bring-your-own.md").read_text().replace("steps=500", "steps=2")
    module = ModuleType("documentation")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in re.findall(r"```py(?:thon)?\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "documentation", "exec"), vars(module))
    assert vars(module)["subject"].task.name == "echo"


def test_examples_of_bringing_your_own_are_short() -> None:
    text = (ROOT / "docs" / "bring-your-own.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        assert sum(bool(line.strip()) for line in block.splitlines()) < 30
