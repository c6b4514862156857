"""The benchmarks refuse what they cannot count, before they measure anything."""

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hardtail.core.records import Accuracy, Trust, append_jsonl

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    "line",
    ["batches.py -n 0", "check_countdown.py some.jsonl --rows -5", "decode.py --cells 1.5", "fine_tuning.py --steps 0"],
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


def test_a_measurement_with_another_precision_device_or_look_is_another(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    remedy = import_module("remedy")
    about: dict[str, Any] = {"policy": "top1", "stratum": "natural", "data_seed": 1, "n": 200, "device": "CPU"}
    append_jsonl(path := tmp_path / "run.jsonl", [Accuracy(**about, exact_match=1.0)])
    plain = remedy.Measured("top1", "natural", 1, 200, "1 a step", "fp32", "CPU", trust=False)
    assert remedy.measured(path) == {plain}
    looked_at = Trust(**about, score="own doubt", passes=0, wrong=2)
    append_jsonl(path, [looked_at])
    assert remedy.measured(path) == {plain, plain._replace(trust=True)}
    faster = Accuracy(**about | {"device": "GPU"}, decode_precision="bf16", exact_match=1.0)
    append_jsonl(path, [faster])
    assert plain._replace(device="GPU", decode_precision="bf16") in remedy.measured(path)
