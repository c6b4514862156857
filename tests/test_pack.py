"""Runs in pieces: what comes back is the run, bit for bit, and nothing else is let in."""

import json
import os
import shutil
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest

from hardtail import HardtailError
from hardtail.core.files import atomic
from hardtail.models.weights import read_tensors
from hardtail.study.pack import ENDING, pack, unpack
from hardtail.study.recipes import recipe_named
from hardtail.training.checkpoint import STATE
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from tests.conftest import Command


def short(steps: int = 8) -> Recipe:
    recipe = recipe_named("addition-puma-smoke")
    watch = replace(recipe.watch, log_every=2, eval_every=4, gen_every=0, probe_size=10, save_every=4)
    return replace(recipe, steps=steps, watch=watch, train_size=50, batch=4)


STILL = replace(short(), optimiser=AdamW(lr=1e-30, floor=0.0, warmup=0, weight_decay=0.0, ema=None))
"""A run whose probe never improves."""


def halted(folder: Path, after: int = 4) -> Path:
    """A run that was stopped after this many steps."""
    left = iter([False] * after)
    train(short(), folder, should_stop=lambda: next(left, True))
    return folder


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return halted(tmp_path_factory.mktemp("runs") / "mine-s42")


def test_a_run_that_travelled_ends_as_one_that_stayed(started: Path, tmp_path: Path) -> None:
    packed = pack(started, tmp_path / "pieces", piece=5000)
    assert len(packed.pieces) > 3
    assert max(path.stat().st_size for path in packed.piece_paths(tmp_path / "pieces")) == 5000
    folder, _ = unpack(tmp_path / "pieces", tmp_path / "there")
    assert not (folder / "last.safetensors").exists()
    train(short(), folder)
    train(short(), stayed := tmp_path / "stayed")
    for name in ("last.safetensors", "best_probe.safetensors"):
        assert (folder / name).read_bytes() == (stayed / name).read_bytes()


def test_rounded_moments_are_smaller_and_said(started: Path, tmp_path: Path) -> None:
    exact = pack(started, tmp_path / "exact")
    rounded = pack(started, tmp_path / "rounded", bf16_moments=True)
    sizes = {item.name: item.size for item in exact.files}
    ours, _ = read_tensors(started / STATE)
    saved = sizes[STATE] - {item.name: item.size for item in rounded.files}[STATE]
    assert abs(saved - 4 * len(ours["first_P"])) < 100  # two bytes less for each of two moments
    folder, _ = unpack(tmp_path / "rounded", tmp_path / "there")
    theirs, _ = read_tensors(folder / STATE)
    assert theirs["weight_P"].equal(ours["weight_P"])
    assert theirs["ema_P"].equal(ours["ema_P"])
    train(short(), folder)
    sessions = [line for line in map(json.loads, (folder / "log.jsonl").read_text().splitlines()) if "how" in line]
    assert [line.get("rounded") for line in sessions] == [None, 1]


def test_a_finished_run_travels_with_all_that_is_measured_and_recorded(tmp_path: Path) -> None:
    train(short(4), run := tmp_path / "done")
    pack(run, tmp_path / "pieces")
    folder, _ = unpack(tmp_path / "pieces" / f"done{ENDING}", tmp_path / "there")
    held = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert held == {path.name: path.read_bytes() for path in run.iterdir() if path.name != STATE}
    assert train(short(4), folder).finished, "it needs no state"


def test_what_was_measured_where_a_run_goes_is_kept(tmp_path: Path) -> None:
    train(short(4), run := tmp_path / "done")
    first, second, third = (f'{{"policy": "{name}"}}\n'.encode() for name in ("top1", "lsb", "random"))
    (run / "evaluations.jsonl").write_bytes(first + second)
    pack(run, tmp_path / "pieces")
    folder, _ = unpack(tmp_path / "pieces", tmp_path / "there")
    (folder / "evaluations.jsonl").write_bytes(first + third)
    unpack(tmp_path / "pieces", tmp_path / "there")
    assert (folder / "evaluations.jsonl").read_bytes() == first + second + third


def test_a_run_that_was_out_of_patience_travels_with_its_state(ended: Path, tmp_path: Path) -> None:
    pack(ended, tmp_path / "pieces")
    folder, _ = unpack(tmp_path / "pieces", tmp_path / "there")
    assert train(STILL, folder).step == 8


def test_a_piece_that_is_missing_or_changed_writes_nothing(started: Path, tmp_path: Path) -> None:
    second = pack(started, tmp_path, piece=5000).piece_paths(tmp_path)[1]
    kept = second.read_bytes()
    for content in (kept[:-1], b"x" + kept[1:]):
        second.write_bytes(content)
        with pytest.raises(HardtailError, match=r"mine-s42\.001 is not the piece"):
            unpack(tmp_path, tmp_path / "there")
    second.unlink()
    with pytest.raises(HardtailError, match=r"mine-s42\.001 cannot be read.*all pieces"):
        unpack(tmp_path, tmp_path / "there")
    assert not (tmp_path / "there").exists()


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"run": "../mine"}, "is not the name of a run's folder"),
        ({"run": ".."}, "is not the name of a run's folder"),
        ({"run": "a\0b"}, "is not the name of a run's folder"),
        ({"run": "\x1b[2J"}, "is not the name of a run's folder"),
        ({"files": [{"name": "../evil", "size": 1}]}, "is not a file of a run"),
        ({"files": [{"name": "recipe.json", "size": 1}]}, "differ in size"),
    ],
)
def test_a_pack_that_points_elsewhere_is_refused(
    started: Path, tmp_path: Path, changed: dict[str, object], sentence: str
) -> None:
    pack(started, tmp_path)
    path = tmp_path / f"mine-s42{ENDING}"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(HardtailError, match=sentence):
        unpack(tmp_path, tmp_path / "there")


