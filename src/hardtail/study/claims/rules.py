"""The rules that give verdicts; `docs/claims.md` explains them in words."""

from abc import abstractmethod
from dataclasses import dataclass
from math import log10
from typing import ClassVar

from hardtail.measuring.statistics import Interval, wilson
from hardtail.study.claims.base import Cell, Check, Finding, Verdict, common_seeds
from hardtail.study.claims.differences import contrast, log_ratio
from hardtail.study.claims.evidence import Estimate, Results

NEAR = 0.05
"""Tolerance of levels, in shares."""
SLACK = 0.02
"""Tolerance of bounds, in shares."""
STRONG = 0.5
"""The part of the paper's effect that counts as one of its size."""
REPAIRED = 0.9
"""The part of the paper's recovery that counts as one."""
FEW, HALF = 0.25, 0.5
"""The shares of failures up to which a recovery is none, or weak."""
FAILING = 0.05
"""Failures below this share leave nothing to recover."""
EPSILON = 1e-9
"""What rounding may add to a difference."""


def near_rate(rate: float) -> float:
    """Tolerance of a failure rate: half of it, within limits, so that ten times as many failures are not near."""
    return min(max(rate / 2, 0.01), NEAR)


# -- one figure -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OneFigure(Check):
    """A rule about a single figure."""

    cell: Cell

    @property
    def cells(self) -> tuple[Cell, ...]:
        return (self.cell,)

    @property
    def told(self) -> float | None:
        return self.cell.paper

    def _found(self, results: Results) -> Finding:
        ours = self.cell.figure.estimate(results)
        assert ours is not None
        return Finding(self._verdict(ours), ours.text(), ours.seeds, mean=ours.mean)

    @abstractmethod
    def _verdict(self, ours: Estimate) -> Verdict: ...


@dataclass(frozen=True)
class Level(_OneFigure):
    """The figure is what the paper prints."""

    tolerance: float = NEAR

    @property
    def printed(self) -> str:
        return f"{self.target:.3g}"

    @property
    def target(self) -> float:
        assert self.cell.paper is not None
        return self.cell.paper

    def _verdict(self, ours: Estimate) -> Verdict:
        if abs(ours.mean - self.target) > self.tolerance + EPSILON:
            return Verdict.NOT
        theirs = Interval(self.target - self.tolerance / 2, self.target + self.tolerance / 2)
        if self.cell.n:
            theirs = wilson(round(self.target * self.cell.n), self.cell.n)
        low, high = (ours.mean, ours.mean) if ours.low is None or ours.high is None else (ours.low, ours.high)
        meet = low <= theirs.high + EPSILON and high >= theirs.low - EPSILON
        return Verdict.HOLDS if meet else Verdict.WEAKER


@dataclass(frozen=True)
class _Bound(_OneFigure):
    """The figure keeps a bound."""

    bound: float
    tolerance: float = SLACK
    mark: ClassVar[str]
    extreme: ClassVar[float]
    """The bound that only one value keeps."""

    @property
    def printed(self) -> str:
        return f"{'' if self.bound == self.extreme else self.mark}{self.bound:.3g}"

    def _verdict(self, ours: Estimate) -> Verdict:
        if self._missed(ours.mean) <= 0:
            return Verdict.HOLDS
        if self._missed(ours.mean) > self.tolerance + EPSILON:
            return Verdict.NOT
        reached = any(edge is not None and self._missed(edge) <= 0 for edge in (ours.low, ours.high))
        return Verdict.HOLDS if reached else Verdict.WEAKER

    @abstractmethod
    def _missed(self, value: float) -> float:
        """By how much a value is on the wrong side."""


class AtLeast(_Bound):
    mark, extreme = "≥ ", 1.0

    def _missed(self, value: float) -> float:
        return self.bound - value


class AtMost(_Bound):
    mark, extreme = "≤ ", 0.0

    def _missed(self, value: float) -> float:
        return value - self.bound


# -- several figures ---------------------------------------------------------------------------------------------


def of_effect(ours: Estimate, paper: float | None) -> Verdict:
    """The verdict on a difference that the paper has with this size; with an unknown one, or with the other sign."""
    if ours.mean <= 0:
        return Verdict.NOT
    sized = paper is not None and paper > 0
    strong = paper is not None and sized and ours.mean >= STRONG * paper - EPSILON
    if ours.low is None:  # one seed of something that is no share: its size, or else its sign, is all there is
        return Verdict.HOLDS if strong else Verdict.NOT if sized else Verdict.WEAKER
    clear = ours.low > 0
    return (Verdict.NOT, Verdict.WEAKER, Verdict.HOLDS)[clear + (strong if sized else clear)]


def signed(ours: Estimate) -> str:
    """A difference with its interval."""
    around = "" if ours.low is None or ours.high is None else f" [{ours.low:+.3f}, {ours.high:+.3f}]"
    return f"{ours.mean:+.3f}{around}"


@dataclass(frozen=True)
class _Contrast(Check):
    """A rule about some figures against others."""

    plus: tuple[Cell, ...]
    minus: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.plus + self.minus


