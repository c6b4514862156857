"""The examples of docs/decoding.md, run as they stand: what a reader copies must work."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hardtail.core.records import as_json
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import evaluate_all, records_of
from hardtail.policies.named import policy_named
from tests.decoding_toys import TOY, problems
from tests.test_evaluate import ADDITION, tiny

DOC = Path(__file__).parent.parent / "docs" / "decoding.md"
BLOCKS = re.findall(r"```python\n(.*?)```", DOC.read_text(), flags=re.DOTALL)


def test_the_examples_are_short() -> None:
    assert len(BLOCKS) == 3
    assert all(len(block.splitlines()) < 30 for block in BLOCKS)


def test_decoding_a_model_from_the_zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(BLOCKS[0], names)
    assert names["trace"].exact_N.all()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["top1.json", "top1.npz"]


def test_a_readers_policy_goes_by_its_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_policies.py").write_text(BLOCKS[1])
    monkeypatch.syspath_prepend(tmp_path)
    instances = problems(40)
    trace = decode(TOY, instances, policy_named("my_policies:BesideKnown,bonus=2"))
    for row in range(len(trace)):
        known = set(np.flatnonzero(~instances.maskable_NA[row]))
        for cell in trace.cell_NT[row][trace.happened_NT[row]].tolist():
            possible = {near for here in known for near in (here - 1, here + 1) if 0 <= near < instances.answer_len}
            assert cell in possible or not possible - known
            known.add(cell)


def test_the_command_finds_classes_in_the_folder_it_is_called_in(tmp_path: Path) -> None:
    (tmp_path / "my_policies.py").write_text(BLOCKS[1])
    words = ["eval", "zoo:addition-puma", "--policies", "my_policies:BesideKnown", "--strata", "natural", "-n", "2"]
    installed = [sys.executable, "-P", "-m", "hardtail"]  # -P: as the installed script, without this folder in the path
    done = subprocess.run(
        [*installed, *words, "--each", "33"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_a_readers_denoiser_fails_where_the_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    exec(BLOCKS[2], names)
    last: Trace = names["trace"]
    assert last.exact_N.all()
    top1, lsb = (line.split() for line in capsys.readouterr().out.splitlines())
    assert (top1[0], lsb[0]) == ("top1", "lsb")
    assert float(top1[1]) < 0.7 < float(lsb[1]) == 1.0
    assert float(top1[2]) > 0.3 > float(lsb[2]) == 0.0


def test_the_keys_of_records_are_those_of_the_page() -> None:
    policies = {name: policy_named(name, ADDITION.order_names) for name in ("top1", "lsb")}
    text = DOC.read_text()
    for record in records_of(list(evaluate_all(tiny(ADDITION), policies, ["natural"], 4, Decoding(), data_seed=0))):
        assert [key for key in as_json(record) if f"`{key}`" not in text] in ([], ["kind"])
