"""The benchmarks refuse what they cannot count, before they measure anything."""

import subprocess
import sys
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
