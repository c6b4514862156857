"""splitmix64 inside compiled code: the words of `seeds.words`, one at a time.

The state is a `uint64[1]` array that starts at an instance's key.
"""

import numpy as np
from numpy.typing import NDArray

from hardtail.core import seeds
from hardtail.tasks.jit import jit

_GAMMA = np.uint64(seeds.GAMMA)
_MIX_1 = np.uint64(seeds.MIX_1)
_MIX_2 = np.uint64(seeds.MIX_2)
_S27, _S30, _S31, _S32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_S11 = np.uint64(11)

State = NDArray[np.uint64]


@jit
def next_word(state: State) -> np.uint64:
    state[0] += _GAMMA
    z = state[0]
    z = (z ^ (z >> _S30)) * _MIX_1
    z = (z ^ (z >> _S27)) * _MIX_2
    return z ^ (z >> _S31)


@jit
def below(state: State, bound: int) -> int:
    """A uniform integer in [0, bound); the bias is below bound / 2³²."""
    return np.int64(((next_word(state) >> _S32) * np.uint64(bound)) >> _S32)  # type: ignore[return-value]


@jit
def unit(state: State) -> float:
    """A uniform float in [0, 1) with 53 random bits."""
    return np.float64(next_word(state) >> _S11) * (1.0 / 9007199254740992.0)


@jit
def shuffle(state: State, items: NDArray[np.int64]) -> None:
    """Fisher–Yates, in place."""
    for i in range(items.size - 1, 0, -1):
        j = below(state, i + 1)
        items[i], items[j] = items[j], items[i]
