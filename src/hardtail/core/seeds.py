"""Named random streams: the same name and seed give the same bytes on any machine.

A stream is an endless sequence of 64-bit keys, one per instance. Everything about instance `i` is a function of key
`i`, so a data set does not depend on how it was split into chunks or on how many cores built it, and two streams with
different names have nothing in common (item `i` of seed `s` is not item `i-1` of seed `s+1`).

Shapes: N instances, W words drawn per instance.
"""

import hashlib
import reprlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError

GAMMA = 0x9E3779B97F4A7C15
MIX_1 = 0xBF58476D1CE4E5B9
MIX_2 = 0x94D049BB133111EB


@dataclass(frozen=True)
class Stream:
    """Keys `start`, `start + 1`, … of the stream `name` under `seed`."""

    name: str
    seed: int = 0
    start: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 64:  # records hold whole numbers of 64 bits
            raise HardtailError(
                f"the seed is {reprlib.repr(self.seed)}; it must not be negative and must be below 2^64"
            )

    def keys(self, n: int) -> NDArray[np.uint64]:
        """The next `n` keys. A stream has no state: asking twice gives the same keys."""
        digest = hashlib.sha256(self.name.encode()).digest()
        words = np.frombuffer(digest, dtype="<u4").tolist()
        bits = np.random.PCG64(np.random.SeedSequence([self.seed, *words]))
        bits.advance(self.start)
        return np.asarray(bits.random_raw(n), dtype=np.uint64)

    def skip(self, n: int) -> "Stream":
        """The same stream from `n` keys further on."""
        return replace(self, start=self.start + n)

    def child(self, name: str) -> "Stream":
        """An independent stream derived from this one."""
        return Stream(f"{self.name}/{name}", self.seed)


@dataclass(frozen=True)
class Streams:
    """All streams of one seed: `Streams(42).named("addition/test")`."""

    seed: int = 0

    def named(self, name: str) -> Stream:
        return Stream(name, self.seed)


def words(key_N: NDArray[np.uint64], count: int) -> NDArray[np.uint64]:
    """The first `count` random words of each key: splitmix64 (Steele, Lea & Flood 2014), vectorised.

    `tasks.rng` draws the same words one at a time inside compiled code.
    """
    step_W = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GAMMA)
    z = key_N[:, None] + step_W
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX_2)
    return z ^ (z >> np.uint64(31))


def below(word: NDArray[np.uint64], bound: int | NDArray[np.uint64]) -> NDArray[np.int64]:
    """Words as integers in [0, bound), by the high bits; the bias is below bound / 2³²."""
    return ((word >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32)).astype(np.int64)
