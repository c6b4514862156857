"""The benchmarks refuse what they cannot count, before they measure anything."""

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from hardtail import Instances
from hardtail.core.records import Accuracy, Trust, append_jsonl
from hardtail.tasks.sudoku.solver.generate import disguise, state_of
from hardtail.tasks.sudoku.task import TIERS, Sudoku

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize(
    "line",
    ["batches.py -n 0", "check_countdown.py some.jsonl --rows -5", "decode.py --steps 1.5", "fine_tuning.py --steps 0"],
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


def test_of_several_tries_one_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two problems with gold 1: energy finds the right try of both, own probability of neither; a tied vote keeps the
    first."""
    monkeypatch.syspath_prepend(str(FOLDER))
    best_of = import_module("best_of")
    subject: Any = SimpleNamespace(task=SimpleNamespace(check=lambda instances, answer_NA: answer_NA[:, 0] == 1))

    def tried(answers: list[int], energy: list[float], doubt: list[float], passes: int) -> Any:
        answer_NA = np.array(answers)[:, None]
        notes = {"halves energy": np.array(energy), "own doubt": np.array(doubt)}
        made_N = np.array([passes, passes])
        return SimpleNamespace(
            answer_NA=answer_NA, exact_N=answer_NA[:, 0] == 1, notes=notes, passes_N=made_N, instances=None
        )

    traces = [
        tried([2, 1], [5.0, 0.1], [0.1, 0.9], 10),
        tried([1, 3], [0.2, 4.0], [0.2, 0.3], 10),
        tried([1, 3], [0.3, 4.0], [0.3, 0.4], 16),
    ]
    first = Accuracy(policy="try 1", stratum="natural", n=2, exact_match=0.5)
    found = {record.policy: (record.exact_match, record.passes) for record in best_of.kept(subject, first, traces)}
    assert found["best of 1 by energy"] == (0.5, 10.0)
    assert found["best of 2 by energy"] == (1.0, 28.0)
    assert found["best of 2 by own probability"] == (0.0, 20.0)
    assert found["best of 2 by vote"] == (0.5, 20.0)
    assert found["best of 3 by vote"] == (0.5, 36.0)
    assert found["any of 3"] == (1.0, 36.0)


def test_published_sudokus_to_train_on_have_nothing_in_common_with_the_test_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The test file has one easy puzzle of the list in a disguise and one hard one, whose family is in the list."""
    monkeypatch.syspath_prepend(str(FOLDER))
    training = import_module("published_sudokus").training
    task = Sudoku()
    easy, medium, hard = (task.sample(n, f"tier={tier}", seed=1) for tier, n in zip(TIERS, (20, 12, 24), strict=False))
    puzzle_81 = easy.tokens_NL[0, :81].astype(np.uint8)
    disguise(state_of(np.uint64(1)), puzzle_81, disguised_81 := np.empty_like(puzzle_81))
    listed = Instances.concat([hard, easy, medium])
    test = Instances.concat([task.parse(["".join(map(str, disguised_81.tolist()))]), hard.take(slice(1))])
    assert set(task.kin(test)) < set(task.kin(listed))
    assert len(set(task.kin(hard))) < len(hard)

    made = training(task, listed, test, (24, 8, 3, 0, 0, 1), seed=0)
    assert not set(task.kin(made)) & set(task.kin(test))
    texts = task.render(made)
    tiers = Counter(task.parse(texts).strata["tier"].tolist())
    assert tiers == {"easy": 24, "medium": 8, "hard": 3}  # the list has none of the hardest tier, and none is made up
    assert len(set(texts) - set(task.render(listed))) == 24 - 19  # generated in addition
    assert (list(made.orders), made.strata, made.extras) == ([task.order_names[0]], {}, {})


def test_what_only_a_gpu_runs_is_left_out_of_the_mutants_by_names_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function under a new name would give mutants that no test on a CPU can catch."""
    monkeypatch.syspath_prepend(str(FOLDER))
    mutants, source = import_module("mutants"), FOLDER.parent / "src/hardtail"
    assert all((source / path).exists() for path in mutants.GPU_FILES)
    for place in mutants.GPU_FUNCTIONS:
        path, _, name = place.partition(":")
        assert any(held.startswith(name) for held in mutants.functions(source / path).values()), place
