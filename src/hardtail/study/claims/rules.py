"""The rules by which verdicts are given; `base` says them in words."""

from abc import abstractmethod
from dataclasses import dataclass
from math import log10

from hardtail.measuring.statistics import Interval, wilson
from hardtail.study.claims.base import Cell, Check, Finding, Verdict
from hardtail.study.claims.differences import common_seeds, contrast, log_ratio
from hardtail.study.claims.evidence import Estimate, Results
from hardtail.study.claims.figures import NO_SEED

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


def near_rate(rate: float) -> float:
    """Tolerance of how often something fails: half as much again or less, so that ten times as often is not near."""
    return min(max(rate / 2, 0.01), NEAR)


def _missing(cells: tuple[Cell, ...], results: Results) -> Finding | None:
    """The finding where a figure has no record, or no seed has all of them."""
    missing = [cell.figure for cell in cells if not cell.figure.values(results)]
    if missing:
        remark = f"{missing[0].label}: {missing[0].why_missing(results)}"
        return Finding(Verdict.UNMEASURED, remark=remark, moot=all(figure.moot(results) for figure in missing))
    if not common_seeds(cells, results):
        return Finding(Verdict.UNMEASURED, remark=NO_SEED)
    return None


# -- one figure -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OneFigure(Check):
    """A rule about a single figure."""

    cell: Cell

    @property
    def cells(self) -> tuple[Cell, ...]:
        return (self.cell,)

    def judge(self, results: Results) -> Finding:
        if missing := _missing(self.cells, results):
            return missing
        ours = self.cell.figure.estimate(results)
        assert ours is not None
        return Finding(self._verdict(ours), ours.text(), ours.seeds, mean=ours.mean)

    @property
    def told(self) -> float | None:
        return self.cell.paper

    @abstractmethod
    def _verdict(self, ours: Estimate) -> Verdict: ...


@dataclass(frozen=True)
class Level(_OneFigure):
    """The figure is what the paper prints."""

    tolerance: float = NEAR

    @property
    def printed(self) -> str:
        return f"{self.cell.paper:.3g}"

    @property
    def target(self) -> float:
        assert self.cell.paper is not None
        return self.cell.paper

    def _verdict(self, ours: Estimate) -> Verdict:
        if abs(ours.mean - self.target) > self.tolerance + 1e-9:
            return Verdict.NOT
        low, high = self._theirs()
        ours_low, ours_high = (ours.mean, ours.mean) if ours.low is None or ours.high is None else (ours.low, ours.high)
        return Verdict.HOLDS if ours_low <= high + 1e-9 and ours_high >= low - 1e-9 else Verdict.WEAKER

    def _theirs(self) -> Interval:
        if self.cell.n:
            return wilson(round(self.target * self.cell.n), self.cell.n)
        return Interval(self.target - self.tolerance / 2, self.target + self.tolerance / 2)


@dataclass(frozen=True)
class _Bound(_OneFigure):
    """The figure keeps a bound."""

    bound: float
    tolerance: float = SLACK

    def _verdict(self, ours: Estimate) -> Verdict:
        missed = self._missed(ours.mean)
        if missed <= 0:
            return Verdict.HOLDS
        if missed > self.tolerance + 1e-9:
            return Verdict.NOT
        edge = self._best_edge(ours)
        return Verdict.HOLDS if edge is not None and self._missed(edge) <= 0 else Verdict.WEAKER

    @abstractmethod
    def _missed(self, value: float) -> float:
        """By how much a value is on the wrong side."""

    @abstractmethod
    def _best_edge(self, ours: Estimate) -> float | None: ...


@dataclass(frozen=True)
class AtLeast(_Bound):
    @property
    def printed(self) -> str:
        return f"≥ {self.bound:.3g}" if self.bound < 1 else "1"

    def _missed(self, value: float) -> float:
        return self.bound - value

    def _best_edge(self, ours: Estimate) -> float | None:
        return ours.high


