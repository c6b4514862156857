"""Runs that meet a mistake: other folders and files, a full disk, too little memory, Ctrl-C, no such device."""

import json
import shutil
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from safetensors.torch import load, save_file

from hardtail import HardtailError
from hardtail.cli.train import main as command
from hardtail.cli.watching import Watcher
from hardtail.core import files
from hardtail.core.files import save_instances
from hardtail.core.records import LogLine
from hardtail.study.recipes import recipe_named
from hardtail.tasks import datasets as data
from hardtail.tasks.addition.task import Addition
from hardtail.training import checkpoint
from hardtail.training.recipe import Sizes
from hardtail.training.run import train
from tests.test_run_files import HARDTAIL, quick, stop_after


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
    with pytest.raises(HardtailError, match="not the saved state"):
        train(quick(), folder)


def test_a_state_of_another_run_is_refused(tmp_path: Path) -> None:
    """All its tensors fit, so that nothing else would tell; one from before states had their recipe is taken."""
    random, papl = (tmp_path / name / "state.safetensors" for name in ("random", "papl"))
    for path in (random, papl):
        train(quick(f"addition-{path.parent.name}"), path.parent, should_stop=stop_after(9))
    own = papl.read_bytes()
    shutil.copy(random, papl)
    with pytest.raises(
        HardtailError, match=r"papl/state\.safetensors is from a different run .* differs in .*scheme.* put the"
    ):
        train(quick("addition-papl"), papl.parent)
    tensors, progress = load(own), vars(checkpoint.load_state(random.parent, {}))
    assert progress.pop("recipe") == quick().as_json()
    save_file(tensors, papl, metadata={"progress": json.dumps(msgspec.to_builtins(progress))})
    assert not train(quick("addition-papl"), papl.parent, should_stop=lambda: True).finished
    again = checkpoint.load_state(papl.parent, {})
    assert again is not None
    assert again.recipe == quick("addition-papl").as_json()


def test_what_a_killed_writer_left_is_cleared_away(tmp_path: Path) -> None:
    """A kill while a state is written leaves a temporary file as large as it; a person's own files stay."""
    folder = tmp_path / "run"
    train(quick(), folder, should_stop=stop_after(9))
    left, other = folder / ".state.safetensors.0123abcd.part", folder / ".notes.0123abcd"
    left.write_bytes(b"half a state")
    other.write_bytes(b"a person's own")
    train(quick(), folder)
    assert not left.exists()
    assert other.exists()


def test_another_run_is_told_apart_field_by_field(tmp_path: Path) -> None:
    folder, recipe = tmp_path / "run", quick()
    train(recipe, folder, should_stop=stop_after(1))
    other = replace(recipe, batch=5, optimiser=replace(recipe.optimiser, lr=0.5))
    with pytest.raises(HardtailError, match=r"differs in optimiser\.lr, batch; "):
        train(other, folder)
    held = json.loads((folder / "recipe.json").read_text())
    held["fields"]["retired"] = None  # of another version
    (folder / "recipe.json").write_text(json.dumps(held))
    with pytest.raises(HardtailError, match="differs in retired; "):
        train(recipe, folder)
    for damaged, sentence in (
        ({}, "recipe.json: object missing required field `fields`; the record is damaged; train in another folder"),
        (held | {"fields": None}, "recipe.json: fields: expected `object`, got `null`; the record is damaged; "),
        (held | {"fields": [1]}, "recipe.json: fields: expected `object`, got `array`; the record is damaged; "),
        (recipe.as_json() | {"version": 2}, "differs in version; "),
        ([held], "recipe.json: this is not a JSON object; "),
    ):
        (folder / "recipe.json").write_text(json.dumps(damaged))
        with pytest.raises(HardtailError, match=sentence):
            train(recipe, folder)


