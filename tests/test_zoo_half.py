"""Half precision in the zoo: weights are shipped in it only if no answer changes, and are loaded as float32.

Shapes: V vocabulary.
"""

import json
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from hardtail import HardtailError, zoo
from hardtail.core.files import file_hash
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.subject import load_subject
from hardtail.models.transformer import Transformer
from hardtail.models.weights import load_weights, read_tensors, save_weights
from hardtail.policies.named import policy_named
from hardtail.study.recipes import recipe_named
from hardtail.training.begin import begun, identified
from tests.conftest import Command

RECIPE = recipe_named("addition-random-smoke")
HARD = RECIPE.task.gallery()[1]
Weights = dict[str, Tensor]


def drawn() -> Weights:
    """Random weights, which float16 cannot hold."""
    return dict(Transformer(RECIPE.shape).initialise(torch.Generator().manual_seed(0)).state_dict())


def in_float16() -> Weights:
    """Weights that float16 holds exactly."""
    return {name: tensor.half().float() for name, tensor in drawn().items()}


def favouring(logit_V: Tensor) -> Weights:
    """Weights that give every cell these logits, times the width: the largest wins, or the first of equals."""
    weights = drawn()
    norm = {"norm.weight": torch.zeros_like(weights["norm.weight"]), "norm.bias": torch.ones_like(weights["norm.bias"])}
    return weights | norm | {"embed.weight": logit_V[:, None].expand_as(weights["embed.weight"]).contiguous()}


TOKENS_V = torch.arange(RECIPE.task.vocabulary.size)
IN_BFLOAT16 = favouring(TOKENS_V * 2.0**-30)
"""Too small for float16, where the first token wins instead of the last."""
IN_NEITHER = favouring(1 + TOKENS_V * 2.0**-20)
"""Differences that neither half precision can hold."""


