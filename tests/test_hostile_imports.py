"""Python files that lie around are never imported by chance; a user's own are, where the user says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import hardtail
from hardtail.core import registry
from tests.conftest import Command
from tests.hostile import untrained_run

TRAP = "from pathlib import Path\nPath({!r}).write_text('ran')\n"
NAMES = (
    "scipy",
    "dill",
    "cupy",
    "pandas",
    "IPython",
    "ipywidgets",
    "attr",
    "sympy",
    "networkx",
    "huggingface_hub",
    "yaml",
)
"""Packages that libraries import if they are there."""
MINE = """
from hardtail.policies.confidence import Top1


class Mine(Top1):
    pass
"""


def _traps(folder: Path, mark: Path) -> None:
    for name in NAMES:
        (folder / f"{name}.py").write_text(TRAP.format(str(mark)))
    plugin = folder / "evil-1.0.dist-info"
    plugin.mkdir()
    (plugin / "METADATA").write_text("Metadata-Version: 2.1\nName: evil\nVersion: 1.0\n")
    (plugin / "entry_points.txt").write_text("[hardtail.tasks]\nevil = evil:Evil\n")
    (folder / "evil.py").write_text(TRAP.format(str(mark)))


@pytest.mark.parametrize("start", ["console script", "python -m"])
def test_files_of_an_unpacked_run_are_not_imported(start: str, tmp_path: Path) -> None:
    folder, mark = untrained_run(tmp_path / "run"), tmp_path / "mark"
    _traps(folder, mark)
    script = "import sys; sys.path = [p for p in sys.path if p]; from hardtail.__main__ import main; main()"
    program = [sys.executable, "-c", script] if start == "console script" else [sys.executable, "-m", "hardtail"]
    words = ["eval", ".", "-n", "1", "--strata", "natural", "--policies", "top1", "--json"]
    env = os.environ | {"PYTHONPATH": str(Path(hardtail.__file__).parents[1])}
    done = subprocess.run([*program, *words], cwd=folder, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    assert not mark.exists()


def test_what_a_user_names_is_looked_for_here_and_where_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    run = untrained_run(tmp_path / "run")
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, name in ((here, "policy_of_here"), (there, "policy_of_there")):
        folder.mkdir()
        (folder / f"{name}.py").write_text(MINE)
    monkeypatch.chdir(here)
    before = list(sys.path)
    words = ("eval", str(run), "-n", "1", "--strata", "natural", "--json", "--policies")
    assert hardtail_command(*words, "policy_of_here:Mine")[0] == 0
    code, _, err = hardtail_command(*words, "policy_of_there:Mine")
    assert (code, "No module named 'policy_of_there'" in err) == (2, True)
    assert hardtail_command(*words, "policy_of_there:Mine", "--path", str(there))[0] == 0
    assert hardtail_command(f"--path={there}", *words, "policy_of_there:Mine")[0] == 0
    assert hardtail_command("--path", str(tmp_path / "nowhere"), *words, "top1")[0] == 2
    assert hardtail_command(*words, "top1", "--path")[0] == 2
    assert sys.path == before
    monkeypatch.setattr(registry, "SEARCHED", [])


@pytest.mark.parametrize(
    "name", ["..:x", ".:x", ":", ":x", "a:", "a..b:C", "a:b..c", "a b:C", "os:path.join(1)", "\x1b:x"]
)
def test_what_is_not_a_name_is_a_sentence(name: str, hardtail_command: Command, tmp_path: Path) -> None:
    for words in (
        ("sample", name),
        ("train", name),
        ("train", "addition-random-smoke", "--scheme", name),
        ("inspect", "x.npz", "--task", name),
        ("eval", "zoo:addition-random", "--policies", name, "-n", "1"),
    ):
        code, _, err = hardtail_command(*words)
        assert code == 2, words
        assert "written as package.module:NAME" in err
        assert "\x1b" not in err
