"""The nouns that rooms hand to each other: frozen dataclasses of arrays.

Shapes: N instances, L sequence, A answer cells, E parents a cell can have.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.errors import HardtailError

Array = NDArray[Any]


@dataclass(frozen=True)
class Instances:
    """`N` problems of one task, gold answers and annotations included, ready for a GPU.

    Answer cell `a` of instance `n` is the token at `prompt_len_N[n] + a`; what follows the answer is padding.
    `tokens_NL`    prompt, gold answer, padding
    `maskable_NA`  the answer cells that are ever hidden
    `scored_NA`    the answer cells that exact match compares
    `orders`       logical-flow ranks by name: lower first, equal is a tie, -1 is never hidden
    `parents_NAE`  the answer cells whose values a cell logically waits for; -1 pads; None where not annotated
    `strata`       one value per instance and axis of difficulty
    `extras`       the task's own arrays that its diagnosis needs
    """

    tokens_NL: NDArray[np.uint8]
    prompt_len_N: NDArray[np.int32]
    maskable_NA: NDArray[np.bool_]
    scored_NA: NDArray[np.bool_]
    orders: Mapping[str, Array] = field(default_factory=dict)
    parents_NAE: Array | None = None
    strata: Mapping[str, Array] = field(default_factory=dict)
    extras: Mapping[str, Array] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.tokens_NL)

    @property
    def answer_len(self) -> int:
        return self.maskable_NA.shape[1]

    @property
    def answer_at_NA(self) -> NDArray[np.int64]:
        """Where each answer cell sits in the sequence."""
        return self.prompt_len_N[:, None].astype(np.int64) + np.arange(self.answer_len)

    @property
    def answer_NA(self) -> NDArray[np.uint8]:
        """The gold answer tokens."""
        return np.take_along_axis(self.tokens_NL, self.answer_at_NA, axis=1)

    def answer(self, i: int) -> NDArray[np.uint8]:
        """The gold answer tokens of instance `i`."""
        return self.tokens_NL[i, self.prompt_len_N[i] :][: self.answer_len]

    def prompt(self, i: int) -> NDArray[np.uint8]:
        """The prompt tokens of instance `i`, without padding."""
        return self.tokens_NL[i, : self.prompt_len_N[i]]

    def take(self, index: slice | Array) -> "Instances":
        """The instances at `index` (a slice, indices or a boolean mask)."""
        return self._map(lambda array: array[index])

    def bare(self) -> "Instances":
        """Tokens and masks only: what plain training needs, a fraction of the size."""
        return Instances(self.tokens_NL, self.prompt_len_N, self.maskable_NA, self.scored_NA)

    def arrays(self) -> dict[str, Array]:
        """Every array under a flat name, in a fixed order; `from_arrays` is the inverse."""
        flat: dict[str, Array] = {name: getattr(self, name) for name in _PLAIN}
        if self.parents_NAE is not None:
            flat["parents_NAE"] = self.parents_NAE
        for group in _GROUPS:
            members: Mapping[str, Array] = getattr(self, group)
            flat.update({f"{group}/{name}": members[name] for name in sorted(members)})
        return flat

    @classmethod
    def from_arrays(cls, flat: Mapping[str, Array]) -> "Instances":
        if missing := [name for name in _PLAIN if name not in flat]:
            raise HardtailError(f"not a set of instances: the array {missing[0]!r} is missing")
        groups: dict[str, dict[str, Array]] = {group: {} for group in _GROUPS}
        for name, array in flat.items():
            group, slash, member = name.partition("/")
            if slash:
                groups[group][member] = array
        tokens_NL, prompt_len_N, maskable_NA, scored_NA = (flat[name] for name in _PLAIN)
        return cls(
            tokens_NL,
            prompt_len_N,
            maskable_NA,
            scored_NA,
            parents_NAE=flat.get("parents_NAE"),
            orders=groups["orders"],
            strata=groups["strata"],
            extras=groups["extras"],
        )

    @classmethod
    def concat(cls, parts: Sequence["Instances"]) -> "Instances":
        """The parts one after another; they must come from one task configuration."""
        flats = [part.arrays() for part in parts]
        return cls.from_arrays({name: np.concatenate([flat[name] for flat in flats]) for name in flats[0]})

    def _map(self, change: Callable[[Array], Array]) -> "Instances":
        return Instances.from_arrays({name: change(array) for name, array in self.arrays().items()})


_PLAIN = ("tokens_NL", "prompt_len_N", "maskable_NA", "scored_NA")
_GROUPS = ("orders", "strata", "extras")
