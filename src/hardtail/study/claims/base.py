"""What a claim is, and how verdicts come about.

A claim is a sentence of the paper in our words, the place where it stands, and one or more *checks*: rules over figures
of the recorded results. Nobody writes a verdict down; it follows from the checks.

Figures are means over seeds with a 95 % interval: Student's over seeds, never narrower than Wilson's of all instances
together, and Wilson's alone with one seed (`evidence.Estimate`). Differences are taken seed by seed, as runs of one
seed are measured on the same instances; with one seed their interval is put together from the two shares' (Newcombe's).

The rules, the same for like claims (`rules.py`):

`Level`        the figure is what the paper prints. *Holds* when our interval and the paper's (Wilson's at its n; half
               the tolerance to either side where it has no n) meet, and the means differ by the tolerance at most, so
               that a wide interval alone makes nothing hold. *Holds weaker*: within the tolerance, intervals apart.
`AtLeast`,     the figure keeps a bound. *Holds* when the mean does, or when the interval reaches the bound and the mean
`AtMost`       misses it by the tolerance at most. *Holds weaker*: misses it by the tolerance at most.
`Gap`,         one figure is greater than another (or a sum of some than a sum of others); a ratio by its logarithm.
`Ratio`        *Clear*: the sign is the paper's beyond the interval. *Strong*: at least half of the paper's effect
               (where it prints none: clear). Both: *holds*. One of them: *holds weaker*. None: *does not hold*.
               One seed of what is no share (a step, a loss) has no interval: *holds* when strong, and *does not hold*
               when not; where the paper prints no size, the sign alone *holds weaker*.
`Recovery`     another decoding order repairs failures. *Holds* when the gain holds as a gap and the share of failures
               that are repaired is at least 9/10 of the paper's; *holds weaker* from half of it, with a gain that is
               at least weak. Where nothing fails nothing is repaired, and it *does not hold*.
`Unrecovered`  it does not repair them: *holds* when at least half as many fail as in the paper and at most a quarter of
               them are repaired, *holds weaker* up to half. Where fewer than 1 in 20 fail there is no failure to leave
               unrepaired, and it *does not hold*.
`Similar`      two figures differ by a margin at most (*holds*), or by twice that (*holds weaker*).

A claim of several checks *holds* when all do, *does not hold* when half of them or more do not, and *holds weaker*
otherwise. It is *not measured* as long as a figure of any check has no record. A check whose figures were measured but
have nothing to be taken of (wrong g cells of a model that has none) leaves a claim *not measured* too, unless the other
checks settle it: half of all or more do not hold. Where a claim is about the hard tail of models that are otherwise
right (addition, mazes), runs that have not learned the task are left out, and named (`evidence.LEARNED`).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby
from typing import ClassVar

from hardtail.study.claims.evidence import Results
from hardtail.study.claims.figures import Figure


class Verdict(StrEnum):
    HOLDS = "holds"
    WEAKER = "holds weaker"
    NOT = "does not hold"
    UNMEASURED = "not measured"


@dataclass(frozen=True)
class Cell:
    """A figure, and what the paper prints for it."""

    figure: Figure
    paper: float | None = None
    n: int | None = None
    """What the paper's number is over, where that is known."""


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    verdict: Verdict
    ours: str | None = None
    seeds: int = 0
    remark: str = ""
    mean: float | None = None
    moot: bool = False
    """Not measured because there is nothing to take a figure of, not for want of a record."""
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

    @abstractmethod
    def judge(self, results: Results) -> Finding: ...


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
        if len(self.findings) <= SHOWN:
            return "; ".join(finding.ours or "–" for finding in self.findings)
        words, means = [found.ours or "–" for found in self.findings], [found.mean for found in self.findings]
        told = _in_short(self.claim.checks, words, means)
        counts = {verdict: sum(finding.verdict is verdict for finding in self.findings) for verdict in Verdict}
        verdicts = [
            f"{count} {OF_MANY[verdict] if count > 1 else verdict.value}" for verdict, count in counts.items() if count
        ]
        return f"{told}: {', '.join(verdicts)}"


OF_MANY = {
    Verdict.HOLDS: "hold",
    Verdict.WEAKER: "hold weaker",
    Verdict.NOT: "do not hold",
    Verdict.UNMEASURED: "not measured",
}
SHOWN = 6
"""Figures that a row shows one by one."""


def _in_short(checks: Sequence[Check], words: Sequence[str], numbers: Sequence[float | None]) -> str:
    """Many checks: of each rule what all of them say, or from where to where their numbers go."""
    told = zip(checks, words, numbers, strict=True)
    return "; ".join(_range(list(run)) for _, run in groupby(told, key=lambda item: type(item[0])))


def _range(told: Sequence[tuple[Check, str, float | None]]) -> str:
    words = [word for _, word, _ in told]
    numbers = [number for _, _, number in told if number is not None]
    if len(set(words)) == 1 or not numbers:
        return "; ".join(dict.fromkeys(words))
    digits, what = ("+.3f", "differences") if told[0][0].difference else (".3f", "figures")
    return f"{len(numbers)} {what} from {min(numbers):{digits}} to {max(numbers):{digits}}"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper."""

    id: str
    sentence: str
    where: str
    checks: tuple[Check, ...]
    caveat: str = ""
    """Where the paper's own numbers do not bear the statement out by the rule, how its words are read, or what else
    must be known."""
    reports: str = ""
    """What the paper reports, where that is other than what the checks ask for: words, counts, a range."""

    @property
    def paper(self) -> str:
        """What the paper reports; of many figures, the range."""
        if self.reports:
            return self.reports
        printed = [check.printed for check in self.checks]
        if len(set(printed)) == 1:
            return printed[0]
        if len(printed) <= SHOWN:
            return "; ".join(printed)
        return _in_short(self.checks, printed, [check.told for check in self.checks])

    def judge(self, results: Results) -> Judged:
        findings = tuple(_told(check, results) for check in self.checks)
        return Judged(self, _overall(findings), findings)


def _told(check: Check, results: Results) -> Finding:
    """A check's finding; its remark names the runs that were left out of it."""
    finding = check.judge(results)
    left_out = tuple(dict.fromkeys(run for cell in check.cells for run in cell.figure.left_out(results)))
    words = f"not learned, left out: {', '.join(left_out)}" if left_out else ""
    return replace(finding, remark="; ".join(filter(None, (finding.remark, words))), left_out=left_out)


def _overall(findings: Sequence[Finding]) -> Verdict:
    told = [finding.verdict for finding in findings if not finding.moot]
    if len(told) == len(findings):
        return overall(told)
    settled = Verdict.UNMEASURED not in told and 2 * told.count(Verdict.NOT) >= len(findings)
    return Verdict.NOT if settled else Verdict.UNMEASURED


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """The verdict over several checks."""
    if Verdict.UNMEASURED in verdicts:
        return Verdict.UNMEASURED
    if all(verdict is Verdict.HOLDS for verdict in verdicts):
        return Verdict.HOLDS
    return Verdict.NOT if 2 * list(verdicts).count(Verdict.NOT) >= len(verdicts) else Verdict.WEAKER
