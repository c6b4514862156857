"""A task with more tokens than a byte can count: running sums of words that name numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from hardtail import HardtailError, Instances
from hardtail.core.seeds import below, words
from hardtail.core.vocabulary import Vocabulary
from hardtail.schemes import Random
from hardtail.tasks.base import Part, Task
from hardtail.tasks.strata import Stratum
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Recipe, Sizes, Watch

NUMBERS = 300


@dataclass(frozen=True)
class RunningSums(Task):
    """Four words, `n0` to `n299`; each word of the answer is the sum so far, modulo 300."""

    name: ClassVar[str] = "running-sums"
    axes: ClassVar[tuple[str, ...]] = ("high",)
    order_names: ClassVar[tuple[str, ...]] = ("left",)
    vocabulary = Vocabulary([*(f"n{number}" for number in range(NUMBERS)), "="], pad="PAD", mask="MASK")
    seq_len, answer_len = 9, 4

    def strata(self) -> list[str]:
        return ["natural", "high>=3"]

    def splits(self) -> Mapping[str, Sequence[Part]]:
        return {"train": [Part("natural", 1000)], "test": [Part("natural", 100)]}

    def propose(self, key_N: NDArray[np.uint64], stratum: Stratum) -> Instances:
        return self._instances(below(words(key_N, 4), NUMBERS))

    def parse(self, prompts: Sequence[str]) -> Instances:
        rows = [self.vocabulary.encode(prompt) for prompt in prompts]
        if any(len(row) != 4 or (row >= NUMBERS).any() for row in rows):
            raise HardtailError("running-sums: a problem is four words, for example n17 n299 n3 n0")
        return self._instances(np.array(rows, dtype=np.int64).reshape(-1, 4))

    def _instances(self, number_NA: NDArray[np.int64]) -> Instances:
        n, all_NA = len(number_NA), np.ones(number_NA.shape, dtype=np.bool_)
        equals = np.full((n, 1), self.vocabulary.id("="))
        tokens_NL = np.concatenate([number_NA, equals, number_NA.cumsum(axis=1) % NUMBERS], axis=1)
        return Instances(
            tokens_NL=tokens_NL.astype(self.vocabulary.dtype),
            prompt_len_N=np.full(n, 5, dtype=np.int32),
            maskable_NA=all_NA,
            scored_NA=all_NA,
            orders={"left": np.tile(np.arange(4, dtype=np.int8), (n, 1))},
            parents_NAE=np.tile(np.arange(-1, 3, dtype=np.int8), (n, 1))[:, :, None],
            strata={"high": (number_NA >= 256).sum(axis=1)},
        )


def recipe() -> Recipe:
    """A second on a CPU."""
    return Recipe(
        task=RunningSums(),
        scheme=Random(),
        sizes=Sizes(1, 2, 32, dropout=0.0),
        optimiser=AdamW(warmup=2, ema=0.9),
        watch=Watch(log_every=2, eval_every=4, gen_every=4, save_every=4, probe_size=20, decoded=4, hard="high>=1"),
        steps=4,
        batch=16,
        train_size=100,
        name="running-sums",
    )