def written(path: Path, weights: Weights) -> Path:
    save_weights(path, weights, RECIPE.shape, {"recipe": RECIPE.as_json(), "step": 1, "kind": "last"})
    return path


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zoo of one model, `toy`, whose weights float16 holds exactly."""
    monkeypatch.setattr(zoo, "FOLDER", tmp_path / "zoo")
    return planted(in_float16())


def planted(weights: Weights) -> Path:
    entry = {"run": "r", "task": "addition", "kind": "last", "about": "a toy", "licence": "Apache-2.0"}
    accuracy = {"natural": {"top1": 0.5}, HARD: {"top1": 0.25}}
    sha256 = file_hash(written(zoo.FOLDER / "toy.safetensors", weights))
    measured = {"accuracy": accuracy, "n": {"natural": {"top1": 4}, HARD: {"top1": 8}}, "decode_precision": "fp32"}
    (zoo.FOLDER / "zoo.json").write_text(json.dumps({"toy": entry | measured | {"sha256": sha256}}))
    return zoo.FOLDER


def add_to_zoo(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    monkeypatch.setattr(sys, "argv", ["add_to_zoo.py", *words])
    import_module("add_to_zoo").main()


@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_weights_in_half_precision_are_the_model_of_their_roundings(half: torch.dtype, tmp_path: Path) -> None:
    rounded = {name: tensor.to(half) for name, tensor in drawn().items()}
    instances = measured_instances(RECIPE.task, "natural", 20, 0)
    found = []
    for name, weights in (("half", rounded), ("whole", {name: held.float() for name, held in rounded.items()})):
        subject = load_subject(str(written(tmp_path / f"{name}.safetensors", weights)))
        trace = decode(subject.denoiser, instances, policy_named("top1", RECIPE.task.order_names), Decoding())
        found.append((subject, trace.arrays()))
    (one, arrays), (other, expected) = found
    assert (one.origin.step, one.origin.checkpoint, one.task) == (1, "last", other.task)
    assert {parameter.dtype for parameter in load_weights(tmp_path / "half.safetensors")[0].parameters()} == {
        torch.float32
    }
    assert arrays.keys() == expected.keys()
    for name in arrays:
        np.testing.assert_array_equal(arrays[name], expected[name])


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64, torch.bool, torch.float8_e4m3fn, torch.complex64])
def test_weights_of_another_type_are_refused(dtype: torch.dtype, tmp_path: Path) -> None:
    weights = drawn()
    path = written(tmp_path / "w.safetensors", weights | {"norm.bias": weights["norm.bias"].to(dtype)})
    told = rf"w\.safetensors: the weights 'norm\.bias' are {str(dtype)[6:]}; give one of float32, float16, bfloat16"
    with pytest.raises(HardtailError, match=told):
        load_weights(path)


@pytest.mark.parametrize(("weights", "half"), [(in_float16(), "float16"), (IN_BFLOAT16, "bfloat16")])
def test_a_shipped_model_is_rounded_if_no_answer_changes(
    weights: Weights, half: zoo.Half, toys: Path, monkeypatch: pytest.MonkeyPatch, hardtail_command: Command
) -> None:
    planted(weights)
    before, header = zoo.find("toy"), read_tensors(toys / "toy.safetensors")[1]
    add_to_zoo(monkeypatch, "--half", "toy", "-n", "6")
    after = zoo.find("toy")
    assert after.rounded == zoo.Rounded(
        to=half, strata=("natural", HARD), policies=("top1", "lsb"), n=6, sha256=before.sha256
    )
    assert (after.accuracy, after.about, after.scheme) == (before.accuracy, before.about, before.scheme)
    assert (after.n, after.decode_precision) == (before.n, before.decode_precision)
    held = load_file(after.path)
    assert read_tensors(after.path)[1] == header
    assert {str(tensor.dtype) for tensor in held.values()} == {f"torch.{half}"}
    code, out, err = hardtail_command("zoo", "toy")
    assert (code, err) == (0, "")
    assert f"  {half}: no answer changed on 6 each of natural and {HARD}\n" in out
    code, card, err = hardtail_command("push", "zoo:toy", "hf:me/toy", "--dry-run")
    assert code == 0, err
    assert f"The weights are rounded to {half}: no answer changed on 6 each of natural and {HARD}." in card
    with pytest.raises(SystemExit, match=r"toy\.safetensors is not in float32"):
        add_to_zoo(monkeypatch, "--half", "toy", "-n", "6")


def test_weights_whose_rounding_changes_an_answer_are_not_shipped(
    toys: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(IN_NEITHER)
    before = {path.name: path.read_bytes() for path in toys.iterdir()}
    with pytest.raises(SystemExit, match="of 12 answers, rounding changes 12 in float16, 12 in bfloat16"):
        add_to_zoo(monkeypatch, "--half", "toy", "-n", "3")
    assert {path.name: path.read_bytes() for path in toys.iterdir()} == before
    told = capsys.readouterr().out
    assert "toy in float16:\n  natural, top1: 3 of 3 answers differ\n    0: wrong\n    1: wrong\n    2: wrong\n" in told
    assert f"  {HARD}, lsb: 3 of 3 answers differ\n    0: wrong" in told


def test_a_run_is_added_in_half_precision_or_as_it_is(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "recipe.json").write_text(json.dumps(RECIPE.as_json()))
    source = written(tmp_path / "run" / "last.safetensors", in_float16())
    words = (str(tmp_path / "run"), "random masking", "another toy")
    add_to_zoo(monkeypatch, "whole", *words)
    add_to_zoo(monkeypatch, "half", *words, "--half", "-n", "3", "--hard", "chain>=2")
    whole, half = zoo.find("whole"), zoo.find("half")
    assert whole.path.read_bytes() == source.read_bytes()
    assert (whole.rounded, whole.scheme, whole.about) == (None, "random masking", "another toy")
    assert half.rounded is not None
    assert (half.rounded.sha256, half.rounded.strata) == (whole.sha256, ("natural", "chain>=2"))
    for wrong in (("toy",), ("toy", str(tmp_path / "run"), "--half")):
        with pytest.raises(SystemExit, match="2"):
            add_to_zoo(monkeypatch, *wrong)


def test_training_begins_with_a_rounded_model(toys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_to_zoo(monkeypatch, "--half", "toy", "-n", "3")
    model = begun(replace(RECIPE, model=identified("zoo:toy")))
    for name, tensor in model.state_dict().items():
        assert tensor.dtype == torch.float32
        assert torch.equal(tensor, in_float16()[name]), name
