"""Arrays inside a page: all in one gzipped block of bytes, as base64 text; JSON says where each array starts."""

import base64
import gzip
from typing import Any

import numpy as np

from hardtail.core.types import Array

_TYPES = {"u1": np.uint8, "u2": np.uint16, "u4": np.uint32, "i2": np.int16}
_ALIGN = 4
"""A browser's typed arrays begin at multiples of their element's size."""


class Pack:
    """Collects arrays. JSON holds what `add` returns in place of the array; `web/data.js` reads it."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._at = 0

    def add(self, array: Array, kind: str) -> dict[str, Any]:
        """Append an array, flat, as unsigned (`u1`, `u2`, `u4`) or signed (`i2`) little-endian numbers."""
        raw = np.ascontiguousarray(array, dtype=np.dtype(_TYPES[kind]).newbyteorder("<")).tobytes()
        place = {"at": self._at, "n": int(array.size), "type": kind}
        padded = raw + bytes(-len(raw) % _ALIGN)
        self._parts.append(padded)
        self._at += len(padded)
        return place

    def add_shares(self, array: Array) -> dict[str, Any]:
        """Append numbers from 0 to 1 in steps of 1/65,535: finer than they are ever printed."""
        return self.add(np.rint(np.clip(array, 0.0, 1.0) * 65535.0), "u2")

    def text(self) -> str:
        return base64.b64encode(gzip.compress(b"".join(self._parts), mtime=0)).decode("ascii")
