"""Our signs as the ids of other people's tokenizers: one to one, or a sentence."""

from collections.abc import Mapping
from typing import Any

import pytest

from hardtail import HardtailError
from hardtail.core.vocabulary import Vocabulary
from hardtail.models.hf.table import encoded, token_table

SIGNS = Vocabulary("01+")


class Tokenizer:
    """Writes texts as a table says; the special tokens are those that are given."""

    def __init__(self, table: Mapping[str, list[int]], **special: int | None) -> None:
        self.table = table
        for name, number in {"pad": 9, **special}.items():
            setattr(self, f"{name}_token_id", number)

    def encode(self, text: str, *, add_special_tokens: bool) -> tuple[int, ...]:
        assert text, "no text has no ids"
        assert not add_special_tokens
        return tuple(self.table[text])


PLAIN = {"0": [4], "1": [5], "+": [6]}
SPACED = {"0": [3, 4], "1": [3, 5], "+": [3, 6], "00": [3, 4, 4], "01": [3, 4, 5], "0+": [3, 4, 6]}
"""A tokenizer that puts a space token before a text."""


@pytest.mark.parametrize(
    ("tokenizer", "padding"),
    [
        (Tokenizer(PLAIN), 9),
        (Tokenizer(SPACED), 9),
        (Tokenizer(PLAIN, pad=None, eos=2), 2),  # the end of the text, where there is no padding
        (Tokenizer(PLAIN, pad=0, eos=2), 0),
        (Tokenizer(PLAIN, unk=1), 9),
    ],
)
def test_every_sign_is_one_token(tokenizer: Any, padding: int) -> None:
    assert token_table(SIGNS, tokenizer, 8) == [4, 5, 6, 8, padding]
    assert encoded(tokenizer, "") == []


def test_a_word_has_the_space_before_it() -> None:
    words = Vocabulary(("cat", "sat"), mask="MASK", pad="PAD")
    tokenizer: Any = Tokenizer({" cat": [4], " sat": [5, 6], "0": [7], "0 sat": [7, 11]})
    assert token_table(words, tokenizer, 8) == [4, 11, 8, 9]


@pytest.mark.parametrize(
    ("tokenizer", "mask", "reason"),
    [
        (Tokenizer(PLAIN), None, "the model has no mask token"),
        (Tokenizer(PLAIN, pad=None), 8, "neither a padding token nor an end of text"),
        (Tokenizer(PLAIN | {"+": [4]}), 8, "the same id, 4, for '0' and '\\+'"),
        (Tokenizer(PLAIN), 5, "the same id, 5, for '1' and 'the mask'"),
        (Tokenizer(PLAIN), 9, "the same id, 9, for 'the mask' and 'the padding'"),
        (Tokenizer(PLAIN, unk=6), 8, r"does not know '\+', which the task needs"),
        (Tokenizer(PLAIN | {"+": [6, 7], "0+": [6, 4, 7]}), 8, r"writes '\+' as the ids \[6, 7\]"),
        (Tokenizer(PLAIN | {"+": [], "0+": [4, 6, 7]}), 8, r"writes '\+' as the ids \[6, 7\]"),
    ],
)
def test_signs_that_are_not_one_token_each_are_refused(tokenizer: Any, mask: int | None, reason: str) -> None:
    with pytest.raises(HardtailError, match=reason):
        token_table(SIGNS, tokenizer, mask)