@pytest.mark.parametrize(
    ("watch", "sentence"),
    [
        ({"order": "msb"}, "watch.order is 'msb'; addition has lsb"),
        ({"hard": "depth=3"}, "watch.hard is 'depth=3': addition: 'depth=3' is not a stratum"),
        ({"probe": ("test", "tier=hard")}, "watch.probe is 'tier=hard': addition: 'tier=hard' is not a stratum"),
    ],
)
def test_what_a_run_watches_is_its_own_tasks(watch: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    """A recipe for another task keeps addition's defaults until they are given: it must say which field it means."""
    recipe = quick()
    with pytest.raises(HardtailError, match=sentence):
        train(replace(recipe, watch=replace(recipe.watch, **watch)), tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.json").exists()


@pytest.mark.parametrize("change", [{"batch": 10**9}, {"sizes": Sizes(2, 2, 10**8)}])
def test_what_no_machine_could_hold_is_refused_before_anything_is_written(
    change: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(HardtailError, match=r"this would need about [0-9,]+ GB of memory, and there are [0-9,]+ GB"):
        train(replace(quick(), **change), tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


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
        report(LogLine(step=0, wall=0.0))
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


def test_lines_in_a_log_say_only_what_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    probed = {"probe_nll": 0.0097551, "probe_guessed": 3, "natural": 0.995, "hard": 0.785, "hard_logical": 0.9951}
    measured = LogLine(step=99, loss=1.0, norm=0.12345, wall=99.0)
    watcher = Watcher()
    watcher.report(LogLine(step=0, how="eager on the CPU", wall=0.0, tokens=0), 100)
    watcher.report(LogLine(step=0, probe_nll=2.5, wall=1.0, tokens=0), 100)
    watcher.report(LogLine(step=50, loss=2.0, wall=50.0, tokens=9), 100)
    watcher.report(msgspec.structs.replace(measured, **probed), 100, "mine")
    watcher.report(LogLine(step=100, loss=1.0, wall=100.0, tokens=9), 100)
    assert capsys.readouterr().out.splitlines() == [
        "step 0/100  eager on the CPU",
        "step 0/100  probe 2.5",
        "step 50/100  1.0 steps/s  50 seconds left  loss 2",
        "mine  step 99/100  1 second left  loss 1  norm 0.1235  probe 0.009755  guessed 3",
        "  natural 0.995  hard 0.785  hard in order 0.9951",
        "step 100/100  1.0 steps/s  loss 1",
    ]


def test_a_watcher_says_what_is_done_and_how_far_it_has_come() -> None:
    watcher = Watcher()
    watcher.begin("", "preparing", 0)
    assert watcher.now() == "preparing"
    watcher.move("mine", "step", 1200, 300_000)
    assert watcher.now() == "mine: step 1,200/300,000"
    watcher.move("mine", "measuring", 64, 9000)
    assert watcher.now() == "mine: measuring 64/9,000"


def test_a_run_says_what_it_prepares(tmp_path: Path) -> None:
    """Hard problems may take minutes to draw, and nothing else shows that anything is done."""
    said: list[str] = []
    recipe = recipe_named("addition-random-smoke")
    train(recipe, tmp_path, device="cpu", preparing=said.append, should_stop=lambda: True)
    assert said == ["drawing problems to measure on", "drawing training data"]
    watcher = Watcher()
    watcher.move("mine", said[0], 0, 0)
    assert watcher.now() == "mine: drawing problems to measure on"


@pytest.mark.parametrize(("device", "sentence"), [("banana", "there is no such device"), ("cuda:99", "; give cpu")])
def test_a_device_that_is_not_there(device: str, sentence: str, tmp_path: Path) -> None:
    command = [*HARDTAIL, "train", "addition-random-smoke", "--device", device, "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_of_reports_that_has_gone_ends_the_run_as_it_is(tmp_path: Path) -> None:
    """`train | head`: no sentence about a disk, and no result that nobody made."""

    def gone(line: LogLine) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        train(recipe_named("addition-random-smoke"), tmp_path, device="cpu", report=gone)


def test_what_a_data_file_differs_in_is_named_in_the_order_of_the_recipe(tmp_path: Path) -> None:
    """A field that the recipe's task does not have comes last, wherever the file has it."""
    recipe, path = recipe_named("addition-random-smoke"), tmp_path / "sums.npz"
    built = data.build(Addition(digits=3), data.TRAIN, 0, 4)
    save_instances(path, built.instances, built.manifest)
    side = path.with_suffix(".json")
    held = json.loads(side.read_text())
    held["task"]["fields"] = {"flavour": "mild", **held["task"]["fields"]}
    side.write_text(json.dumps(held))
    with pytest.raises(HardtailError, match=r"it differs in digits.*, flavour$"):
        train(recipe, tmp_path / "run", device="cpu", data_file=path)


def test_weights_without_their_state_are_not_trained_over(tmp_path: Path) -> None:
    train(quick(), folder := tmp_path / "run")
    for name in ("state.safetensors", "finished.json"):
        (folder / name).unlink()
    held = (folder / "last.safetensors").read_bytes()
    with pytest.raises(HardtailError, match=r"neither its state\.safetensors nor finished\.json"):
        train(quick(), folder)
    assert (folder / "last.safetensors").read_bytes() == held


def test_a_refused_run_leaves_no_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(HardtailError):
        train(replace(quick(), watch=replace(quick().watch, order="msb")), tmp_path / "run")
    assert not (tmp_path / "run").exists()
