"""Random numbers on the device, a pure function of seed, step and name: nothing to save, nothing to wait for.

The same numbers come out on a CPU and on a GPU, inside a captured graph or outside, before and after a resume.

Shapes: B rows of a batch, L sequence.
"""

import zlib
from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.core.seeds import GAMMA, MIX_1, MIX_2

SHUFFLE_ROUNDS = 16


def signed(word: int) -> int:
    """A 64-bit word as the two's complement number that torch's int64 holds."""
    return word - (1 << 64) if word >= 1 << 63 else word


_MIX_1, _MIX_2 = signed(MIX_1), signed(MIX_2)


def _right(word: Tensor, bits: int) -> Tensor:
    """A logical shift to the right; torch's own keeps the sign."""
    return (word >> bits) & ((1 << (64 - bits)) - 1)


def mix(word: Tensor) -> Tensor:
    """splitmix64's output function on int64 tensors, whose products wrap."""
    word = (word ^ _right(word, 30)) * _MIX_1
    word = (word ^ _right(word, 27)) * _MIX_2
    return word ^ _right(word, 31)


def unit(word: Tensor) -> Tensor:
    """Words as float32 in (0, 1): 23 random bits, in the middle of their interval, so that neither 0 nor 1 occurs."""
    return (_right(word, 41).float() + 0.5) * 2.0**-23


def gumbel(unit: Tensor) -> Tensor:
    """Standard Gumbel noise from uniform numbers in (0, 1): the largest of log p + noise is a draw from p."""
    return -(-unit.log()).log()


def stream(name: str) -> int:
    """The number of a named stream of words, computed once at import, as compiled code cannot hash names."""
    return zlib.crc32(name.encode())


@dataclass(frozen=True)
class Moment:
    """One training step: which one, of how many, and its random numbers."""

    seed: int
    step: Tensor
    """Counts from 0: an int64 on the device, so that a captured graph advances with it."""
    steps: int

    def words(self, stream: int, *shape: int) -> Tensor:
        """Random int64 words; another stream (a number from `stream`) gives independent ones."""
        salt = signed((stream << 32) ^ self.seed)
        key = mix(mix(self.step + salt) + salt)
        index = torch.arange(torch.Size(shape).numel(), device=self.step.device)
        return mix(mix(key + index) ^ key).reshape(shape)

    def uniform(self, stream: int, *shape: int) -> Tensor:
        """Uniform float32 in (0, 1)."""
        return unit(self.words(stream, *shape))


def shuffled(index_B: Tensor, count: int, key: Tensor) -> Tensor:
    """Where a keyed permutation of 0 … count-1 sends each index: swap-or-not (Hoang, Morris & Rogaway 2012).

    It needs no table, so an epoch's order costs nothing to redraw and nothing to save.
    """
    for turn in range(SHUFFLE_ROUNDS):
        round_key = mix(key + signed((turn + 1) * GAMMA % (1 << 64)))
        partner_B = (_right(round_key, 1) % count - index_B) % count
        swap_B = (mix(torch.maximum(index_B, partner_B) + round_key) & 1).bool()
        index_B = torch.where(swap_B, partner_B, index_B)
    return index_B


def row_keys(tokens_BL: Tensor, prompt_len_B: Tensor, seed: int) -> Tensor:
    """A random word per instance from the seed and the problem's tokens, whatever its place in the batch."""
    position_L = torch.arange(tokens_BL.shape[1], device=tokens_BL.device)
    place_L = mix(mix(torch.full_like(position_L, seed)) + position_L)
    word_BL = mix(mix(tokens_BL + place_L) ^ place_L)
    return mix(word_BL.masked_fill(position_L >= prompt_len_B[:, None], 0).sum(dim=1))
