"""Runs: killed and resumed they are the unbroken run, bit for bit; mistakes lose nothing."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from hardtail import HardtailError
from hardtail.core.files import sole_writer
from hardtail.models.weights import load_weights
from hardtail.study.names import RECIPES
from hardtail.study.recipes import recipe_named
from hardtail.training.recipe import Recipe
from hardtail.training.run import train

FILES = ("last.safetensors", "best_probe.safetensors", "coverage.json", "log.jsonl")


def small(name: str) -> Recipe:
    """A recipe of a few dozen steps; dropout stays on, so that torch's own random state matters too."""
    recipe = recipe_named(f"{name}-smoke")
    watch = replace(recipe.watch, log_every=5, eval_every=10, gen_every=20, save_every=7, probe_size=40, decoded=8)
    return replace(recipe, watch=watch, steps=40, batch=8, train_size=100)


def contents(folder: Path) -> dict[str, bytes | list[dict[str, object]]]:
    """What a run leaves; left out are the time it took and the line that every session writes about its machine."""
    held: dict[str, bytes | list[dict[str, object]]] = {name: (folder / name).read_bytes() for name in FILES[:3]}
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    held["log"] = [{key: value for key, value in entry.items() if key != "wall"} for entry in log if "how" not in entry]
    return held


@pytest.mark.parametrize("name", ["addition-random", "addition-puma", "addition-mixture", "listops-oracle"])
def test_stopped_and_resumed_equals_unbroken(name: str, tmp_path: Path) -> None:
    recipe = small(name)
    assert train(recipe, tmp_path / "whole").finished
    for stop_at in (1, 13, 22):
        asked = 0

        def enough(stop_at: int = stop_at) -> bool:
            nonlocal asked
            asked += 1
            return asked > stop_at

        outcome = train(recipe, tmp_path / f"broken-{stop_at}", should_stop=enough)
        assert not outcome.finished
        assert outcome.step == stop_at
        torch.manual_seed(99)  # whatever else draws between two calls
        assert train(recipe, tmp_path / f"broken-{stop_at}").finished
        assert contents(tmp_path / f"broken-{stop_at}") == contents(tmp_path / "whole")


KILLED = """
import os, signal, sys
from pathlib import Path
from tests.test_train import small
from hardtail.training.run import train
count = 0
def kill():
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
    return False
train(small("addition-puma"), Path(sys.argv[1]), should_stop=kill)
"""


def test_killed_and_resumed_equals_unbroken(tmp_path: Path) -> None:
    train(small("addition-puma"), tmp_path / "whole")
    for kill_at in (3, 21, 39):  # at 21 the best weights are of step 20, and the state is of step 14
        folder = tmp_path / f"killed-{kill_at}"
        done = subprocess.run([sys.executable, "-c", KILLED, str(folder), str(kill_at)], cwd=Path(__file__).parents[1])
        assert done.returncode == -signal.SIGKILL
        assert train(small("addition-puma"), folder).finished
        assert contents(folder) == contents(tmp_path / "whole")


def test_a_finished_run_is_found_finished(tmp_path: Path) -> None:
    recipe = small("addition-papl")
    train(recipe, tmp_path / "run")
    before = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").glob("*.safetensors")}
    assert "already finished" in train(recipe, tmp_path / "run").how
    assert before == {path.name: path.stat().st_mtime_ns for path in (tmp_path / "run").glob("*.safetensors")}


def test_another_recipe_is_refused(tmp_path: Path) -> None:
    train(replace(small("addition-random"), steps=2), tmp_path / "run")
    with pytest.raises(HardtailError, match="differs in batch, seed"):
        train(replace(small("addition-random"), steps=2, batch=4, seed=1), tmp_path / "run")


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    program = (
        "import sys, time\nfrom pathlib import Path\nfrom hardtail.core.files import sole_writer\n"
        "with sole_writer(Path(sys.argv[1])):\n    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(HardtailError, match="another process"), sole_writer(tmp_path):
        pass
    holder.communicate("")
    with sole_writer(tmp_path):
        pass


@pytest.mark.parametrize("name", ["state.safetensors", "recipe.json"])
def test_damaged_files_get_a_sentence(name: str, tmp_path: Path) -> None:
    recipe = small("addition-random")
    asked = iter([False] * 9 + [True] * 9)
    train(recipe, tmp_path / "run", should_stop=lambda: next(asked))
    path = tmp_path / "run" / name
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(HardtailError, match=f"{name}.*train in another folder .`train --out`, `study --runs`"):
        train(recipe, tmp_path / "run")


def test_weights_are_saved_once_and_load(tmp_path: Path) -> None:
    recipe = small("addition-random")
    train(recipe, tmp_path / "run")
    model, about = load_weights(tmp_path / "run" / "last.safetensors")
    assert not model.training
    assert about["kind"] == "last"
    names = set(model.state_dict())
    assert "embed.weight" in names
    assert not any("head" in name for name in names)  # the tied matrix is one tensor
    with pytest.raises(HardtailError, match=r"does not hold a hardtail model .*; give weights that hardtail saved"):
        load_weights(tmp_path / "run" / "state.safetensors")


def test_every_recipe_can_be_made() -> None:
    for name in RECIPES.names():
        recipe = recipe_named(name)
        assert recipe.watch.order in recipe.task.order_names, name
    with pytest.raises(HardtailError, match="addition-puma"):
        recipe_named("addition-pumma")


def test_the_command_line(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hardtail", "train", "addition-random-smoke", "--out", str(tmp_path / "run")]
    words = ["--steps", "30", "--optimiser.lr", "0.001", "--watch.log-every", "10"]
    first = subprocess.run([*command, *words], capture_output=True, text=True)
    assert first.returncode == 0, first.stderr
    assert "step 30/30" in first.stdout
    assert "addition-random-smoke: 30 steps, about " in first.stderr
    again = subprocess.run([*command, *words], capture_output=True, text=True)
    assert "already finished" in again.stdout
    assert "steps" not in again.stderr
    other = subprocess.run([*command, "--steps", "31"], capture_output=True, text=True)
    assert other.returncode == 2
    assert "differs in" in other.stderr
    unknown = subprocess.run([sys.executable, "-m", "hardtail", "train", "chess"], capture_output=True, text=True)
    assert unknown.returncode == 2
    assert "Traceback" not in unknown.stderr


def test_ctrl_c_saves_and_says_how_to_go_on(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hardtail", "train", "addition-puma-smoke", "--out", str(tmp_path / "run")]
    running = subprocess.Popen([*command, "--steps", "100000"], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert running.stdout is not None
    while "step 20/" not in running.stdout.readline():
        time.sleep(0.01)
    running.send_signal(signal.SIGINT)
    rest, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "the same command continues from there" in rest
    assert (tmp_path / "run" / "state.safetensors").exists()
