"""Saved states that are whole files but not those of the run, and arguments that no record could hold."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from hardtail import HardtailError, Streams
from hardtail.core.records import read_measurements
from hardtail.study.recipes import recipe_named
from hardtail.training.checkpoint import STATE, state_step
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from hardtail.training.step import Step
from tests.conftest import Command
from tests.hostile import untrained_run


def short() -> Recipe:
    recipe = recipe_named("addition-puma-smoke")
    watch = replace(recipe.watch, log_every=1, eval_every=2, gen_every=0, probe_size=8)
    return replace(recipe, steps=4, watch=watch, train_size=50, batch=4)


@pytest.fixture
def stopped(tmp_path: Path) -> Path:
    """The folder of a run that was stopped after two steps."""
    steps: list[int] = []
    train(short(), tmp_path / "run", progress=steps.append, should_stop=lambda: len(steps) == 2)
    return tmp_path / "run"


def change(folder: Path, tensors: dict[str, Any], progress: dict[str, Any]) -> None:
    held = load_file(folder / STATE)
    with safe_open(folder / STATE, "pt") as file:
        said = json.loads(file.metadata()["progress"])
    held |= {name: torch.full_like(held[name], value) for name, value in tensors.items()}
    save_file(held, folder / STATE, metadata={"progress": json.dumps(said | progress)})


@pytest.mark.parametrize(
    ("tensors", "progress", "told"),
    [
        ({"scheme/row_B": 50}, {}, "steps or rows that the run does not have"),
        ({"scheme/row_B": -1}, {}, "steps or rows that the run does not have"),
        ({}, {"step": 5}, "steps or rows that the run does not have"),
        ({}, {"step": -1}, "step: expected `int` >= 0"),
        ({}, {"step": math.inf}, "step: expected `int`, got `float`"),
        ({}, {"wall": math.nan}, "wall: expected `float` >= 0"),
        ({}, {"tokens": -1}, "tokens: expected `int` >= 0"),
    ],
)
def test_a_state_that_the_run_cannot_have_is_refused(
    tensors: dict[str, Any], progress: dict[str, Any], told: str, stopped: Path
) -> None:
    change(stopped, tensors, progress)
    with pytest.raises(HardtailError, match=told) as refused:
        train(short(), stopped)
    assert STATE in str(refused.value)
    assert state_step(stopped) in (-1, 0, 2, 5)


def test_an_unchanged_state_continues(stopped: Path) -> None:
    change(stopped, {}, {})
    assert train(short(), stopped).finished


def test_seeds_that_no_record_can_hold_are_refused(tmp_path: Path, hardtail_command: Command) -> None:
    """Such records were written, and then nothing could read their file again."""
    run = untrained_run(tmp_path / "run")
    words = ("eval", str(run), "--strata", "natural", "-n", "1", "--policies", "top1", "--data-seed")
    code, _, err = hardtail_command(*words, str(1 << 64))
    assert (code, "seed is 18446744073709551616; it must be at least 0 and below 2^64" in err) == (2, True)
    assert hardtail_command(*words, str((1 << 64) - 1))[0] == 0
    assert {record.data_seed for record in read_measurements(run / "evaluations.jsonl")} == {(1 << 64) - 1}
    with pytest.raises(HardtailError, match="below 2\\^64"):
        Streams(10**400).named("x")


def test_what_cannot_be_a_folder_is_refused_before_the_work(tmp_path: Path, hardtail_command: Command) -> None:
    taken, page = tmp_path / "taken", tmp_path / "page.html"
    taken.write_text("mine")
    for words in (("report", "--out", str(page), "--figures"), ("train", "addition-random-smoke", "--out")):
        for path in (taken, taken / "inside"):
            code, _, err = hardtail_command(*words, str(path))
            assert (code, "is not a folder, or is inside a file; give another name" in err) == (2, True), err
    assert taken.read_text() == "mine"
    assert not page.exists()


@pytest.mark.parametrize(("row", "known"), [(0, True), (19, True), (-1, False), (20, False)])
def test_chains_go_on_with_rows_that_the_data_has(row: int, known: bool) -> None:
    step = object.__new__(Step)
    step.corpus = range(20)  # type: ignore[assignment]
    step.state = {"first/row_B": torch.tensor([3, row]), "stage_B": torch.tensor([99])}
    assert step.knows_its_rows() == known
