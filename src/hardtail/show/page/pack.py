"""Arrays in a page: one gzipped block of bytes as base64 text; JSON says where each array starts."""

import base64
import gzip
from typing import Any

import numpy as np

from hardtail.core.types import Array, Tokens

_ALIGN = 4
"""A browser's typed arrays begin at multiples of their element's size."""


class PackedArrays:
    """Collects arrays. JSON holds what `add` returns instead of the array; `web/data.js` reads it."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def add(self, array: Array, kind: str) -> dict[str, Any]:
        """Append an array, flat, as unsigned (`u1`, `u2`, `u4`) or signed (`i2`) little-endian numbers."""
        raw = np.ascontiguousarray(array, dtype=f"<{kind}").tobytes()
        place = {"at": len(self._bytes), "n": int(array.size), "type": kind}
        self._bytes += raw + bytes(-len(raw) % _ALIGN)
        return place

    def add_tokens(self, token: Tokens) -> dict[str, Any]:
        """Append token ids, in one byte each if they come so."""
        return self.add(token, "u1" if token.dtype == np.uint8 else "u4")

    def add_shares(self, array: Array) -> dict[str, Any]:
        """Append numbers from 0 to 1, rounded to multiples of 1/65,535: finer than they are ever printed."""
        return self.add(np.rint(np.clip(array, 0.0, 1.0) * 65535.0), "u2")

    def text(self) -> str:
        return base64.b64encode(gzip.compress(self._bytes, mtime=0)).decode("ascii")
