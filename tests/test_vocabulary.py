"""Vocabularies: signs and ids both ways, what they cannot have, and what a message shows of them."""

from typing import Any

import numpy as np
import pytest

from hardtail import HardtailError
from hardtail.core import vocabulary
from hardtail.core.vocabulary import Vocabulary


def test_a_vocabulary_names_what_it_does_not_have() -> None:
    held = Vocabulary("01+")
    assert (held.size, held.mask_id, held.pad_id) == (5, 3, 4)
    assert held.encode("1+0MP").tolist() == [1, 2, 0, 3, 4]
    assert held.decode(np.array([4, 3, 2])) == "PM+"
    with pytest.raises(HardtailError, match="'é' is not one of the characters '01\\+'"):
        held.encode("10é2")


@pytest.mark.parametrize(("count", "end"), [(10, "w8, w9$"), (11, "w8, w9 …$")])
def test_a_message_names_ten_words_and_says_if_there_are_more(count: int, end: str) -> None:
    with pytest.raises(HardtailError, match=end):
        Vocabulary(tuple(f"w{number}" for number in range(count))).encode("nothing")


@pytest.mark.parametrize(
    ("signs", "reason"),
    [
        ("aba", "the sign 'a' twice"),
        (("x", "y z"), "the sign 'y z'; a word has no space"),
        (("x", ""), "the sign ''; a word has no space"),
    ],
)
def test_every_sign_is_one_word_and_there_once(signs: Any, reason: str) -> None:
    with pytest.raises(HardtailError, match=reason):
        Vocabulary(signs)


@pytest.mark.parametrize("more", [0, 1])
def test_a_vocabulary_has_as_many_tokens_as_traces_can_hold(more: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MOST_TOKENS", 1000)
    words = tuple(f"w{number}" for number in range(1000 - 2 + more))
    if more:
        with pytest.raises(HardtailError, match="a vocabulary has 1,001 tokens; it can have 1,000"):
            Vocabulary(words)
    else:
        assert Vocabulary(words).size == 1000
