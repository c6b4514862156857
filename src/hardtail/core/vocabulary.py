"""Signs and their token ids: one character is one token, or one word in a vocabulary of words."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import MOST_TOKENS, Tokens, token_dtype

_CODES = 128
"""Characters of ASCII."""
_ABSENT = 255


@dataclass(frozen=True)
class Vocabulary:
    """Ordinary signs in id order, then the mask, then the padding token.

    `characters` is a string, each of whose characters is a sign, or a sequence of words. Words have a space between
    them where they are written out, and so they have none inside.
    """

    characters: Sequence[str]
    pad: str = "P"
    mask: str = "M"

    def __post_init__(self) -> None:
        if not isinstance(self.characters, str):
            object.__setattr__(self, "characters", tuple(self.characters))
        if twice := [sign for sign, count in Counter(self.signs).items() if count > 1]:
            raise HardtailError(f"a vocabulary has the sign {twice[0]!r} twice; give every token a sign of its own")
        if odd := [sign for sign in self.signs if self.separator and sign.split() != [sign]]:
            raise HardtailError(f"a vocabulary of words has the sign {odd[0]!r}; a word has no space in it")
        if self.size > MOST_TOKENS:
            raise HardtailError(f"a vocabulary has {self.size:,} tokens; it can have {MOST_TOKENS:,}")

    @cached_property
    def signs(self) -> tuple[str, ...]:
        """The sign of every token, in id order."""
        return (*self.characters, self.mask, self.pad)

    @cached_property
    def separator(self) -> str:
        """What is between two signs: nothing if they are characters."""
        return "" if all(len(sign) == 1 for sign in self.signs) else " "

    @property
    def size(self) -> int:
        return len(self.characters) + 2

    @property
    def mask_id(self) -> int:
        return len(self.characters)

    @property
    def pad_id(self) -> int:
        return len(self.characters) + 1

    @cached_property
    def dtype(self) -> type[np.integer[Any]]:
        """The type of arrays of these tokens."""
        return token_dtype(self.size)

    @cached_property
    def _id_of_sign(self) -> dict[str, int]:
        return {sign: place for place, sign in enumerate(self.signs)}

    @cached_property
    def _id_of_code(self) -> Tokens:
        table = np.full(_CODES, _ABSENT, dtype=self.dtype)
        for sign, place in self._id_of_sign.items():
            if len(sign) == 1 and ord(sign) < _CODES:
                table[ord(sign)] = place
        return table

    @cached_property
    def _array(self) -> NDArray[Any]:
        return np.array(self.signs)

    def id(self, character: str) -> int:
        return self._id_of_sign[character]

    def split(self, text: str) -> list[str]:
        """The signs of a text, known or not."""
        return text.split() if self.separator else list(text)

    def encode(self, text: str) -> Tokens:
        """Token ids of `text`, which may hold the display signs of mask and padding."""
        signs = self.split(text)
        try:
            return np.array([self._id_of_sign[sign] for sign in signs], dtype=self.dtype)
        except KeyError as error:
            what = "words" if self.separator else "characters"
            raise HardtailError(f"{error.args[0]!r} is not one of the {what} {_few(self.characters)}") from None

    def encode_codes(self, codes: NDArray[np.uint8]) -> Tokens:
        """Token ids of an array of ASCII codes, any shape; the codes must all be in the vocabulary."""
        return self._id_of_code[codes]

    def decode(self, tokens: NDArray[np.integer]) -> str:
        return self.separator.join(self._array[tokens].ravel().tolist())

    def name(self, token: int) -> str:
        """A sign as it is called in a sentence, where a space could not be seen."""
        return self.signs[token] if self.signs[token].strip() else "␣"

    def signs_of(self, tokens: NDArray[np.integer]) -> list[str]:
        """The sign of each token."""
        found: list[str] = self._array[tokens].tolist()
        return found


def _few(signs: Sequence[str]) -> str:
    """Some of the signs, as messages repeat them."""
    if isinstance(signs, str):
        return repr(signs)
    return ", ".join(signs[:10]) + (" …" if len(signs) > 10 else "")
