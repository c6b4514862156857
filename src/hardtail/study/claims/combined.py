"""Figures that combine several others: means of one scheme's, and shares over the failures of several schemes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hardtail.study.claims.evidence import LeftOut, Results, Sample, Schemes, Value
from hardtail.study.claims.figures import NO_SEED, NOTHING_FAILED, Figure, Profiled

PART_MISSING = "its seed lacks another part of the figure"
"""Why a record is left out of a figure that combines several."""


@dataclass(frozen=True)
class Combined(Figure):
    """A share that comes from several parts."""

    parts: tuple[Figure, ...]
    name: str

    share = True

    @property
    def label(self) -> str:
        return self.name

    @property
    def schemes(self) -> Schemes:
        return frozenset().union(*(part.schemes for part in self.parts))

    def left_out(self, results: Results) -> list[LeftOut]:
        barred = [run for part in self.parts for run in part.left_out(results)]
        counted = self.values(results)
        alone = [LeftOut(of.run, PART_MISSING) for of in self._of_parts(results) if of.seed not in counted]
        return barred + alone

    def samples(self, results: Results) -> list[Sample]:
        counted = self.values(results)
        return [sample for sample in self._of_parts(results) if sample.seed in counted]

    def _of_parts(self, results: Results) -> list[Sample]:
        return [sample for part in self.parts for sample in part.samples(results)]


@dataclass(frozen=True)
class Weighted(Combined):
    """The mean of several figures of one seed, each with its weight."""

    weights: tuple[float, ...]

    def beside(self) -> tuple[Figure, ...]:
        others = [part.beside() for part in self.parts]
        if not all(others):
            return ()
        return (replace(self, parts=tuple(other[0] for other in others), name=f"{self.name}, other reading"),)

    def why_missing(self, results: Results) -> str:
        return next((part.why_missing(results) for part in self.parts if not part.values(results)), NO_SEED)

    def values(self, results: Results) -> dict[int, Value]:
        by_part = [part.values(results) for part in self.parts]
        found = {}
        for seed in sorted(set.intersection(*map(set, by_part))):
            held = [values[seed] for values in by_part]
            total = sum(weight * value.value for weight, value in zip(self.weights, held, strict=True))
            found[seed] = Value(total / sum(self.weights), self._cases([value.n for value in held]))
        return found

    def _cases(self, counts: Sequence[int | None]) -> int | None:
        """The cases of a plain mean that would be known as well as this one."""
        if not all(counts):
            return None
        return round(sum(self.weights) ** 2 / sum(w * w / n for w, n in zip(self.weights, counts, strict=True) if n))


@dataclass(frozen=True)
class Pooled(Combined):
    """A share over the failures of several schemes together; a scheme without failures adds nothing."""

    parts: tuple[Profiled, ...]

    def beside(self) -> tuple[Figure, ...]:
        return tuple(other for part in self.parts for other in part.beside())

    def why_missing(self, results: Results) -> str:
        usual = NOTHING_FAILED if self._diagnosed(results) else NO_SEED
        return next((part.why_missing(results) for part in self.parts if not part.diagnosed(results)), usual)

    def values(self, results: Results) -> dict[int, Value]:
        by_part = [part.values(results) for part in self.parts]
        pooled = {}
        for seed in sorted(self._diagnosed(results)):
            held = [values[seed] for values in by_part if seed in values]
            if total := sum(value.n or 0 for value in held):
                pooled[seed] = Value(sum(value.value * (value.n or 0) for value in held) / total, total)
        return pooled

    def _diagnosed(self, results: Results) -> set[int]:
        """The seeds for which all parts were diagnosed."""
        return set.intersection(*(part.diagnosed(results) for part in self.parts))
