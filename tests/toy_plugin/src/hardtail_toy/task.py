"""The running parity of a bit string, each cell waiting for the one before it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from hardtail import HardtailError, Instances
from hardtail.core.seeds import below, words
from hardtail.core.vocabulary import Vocabulary
from hardtail.tasks.base import Part, Task
from hardtail.tasks.parts import Look, Roles, Words
from hardtail.tasks.strata import Stratum

if TYPE_CHECKING:
    from rich.text import Text

ROLES = ("keep", "flip")
"""What a bit does to the parity before it."""


@dataclass(frozen=True)
class Parity(Task):
    """Running parity of `bits` bits, stratified by how many of them are set."""

    name: ClassVar[str] = "parity"
    axes: ClassVar[tuple[str, ...]] = ("ones",)
    order_names: ClassVar[tuple[str, ...]] = ("left_to_right",)
    words: ClassVar[Words] = Words("strings", "bit", instruction="Write for each bit the parity of all bits up to it.")
    bits: int = 16
    vocabulary = Vocabulary("01=")

    @property
    def seq_len(self) -> int:
        return 2 * self.bits + 1

    @property
    def answer_len(self) -> int:
        return self.bits

    def strata(self) -> list[str]:
        return ["natural", "ones>=10"]

    def splits(self) -> Mapping[str, Sequence[Part]]:
        return {"train": [Part("natural", 1000)], "test": [Part("natural", 100)]}

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        return self._instances(below(words(key_N, self.bits), 2))

    def parse(self, prompts: Sequence[str]) -> Instances:
        for prompt in prompts:
            if len(prompt) != self.bits or set(prompt) - set("01"):
                raise HardtailError(f"parity: {prompt!r} is not {self.bits} bits")
        return self._instances(np.array([[int(bit) for bit in prompt] for prompt in prompts]))

    def _instances(self, bit_NA: NDArray[np.int64]) -> Instances:
        n, cells = bit_NA.shape
        separator = np.full((n, 1), self.vocabulary.id("="))
        everywhere = np.ones((n, cells), dtype=np.bool_)
        return Instances(
            tokens_NL=np.concatenate([bit_NA, separator, bit_NA.cumsum(axis=1) % 2], axis=1).astype(np.uint8),
            prompt_len_N=np.full(n, cells + 1, dtype=np.int32),
            maskable_NA=everywhere,
            scored_NA=everywhere,
            orders={"left_to_right": np.tile(np.arange(cells, dtype=np.int8), (n, 1))},
            parents_NAE=np.tile(np.arange(-1, cells - 1, dtype=np.int8), (n, 1))[:, :, None],
            strata={"ones": bit_NA.sum(axis=1)},
        )

    def drawing(self, one: Instances, look: Look) -> "Text":
        from rich.text import Text

        text = Text(f"bits    {self.render(one)[0]}\nparity  ")
        for cell in range(self.bits):
            text.append(*look(cell))
        return text

    def roles(self, instances: Instances) -> Roles:
        return Roles(ROLES, instances.tokens_NL[:, : self.bits].astype(np.uint8))

    @classmethod
    def profile_type(cls) -> type[Any]:
        from .profile import Profile

        return Profile