@dataclass(frozen=True)
class AtMost(_Bound):
    @property
    def printed(self) -> str:
        return f"≤ {self.bound:.3g}" if self.bound > 0 else "0"

    def _missed(self, value: float) -> float:
        return value - self.bound

    def _best_edge(self, ours: Estimate) -> float | None:
        return ours.low


# -- several figures ---------------------------------------------------------------------------------------------


def of_effect(ours: Estimate, paper: float | None) -> Verdict:
    """The verdict on a difference that the paper has with this size; with an unknown one, or with the other sign."""
    if ours.mean <= 0:
        return Verdict.NOT
    sized = paper is not None and paper > 0
    strong = paper is not None and sized and ours.mean >= STRONG * paper - 1e-9
    if ours.low is None:  # one seed of something that is no share: its size, or else its sign, is all there is
        return Verdict.HOLDS if strong else Verdict.NOT if sized else Verdict.WEAKER
    clear = ours.low > 0
    return (Verdict.NOT, Verdict.WEAKER, Verdict.HOLDS)[clear + (strong if sized else clear)]


def _sum(cells: tuple[Cell, ...]) -> float | None:
    values = [cell.paper for cell in cells if cell.paper is not None]
    return sum(values) if len(values) == len(cells) else None


@dataclass(frozen=True)
class _Contrast(Check):
    """A rule about some figures against others."""

    plus: tuple[Cell, ...]
    minus: tuple[Cell, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.plus + self.minus


@dataclass(frozen=True)
class Gap(_Contrast):
    """The first figures are greater than the second in sum; each cell has its own number in the paper."""

    difference = True

    @property
    def effect(self) -> float | None:
        plus, minus = _sum(self.plus), _sum(self.minus)
        return None if plus is None or minus is None else plus - minus

    @property
    def told(self) -> float | None:
        return self.effect

    @property
    def about(self) -> str:
        return f"{_sum_of(self.plus)} − {_sum_of(self.minus)}"

    @property
    def printed(self) -> str:
        return "greater" if self.effect is None else f"{self.effect:+.3f}"

    def judge(self, results: Results) -> Finding:
        if missing := _missing(self.cells, results):
            return missing
        ours = contrast(self.plus, self.minus, results)
        verdict = of_effect(ours, self.effect)
        return Finding(verdict, f"{ours.mean:+.3f}{_around(ours)}", ours.seeds, mean=ours.mean)


@dataclass(frozen=True)
class Ratio(_Contrast):
    """The first figures (or failure rates) are so many times the second."""

    times: float
    failures: bool = False

    @property
    def about(self) -> str:
        words = (
            " × ".join(cell.figure.label for cell in self.plus),
            " × ".join(cell.figure.label for cell in self.minus),
        )
        return f"{'failures of ' if self.failures else ''}{words[0]} ÷ {words[1]}"

    @property
    def printed(self) -> str:
        return f"{self.times:.3g} times"

    def judge(self, results: Results) -> Finding:
        if missing := _missing(self.cells, results):
            return missing
        ours = log_ratio(self.plus, self.minus, results, failures=self.failures)
        around = "" if ours.low is None or ours.high is None else f" [{10**ours.low:.3g}, {10**ours.high:.3g}]"
        return Finding(of_effect(ours, log10(self.times)), f"{10**ours.mean:.3g} times{around}", ours.seeds)


def _sum_of(cells: tuple[Cell, ...]) -> str:
    words = " + ".join(cell.figure.label for cell in cells)
    return f"({words})" if len(cells) > 1 else words


def _around(ours: Estimate) -> str:
    return "" if ours.low is None or ours.high is None else f" [{ours.low:+.3f}, {ours.high:+.3f}]"


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
        return f"{self.before.paper:.3g} → {self.after.paper:.3g}"

    def judge(self, results: Results) -> Finding:
        if missing := _missing(self.cells, results):
            return missing
        gain = contrast((self.after,), (self.before,), results)
        seeds = common_seeds(self.cells, results)
        values = self.before.figure.values(results)
        before = sum(values[seed].value for seed in seeds) / len(seeds)
        verdict, remark = self._verdict(before, gain)
        ours = f"{before:.3f} → {before + gain.mean:.3f}, {gain.mean:+.3f}{_around(gain)}"
        return Finding(verdict, ours, gain.seeds, remark)

    @property
    def theirs(self) -> float:
        """The share of failures that are repaired in the paper."""
        assert self.before.paper is not None
        assert self.after.paper is not None
        return repaired(self.before.paper, self.after.paper - self.before.paper)

    @abstractmethod
    def _verdict(self, before: float, gain: Estimate) -> tuple[Verdict, str]: ...


def repaired(before: float, gain: float) -> float:
    """The share of failures that another order repairs; 0 where nothing fails."""
    return gain / (1 - before) if before < 1 else 0.0


def _repaired_words(ours: float, theirs: float) -> str:
    return f"{ours:.0%} of failures repaired, {theirs:.0%} in the paper"


@dataclass(frozen=True)
class Recovery(_TwoOrders):
    """The second order repairs what fails under the first."""

    def _verdict(self, before: float, gain: Estimate) -> tuple[Verdict, str]:
        assert self.before.paper is not None
        assert self.after.paper is not None
        share = repaired(before, gain.mean)
        remark = _repaired_words(share, self.theirs) if before < 1 else "nothing fails: there is nothing to repair"
        as_gap = of_effect(gain, self.after.paper - self.before.paper)
        if as_gap is Verdict.NOT or share < HALF * self.theirs:
            return Verdict.NOT, remark
        full = as_gap is Verdict.HOLDS and share >= REPAIRED * self.theirs - 1e-9
        return (Verdict.HOLDS if full else Verdict.WEAKER), remark


@dataclass(frozen=True)
class Unrecovered(_TwoOrders):
    """The second order repairs little of what fails under the first."""

    def _verdict(self, before: float, gain: Estimate) -> tuple[Verdict, str]:
        if 1 - before < FAILING:
            return Verdict.NOT, f"only {1 - before:.1%} fail: there is nothing to leave unrepaired"
        assert self.before.paper is not None
        share, fails_like_theirs = repaired(before, gain.mean), 1 - before >= STRONG * (1 - self.before.paper) - 1e-9
        remark = _repaired_words(share, self.theirs)
        if share <= FEW and fails_like_theirs:
            return Verdict.HOLDS, remark
        return (Verdict.WEAKER if share <= HALF else Verdict.NOT), remark


@dataclass(frozen=True)
class Similar(Check):
    """Two figures are nearly the same."""

    difference = True

    one: Cell
    other: Cell
    margin: float = NEAR

    @property
    def cells(self) -> tuple[Cell, ...]:
        return self.one, self.other

    @property
    def about(self) -> str:
        return f"{self.one.figure.label} − {self.other.figure.label}"

    @property
    def told(self) -> float | None:
        return None if self.one.paper is None or self.other.paper is None else self.one.paper - self.other.paper

    @property
    def printed(self) -> str:
        if self.one.paper is None or self.other.paper is None:
            return "the same"
        return f"{self.one.paper:.3g} ≈ {self.other.paper:.3g}"

    def judge(self, results: Results) -> Finding:
        if missing := _missing(self.cells, results):
            return missing
        ours = contrast((self.one,), (self.other,), results)
        apart = abs(ours.mean)
        near = Verdict.WEAKER if apart <= 2 * self.margin + 1e-9 else Verdict.NOT
        verdict = Verdict.HOLDS if apart <= self.margin + 1e-9 else near
        return Finding(verdict, f"{ours.mean:+.3f}{_around(ours)}", ours.seeds, mean=ours.mean)
