"""What a claim is: a sentence of a paper in our words, its place there, and checks from which the verdict follows.

`docs/claims.md` says how a verdict comes about.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import ClassVar

from hardtail.study.claims.evidence import Results
from hardtail.study.claims.figures import NO_SEED, Figure

SHOWN = 6
"""Figures that a row shows one by one."""


class Verdict(StrEnum):
    HOLDS = "holds"
    WEAKER = "holds weaker"
    NOT = "does not hold"
    UNMEASURED = "not measured"

    def of(self, count: int) -> str:
        """`3 hold`."""
        return f"{count} {self.replace('holds', 'hold').replace('does', 'do') if count > 1 else self.value}"


@dataclass(frozen=True)
class Cell:
    """A figure, and what the paper prints for it."""

    figure: Figure
    paper: float | None = None
    n: int | None = None
    """How many instances the paper's number is over, where that is known."""


def common_seeds(cells: Sequence[Cell], results: Results) -> list[int]:
    """The seeds that have all figures."""
    return sorted(set.intersection(*(set(cell.figure.values(results)) for cell in cells)))


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    verdict: Verdict
    ours: str | None = None
    seeds: int = 0
    remark: str = ""
    mean: float | None = None
    moot: bool = False
    """Not measured because there is nothing to take a figure of, not because a record is missing."""
    left_out: tuple[str, ...] = ()
    """Runs that do not count because they have not learned the task."""


class Check(ABC):
    """A rule over figures."""

    difference: ClassVar[bool] = False
    """Whether it is about a difference of figures, not about a figure."""

    @property
    @abstractmethod
    def cells(self) -> tuple[Cell, ...]: ...

    @property
    @abstractmethod
    def printed(self) -> str:
        """What the paper reports."""

    @property
    def about(self) -> str:
        """Which figures it is about, in words."""
        return "; ".join(cell.figure.label for cell in self.cells)

    @property
    def told(self) -> float | None:
        """What the paper reports as one number, where it is one."""
        return None

    def judge(self, results: Results) -> Finding:
        """What the results say; the remark names the runs that were left out."""
        finding = self._unmeasured(results) or self._found(results)
        left_out = tuple(dict.fromkeys(run for cell in self.cells for run in cell.figure.left_out(results)))
        words = f"not learned, left out: {', '.join(left_out)}" if left_out else ""
        return replace(finding, remark="; ".join(filter(None, (finding.remark, words))), left_out=left_out)

    def _unmeasured(self, results: Results) -> Finding | None:
        """The finding where a figure has no record, or no seed has all of them."""
        missing = [cell.figure for cell in self.cells if not cell.figure.values(results)]
        if missing:
            remark = f"{missing[0].label}: {missing[0].why_missing(results)}"
            return Finding(Verdict.UNMEASURED, remark=remark, moot=all(figure.moot(results) for figure in missing))
        return None if common_seeds(self.cells, results) else Finding(Verdict.UNMEASURED, remark=NO_SEED)

    @abstractmethod
    def _found(self, results: Results) -> Finding:
        """The finding where every figure was measured."""


@dataclass(frozen=True)
class Judged:
    """A claim with its findings, one for every check."""

    claim: "Claim"
    verdict: Verdict
    findings: tuple[Finding, ...]

    @property
    def seeds(self) -> int:
        """The fewest seeds that any part of it has; of a verdict, any part that it rests on."""
        judged = self.verdict is not Verdict.UNMEASURED
        return min(finding.seeds for finding in self.findings if not (judged and finding.moot))

    @property
    def left_out(self) -> tuple[str, ...]:
        """Runs that some part of it leaves out because they have not learned the task."""
        return tuple(dict.fromkeys(run for finding in self.findings for run in finding.left_out))

    @property
    def ours(self) -> str | None:
        """Our figures in the order of the paper's; of many, the range and how many hold."""
        if all(finding.ours is None for finding in self.findings):
            return None
        words = [finding.ours or "–" for finding in self.findings]
        told = _in_short(self.claim.checks, words, [finding.mean for finding in self.findings])
        if len(words) <= SHOWN:
            return told
        counted = Counter(finding.verdict for finding in self.findings)
        return f"{told}: {', '.join(verdict.of(counted[verdict]) for verdict in Verdict if counted[verdict])}"


def _in_short(checks: Sequence[Check], words: Sequence[str], numbers: Sequence[float | None]) -> str:
    """What is said of every check; of many checks, for each rule what all say, or the range of their numbers."""
    if len(words) <= SHOWN:
        return "; ".join(words)
    told = zip(checks, words, numbers, strict=True)
    return "; ".join(_range(list(run)) for _, run in groupby(told, key=lambda item: type(item[0])))


def _range(told: Sequence[tuple[Check, str, float | None]]) -> str:
    words = dict.fromkeys(word for _, word, _ in told)
    numbers = [number for _, _, number in told if number is not None]
    if len(words) == 1 or not numbers:
        return "; ".join(words)
    digits, what = ("+.3f", "differences") if told[0][0].difference else (".3f", "figures")
    return f"{len(numbers)} {what} from {min(numbers):{digits}} to {max(numbers):{digits}}"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper."""

    id: str
    sentence: str
    where: str
    checks: tuple[Check, ...] = ()
    caveat: str = ""
    """Where the paper's own numbers contradict the statement by our rule, how its words are read, or what else a
    reader must know."""
    reports: str = ""
    """What the paper reports, where the checks do not say it: words, counts, a range."""

    def by(self, *checks: Check, caveat: str = "", reports: str = "") -> "Claim":
        """The claim with what it is judged by."""
        return replace(self, checks=checks, caveat=caveat, reports=reports)

    @property
    def paper(self) -> str:
        """What the paper reports; of many figures, the range."""
        printed = [check.printed for check in self.checks]
        if self.reports or len(set(printed)) == 1:
            return self.reports or printed[0]
        return _in_short(self.checks, printed, [check.told for check in self.checks])

    def judge(self, results: Results) -> Judged:
        findings = tuple(check.judge(results) for check in self.checks)
        told = [finding.verdict for finding in findings if not finding.moot]
        return Judged(self, overall(told, len(findings) - len(told)), findings)


def overall(verdicts: Sequence[Verdict], moot: int = 0) -> Verdict:
    """The verdict over several checks, and over others that are moot."""
    if Verdict.UNMEASURED in verdicts:
        return Verdict.UNMEASURED
    if 2 * list(verdicts).count(Verdict.NOT) >= len(verdicts) + moot:
        return Verdict.NOT
    if moot:
        return Verdict.UNMEASURED
    return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.WEAKER


@dataclass(frozen=True)
class Section:
    """One place of a paper: `at(name, sentence).by(checks)` is a claim there."""

    prefix: str
    where: str

    def __call__(self, name: str, sentence: str, where: str = "") -> Claim:
        return Claim(f"{self.prefix}.{name}", sentence, where or self.where)
