"""Runs that stop when no probe has improved for a while: when, how they go on, and what they need for it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.core.provenance import origin
from hardtail.core.records import LogLine
from hardtail.models.weights import load_weights, saved_step
from hardtail.study.recipes import recipe_named
from hardtail.training.checkpoint import STATE
from hardtail.training.keeper import Keeper
from hardtail.training.probe import Probe, Probed
from hardtail.training.run import train
from tests.conftest import Command
from tests.test_train import contents, small


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
        refused = 2, "", f"hardtail: --patience is {patience}; it must be at least 1\n"
        assert hardtail_command(*words, "--patience", str(patience)) == refused
    assert not (tmp_path / "run").exists()


def test_a_run_out_of_patience_continues_only_with_more(tmp_path: Path) -> None:
    keeper = Keeper(recipe_named("addition-random-smoke"), tmp_path)
    assert keeper.ended(None, None) is None
    (tmp_path / STATE).touch()
    keeper.progress.step = 9
    keeper.finish("somehow", origin("cpu"), None, None, 5)
    ends = {patience: keeper.ended(patience, None) for patience in (1, 5, 6, None)}
    assert [patience for patience, ended in ends.items() if ended is not None] == [1, 5]
    (tmp_path / STATE).unlink()
    with pytest.raises(HardtailError, match="ended at step 9, when a patience of 5 steps had run out, and cannot cont"):
        keeper.ended(6, None)
    keeper.finish("somehow", origin("cpu"), None, None, None)
    assert all(keeper.ended(patience, None) for patience in (1, 6, None))


def test_patience_counts_from_the_best_probe_to_the_latest(tmp_path: Path) -> None:
    keeper = Keeper(recipe_named("addition-random-smoke"), tmp_path)
    assert (keeper.latest_probe, keeper.waited) == (None, 0)
    keeper.progress.log += [LogLine(step=3, probe_nll=1.0), LogLine(step=8, probe_nll=2.0), LogLine(step=9, loss=1.0)]
    assert (keeper.latest_probe, keeper.waited) == (8, 0)
    keeper.progress.best_step = 0
    assert keeper.waited == 8
    keeper.progress.best_step = 3
    assert keeper.waited == 5
    assert keeper.kept() == "nothing had been saved yet"
    keeper.progress.saved = 1200
    assert keeper.kept() == f"{tmp_path} keeps the state of step 1,200"


def test_patience_does_not_run_out_over_best_weights_that_are_gone(tmp_path: Path) -> None:
    """They were newer than the saved state: the next probe is the best, and patience counts from there."""
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, save_every=100, eval_every=2, gen_every=0, probe_size=4, decoded=2)
    recipe, steps = replace(recipe, steps=8, batch=2, train_size=10, watch=watch), list[int]()
    train(recipe, tmp_path, device="cpu", progress=steps.append, should_stop=lambda: len(steps) >= 5)
    (tmp_path / "best_probe.safetensors").unlink()
    ended = train(recipe, tmp_path, device="cpu", patience=3)
    assert (ended.step, ended.finished, ended.patience) == (8, True, None)
    assert saved_step(tmp_path / "best_probe.safetensors") in (6, 8)
