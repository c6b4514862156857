"""What a run directory promises: which weights are kept, on what data, and what a mistake costs."""

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load, load_file, save_file

from hardtail import HardtailError, data, files
from hardtail.cli.train import main as command
from hardtail.files import load_instances, save_instances
from hardtail.study.recipes import recipe_named
from hardtail.train import checkpoint
from hardtail.train.checkpoint import load_weights
from hardtail.train.recipe import Recipe
from hardtail.train.run import train
from tests.test_train import small

HARDTAIL = [sys.executable, "-m", "hardtail"]


def quick(name: str = "addition-random") -> Recipe:
    recipe = small(name)
    return replace(recipe, watch=replace(recipe.watch, gen_every=0))


def stop_after(steps: int) -> Any:
    asked = iter(range(1000))
    return lambda: next(asked) >= steps


def log_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("task", ["addition", "maze", "listops", "countdown", "sudoku"])
def test_every_task_trains_and_measures_itself(task: str, tmp_path: Path) -> None:
    recipe = recipe_named(f"{task}-puma-smoke")
    watch = replace(recipe.watch, gen_every=2, decoded=2, probe_size=5)
    train(replace(recipe, steps=2, batch=4, train_size=12, watch=watch), tmp_path / "run")
    entry = log_of(tmp_path / "run")[-1]
    assert {"loss", "norm", "probe_nll", "natural", "hard", "hard_logical", "wall", "tokens"} < set(entry)
    coverage = json.loads((tmp_path / "run" / "coverage.json").read_text())
    by_rank = [sum(row) for row in coverage["by_count_and_rank"]]
    assert by_rank == [k * count for k, count in enumerate(coverage["by_count"])]


# -- which weights -------------------------------------------------------------------------------------------------


