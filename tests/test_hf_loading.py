"""Loading models of other projects: what is looked for where, what is read first, and what runs no code."""

import json
from pathlib import Path

import pytest
import torch

import hardtail
from hardtail import HardtailError
from hardtail.core.pretrained import Pretrained
from hardtail.measuring.models import Reading, subject_of
from hardtail.models.hf.loading import _speaking, identified, load_hf, outlined
from tests import hf_toys

ADDITION = hardtail.task("addition", digits=4)


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
