"""Our signs as a model's token ids, one to one."""

from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.vocabulary import Vocabulary


def token_table(vocabulary: Vocabulary, tokenizer: Any, mask_id: int | None) -> list[int]:
    """The model's id of each of our tokens; raise HardtailError where that is not one to one.

    The mask is the model's; our padding is its padding token, or else its end of text.
    """
    if mask_id is None:
        raise HardtailError("the model has no mask token, so no cell can be hidden from it")
    pad_id = next((found for name in ("pad", "eos") if (found := _special(tokenizer, name)) is not None), None)
    if pad_id is None:
        raise HardtailError("the tokenizer has neither a padding token nor an end of text for empty answer cells")
    ids = [_single(tokenizer, sign, vocabulary.separator) for sign in vocabulary.characters] + [mask_id, pad_id]
    signs = [*vocabulary.characters, "the mask", "the padding"]
    of_id: dict[int, str] = {}
    for found, sign in zip(ids, signs, strict=True):
        if (first := of_id.setdefault(found, sign)) != sign:
            raise HardtailError(
                f"the tokenizer has the same id, {found}, for {first!r} and {sign!r}; every token of the task needs an "
                "id of its own"
            )
    return ids


def encoded(tokenizer: Any, text: str) -> list[int]:
    """The ids of some text, without special tokens."""
    return list(tokenizer.encode(text, add_special_tokens=False)) if text else []


def template_ids(tokenizer: Any, text: str) -> list[int]:
    """The ids of a part of a template, all of which the tokenizer must know."""
    ids = encoded(tokenizer, text)
    if _special(tokenizer, "unk") in ids:
        raise HardtailError(f"the tokenizer does not know all of the template's {text!r}; write it with other signs")
    return ids


def _special(tokenizer: Any, name: str) -> int | None:
    return getattr(tokenizer, f"{name}_token_id", None)


def _single(tokenizer: Any, character: str, separator: str) -> int:
    """The id of one character on its own, or of a word with the space before it.

    Some tokenizers put a space token before a single character; behind another character there is none.
    """
    ids = encoded(tokenizer, f"{separator}{character}")
    if len(ids) != 1:
        before = encoded(tokenizer, "0")
        both = encoded(tokenizer, f"0{separator}{character}")
        ids = both[len(before) :] if both[: len(before)] == before else ids
    if ids == [_special(tokenizer, "unk")]:
        raise HardtailError(
            f"the tokenizer does not know {character!r}, which the task needs; give another task, or a model that was "
            "saved with a tokenizer that knows it"
        )
    if len(ids) != 1:
        raise HardtailError(
            f"the tokenizer writes {character!r} as the ids {ids}; every token of the task must be one of its own, "
            "so that a cell is one token"
        )
    return ids[0]