def test_the_lowest_probe_is_kept_beside_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes every eval_every / 5 in the first tenth, then every eval_every, and at the end (study §1.5)."""
    values = iter([5.0, 4.0, 2.0, 3.0, 2.5, 2.0])
    monkeypatch.setattr("hardtail.train.run.probe_nll", lambda model, corpus: next(values))
    train(quick(), tmp_path / "run")
    probed = {entry["step"]: entry["probe_nll"] for entry in log_of(tmp_path / "run") if "probe_nll" in entry}
    assert probed == {2: 5.0, 4: 4.0, 10: 2.0, 20: 3.0, 30: 2.5, 40: 2.0}
    assert load_weights(tmp_path / "run" / "best_probe.safetensors")[1]["step"] == 10
    assert load_weights(tmp_path / "run" / "last.safetensors")[1]["step"] == 40


def test_the_moving_average_is_what_is_kept_and_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[torch.Tensor] = []

    def keep(model: torch.nn.Module, corpus: object) -> float:
        probed.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).clone())
        return 1.0

    monkeypatch.setattr("hardtail.train.run.probe_nll", keep)
    train(quick(), tmp_path / "run")
    state = load_file(tmp_path / "run" / "state.safetensors")
    model, _ = load_weights(tmp_path / "run" / "last.safetensors")
    kept_P = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    assert torch.equal(kept_P, state["ema_P"])
    assert torch.equal(probed[-1], state["ema_P"])
    assert not torch.equal(kept_P, state["weight_P"])


def test_tokens_are_the_hidden_cells_that_were_trained_on(tmp_path: Path) -> None:
    train(quick("addition-puma"), tmp_path / "run")
    coverage = json.loads((tmp_path / "run" / "coverage.json").read_text())
    assert sum(coverage["by_count"]) == 40 * 8
    assert log_of(tmp_path / "run")[-1]["tokens"] == sum(k * count for k, count in enumerate(coverage["by_count"]))


# -- on what data --------------------------------------------------------------------------------------------------


@pytest.fixture
def built(tmp_path: Path) -> Path:
    path = tmp_path / "train.npz"
    made = data.build(quick().task, "train", quick().seed, quick().train_size)
    save_instances(path, made.instances, made.manifest)
    return path


def test_data_from_a_file_is_what_is_trained_on(built: Path, tmp_path: Path) -> None:
    """The file that the recipe would build itself gives the same weights; another one gives others, and is named."""
    recipe = quick("addition-puma")
    train(recipe, tmp_path / "own")
    train(recipe, tmp_path / "file", data_file=built)
    weights = [load_file(tmp_path / run / "last.safetensors") for run in ("own", "file")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])
    said = log_of(tmp_path / "file")[0]["data"]
    assert said == {"file": "train.npz", "sha256": load_instances(built)[1]["sha256"], "count": 100}
    assert json.loads((tmp_path / "file" / "finished.json").read_text())["data"] == said

    made = data.build(recipe.task, "train", 7, 30)
    save_instances(tmp_path / "other.npz", made.instances, made.manifest)
    train(recipe, tmp_path / "other", data_file=tmp_path / "other.npz")
    other = load_file(tmp_path / "other" / "last.safetensors")
    assert not torch.equal(other["embed.weight"], weights[0]["embed.weight"])


def test_a_run_goes_on_with_its_own_data_only(built: Path, tmp_path: Path) -> None:
    assert not train(quick(), tmp_path / "run", data_file=built, should_stop=stop_after(9)).finished
    with pytest.raises(HardtailError, match="other training data"):
        train(quick(), tmp_path / "run")
    assert train(quick(), tmp_path / "run", data_file=built).finished
    assert "finished already" in train(quick(), tmp_path / "run", data_file=built).how
    with pytest.raises(HardtailError, match="other training data"):
        train(quick(), tmp_path / "run")


def test_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    task = quick().task
    cases = {
        "test": (data.build(task, "test", 0, 10), "which runs are measured on"),
        "digits": (data.build(replace(task, digits=5), "train", 0, 10), "other data than addition"),  # type: ignore[call-arg]
        "listops": (data.build(small("listops-random").task, "train", 0, 10), "other data than addition"),
    }
    for name, (made, sentence) in cases.items():
        path = tmp_path / f"{name}.npz"
        save_instances(path, made.instances, made.manifest)
        with pytest.raises(HardtailError, match=sentence):
            train(quick(), tmp_path / "run", data_file=path)
    command = [*HARDTAIL, "train", "addition-random-smoke", "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, "--data", str(tmp_path / "test.npz")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "measured on" in done.stderr
    assert "Traceback" not in done.stderr


# -- mistakes ------------------------------------------------------------------------------------------------------


def test_a_recipe_that_cannot_run_claims_no_folder(tmp_path: Path) -> None:
    recipe = quick()
    for wrong, sentence in (
        (replace(recipe.watch, order="msb"), "msb"),
        (replace(recipe.watch, probe=("no", "natural")), "'no'"),
    ):
        with pytest.raises(HardtailError, match=sentence):
            train(replace(recipe, watch=wrong), tmp_path / "run")
    assert train(recipe, tmp_path / "run").finished


def test_a_folder_without_its_recipe_is_refused(tmp_path: Path) -> None:
    train(quick(), tmp_path / "run", should_stop=stop_after(9))
    (tmp_path / "run" / "recipe.json").unlink()
    with pytest.raises(HardtailError, match=r"state\.safetensors but no recipe\.json"):
        train(quick(), tmp_path / "run")


def test_other_files_in_place_of_the_state(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    train(quick(), folder, should_stop=stop_after(9))
    whole = load((folder / "state.safetensors").read_bytes())
    shutil.copy(folder / "last.safetensors", folder / "state.safetensors")
    with pytest.raises(HardtailError, match="another kind of run"):
        train(quick(), folder)
    save_file({name: tensor for name, tensor in whole.items() if name != "rng/cpu"}, folder / "state.safetensors")
    with pytest.raises(HardtailError, match="no saved state"):
        train(quick(), folder)


def test_a_full_disk_says_what_is_safe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The newest state that was written whole stays, and the run goes on from it to the same weights."""
    whole, folder, atomic = tmp_path / "whole", tmp_path / "run", files.atomic
    train(quick(), whole)
    writes = 0

    def full(path: Path) -> Any:
        nonlocal writes
        writes += path.name == "state.safetensors"
        if writes == 3:
            raise OSError(28, "No space left on device")
        return atomic(path)

    monkeypatch.setattr(checkpoint, "atomic", full)
    with pytest.raises(HardtailError, match=r"No space left on device; .* keeps the state of step 14"):
        train(quick(), folder)
    monkeypatch.undo()
    assert train(quick(), folder).finished
    assert (folder / "last.safetensors").read_bytes() == (whole / "last.safetensors").read_bytes()


def test_ctrl_c_before_the_first_step_stops_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Building a large data set takes minutes, and nothing is there to be saved yet; nor is anyone made to wait."""
    heard: list[bool] = []

    def preparing(*words: Any, **others: Any) -> None:
        signal.raise_signal(signal.SIGINT)

    def training(*words: Any, report: Any, should_stop: Any, **others: Any) -> None:
        report({"step": 0, "wall": 0.0})
        signal.raise_signal(signal.SIGINT)
        heard.append(should_stop())
        signal.raise_signal(signal.SIGINT)

    handler = signal.getsignal(signal.SIGINT)
    for interrupted in (preparing, training):
        monkeypatch.setattr("hardtail.cli.train.train", interrupted)
        with pytest.raises(KeyboardInterrupt):
            command(["addition-random-smoke", "--device", "cpu", "--out", str(tmp_path / "run")])
    assert heard == [True]
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize("device", ["banana", "cuda:99"])
def test_a_device_that_is_not_there(device: str, tmp_path: Path) -> None:
    command = [*HARDTAIL, "train", "addition-random-smoke", "--device", device, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "cannot be used here" in done.stderr
    assert "Traceback" not in done.stderr
