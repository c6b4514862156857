"""Fine-tuning models of other projects with our schemes: exact, resumable, and read again without the original."""

import json
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

import hardtail
from hardtail import HardtailError
from hardtail.core.describe import differences
from hardtail.models.hf.loading import identified, load_hf
from hardtail.models.transformer import parameter_count
from hardtail.models.weights import load_weights, read_tensors
from hardtail.schemes import Papl, Puma, Random, Scheme
from hardtail.schemes.stages import Ramp
from hardtail.study.recipes import recipe_named
from hardtail.training.begin import begun
from hardtail.training.estimate import estimate
from hardtail.training.recipe import Recipe
from hardtail.training.run import train
from tests import hf_toys
from tests.conftest import Command
from tests.fuzz_doors import damaged_header
from tests.test_hf import drawn, hidden

TASK = hardtail.task("addition", digits=4)


def tuning(name: str, scheme: Scheme | None = None, steps: int = 4, template: str = "{prompt}{answer}") -> Recipe:
    recipe = recipe_named("addition-random-smoke")
    watch = replace(
        recipe.watch, log_every=2, eval_every=2, gen_every=4, save_every=2, probe_size=8, decoded=2, hard=""
    )
    return replace(
        recipe, task=TASK, scheme=scheme or Random(), steps=steps, batch=8, train_size=64, watch=watch,
        model=identified(name, template),
    )  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    made: dict[str, str] = {}

    def folder(family: str) -> str:
        if family not in made:
            made[family] = hf_toys.saved(tmp_path_factory.mktemp(family), family)
        return made[family]

    return folder


@pytest.mark.parametrize(
    ("family", "scheme"),
    [("bert", Papl()), ("modernbert", Puma(stages=Ramp(2, 3))), ("roberta", Random())],
    ids=("bert", "modernbert", "roberta"),
)
def test_a_run_that_was_stopped_ends_in_the_same_bytes(
    folders: Callable[[str], str], family: str, scheme: Scheme, tmp_path: Path
) -> None:
    """Dropout of the model's own included."""
    recipe = tuning(folders(family), scheme)
    train(recipe, tmp_path / "whole")
    steps: list[int] = []
    stopped = train(recipe, tmp_path / "parts", progress=steps.append, should_stop=lambda: len(steps) == 3)
    assert (stopped.step, stopped.finished) == (3, False)
    assert train(recipe, tmp_path / "parts").finished
    for name in ("last.safetensors", "best_probe.safetensors", "coverage.json", "recipe.json"):
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "parts" / name).read_bytes(), name
    whole, parts = (read_tensors(tmp_path / name / "state.safetensors")[0] for name in ("whole", "parts"))
    assert all(torch.equal(whole[name], parts[name]) for name in whole if name != "progress/log")


def test_training_begins_with_the_model_and_lowers_its_loss(folders: Callable[[str], str], tmp_path: Path) -> None:
    name = folders("bert")
    recipe = tuning(name, steps=30, template="add {prompt} {answer}")
    tokens_BL, at_BA = hidden(drawn(TASK), TASK.vocabulary.mask_id)
    original = load_hf(name, TASK.vocabulary, "add {prompt} {answer}").model
    place = slice(int(at_BA[0, 0]), int(at_BA[0, -1]) + 1)
    with torch.no_grad():
        first_BAV, model = original(tokens_BL, at_BA), begun(recipe).eval()
        assert torch.equal(model(tokens_BL, place), first_BAV), "a slice and places mean the same"
    train(replace(recipe, optimiser=replace(recipe.optimiser, ema=None, lr=1e-2, warmup=1)), tmp_path / "run")
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    probes = [line["probe_nll"] for line in log if "probe_nll" in line]
    assert probes[-1] < probes[0] - 0.5


def test_a_run_is_read_again_without_the_original(
    folders: Callable[[str], str], hardtail_command: Command, tmp_path: Path
) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(folders("modernbert").removeprefix("hf:"), copy)
    run, words = tmp_path / "run", ["--steps", "2", "--batch", "8", "--train-size", "32", "--task.digits", "4"]
    words += ["--watch.gen-every", "0", "--watch.probe-size", "8", "--watch.decoded", "2"]
    code, _, err = hardtail_command(
        "train", "addition-random-smoke", "--model", f"hf:{copy}", *words, "--out", str(run)
    )
    assert code == 0, err
    shutil.rmtree(copy)
    held = json.loads((run / "recipe.json").read_text())["fields"]
    assert held["name"] == "addition-random-smoke-tiny"
    assert held["model"]["fields"]["name"] == f"hf:{copy}"
    model, about = load_weights(run / "last.safetensors")
    assert (about["step"], about["recipe"]["fields"]["model"]) == (2, held["model"])
    assert "model.layers.0.attn.Wqkv.weight" in load_file(run / "last.safetensors"), "named as transformers names it"
    subject = hardtail.load(run, checkpoint="last")
    batch = hidden(drawn(TASK), TASK.vocabulary.mask_id)
    with torch.no_grad():
        assert torch.equal(subject.denoiser.logits(*batch), model(*batch))
    code, out, err = hardtail_command(
        "eval", str(run), "--strata", "natural", "-n", "2", "--policies", "top1", "--json"
    )
    assert code == 0, err
    assert json.loads(out)[0]["pretrained"] == held["model"]["fields"]


