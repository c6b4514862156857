"""Loading models of other projects: folders of every family, what is refused by name, and what runs no code."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file

import hardtail
from hardtail import HardtailError
from hardtail.core.pretrained import Pretrained
from hardtail.measuring.models import Reading, subject_of
from hardtail.models.hf.families import family_of
from hardtail.models.hf.layout import Template
from hardtail.models.hf.loading import _speaking, identified, load_hf, outlined
from tests import hf_toys
from tests.conftest import Command
from tests.test_hf import ADDITION, LISTOPS, drawn, hidden, made


@pytest.fixture(autouse=True, scope="module")
def no_network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Code that comes with a model is copied to a folder of this test run, and nothing is looked up on the Hub."""
    with pytest.MonkeyPatch.context() as patch:
        modules = str(tmp_path_factory.mktemp("modules"))
        patch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", modules)
        patch.setattr("transformers.utils.hub.HF_MODULES_CACHE", modules)
        patch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
        yield


@pytest.mark.parametrize("name", ["hf:/no/such/folder", "hf:./none", "hf:a/b/c"])
def test_a_folder_that_is_not_there_is_not_looked_for_on_the_hub(name: str) -> None:
    with pytest.raises(HardtailError, match="there is no such folder"):
        load_hf(name, ADDITION.vocabulary)