def test_a_run_that_is_further_on_is_not_replaced(started: Path, tmp_path: Path) -> None:
    pack(started, tmp_path / "pieces")
    folder, _ = unpack(tmp_path / "pieces", tmp_path / "there")
    train(short(), folder)
    with pytest.raises(HardtailError, match="at step 8, further than the packed run at step 4"):
        unpack(tmp_path / "pieces", tmp_path / "there")


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was out of patience with its second probe, and was measured."""
    folder = tmp_path_factory.mktemp("ended") / "mine"
    assert train(STILL, folder, patience=1).step == 4
    (folder / "evaluations.jsonl").write_text("")
    return folder


def test_a_run_that_had_ended_is_replaced_by_one_that_went_on(ended: Path, tmp_path: Path) -> None:
    """Nothing may say that it has finished, or hold its earlier weights."""
    for place in ("here", "there"):
        shutil.copytree(ended, tmp_path / place / "mine")
    left = iter([False] * 3)
    train(STILL, tmp_path / "here" / "mine", should_stop=lambda: next(left, True))
    pack(tmp_path / "here" / "mine", tmp_path / "pieces")
    folder, packed = unpack(tmp_path / "pieces", tmp_path / "there")
    assert packed.step == 7
    assert not (folder / "finished.json").exists()
    assert not (folder / "last.safetensors").exists()
    assert (folder / "evaluations.jsonl").exists(), "its lines say of which step they are"
    assert train(STILL, folder).step == 8


@pytest.mark.parametrize("written", range(7))
def test_an_unpacked_run_is_finished_only_once_all_of_it_is_there(
    written: int, ended: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("here", "there"):
        shutil.copytree(ended, tmp_path / place / "mine")
    train(STILL, tmp_path / "here" / "mine")
    assert len(pack(tmp_path / "here" / "mine", tmp_path / "pieces").files) == 7
    left = iter(range(written))

    def killed(path: Path) -> AbstractContextManager[IO[bytes]]:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return atomic(path)

    with monkeypatch.context() as during:
        during.setattr("hardtail.study.pack.atomic", killed)
        with pytest.raises(KeyboardInterrupt):
            unpack(tmp_path / "pieces", tmp_path / "there")
    assert not (tmp_path / "there" / "mine" / "finished.json").exists()
    unpack(tmp_path / "pieces", tmp_path / "there")
    wanted, held = (
        {path.name: path.read_bytes() for path in (tmp_path / place / "mine").iterdir()} for place in ("here", "there")
    )
    del wanted[STATE]
    assert held == wanted


def test_a_finished_run_without_its_state_is_as_far_as_it_says(started: Path, tmp_path: Path) -> None:
    train(short(), done := tmp_path / "there" / "mine-s42")
    (done / STATE).unlink()
    assert pack(done, tmp_path / "whole").step == 8
    pack(started, tmp_path / "pieces")
    with pytest.raises(HardtailError, match="at step 8, further than the packed run at step 4"):
        unpack(tmp_path / "pieces", tmp_path / "there")


def test_from_the_command_line(started: Path, tmp_path: Path, hardtail_command: Command) -> None:
    runs, out = str(started.parent), str(tmp_path / "out")
    code, said, _ = hardtail_command("study", "pack", "mine-s42", "--runs", runs, "--out", out)
    assert (code, said.split(",")[0]) == (0, "mine-s42: step 4")
    code, said, _ = hardtail_command("study", "unpack", out, "--runs", str(tmp_path / "there"))
    assert (code, "mine-s42: step 4" in said) == (0, True)
    for words, sentence in (
        (["pack"], "pack needs runs"),
        (["pack", "nowhere", "--runs", runs], "there is no run"),
        (["unpack", runs], "holds no packed run"),
        (["unpack", "nowhere"], "is not a packed run"),
    ):
        code, _, said = hardtail_command("study", *words)
        assert (code, sentence in " ".join(said.split())) == (2, True), said


def test_a_piece_that_is_no_file_of_a_pieces_size_is_not_read(started: Path, tmp_path: Path) -> None:
    """A terabyte of nothing, or a pipe, would be read for ever, whatever the manifest says of it."""
    pack(started, tmp_path / "packed")
    piece, side = tmp_path / "packed" / "mine-s42.000", tmp_path / "packed" / "mine-s42.pack.json"
    said = json.loads(side.read_text())
    whole = 1 << 40
    said["files"][-1]["size"] += whole - said["pieces"][0]["size"]
    said["pieces"][0]["size"] = whole
    side.write_text(json.dumps(said))
    with piece.open("r+b") as file:
        file.truncate(whole)
    with pytest.raises(HardtailError, match="a file of this kind has at most 16,777,216"):
        unpack(side, tmp_path / "runs")
    piece.unlink()
    os.mkfifo(piece)
    with pytest.raises(HardtailError, match="is a pipe"):
        unpack(side, tmp_path / "runs")


@pytest.mark.parametrize("name", ["no.pack.json", "run.json"])
def test_a_packed_run_that_is_not_there_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="is not a packed run"):
        unpack(tmp_path / name, tmp_path / "runs")
