"""Trackers beside the log: the real packages, offline, get every measurement of a run."""

import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hardtail import HardtailError
from hardtail.core.records import LogLine, read_jsonl
from hardtail.study.recipes import recipe_named
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from hardtail.training.sinks import open_sinks
from tests.conftest import Command


def short() -> Recipe:
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, log_every=2, eval_every=4, gen_every=0, probe_size=10)
    return replace(recipe, steps=4, watch=watch, train_size=50, batch=4)


def logged(folder: Path, name: str) -> list[LogLine]:
    """Train a short run that logs to a tracker; return the lines with a loss in its own log."""
    with open_sinks([name], folder, short()) as pass_on:
        train(short(), folder, report=pass_on)
    return [line for line in read_jsonl(folder / "log.jsonl", LogLine) if line.loss is not None]


def test_tensorboard_gets_every_measurement(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    lines = logged(tmp_path, "tensorboard")
    held = EventAccumulator(str(tmp_path / "tensorboard"))
    held.Reload()
    assert [(item.step, item.value) for item in held.Scalars("loss")] == [
        (line.step, pytest.approx(line.loss)) for line in lines
    ]
    assert {"probe_nll", "norm", "wall"} <= set(held.Tags()["scalars"])


def test_wandb_gets_every_measurement_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    monkeypatch.setenv("WANDB_MODE", "offline")
    logged(tmp_path, "wandb")
    wandb.teardown()  # its service, another process, writes the file until it ends; this waits for that
    (kept,) = tmp_path.glob("wandb/offline-run-*/*.wandb")
    content = kept.read_bytes()
    assert all(name in content for name in (b"probe_nll", b"loss", b"addition-random-smoke-s42"))


def test_trackio_gets_every_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    lines = logged(tmp_path / "run", "trackio")
    with sqlite3.connect(tmp_path / "trackio" / "hardtail.db") as database:
        rows = database.execute("select step, metrics from metrics order by id").fetchall()
    database.close()
    assert {line.step for line in lines} <= {step for step, _ in rows}
    assert any('"probe_nll"' in str(metrics) for _, metrics in rows)


def test_an_unknown_tracker_is_refused_before_anything_is_written(tmp_path: Path, hardtail_command: Command) -> None:
    code, _, said = hardtail_command(
        "train", "addition-random-smoke", "--log", "mlflow", "--out", str(tmp_path / "run")
    )
    assert (code, "there is no tracker 'mlflow'; --log takes wandb, trackio, tensorboard" in said) == (2, True)
    assert not (tmp_path / "run" / "recipe.json").exists()


def test_a_run_that_is_refused_or_has_finished_begins_nothing(tmp_path: Path, hardtail_command: Command) -> None:
    """Least of all in the folder of another run, which would then have two recipes."""
    train(short(), tmp_path, report=lambda line: None)
    words = ("--out", str(tmp_path), "--log", "tensorboard", "--device", "cpu")
    code, _, said = hardtail_command("train", "addition-papl-smoke", *words)
    assert (code, "holds another run" in said) == (2, True)
    with open_sinks(["tensorboard"], tmp_path, short()) as pass_on:
        assert train(short(), tmp_path, report=pass_on).how == "it was already finished"
    assert not (tmp_path / "tensorboard").exists()


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(HardtailError, match=r"pip install 'hardtail\[log\]'"), open_sinks(["wandb"], tmp_path, short()):
        pass
