"""Tiny models of other projects' families: real classes of `transformers`, or those of `hf_remote` where it has none.

All weights are random, also of output layers that start at 0 in the original.
"""

import shutil
import string
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

from hardtail.models.hf.families import family_of
from tests.hf_remote import WIDTH, Bd3lm, Dream, Llada, Llada2, Mdlm, Sedd

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
CHARACTERS = f"{string.ascii_letters}{string.digits}{string.punctuation} \n"
CODE = "modeling_toy"
"""The module that comes with a model."""


def tokenizer(
    characters: str = CHARACTERS,
    *,
    start: bool = True,
    mask: bool = True,
    words: Sequence[str] = (),
    normalizer: Any = None,
) -> PreTrainedTokenizerFast:
    """One token for each character, or for each of the words, which spaces separate."""
    signs = words or dict.fromkeys(characters)
    vocabulary = {sign: place for place, sign in enumerate([*SPECIAL, *signs])}
    made = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit() if words else pre_tokenizers.Split("", "isolated")
    if normalizer is not None:
        made.normalizer = normalizer
    names = {"pad_token": "[PAD]", "unk_token": "[UNK]"}
    names |= {"cls_token": "[CLS]"} if start else {}
    names |= {"mask_token": "[MASK]"} if mask else {}
    return PreTrainedTokenizerFast(tokenizer_object=made, **names)


def _drawn(model: nn.Module) -> Any:
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for weight in model.parameters():
            weight.normal_(float(weight.dim() == 1), 0.2, generator=generator)
    return model.eval()


def bert(size: int) -> Any:
    config = BertConfig(
        vocab_size=size, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=256,
    )  # fmt: skip
    return _drawn(BertForMaskedLM(config))


def roberta(size: int) -> Any:
    config = RobertaConfig(
        vocab_size=size, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=256, pad_token_id=0, bos_token_id=2, eos_token_id=3,
    )  # fmt: skip
    return _drawn(RobertaForMaskedLM(config))


def modernbert(size: int) -> Any:
    config = ModernBertConfig(
        vocab_size=size, hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        pad_token_id=0, bos_token_id=2, eos_token_id=3, cls_token_id=2, sep_token_id=3,
        attn_implementation="sdpa", reference_compile=False,
    )  # fmt: skip
    return _drawn(ModernBertForMaskedLM(config))


def tiny(kind: Any) -> Callable[[int], Any]:
    return lambda size: _drawn(kind(kind.config_class(vocab_size=size)))


FAMILIES: dict[str, Callable[[int], Any]] = {
    "bert": bert,
    "roberta": roberta,
    "modernbert": modernbert,
    **{kind.__name__.lower(): tiny(kind) for kind in (Llada, Llada2, Dream, Mdlm, Bd3lm, Sedd)},
}
PLAIN = ("bert", "roberta", "modernbert")
"""Those that `transformers` has itself."""


def saved(folder: Path, family: str, **also: Any) -> str:
    """A folder with a tiny model of a family, its tokenizer and, where it needs some, its code; named as users do."""
    tokens = tokenizer(**also)
    model = FAMILIES[family](len(tokens))
    if family not in PLAIN:
        kind = type(model)
        loads = family_of(model.config).auto_class
        model.config.auto_map = {
            "AutoConfig": f"{CODE}.{kind.config_class.__name__}",
            loads: f"{CODE}.{kind.__name__}",
        }
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copy(Path(__file__).with_name("hf_remote.py"), folder / f"{CODE}.py")
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return f"hf:{folder}"
