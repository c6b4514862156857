"""Runs that diverge stop, say so, and keep the last good state."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from hardtail import HardtailError
from hardtail.models.weights import load_weights
from hardtail.study.recipes import recipe_named
from hardtail.training import optimiser
from hardtail.training.checkpoint import STATE
from hardtail.training.monitor import DIVERGENCE_FACTOR, Monitor
from hardtail.training.optimiser import AdamW, Flat
from hardtail.training.probe import Probe, Probed
from hardtail.training.run import train
from hardtail.training.step import Step
from tests.test_train import small


@pytest.mark.parametrize("beyond", [False, True])
def test_a_probe_a_hundred_times_worse_than_guessing_is_a_divergence(
    beyond: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_named("addition-random-smoke")
    limit = DIVERGENCE_FACTOR * math.log(recipe.task.vocabulary.size)
    found = Probed(limit if beyond else math.nextafter(limit, 0), 0)
    monkeypatch.setattr("hardtail.training.probe.Probe.of", lambda probe, model: found)
    few = replace(recipe, steps=1, train_size=20, watch=replace(recipe.watch, probe_size=4, decoded=2))
    assert DIVERGENCE_FACTOR == 100
    if beyond:
        with pytest.raises(HardtailError, match=r"has diverged: at step 0 the probe's NLL is .*, while guessing"):
            train(few, tmp_path)
    else:
        assert train(few, tmp_path).finished


def test_what_is_not_finite_has_diverged() -> None:
    class Holder:
        loss, flat = torch.tensor(1.0), type("Flat", (), {"weight_P": torch.ones(3)})

    monitor = object.__new__(Monitor)
    monitor.step = Holder()  # type: ignore[assignment]
    monitor.refuse_divergence()
    monitor._diverged = lambda sign: HardtailError(sign)  # type: ignore[method-assign]
    for loss, weight in ((math.nan, 1.0), (1.0, math.inf)):
        Holder.loss, Holder.flat.weight_P = torch.tensor(loss), torch.tensor([1.0, weight])  # type: ignore[attr-defined]
        with pytest.raises(HardtailError, match="no longer finite"):
            monitor.refuse_divergence()


def test_a_state_that_has_diverged_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing was due to be measured: the state before it is what a person wants back."""
    real = Step._once

    def spoiled(step: Step) -> None:
        real(step)
        step.loss.fill_(math.nan)

    monkeypatch.setattr(Step, "_once", spoiled)
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, log_every=50, eval_every=500, gen_every=0, save_every=1, probe_size=4, decoded=2)
    with pytest.raises(HardtailError, match=r"has diverged: at step 1 the loss .*; nothing had been saved yet"):
        train(replace(recipe, steps=90, train_size=20, watch=watch), tmp_path)
    assert not (tmp_path / STATE).exists()


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