def test_what_a_run_cannot_be_is_refused(
    folders: Callable[[str], str], hardtail_command: Command, tmp_path: Path
) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(folders("bert").removeprefix("hf:"), copy)
    recipe = tuning(f"hf:{copy}")
    train(replace(recipe, steps=1), tmp_path / "run")
    with pytest.raises(HardtailError, match=r"differs in model\.template"):
        train(replace(tuning(f"hf:{copy}", template="{prompt} {answer}"), steps=1), tmp_path / "run")
    (copy / "config.json").write_text((copy / "config.json").read_text() + "\n")
    with pytest.raises(HardtailError, match="has changed: its files have the hash"):
        train(recipe, tmp_path / "other")
    for words, reason in (
        (["--model", "bert-base"], "give hf: and a folder"),
        (["--model", f"hf:{tmp_path}"], "there is no config.json"),
        (["--template", "{prompt}"], "--template is the text around a problem for --model"),
    ):
        code, _, err = hardtail_command("train", "addition-random-smoke", *words)
        assert code == 2
        assert reason in err


def test_an_estimate_counts_a_model_without_its_weights(folders: Callable[[str], str], tmp_path: Path) -> None:
    copy = tmp_path / "tiny"
    shutil.copytree(folders("bert").removeprefix("hf:"), copy)
    recipe = tuning(f"hf:{copy}")
    whole = parameter_count(begun(recipe))
    (copy / "model.safetensors").unlink()
    cost = estimate(recipe)
    assert cost.parameters == whole
    assert cost.flops_per_step == 3.0 * recipe.batch * 2 * whole * (TASK.seq_len + 1), "with the first token"


def test_a_model_whose_code_comes_with_it_is_not_trained(tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="the type 'llada' cannot be fine-tuned here"):
        identified(hf_toys.saved(tmp_path, "llada"))


@pytest.fixture(scope="module")
def tuned(folders: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The weights of a short run."""
    run = tmp_path_factory.mktemp("tuned")
    train(replace(tuning(folders("bert")), steps=1), run)
    return run / "last.safetensors"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"model_type": "llada"}, "which transformers does not have"),
        ({"config": {"hidden_size": 64}}, "do not fit"),
        ({"config": {"num_hidden_layers": 10**9}}, "fewer tensors than layers"),
        ({"layout": {"ours": [-1], "mask": 0, "pad": 0}}, "ours"),
        ({"layout": {"ours": [1, 2], "mask": 1, "pad": 2}}, "set up for 2 tokens"),
    ],
)
def test_a_header_that_cannot_be_right_is_refused(
    tuned: Path, change: dict[str, object], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "other.safetensors"
    tensors, metadata = read_tensors(tuned)
    header = json.loads(metadata["hardtail"])
    header["hf"] |= {key: {**header["hf"][key], **value} if key == "config" else value for key, value in change.items()}  # type: ignore[dict-item]
    save_file(tensors, path, {"hardtail": json.dumps(header)})
    with pytest.raises(HardtailError, match=reason):
        hardtail.load(path)


def test_damaged_headers_are_refused_in_a_sentence(tuned: Path, tmp_path: Path) -> None:
    path, sound, refused = tmp_path / "other.safetensors", tuned.read_bytes(), 0
    for place in range(60):
        path.write_bytes(damaged_header(sound, random.Random(place)))
        try:
            subject = hardtail.load(path)
            subject.denoiser.logits(*hidden(drawn(subject.task, 1), subject.denoiser.mask_id))
        except HardtailError:
            refused += 1
    assert refused > 10


def test_recipes_without_a_model_are_what_they_were() -> None:
    described = recipe_named("addition-random-smoke").as_json()
    assert "model" not in described["fields"]
    assert differences(described, recipe_named("addition-random-smoke").as_json()) == []


def test_what_fine_tuning_takes_grows_with_the_model_and_the_batch(folders: Callable[[str], str]) -> None:
    """The logits of a batch alone take four bytes for each word at each place."""
    recipe = tuning(folders("bert"), Random())
    model: Any = begun(recipe)
    one, two = (estimate(replace(recipe, batch=batch)) for batch in (4, 8))
    weights = sum(weight.numel() for weight in model.parameters())
    length = model.layout.length(recipe.task.seq_len)
    assert one.parameters == two.parameters == weights
    assert one.memory > 4 * 7 * weights
    assert two.memory - one.memory > 4 * 4 * length * model.config.vocab_size
    assert two.flops_per_step == 2 * one.flops_per_step == 8 * 3 * 2.0 * weights * length


def test_what_fine_tuning_keeps_in_memory(tmp_path: Path) -> None:
    """Seven numbers for each weight, and for each token 22 vectors a layer and the logits."""
    name = hf_toys.saved(tmp_path, "bert")
    recipe = replace(recipe_named("addition-random-smoke"), task=TASK, model=identified(name), batch=3)
    model = load_hf(name, TASK.vocabulary).model
    config, length = model.config, model.layout.length(TASK.seq_len)
    weights = sum(map(torch.numel, model.parameters()))
    kept = 3 * length * (config.hidden_size * config.num_hidden_layers * 22 + config.vocab_size) * 4
    found = estimate(recipe)
    assert (found.parameters, found.memory) == (weights, weights * 4 * 7 + kept)
    assert found.flops_per_step == 3.0 * 3 * recipe.accumulate * 2.0 * weights * length