@dataclass(frozen=True)
class _Difference(_Contrast):
    """A rule about the sum of some figures less that of others; each cell has its own number in the paper."""

    difference = True

    @property
    def effect(self) -> float | None:
        """The difference in the paper."""
        if any(cell.paper is None for cell in self.cells):
            return None
        return sum(cell.paper or 0.0 for cell in self.plus) - sum(cell.paper or 0.0 for cell in self.minus)

    @property
    def told(self) -> float | None:
        return self.effect

    @property
    def about(self) -> str:
        plus, minus = (_joined(cells, " + ") for cells in (self.plus, self.minus))
        return f"{f'({plus})' if len(self.plus) > 1 else plus} − {f'({minus})' if len(self.minus) > 1 else minus}"

    def _found(self, results: Results) -> Finding:
        ours = contrast(self.plus, self.minus, results)
        return Finding(self._verdict(ours), signed(ours), ours.seeds, mean=ours.mean)

    @abstractmethod
    def _verdict(self, ours: Estimate) -> Verdict: ...


@dataclass(frozen=True)
class Gap(_Difference):
    """The first figures are greater than the second in sum."""

    @property
    def printed(self) -> str:
        return "greater" if self.effect is None else f"{self.effect:+.3f}"

    def _verdict(self, ours: Estimate) -> Verdict:
        return of_effect(ours, self.effect)


@dataclass(frozen=True)
class Similar(_Difference):
    """Two figures are nearly the same."""

    margin: float = NEAR

    @property
    def printed(self) -> str:
        return "the same" if self.effect is None else f"{self.plus[0].paper:.3g} ≈ {self.minus[0].paper:.3g}"

    def _verdict(self, ours: Estimate) -> Verdict:
        if abs(ours.mean) <= self.margin + EPSILON:
            return Verdict.HOLDS
        return Verdict.WEAKER if abs(ours.mean) <= 2 * self.margin + EPSILON else Verdict.NOT


def above(greater: Cell, less: Cell) -> Gap:
    return Gap((greater,), (less,))


def similar(one: Cell, other: Cell, margin: float = NEAR) -> Similar:
    return Similar((one,), (other,), margin)


@dataclass(frozen=True)
class Ratio(_Contrast):
    """The first figures (or failure rates) are this many times the second."""

    times: float
    failures: bool = False

    @property
    def about(self) -> str:
        words = f"{_joined(self.plus, ' × ')} ÷ {_joined(self.minus, ' × ')}"
        return f"failures of {words}" if self.failures else words

    @property
    def printed(self) -> str:
        return f"{self.times:.3g} times"

    def _found(self, results: Results) -> Finding:
        ours = log_ratio(self.plus, self.minus, results, failures=self.failures)
        around = "" if ours.low is None or ours.high is None else f" [{10**ours.low:.3g}, {10**ours.high:.3g}]"
        return Finding(of_effect(ours, log10(self.times)), f"{10**ours.mean:.3g} times{around}", ours.seeds)


def _joined(cells: tuple[Cell, ...], mark: str) -> str:
    return mark.join(cell.figure.label for cell in cells)


# -- two decoding orders of one model ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _TwoOrders(Check):
    """A rule about one model under two decoding orders."""

    before: Cell
    after: Cell

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
        assert self.before.paper is not None
        assert self.after.paper is not None
        return self.before.paper, self.after.paper

    @property
    def theirs(self) -> float:
        """The share of failures that are repaired in the paper."""
        before, after = self.paper
        return repaired(before, after - before)

    def _found(self, results: Results) -> Finding:
        gain = contrast((self.after,), (self.before,), results)
        seeds, values = common_seeds(self.cells, results), self.before.figure.values(results)
        before = sum(values[seed].value for seed in seeds) / len(seeds)
        share = repaired(before, gain.mean)
        verdict, remark = self._verdict(before, gain, share)
        ours = f"{before:.3f} → {before + gain.mean:.3f}, {signed(gain)}"
        remark = remark or f"{share:.0%} of failures repaired, {self.theirs:.0%} in the paper"
        return Finding(verdict, ours, gain.seeds, remark)

    @abstractmethod
    def _verdict(self, before: float, gain: Estimate, share: float) -> tuple[Verdict, str]:
        """The verdict where this share of failures is repaired, and a remark instead of the usual one."""


def repaired(before: float, gain: float) -> float:
    """The share of failures that another order repairs; 0 where nothing fails."""
    return gain / (1 - before) if before < 1 else 0.0


@dataclass(frozen=True)
class Recovery(_TwoOrders):
    """The second order repairs what fails under the first."""

    def _verdict(self, before: float, gain: Estimate, share: float) -> tuple[Verdict, str]:
        remark = "" if before < 1 else "nothing fails: there is nothing to repair"
        as_gap = of_effect(gain, self.paper[1] - self.paper[0])
        if as_gap is Verdict.NOT or share < HALF * self.theirs:
            return Verdict.NOT, remark
        full = as_gap is Verdict.HOLDS and share >= REPAIRED * self.theirs - EPSILON
        return (Verdict.HOLDS if full else Verdict.WEAKER), remark


@dataclass(frozen=True)
class Unrecovered(_TwoOrders):
    """The second order repairs little of what fails under the first."""

    def _verdict(self, before: float, gain: Estimate, share: float) -> tuple[Verdict, str]:
        if 1 - before < FAILING:
            return Verdict.NOT, f"only {1 - before:.1%} fail: there is nothing to leave unrepaired"
        fails_like_theirs = 1 - before >= STRONG * (1 - self.paper[0]) - EPSILON
        if share <= FEW and fails_like_theirs:
            return Verdict.HOLDS, ""
        return (Verdict.WEAKER if share <= HALF else Verdict.NOT), ""
