"""The problems that an evaluation measures on: drawn ones, or those of a file. All that differs between the two.

Shapes: N instances.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Instances
from hardtail.measuring.choices import DEFAULT_N, measured_instances
from hardtail.measuring.given import GivenProblems
from hardtail.measuring.subject import ModelOrigin
from hardtail.tasks.base import Task

Inside = Mapping[str, NDArray[np.bool_]]
"""For each stratum, which instances are in it."""


class Problems(ABC):
    """The problems of every stratum, and which of them are decoded together."""

    @abstractmethod
    def origin(self, model: ModelOrigin) -> ModelOrigin:
        """Where a model comes from, with where the problems do."""

    @abstractmethod
    def distinct(self, strata: Sequence[str]) -> list[str]:
        """The strata to measure on if a user named none: those that have problems of their own."""

    @abstractmethod
    def together(self, strata: Sequence[str]) -> Iterator[tuple[Instances, Inside]]:
        """Problems to decode at once, and the strata that they are in; impossible strata are refused at the first."""

    @abstractmethod
    def counts(self, strata: Sequence[str]) -> tuple[int, int]:
        """How many problems each policy decodes, and how many there are in the strata, where one may be in several."""


@dataclass(frozen=True)
class Drawn(Problems):
    task: Task
    each: int
    seed: int

    def origin(self, model: ModelOrigin) -> ModelOrigin:
        return replace(model, data_seed=self.seed)

    def distinct(self, strata: Sequence[str]) -> list[str]:
        return list(strata)

    def together(self, strata: Sequence[str]) -> Iterator[tuple[Instances, Inside]]:
        for stratum in strata[1:]:  # the first is drawn at once anyway
            measured_instances(self.task, stratum, 1, self.seed)
        for stratum in strata:
            instances = measured_instances(self.task, stratum, self.each, self.seed)
            yield instances, {stratum: np.ones(len(instances), dtype=np.bool_)}

    def counts(self, strata: Sequence[str]) -> tuple[int, int]:
        return self.each * len(strata), self.each * len(strata)


@dataclass(frozen=True)
class OfFile(Problems):
    given: GivenProblems
    first: int | None
    """How many of each stratum; None for all."""

    def origin(self, model: ModelOrigin) -> ModelOrigin:
        return replace(model, data=self.given.file)

    def distinct(self, strata: Sequence[str]) -> list[str]:
        return self.given.distinct(strata, self.first)

    def together(self, strata: Sequence[str]) -> Iterator[tuple[Instances, Inside]]:
        yield self.given.together(strata, self.first)

    def counts(self, strata: Sequence[str]) -> tuple[int, int]:
        together, inside = self.given.together(strata, self.first)
        return len(together), sum(int(own_N.sum()) for own_N in inside.values())


def chosen_problems(task: Task, n: int | None, seed: int, given: GivenProblems | None) -> Problems:
    """The first `n` of the `given` problems of each stratum (by default all), or `n` drawn ones (by default
    `DEFAULT_N`)."""
    return Drawn(task, DEFAULT_N if n is None else n, seed) if given is None else OfFile(given, n)
