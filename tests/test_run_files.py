"""What a run directory promises: which weights are kept, and on what data."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest
import torch
from safetensors.torch import load, load_file, save_file

from hardtail import HardtailError
from hardtail.core.files import load_instances, save_instances
from hardtail.core.manifest import Manifest
from hardtail.core.records import LogLine
from hardtail.core.types import Instances
from hardtail.models.weights import load_weights
from hardtail.study.advance import prepare
from hardtail.study.grids import Entry
from hardtail.study.recipes import recipe_named
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part
from hardtail.training.checkpoint import Progress, load_state, save_state
from hardtail.training.keeper import Keeper
from hardtail.training.probe import Probe, Probed
from hardtail.training.recipe import Recipe
from hardtail.training.run import _Run, train
from hardtail.training.step import ALONE, Step
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
    watch = replace(recipe.watch, gen_every=2, decoded=1, probe_size=5)
    train(replace(recipe, steps=2, batch=4, train_size=12, watch=watch), tmp_path / "run")
    entry = log_of(tmp_path / "run")[-1]
    assert {"loss", "norm", "probe_nll", "probe_guessed", "natural", "hard", "hard_logical"} < set(entry)
    coverage = json.loads((tmp_path / "run" / "coverage.json").read_text())
    by_rank = [sum(row) for row in coverage["by_count_and_rank"]]
    assert by_rank == [k * count for k, count in enumerate(coverage["by_count"])]


def test_curves_start_before_training(tmp_path: Path) -> None:
    """The initial weights are probed (docs/study.md §1.5) and decoded, once, however early the first session stops."""
    recipe = small("addition-random")
    train(recipe, tmp_path / "run", should_stop=lambda: True)
    train(recipe, tmp_path / "run")
    first = [entry for entry in log_of(tmp_path / "run") if entry["step"] == 0 and "how" not in entry]
    assert [set(entry) for entry in first] == [
        {"step", "probe_nll", "probe_guessed", "natural", "hard", "hard_logical", "wall", "tokens"}
    ]


def test_a_state_is_written_once_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved: list[int] = []

    def save(folder: Path, tensors: Any, progress: Progress) -> None:
        saved.append(progress.step)
        save_state(folder, tensors, progress)

    monkeypatch.setattr("hardtail.training.keeper.save_state", save)
    train(replace(quick(), steps=14), tmp_path / "even")
    assert saved == [7, 14]
    train(replace(quick(), steps=9), tmp_path / "odd")
    assert saved[2:] == [7, 9]


def test_the_precision_of_other_work_in_the_process_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a GPU a step sets torch's for the whole process; a run gives it back, however it ends."""

    def compiled(self: Step) -> str:
        torch.set_float32_matmul_precision("high")
        return "as on a GPU"

    def fails() -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(Step, "compile", compiled)
    before = torch.get_float32_matmul_precision()
    try:
        train(quick(), tmp_path / "run", should_stop=lambda: True)
        assert torch.get_float32_matmul_precision() == before != "high"
        with pytest.raises(KeyboardInterrupt):
            train(quick(), tmp_path / "run", should_stop=fails)
        assert torch.get_float32_matmul_precision() == before
    finally:
        torch.set_float32_matmul_precision(before)


# -- which weights -------------------------------------------------------------------------------------------------


def test_the_lowest_probe_is_kept_beside_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probes every eval_every / 5 in the first tenth, then every eval_every, and at the end (docs/study.md §1.5)."""
    values = iter([6.0, 5.0, 4.0, 2.0, 3.0, 2.5, 2.0])
    monkeypatch.setattr(Probe, "of", lambda self, model: Probed(next(values), 0))
    train(quick(), tmp_path / "run")
    probed = {entry["step"]: entry["probe_nll"] for entry in log_of(tmp_path / "run") if "probe_nll" in entry}
    assert probed == {0: 6.0, 2: 5.0, 4: 4.0, 10: 2.0, 20: 3.0, 30: 2.5, 40: 2.0}
    assert load_weights(tmp_path / "run" / "best_probe.safetensors")[1]["step"] == 10
    assert load_weights(tmp_path / "run" / "last.safetensors")[1]["step"] == 40


def test_the_best_weights_are_never_of_a_stretch_that_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at step 20, after a probe and before a save: what is run again may come out different on a GPU."""
    values = iter([6.0, 5.0, 4.0, 2.0, 1.0, 2.4, 2.2, 2.3])  # at step 20 it is 1.0, and then 2.4
    monkeypatch.setattr(Probe, "of", lambda self, model: Probed(next(values), 0))
    asked = iter(range(1000))

    def killed() -> bool:
        if next(asked) == 20:
            raise InterruptedError
        return False

    folder = tmp_path / "run"
    with pytest.raises(HardtailError):
        train(quick(), folder, should_stop=killed)
    assert load_weights(folder / "best_probe.safetensors")[1]["step"] == 20
    train(quick(), folder)
    assert load_weights(folder / "best_probe.safetensors")[1]["step"] == 30
    kept = load_state(folder, {})
    assert kept is not None
    assert (kept.best_probe, kept.best_step) == (2.2, 30)


