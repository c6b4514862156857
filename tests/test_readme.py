"""The documentation runs as it stands there: Python blocks, the README's commands, and what they print."""

import re
import shlex
import shutil
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.conftest import Command
from tests.shown import assert_shown

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = [
    pytest.param(block, id=f"{path.name}-{number}")
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    for number, block in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(), flags=re.DOTALL), start=1)
]


@pytest.mark.parametrize("block", BLOCKS)
def test_a_python_block_runs(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks marked `python`; those that need files which only their reader has are marked `py`.

    Fewer instances are decoded than the page says.
    """
    monkeypatch.chdir(tmp_path)
    block = re.sub(r"\bn=100\b", "n=4", block).replace("sample(50,", "sample(4,")
    exec(compile(block, "documentation", "exec"), {"__name__": "documentation"})


# -- the README's commands --------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A command of the README and what it is said to print; nothing if the README does not say."""

    words: list[str]
    printed: str


def shown_commands() -> list[Shown]:
    found = []
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, printed = part.partition("\n")
            found.append(Shown(shlex.split(command, comments=True), printed.strip("\n")))
    return found


QUICK = {"zoo:addition-papl-paper": "runs/try", "zoo:addition-random": "runs/other", "chain>=28": "chain>=4"}
"""Tiny models instead of the shipped ones, which take a second for every few instances."""


def quickly(words: list[str]) -> list[str]:
    """The same command with less to do, where the README does not show what it prints."""
    if words[0] == "train":
        return [*words, "--steps", "2"]
    return ["2" if before == "-n" else QUICK.get(word, word) for before, word in pairwise(["", *words])]


def test_the_commands_of_the_readme_run_and_print_what_it_shows(
    hardtail_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured may be rounded differently by another processor; what `zoo` prints is recorded."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    ours = [(words[1:], printed) for words, printed in shown_commands() if words[0] == "hardtail"]
    assert {words[0] for words, printed in ours if printed} == {"diagnose", "zoo"}
    assert {"eval", "compare", "report", "view", "train", "claims", "policies", "gallery"} <= {of[0] for of, _ in ours}
    assert hardtail_command(*quickly(["train", "addition-puma-smoke", "--out", "runs/try"]))[0] == 0
    shutil.copytree("runs/try", "runs/other")
    for words, printed in ours:
        code, out, err = hardtail_command(*(words if printed else quickly(words)))
        assert code == 0, (words, err)
        assert max(map(len, out.splitlines())) <= 80, out
        if printed:
            told, said = (re.sub(r" +$", "", text.strip("\n"), flags=re.MULTILINE) for text in (printed, out))
            if words[0] == "zoo":
                assert told == said
            else:
                assert_shown(told, said)


@pytest.mark.parametrize(
    ("shown", "near", "far"),
    [
        ("0.888 right", "0.931 right", "0.831 right"),
        ("40 % of 50", "44 % of 50", "46 % of 50"),
        ("772 of 914", "830 of 914", "680 of 914"),
        ("1 of 86", "3 of 86", "4 of 86"),
        ("NLL 1.678", "NLL 1.71", "NLL 1.8"),
        ("share 1", "share 0.96", "share 0.94"),
        ("p 3e-21", "p 5e-20", "p 0.06"),
        ("2,000 sums", "1,850 sums", "1,700 sums"),
    ],
)
def test_numbers_that_are_shown_are_close(shown: str, near: str, far: str) -> None:
    assert_shown(shown, near)
    with pytest.raises(AssertionError):
        assert_shown(shown, far)
    with pytest.raises(AssertionError):
        assert_shown(shown, f"{shown} more")


def test_the_readme_names_every_command_once_installed() -> None:
    others = [words for words, _ in shown_commands() if words[0] != "hardtail"]
    assert [" ".join(words) for words in others] == [
        "python3 -m venv .venv && source .venv/bin/activate",
        "pip install -e .",
        "make demo",
        "make test",
    ]


def test_the_citation_has_the_version_of_the_package() -> None:
    from hardtail import __version__

    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"version = {{{__version__}}}" in README


# -- bring your own ---------------------------------------------------------------------------------------------------


def test_the_examples_of_bringing_your_own_fit_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks marked `py` use what earlier blocks define: a task is trained on and loaded, contracts are kept."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "bring-your-own.md").read_text().replace("steps=500", "steps=2")
    text = text.replace('if __name__ == "__main__":', "if True:")
    module = ModuleType("documentation")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for block in re.findall(r"```py(?:thon)?\n(.*?)```", text, flags=re.DOTALL):
        exec(compile(block, "documentation", "exec"), vars(module))
    assert vars(module)["model"].task.name == "echo"


def test_examples_of_bringing_your_own_are_short() -> None:
    text = (ROOT / "docs" / "bring-your-own.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 5
    for block in blocks:
        assert sum(bool(line.strip()) for line in block.splitlines()) < 30
