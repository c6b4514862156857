"""The rules of our own claims: thresholds, most of them set before anything was measured at size."""

from abc import abstractmethod
from dataclasses import dataclass

from hardtail.study.claims.base import Cell, Check, Finding, Verdict, common_seeds, moot_because
from hardtail.study.claims.evidence import Results, mean_of
from hardtail.study.claims.rules import AT_THE_FLOOR, EPSILON, FLOOR


@dataclass(frozen=True)
class _Two(Check):
    """A rule about one figure next to another, over the seeds that both were measured with."""

    cell: Cell
    other: Cell

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.cell, self.other

    def _found(self, results: Results) -> Finding:
        seeds = common_seeds(self.cells, results)
        values = [cell.figure.values(results) for cell in self.cells]
        one, two = (mean_of([held[seed] for seed in seeds]) for held in values)
        ours = f"{one:.4g} against {two:.4g}"
        if nothing := self._nothing(one, two):
            return moot_because(nothing, ours, len(seeds))
        return Finding(self._verdict(one, two), ours, len(seeds), mean=one)

    def _nothing(self, one: float, two: float) -> str:
        """Why these figures say nothing; empty if they say something."""
        return ""

    @abstractmethod
    def _verdict(self, one: float, two: float) -> Verdict: ...


@dataclass(frozen=True)
class NotBelow(_Two):
    """The first share is at least `times` the second; weaker if it falls short by at most `slack`."""

    times: float = 1.0
    slack: float = 0.01

    @property
    def printed(self) -> str:
        return f"≥ {self.times:g} ×" if self.times != 1 else "not lower"

    def _nothing(self, one: float, two: float) -> str:
        return AT_THE_FLOOR if max(one, two) <= FLOOR else ""

    def _verdict(self, one: float, two: float) -> Verdict:
        short = self.times * two - one
        return Verdict.HOLDS if short <= EPSILON else Verdict.WEAKER if short <= self.slack else Verdict.NOT


@dataclass(frozen=True)
class NotAbove(_Two):
    """The first figure is at most `times` the second."""

    times: float = 1.0

    @property
    def printed(self) -> str:
        return f"≤ {self.times:g} ×"

    def _verdict(self, one: float, two: float) -> Verdict:
        return Verdict.HOLDS if one <= self.times * two + EPSILON else Verdict.NOT


@dataclass(frozen=True)
class BetterWhereLow(_Two):
    """The first figure is greater than the second wherever the second is below `low`."""

    low: float = 0.9

    @property
    def printed(self) -> str:
        return f"greater where below {self.low:g}"

    def _verdict(self, one: float, two: float) -> Verdict:
        return Verdict.HOLDS if two >= self.low or one > two else Verdict.NOT
