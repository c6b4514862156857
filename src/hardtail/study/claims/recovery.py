"""The rules about one model under two decoding orders: does the second repair what fails under the first?"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from hardtail.study.claims.base import Cell, Check, Finding, Verdict, common_seeds, moot_because
from hardtail.study.claims.differences import contrast
from hardtail.study.claims.evidence import ENOUGH, Estimate, Results, cases, mean_of
from hardtail.study.claims.rules import AT_THE_FLOOR, EPSILON, FLOOR, SLACK, STRONG, of_effect, printed_number

REPAIRED = 0.9  # a recovery is full from this part of the paper's recovery
FEW, HALF = 0.25, 0.5  # up to these shares of repaired failures there is no recovery, or a weak one
FAILING = 0.05  # fewer failures than this share are no failure that an order could leave unrepaired


@dataclass(frozen=True)
class _TwoOrders(Check):
    """A rule about one model under two decoding orders."""

    before: Cell
    after: Cell
    least: ClassVar[float] = 0.0
    """The share that must fail."""
    above_floor: ClassVar[bool] = False
    """Whether one of the orders must get something right, so that a repair could be seen at all."""

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.before, self.after

    @property
    def about(self) -> str:
        return f"{self.before.figure.label} → {self.after.figure.label}"

    @property
    def printed(self) -> str:
        before, after = self.paper
        return f"{before:.3g} → {after:.3g}"

    @property
    def paper(self) -> tuple[float, float]:
        return printed_number(self.before), printed_number(self.after)

    @property
    def repaired_in_paper(self) -> float:
        before, after = self.paper
        return repaired(before, after - before)

    def _found(self, results: Results) -> Finding:
        gain = contrast((self.after,), (self.before,), results)
        seeds, values = common_seeds(self.cells, results), self.before.figure.values(results)
        held = [values[seed] for seed in seeds]
        before, share = mean_of(held), repaired(mean_of(held), gain.mean)
        ours = f"{before:.3f} → {before + gain.mean:.3f}, {gain.text(signed=True)}"
        failures = round((1 - before) * (cases(held) or 0))
        if failures < ENOUGH or 1 - before < self.least:
            few = f"only {failures:,} fail" if failures else "nothing fails"
            return moot_because(f"{few} that the order could repair", ours, gain.seeds)
        if self.above_floor and max(before, before + gain.mean) <= FLOOR:
            return moot_because(AT_THE_FLOOR, ours, gain.seeds)
        remark = f"{share:.0%} of failures repaired, {self.repaired_in_paper:.0%} in the paper"
        return Finding(self._verdict(before, gain, share), ours, gain.seeds, remark)

    @abstractmethod
    def _verdict(self, before: float, gain: Estimate, share: float) -> Verdict:
        """The verdict if this share of failures is repaired."""


def repaired(before: float, gain: float) -> float:
    """The share of failures that another order repairs; 0 if nothing fails."""
    return gain / (1 - before) if before < 1 else 0.0


@dataclass(frozen=True)
class Recovery(_TwoOrders):
    """The second order repairs what fails under the first, up to a level where the paper names one."""

    at_least: float | None = None

    def _verdict(self, before: float, gain: Estimate, share: float) -> Verdict:
        as_gap = of_effect(gain, self.paper[1] - self.paper[0])
        if as_gap is Verdict.NOT or share < HALF * self.repaired_in_paper:
            return Verdict.NOT
        reached = self.at_least is None or before + gain.mean >= self.at_least - SLACK
        full = as_gap is Verdict.HOLDS and share >= REPAIRED * self.repaired_in_paper - EPSILON
        return Verdict.HOLDS if full and reached else Verdict.WEAKER


class Unrecovered(_TwoOrders):
    """The second order repairs little of what fails under the first."""

    least, above_floor = FAILING, True

    def _verdict(self, before: float, gain: Estimate, share: float) -> Verdict:
        if share <= FEW and 1 - before >= STRONG * (1 - self.paper[0]) - EPSILON:
            return Verdict.HOLDS
        return Verdict.WEAKER if share <= HALF else Verdict.NOT
