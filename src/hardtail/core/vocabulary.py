"""Characters and their token ids: one character is one token."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError

_ABSENT = 255


@dataclass(frozen=True)
class Vocabulary:
    """Ordinary characters in id order, then the mask, then the padding token."""

    characters: str
    pad: str = "P"
    mask: str = "M"

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
    def _id_of_code(self) -> NDArray[np.uint8]:
        table = np.full(256, _ABSENT, dtype=np.uint8)
        table[self._code_of_id] = np.arange(self.size, dtype=np.uint8)
        return table

    @cached_property
    def _code_of_id(self) -> NDArray[np.uint8]:
        return np.frombuffer((self.characters + self.mask + self.pad).encode("ascii"), dtype=np.uint8)

    def id(self, character: str) -> int:
        return int(self._id_of_code[ord(character)])

    def encode(self, text: str) -> NDArray[np.uint8]:
        """Token ids of `text`, which may hold the display characters of mask and padding."""
        codes = np.frombuffer(text.encode("latin-1", errors="replace"), dtype=np.uint8)
        ids = self._id_of_code[codes]
        if (ids == _ABSENT).any():
            stranger = text[int(np.argmax(ids == _ABSENT))]
            raise HardtailError(f"{stranger!r} is not one of the characters {self.characters!r}")
        return ids

    def encode_codes(self, codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Token ids of an array of ASCII codes, any shape; the codes must all be in the vocabulary."""
        return self._id_of_code[codes]

    def decode(self, tokens: NDArray[np.integer]) -> str:
        return self._code_of_id[tokens].tobytes().decode("ascii")
