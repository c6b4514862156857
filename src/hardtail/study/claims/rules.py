"""The rules that give verdicts; `docs/claims.md` explains them in words."""

from abc import abstractmethod
from dataclasses import dataclass
from math import inf, log10
from typing import ClassVar

from hardtail.measuring.statistics import Interval, wilson
from hardtail.study.claims.base import Cell, Check, Finding, Verdict, moot_because
from hardtail.study.claims.differences import contrast, log_ratio
from hardtail.study.claims.evidence import ENOUGH, Estimate, Results

NEAR = 0.05  # tolerance of levels, in shares, away from 0 and 1
SLACK = 0.02  # tolerance of bounds, in shares, and the least one of levels
STRONG = 0.5  # an effect is strong from this part of the paper's effect
FLOOR = 0.01  # two shares up to this are alike because both are nothing
AT_THE_FLOOR = f"both are at most {FLOOR:g}, where everything is alike"
EPSILON = 1e-9  # what rounding may add to a difference


def near(share: float) -> float:
    """Tolerance of a share: half of its distance from 0 or 1, within limits, so that many times as many failures are
    not the same."""
    return min(max(min(share, 1 - share) / 2, SLACK), NEAR)


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
    def paper_number(self) -> float | None:
        return self.cell.paper

    def _found(self, results: Results) -> Finding:
        ours = self.cell.figure.estimate(results)
        assert ours is not None
        verdict, remark = self._verdict(ours), ""
        told = sorted(self.cell.figure.values(results).items())
        seeds = {seed: held.value for seed, held in told if held.n is None or held.n >= ENOUGH}
        if verdict is Verdict.HOLDS and ours.seeds > 1 and any(map(self._misses, seeds.values())):
            verdict = Verdict.WEAKER
            remark = f"the seeds disagree: {', '.join(f'{value:.3g} ({seed})' for seed, value in seeds.items())}"
        return Finding(verdict, ours.text(), ours.seeds, remark, mean=ours.mean)

    @abstractmethod
    def _verdict(self, ours: Estimate) -> Verdict:
        """The verdict on the mean and its interval."""

    @abstractmethod
    def _misses(self, value: float) -> bool:
        """Whether a figure is off by more than the tolerance."""


@dataclass(frozen=True)
class Level(_OneFigure):
    """The figure is what the paper prints."""

    given: float | None = None
    """The tolerance, if it is not the usual one."""

    @property
    def tolerance(self) -> float:
        if self.given is not None:
            return self.given
        return near(self.target) if self.cell.figure.share else NEAR

    @property
    def printed(self) -> str:
        return f"{self.target:.3g}"

    @property
    def target(self) -> float:
        return printed_number(self.cell)

    def _verdict(self, ours: Estimate) -> Verdict:
        if self._misses(ours.mean):
            return Verdict.NOT
        theirs = Interval(self.target - self.tolerance / 2, self.target + self.tolerance / 2)
        if self.cell.n:
            theirs = wilson(round(self.target * self.cell.n), self.cell.n)
        low, high = ours.interval or (ours.mean, ours.mean)
        meet = low <= theirs.high + EPSILON and high >= theirs.low - EPSILON
        return Verdict.HOLDS if meet else Verdict.WEAKER

    def _misses(self, value: float) -> bool:
        return abs(value - self.target) > self.tolerance + EPSILON


def printed_number(cell: Cell) -> float:
    assert cell.paper is not None
    return cell.paper


@dataclass(frozen=True)
class _Bound(_OneFigure):
    """The figure is within a bound."""

    bound: float
    tolerance: float = SLACK
    by_mean: bool = False
    """Whether an interval that reaches the bound does not help a mean that misses it."""
    mark: ClassVar[str]
    direction: ClassVar[int]
    """In which direction a value exceeds the bound."""
    extreme: ClassVar[float]
    """The bound that only one value meets."""

    @property
    def printed(self) -> str:
        return f"{'' if self.bound == self.extreme else self.mark}{self.bound:.3g}"

    def _verdict(self, ours: Estimate) -> Verdict:
        if self._misses(ours.mean):
            return Verdict.NOT
        ends = () if self.by_mean else ours.interval or ()
        kept = any(self._excess(value) <= 0 for value in (ours.mean, *ends))
        return Verdict.HOLDS if kept else Verdict.WEAKER

    def _misses(self, value: float) -> bool:
        return self._excess(value) > self.tolerance + EPSILON

    def _excess(self, value: float) -> float:
        return self.direction * (value - self.bound)


class AtLeast(_Bound):
    mark, direction, extreme = "≥ ", -1, 1.0