def test_best_weights_that_are_gone_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([6.0, 5.0, 4.0, 4.5, 4.3, 4.4, 4.6])
    monkeypatch.setattr(Probe, "of", lambda self, model: Probed(next(values), 0))
    train(quick(), tmp_path / "run", should_stop=stop_after(9))
    (tmp_path / "run" / "best_probe.safetensors").unlink()
    train(quick(), tmp_path / "run")
    assert load_weights(tmp_path / "run" / "best_probe.safetensors")[1]["step"] == 20


def test_a_long_log_does_not_make_a_state_unreadable(tmp_path: Path) -> None:
    """A safetensors header may have 100 MB; the log is no part of it."""
    sizes = []
    for lines in (1, 20_000):
        log = [LogLine(step=step % 10, loss=1.5) for step in range(lines)]
        save_state(tmp_path, {"x": torch.ones(2)}, Progress(step=3, log=log))
        kept = load_state(tmp_path, {"x": torch.zeros(2)})
        assert kept == Progress(step=3, log=log)
        sizes.append(int.from_bytes((tmp_path / "state.safetensors").read_bytes()[:8], "little"))
    assert sizes[1] < sizes[0] + 50


def test_a_state_with_its_log_in_the_header_still_loads(tmp_path: Path) -> None:
    """As states were written before."""
    train(quick(), tmp_path / "whole")
    folder = tmp_path / "run"
    train(quick(), folder, should_stop=stop_after(9))
    path = folder / "state.safetensors"
    held, progress = load(path.read_bytes()), load_state(folder, {})
    del held["progress/log"]
    save_file(held, path, metadata={"progress": json.dumps(msgspec.to_builtins(progress))})
    assert train(quick(), folder).finished
    assert (folder / "last.safetensors").read_bytes() == (tmp_path / "whole" / "last.safetensors").read_bytes()
    assert [entry["step"] for entry in log_of(folder) if "how" not in entry] == [
        entry["step"] for entry in log_of(tmp_path / "whole") if "how" not in entry
    ]


def test_the_moving_average_is_what_is_kept_and_probed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    probed: list[torch.Tensor] = []

    def keep(self: Probe, model: torch.nn.Module) -> Probed:
        probed.append(torch.cat([parameter.detach().flatten() for parameter in model.parameters()]).clone())
        return Probed(1.0, 0)

    monkeypatch.setattr(Probe, "of", keep)
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
    assert said == {"file": "train.npz", "sha256": load_instances(built)[1].sha256, "count": 100}
    assert json.loads((tmp_path / "file" / "finished.json").read_text())["data"] == said

    made = data.build(recipe.task, "train", 7, 30)
    save_instances(tmp_path / "other.npz", made.instances, made.manifest)
    train(recipe, tmp_path / "other", data_file=tmp_path / "other.npz")
    other = load_file(tmp_path / "other" / "last.safetensors")
    assert not torch.equal(other["embed.weight"], weights[0]["embed.weight"])


def test_a_run_watches_itself_on_the_test_file_beside_its_data(built: Path, tmp_path: Path) -> None:
    """The probe is of that file, records name it, and a run is not continued with another one."""
    recipe, file, test = quick(), tmp_path / "sums.npz", tmp_path / "sums-test.npz"
    shutil.copy(built, file)
    shutil.copy(built.with_suffix(".json"), file.with_suffix(".json"))
    made = data.build(recipe.task, "sweep", 5, 12)
    save_instances(test, made.instances, made.manifest)
    train(recipe, tmp_path / "drawn", data_file=built)
    assert not train(recipe, tmp_path / "filed", data_file=file, should_stop=stop_after(9)).finished
    test.rename(tmp_path / "away.npz")
    with pytest.raises(HardtailError, match="on other problems; put the same NAME-test"):
        train(recipe, tmp_path / "filed", data_file=file)
    (tmp_path / "away.npz").rename(test)
    assert not train(recipe, tmp_path / "alone", data_file=built, should_stop=stop_after(9)).finished
    with pytest.raises(HardtailError, match="on other problems; move NAME-test"):
        train(recipe, tmp_path / "alone", data_file=file)
    train(recipe, tmp_path / "filed", data_file=file)
    drawn, filed = log_of(tmp_path / "drawn"), log_of(tmp_path / "filed")
    said = {"file": "sums-test.npz", "sha256": load_instances(test)[1].sha256, "count": 12}
    assert filed[0]["watched"] == said
    assert json.loads((tmp_path / "filed" / "finished.json").read_text())["watched"] == said
    assert "watched" not in drawn[0]
    assert drawn[1]["probe_nll"] != filed[1]["probe_nll"]
    weights = [load_file(tmp_path / run / "last.safetensors") for run in ("drawn", "filed")]
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0]), "training is the same"


