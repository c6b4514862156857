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
from torch import Tensor

from hardtail import HardtailError
from hardtail.core.files import sole_writer
from hardtail.models.weights import load_weights
from hardtail.study.names import RECIPES
from hardtail.study.recipes import recipe_named
from hardtail.training import optimiser
from hardtail.training.optimiser import AdamW, Flat
from hardtail.training.probe import Probe, Probed
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from tests.conftest import Command

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


def test_a_run_out_of_patience_ends_and_goes_on_as_if_unbroken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes every 2 steps up to step 4, then every 10; the best one is that of step 4, or of step 30."""
    recipe = small("addition-puma")
    folder = tmp_path / "run"
    fall = {0: 2.6, 2: 2.5, 4: 2.4, 10: 2.45, 20: 2.4, 30: 2.3, 40: 2.5}
    real = Probe.of
    step = iter(fall)
    monkeypatch.setattr(Probe, "of", lambda self, model: replace(real(self, model), nll=fall[next(step)]))
    assert train(recipe, tmp_path / "whole").finished

    step = iter(fall)
    outcome = train(recipe, folder, patience=12)
    assert (outcome.step, outcome.finished, outcome.patience) == (20, True, 12)
    done = json.loads((folder / "finished.json").read_bytes())
    assert (done["step"], done["patience"]) == (20, 12)
    assert {"wall", "how", "commit", "device"} <= done.keys()
    assert load_weights(folder / "best_probe.safetensors")[1]["step"] == 4
    held = {path.name: path.read_bytes() for path in folder.iterdir()}
    for less in (12, 11, 1):
        again = train(recipe, folder, patience=less)
        assert (again.step, again.finished, again.patience) == (20, True, 12)
        assert "already finished" in again.how
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == held

    outcome = train(recipe, folder, patience=16)  # more, but it has run out as well
    assert (outcome.step, outcome.patience) == (20, 16)
    stops = iter([False] * 3 + [True])
    outcome = train(recipe, folder, patience=17, should_stop=lambda: next(stops))
    assert (outcome.step, outcome.finished) == (23, False)
    assert not (folder / "finished.json").exists()
    outcome = train(recipe, folder, patience=17)  # step 30 is better, and there is no time for 17 more
    assert (outcome.step, outcome.finished, outcome.patience) == (40, True, None)
    assert "patience" not in json.loads((folder / "finished.json").read_bytes())
    assert contents(folder) == contents(tmp_path / "whole")
    assert train(recipe, folder).patience is None


def test_a_run_out_of_patience_needs_its_state_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = small("addition-random")
    monkeypatch.setattr(Probe, "of", lambda self, model: Probed(2.5, 0))
    assert train(recipe, tmp_path, patience=10).step == 10
    (tmp_path / "state.safetensors").unlink()
    assert train(recipe, tmp_path, patience=10).step == 10
    with pytest.raises(HardtailError, match=r"ended at step 10, .* cannot continue: its state.safetensors is missing"):
        train(recipe, tmp_path)
    assert (tmp_path / "finished.json").exists()
    (tmp_path / "finished.json").write_text('{"patience": 10}')
    with pytest.raises(HardtailError, match=r"finished.json: .*`step`.*; move finished.json away"):
        train(recipe, tmp_path)


@pytest.mark.parametrize("patience", [0, -5])
def test_no_patience_at_all_is_refused(tmp_path: Path, patience: int, hardtail_command: Command) -> None:
    told = f"the patience is {patience}; it must be a number of steps, at least 1"
    with pytest.raises(HardtailError, match=told):
        train(small("addition-random"), tmp_path / "run", patience=patience)
    for words in (("train", "addition-random-smoke"), ("study", "advance", "addition-smoke")):
        code, _, error = hardtail_command(*words, "--patience", str(patience))
        assert (code, told in error) == (2, True)
    assert not (tmp_path / "run").exists()


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


def test_divergence_stops_and_keeps_the_last_good_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def update(flat: Flat, gradient_P: Tensor, settings: AdamW, step: Tensor, steps: int) -> Tensor:
        norm = optimiser.update(flat, gradient_P, settings, step, steps)
        if step == 12:
            flat.weight_P[3] = torch.nan
        return norm

    monkeypatch.setattr("hardtail.training.step.update", update)
    with pytest.raises(HardtailError, match=r"diverged: at step 14 .* keeps the state of step 7"):
        train(small("addition-random"), tmp_path / "run")
    model, about = load_weights(tmp_path / "run" / "last.safetensors")
    assert about["step"] == 7
    assert all(bool(torch.isfinite(tensor).all()) for tensor in model.state_dict().values())


def test_a_probe_far_worse_than_guessing_is_divergence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run may blow up and keep its numbers; what was the best so far stays."""
    values = iter([2.6, 2.5, 2.4, 1e4])
    monkeypatch.setattr(Probe, "of", lambda self, model: Probed(next(values), 0))
    with pytest.raises(
        HardtailError, match=r"at step 10 the probe's NLL is 1e\+04, while guessing would give 2\.6; .* step 7"
    ):
        train(small("addition-random"), tmp_path / "run")
    assert load_weights(tmp_path / "run" / "best_probe.safetensors")[1]["step"] == 4


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
    with pytest.raises(HardtailError, match="does not hold a hardtail model"):
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
    again = subprocess.run([*command, *words], capture_output=True, text=True)
    assert "already finished" in again.stdout
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