class AtMost(_Bound):
    mark, direction, extreme = "≤ ", 1, 0.0


# -- several figures ---------------------------------------------------------------------------------------------


def of_effect(ours: Estimate, paper: float | None) -> Verdict:
    """The verdict on a difference; `paper` is its size there, if it is known and has the claimed sign."""
    if ours.mean <= 0:
        return Verdict.NOT
    sized = paper is not None and paper > 0
    strong = paper is not None and sized and ours.mean >= STRONG * paper - EPSILON
    if ours.low is None:  # one seed of something that is not a share: its size, or else its sign, is all there is
        return Verdict.HOLDS if strong else Verdict.NOT if sized else Verdict.WEAKER
    clear = ours.low > 0
    return (Verdict.NOT, Verdict.WEAKER, Verdict.HOLDS)[clear + (strong if sized else clear)]


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
    """A rule about the sum of some figures minus the sum of others."""

    difference = True

    @property
    def paper_number(self) -> float | None:
        """The difference in the paper, where it prints all figures."""
        if any(cell.paper is None for cell in self.cells):
            return None
        return sum(cell.paper or 0.0 for cell in self.plus) - sum(cell.paper or 0.0 for cell in self.minus)

    @property
    def about(self) -> str:
        plus, minus = (_joined(cells, " + ") for cells in (self.plus, self.minus))
        return f"{f'({plus})' if len(self.plus) > 1 else plus} − {f'({minus})' if len(self.minus) > 1 else minus}"

    def _found(self, results: Results) -> Finding:
        ours = contrast(self.plus, self.minus, results)
        said = ours.text(signed=True, whole=all(cell.figure.whole for cell in self.cells))
        return Finding(self._verdict(ours), said, ours.seeds, mean=ours.mean)

    @abstractmethod
    def _verdict(self, ours: Estimate) -> Verdict: ...


@dataclass(frozen=True)
class Gap(_Difference):
    """The first figures are greater than the second in sum."""

    @property
    def printed(self) -> str:
        digits = "+,.0f" if all(cell.figure.whole for cell in self.cells) else "+.3f"
        return "greater" if self.paper_number is None else f"{self.paper_number:{digits}}"

    def _verdict(self, ours: Estimate) -> Verdict:
        return of_effect(ours, self.paper_number)


@dataclass(frozen=True)
class Similar(_Difference):
    """Two figures are nearly the same."""

    margin: float = NEAR

    @property
    def printed(self) -> str:
        digits = ",.0f" if all(cell.figure.whole for cell in self.cells) else ".3g"
        one, other = self.plus[0].paper, self.minus[0].paper
        return "the same" if self.paper_number is None else f"{one:{digits}} ≈ {other:{digits}}"

    def _found(self, results: Results) -> Finding:
        found = super()._found(results)
        estimates = [cell.figure.estimate(results) for cell in self.cells if cell.figure.share]
        if estimates and all(ours is None or ours.mean <= FLOOR for ours in estimates):
            return moot_because(AT_THE_FLOOR, found.ours, found.seeds)
        return found

    def _verdict(self, ours: Estimate) -> Verdict:
        ends = ours.interval or (-inf, inf)
        if all(abs(end) <= self.margin + EPSILON for end in ends):
            return Verdict.HOLDS
        return Verdict.WEAKER if abs(ours.mean) <= 2 * self.margin + EPSILON else Verdict.NOT


def above(greater: Cell, less: Cell) -> Gap:
    return Gap((greater,), (less,))


def similar(one: Cell, other: Cell, margin: float = NEAR) -> Similar:
    return Similar((one,), (other,), margin)


@dataclass(frozen=True)
class Ratio(_Contrast):
    """The first figures (or failure rates) are this many times the second, each compared with the one in its place."""

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
        around = f" [{10**ours.interval.low:.3g}, {10**ours.interval.high:.3g}]" if ours.interval else ""
        said = f"{10**ours.mean:.3g} times{around}"
        if any(self._at_the_floor(pair, results) for pair in zip(self.plus, self.minus, strict=True)):
            return moot_because(AT_THE_FLOOR, said, ours.seeds)
        return Finding(of_effect(ours, log10(self.times)), said, ours.seeds)

    def _at_the_floor(self, pair: tuple[Cell, Cell], results: Results) -> bool:
        held = [ours.mean for of in pair if of.figure.share and (ours := of.figure.estimate(results))]
        return len(held) == 2 and max(1 - mean if self.failures else mean for mean in held) <= FLOOR


def _joined(cells: tuple[Cell, ...], mark: str) -> str:
    return mark.join(cell.figure.label for cell in cells)