@pytest.mark.parametrize("named", [{"attn_implementation": "someone/kernels"}, {"auto_map": {"AutoConfig": "x.Y"}}])
def test_the_outline_of_a_model_runs_no_code_of_its_own(
    named: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A recipe names a model; to estimate what its training takes runs nothing that came with it."""
    name, path = hf_toys.saved(tmp_path / "model", "bert"), tmp_path / "model" / "config.json"
    plain = outlined(Pretrained(name, ""), ADDITION.vocabulary)
    assert all(tensor.is_meta for tensor in plain.parameters())
    assert sum(map(torch.numel, plain.parameters())) == sum(
        map(torch.numel, load_hf(name, ADDITION.vocabulary).model.parameters())
    )
    path.write_text(json.dumps(json.loads(path.read_text()) | named))
    (tmp_path / "model" / "x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Y: ...\n")
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))
    if "auto_map" in named:
        outlined(Pretrained(name, ""), ADDITION.vocabulary)
    else:
        with pytest.raises(HardtailError, match="names attention code on the Hub"):
            outlined(Pretrained(name, ""), ADDITION.vocabulary)
    assert not (tmp_path / "ran").exists()


def test_the_mask_of_a_tokenizer_goes_before_that_of_a_configuration(tmp_path: Path) -> None:
    name, path = hf_toys.saved(tmp_path, "bert"), tmp_path / "config.json"
    mask = load_hf(name, ADDITION.vocabulary).model.layout.mask
    path.write_text(path.read_text().replace("{", '{\n  "mask_token_id": 1,', 1))
    assert load_hf(name, ADDITION.vocabulary).model.layout.mask == mask != 1


def test_how_other_peoples_models_read_is_refused_for_a_folder_of_ours(tmp_path: Path) -> None:
    (tmp_path / "recipe.json").touch()
    for reading in (Reading(template="{prompt}"), Reading(trust_remote_code=True)):
        with pytest.raises(HardtailError, match=r"is for models of other projects \(hf:…\), not for hf:"):
            subject_of(f"hf:{tmp_path}", reading=reading)


def test_an_error_of_another_library_without_words_is_named() -> None:
    pytest.importorskip("transformers")
    with pytest.raises(HardtailError, match="hf:model cannot be loaded: RuntimeError"), _speaking("hf:model", True):
        raise RuntimeError


def test_a_template_is_read_before_the_model_is_looked_for() -> None:
    with pytest.raises(HardtailError, match=r"must have \{prompt\} once"):
        identified("hf:/no/such/folder", "{answer}")


@pytest.mark.parametrize("family", hf_toys.FAMILIES)
def test_a_saved_folder_of_every_family_is_measured(family: str, tmp_path: Path) -> None:
    """The folder, its code included, goes through the loading code of `transformers`."""
    plain = family in hf_toys.PLAIN
    name = hf_toys.saved(tmp_path, family)
    subject = hardtail.load(name, ADDITION, template="add {prompt}\\n{answer}", trust_remote_code=not plain)
    batch = hidden(drawn(), subject.denoiser.mask_id)
    direct = made(family, template="add {prompt}\n{answer}")
    torch.testing.assert_close(subject.denoiser.logits(*batch), direct.logits(*batch), rtol=0, atol=0)
    found = hardtail.evaluate(subject, policies=["top1"], strata=["natural"], n=2).accuracies[0]
    assert found.model == tmp_path.name
    assert found.pretrained is not None
    assert (found.pretrained.name, found.pretrained.template) == (name, "add {prompt}\\n{answer}")
    if not plain:
        with pytest.raises(HardtailError, match="only with --trust-remote-code"):
            hardtail.load(name, ADDITION)


def test_every_command_takes_a_saved_folder(hardtail_command: Command, tmp_path: Path) -> None:
    name, page = hf_toys.saved(tmp_path, "modernbert"), tmp_path / "page.html"
    given = [name, "--task", "addition,digits=4", "--template", "{prompt}", "-n", "3"]

    def told(*words: str) -> str:
        code, out, err = hardtail_command(*words)
        assert code == 0, err
        return out

    some = ["--policies", "top1", "--strata", "natural"]
    assert tmp_path.name in told("eval", *given, *some)
    blocks = ["--policies", "block,size=2", "--steps", "6", "--strata", "natural", "--json"]
    _, record = json.loads(told("eval", *given, *blocks))
    assert (record["commit_rule"], record["steps"]) == (
        "6 steps",
        5,
    )  # two for each block, and the last block has one cell
    _, record = json.loads(told("eval", *given, *some, "--steps", "3", "--schedule", "dream", "--json"))
    assert record["commit_rule"] == "3 steps, dream"
    assert len(record["pretrained"]["sha256"]) == 64
    assert "sums" in told("diagnose", *given, *some)
    assert told("view", *given, "--stratum", "natural").count("step ") == 5
    told("report", *given, *some, "--out", str(page))
    assert tmp_path.name in page.read_text()
    assert tmp_path.name in told("compare", *given, "--strata", "natural", "--policies", "top1", "lsb")


def test_what_cannot_be_right_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match="no mask token"):
        made("bert", mask=False)
    with pytest.raises(HardtailError, match=r"does not know '\+', which the task needs"):
        made("bert", characters="0123456789=")
    with pytest.raises(HardtailError, match="does not know all of the template's ' ≙ '"):
        made("bert", template="{prompt} ≙ {answer}")
    with pytest.raises(HardtailError, match=r"must have \{prompt\} once"):
        Template.parse("add")
    with pytest.raises(HardtailError, match="prompts of different lengths"):
        made("mdlm", LISTOPS).logits(*hidden(drawn(LISTOPS), LISTOPS.vocabulary.mask_id))
    for kind, change, reason in (
        ("diffusion_gemma", {}, "no mask token that could hide"),
        ("gpt2", {}, "'gpt2' is not a masked language model"),
        ("mdlm", {"time_conditioning": True}, "conditioned on time"),
        ("bd3lm", {"attn_backend": "flex"}, "reads the sequence twice"),
    ):
        with pytest.raises(HardtailError, match=reason):
            family_of(SimpleNamespace(model_type=kind, **change))
    with pytest.raises(HardtailError, match=r"^hf:.*there is no config\.json"):
        load_hf(str(tmp_path), ADDITION.vocabulary)
    (tmp_path / "config.json").touch()
    with pytest.raises(HardtailError, match=f"not a run directory.* or hf:{tmp_path} if `transformers` saved it"):
        subject_of(str(tmp_path))


@pytest.mark.parametrize(
    "named",
    [
        {"attn_implementation": "someone/kernels"},
        {"_attn_implementation": "someone/kernels@main"},
        {"attn_implementation": {"": "sdpa", "text_config": "someone/kernels"}},
        {"text_config": {"_attn_implementation": "someone/kernels"}},
    ],
)
def test_attention_code_that_a_configuration_names_is_not_fetched(named: dict[str, object], tmp_path: Path) -> None:
    name, path = hf_toys.saved(tmp_path, "bert"), tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | named))
    with pytest.raises(HardtailError, match=r"names attention code on the Hub.*--trust-remote-code"):
        load_hf(name, ADDITION.vocabulary)
    assert identified(name).name == name, "its hash is known without loading it"


def test_the_hash_covers_what_makes_a_model(tmp_path: Path) -> None:
    """The vocabulary and the code included, and nothing else."""
    name = hf_toys.saved(tmp_path, "bert")
    seen = {identified(name).sha256}
    for file in ("vocab.txt", "vocab.json", "merges.txt", "spiece.model", "special_tokens_map.json", "modeling_x.py"):
        (tmp_path / file).write_text("x")
        seen.add(identified(name).sha256)
    assert len(seen) == 7
    (tmp_path / "trainer_state.json").write_text("{}")
    (tmp_path / "README.md").write_text("x")
    assert identified(name).sha256 in seen


@pytest.mark.parametrize("family", ["mdlm", "bd3lm", "sedd"])
def test_the_mask_of_some_families_is_their_last_token(family: str, tmp_path: Path) -> None:
    """Their tokenizers are GPT-2's, which has no mask."""
    name = hf_toys.saved(tmp_path, family, mask=False)
    found = load_hf(name, ADDITION.vocabulary, trust_remote_code=True).model
    assert found.layout.mask == found.config.vocab_size - 1


def test_a_folder_that_does_not_fit_is_refused_with_the_reason(
    hardtail_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = hf_toys.saved(tmp_path, "roberta")
    with pytest.raises(HardtailError, match="does not say its task"):
        hardtail.load(name)
    with pytest.raises(HardtailError, match="at most 255 tokens, and a problem in its template takes 257"):
        hardtail.load(name, hardtail.task("addition", digits=50), template=f"{100 * 'x'}{{prompt}}{{answer}}!!!")
    with pytest.raises(HardtailError, match="template is for models of other projects"):
        hardtail.load("zoo:addition-puma", template="{prompt}")
    for change in ({"kind": "last"}, {"compiled": True}):
        with pytest.raises(HardtailError, match="for runs and weights only"):
            subject_of(name, ADDITION, **change)
    weights = load_file(tmp_path / "model.safetensors")
    del weights["lm_head.dense.weight"]
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(HardtailError, match=r"no weights for lm_head.dense.weight"):
        hardtail.load(name, ADDITION)
    (tmp_path / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pytorch_model.bin")
    with pytest.raises(HardtailError, match="cannot be loaded"):
        hardtail.load(name, ADDITION)
    monkeypatch.setitem(sys.modules, "transformers", None)
    code, _, err = hardtail_command("eval", name, "--task", "addition")
    assert code == 2
    assert err.endswith(f"hardtail: {name} needs transformers: pip install 'hardtail[hf]'\n")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("tokenizer.json", b'{"version": "2"}'),
        ("model.safetensors", b"\x00" * 64),
        ("config.json", b'{"model_type": "bert", "num_attention_heads": "two"}'),
    ],
)
def test_a_damaged_file_is_refused_in_a_sentence(file: str, content: bytes, tmp_path: Path) -> None:
    """The libraries raise classes of their own for these, and Exception itself."""
    name = hf_toys.saved(tmp_path, "bert")
    (tmp_path / file).write_bytes(content)
    with pytest.raises(HardtailError, match=r"hf:.*cannot be loaded: .*\w"):
        load_hf(name, ADDITION.vocabulary)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"num_hidden_layers": 2000}, "says 2,000 layers, but its files hold"),
        ({"vocab_size": 10**9}, r"describes 33,000,\d+,\d+ weights, but its files have"),
        ({"intermediate_size": 10**9}, "weights, but its files have"),
    ],
)
def test_a_model_larger_than_its_files_is_refused_before_it_is_made(
    change: dict[str, int], reason: str, tmp_path: Path
) -> None:
    """Two thousand layers took half a minute to be found missing; a billion rows would take 128 GB."""
    name = hf_toys.saved(tmp_path, "bert")
    config = json.loads((tmp_path / "config.json").read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config | change))
    with pytest.raises(HardtailError, match=reason):
        load_hf(name, ADDITION.vocabulary)