def test_what_a_test_file_lacks_is_drawn_and_its_natural_problems_are_from_all_of_it(
    built: Path, tmp_path: Path
) -> None:
    """Easy problems come first in this file, and it has none of the recipe's hard ones."""
    recipe, file = quick(), tmp_path / "sums.npz"
    recipe = replace(recipe, watch=replace(recipe.watch, decoded=20))
    shutil.copy(built, file)
    shutil.copy(built.with_suffix(".json"), file.with_suffix(".json"))
    hard, made = recipe.task.stratum(recipe.watch.hard), data.build(recipe.task, "test", 5, 400)
    easy_K = np.flatnonzero(~hard.holds(made.instances.strata))
    sorted_K = easy_K[np.argsort(made.instances.strata["chain"][easy_K], kind="stable")]
    save_instances(tmp_path / "sums-test.npz", made.instances.take(sorted_K), made.manifest)
    monitor = _Run(recipe, Keeper(recipe, tmp_path / "run"), torch.device("cpu"), file, ALONE).monitor
    assert monitor is not None
    assert len(monitor.natural) == 20
    chain_N = monitor.natural.strata["chain"]
    assert (chain_N == np.sort(chain_N)).all()
    assert int(chain_N[-1]) >= made.instances.strata["chain"][sorted_K[-21]] > chain_N[0]
    assert hard.holds(monitor.hard.strata).all()


def test_a_run_goes_on_with_its_own_data_only(built: Path, tmp_path: Path) -> None:
    assert not train(quick(), tmp_path / "run", data_file=built, should_stop=stop_after(9)).finished
    with pytest.raises(HardtailError, match="other training data"):
        train(quick(), tmp_path / "run")
    assert train(quick(), tmp_path / "run", data_file=built).finished
    assert "already finished" in train(quick(), tmp_path / "run", data_file=built).how
    with pytest.raises(HardtailError, match="other training data"):
        train(quick(), tmp_path / "run")


def test_data_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    task = quick().task
    cases = {
        "test": (data.build(task, "test", 0, 10), "on which runs are measured"),
        "digits": (data.build(replace(task, digits=5), "train", 0, 10), "does not hold data of addition"),  # type: ignore[call-arg]
        "listops": (
            data.build(small("listops-random").task, "train", 0, 10),
            "holds data of listops, the recipe is of addition",
        ),
    }
    for name, (made, sentence) in cases.items():
        path = tmp_path / f"{name}.npz"
        save_instances(path, made.instances, made.manifest)
        with pytest.raises(HardtailError, match=sentence):
            train(quick(), tmp_path / "run", data_file=path)
    command = [*HARDTAIL, "train", "addition-random-smoke", "--out", str(tmp_path / "run")]
    done = subprocess.run([*command, "--data", str(tmp_path / "test.npz")], capture_output=True, text=True)
    assert done.returncode == 2
    assert "on which runs are measured" in done.stderr
    assert len(done.stderr.splitlines()) == 1, "no plan is announced before"


def test_sudoku_is_decoded_on_natural_and_on_harder_puzzles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its probe is one tier of the test set, and neither of the two."""
    decoded: list[Instances] = []

    def keep(denoiser: Any, instances: Instances, *words: Any, **others: Any) -> Any:
        decoded.append(instances)
        return SimpleNamespace(exact_N=np.zeros(len(instances), dtype=np.bool_))

    monkeypatch.setattr("hardtail.training.monitor.decode", keep)
    recipe = recipe_named("sudoku-random-smoke")
    easy = data.draw(recipe.task, "train", Part("tier=easy", 4), 0)  # the whole split has puzzles that are slow to draw
    manifest = Manifest(task="sudoku", config=recipe.task.config(), split="train")
    save_instances(tmp_path / "easy.npz", easy, manifest)
    watch = replace(recipe.watch, decoded=6, probe_size=2)
    train(replace(recipe, steps=1, batch=2, watch=watch), tmp_path / "run", data_file=tmp_path / "easy.npz")
    natural, hard = (instances.strata["rating"] for instances in decoded[:2])
    expected = data.draw(recipe.task, "test", Part("natural", 6), recipe.seed)
    assert decoded[0].tokens_NL.tolist() == expected.tokens_NL.tolist()
    assert (natural == 0).any()
    assert (hard > 0).all()


def test_a_prepared_run_draws_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that cannot draw, everything that the run measures itself on is there already."""
    monkeypatch.setenv(data.KEPT, str(tmp_path / "data"))
    recipe = replace(small("addition-random"), steps=1)
    recipe = replace(recipe, watch=replace(recipe.watch, probe=("test", "chain>=2")))
    prepare([Entry("arm", recipe)], n=2)

    def fail(*words: Any) -> Any:
        raise AssertionError("drawn, and not prepared")

    monkeypatch.setattr(data, "_draw", fail)
    assert train(recipe, tmp_path / "run").finished


def test_an_equal_probe_is_no_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of several equal probes keeps its weights."""
    monkeypatch.setattr("hardtail.training.probe.Probe.of", lambda probe, model: Probed(1.0, 0))
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, eval_every=5, probe_size=4, decoded=2)
    train(replace(recipe, steps=3, train_size=20, watch=watch), tmp_path)
    header = (tmp_path / "best_probe.safetensors").read_bytes()
    about = json.loads(json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["__metadata__"]["hardtail"])
    assert (about["about"]["step"], about["about"]["kind"]) == (0, "best_probe")
