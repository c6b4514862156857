"""The benchmarks refuse what they cannot count, before they measure anything."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    "line",
    ["batches.py -n 0", "check_countdown.py some.jsonl --rows -5", "decode.py --cells 1.5", "contention.py --rounds 0"],
)
def test_impossible_counts_are_one_sentence(line: str) -> None:
    script, *words = line.split()
    done = subprocess.run([sys.executable, str(FOLDER / script), *words], capture_output=True, text=True)
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)
    assert f"it is '{words[-1]}'; it must be a whole number of at least 1" in done.stderr


def test_every_command_of_the_five_minutes_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    listed = import_module("readme").listed((FOLDER.parent / "README.md").read_text())
    block = (FOLDER.parent / "README.md").read_text().split("## Five minutes")[1].split("```")[1]
    assert len(listed) == block.count("$ hardtail ") >= 10
    assert all(re.match(r"\d+ (s|min)", item.said) for item in listed)
    assert listed[0].words[0] == "eval"
