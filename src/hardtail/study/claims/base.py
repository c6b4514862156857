"""What a claim is: a sentence of a paper in our words, its place there, and checks from which the verdict follows.

`docs/claims.md` explains how.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import groupby
from typing import ClassVar

from hardtail.study.claims.evidence import (
    UNLEARNED,
    LeftOut,
    Results,
    caveats_of,
    is_shortened,
    kinds_of,
    why_left_out,
)
from hardtail.study.claims.figures import NO_SEED, Figure, Moot
from hardtail.study.runs import Run

SHOWN = 6
"""A row lists up to this many figures one by one."""


class Verdict(StrEnum):
    HOLDS = "holds"
    WEAKER = "holds weaker"
    NOT = "does not hold"
    MOOT = "cannot be judged"
    """It was measured, and there are too few cases to decide it."""
    UNMEASURED = "not measured"

    def counted(self, count: int) -> str:
        """`1 holds`, `3 hold`."""
        return f"{count} {self.replace('holds', 'hold').replace('does', 'do') if count > 1 else self.value}"


OPEN = (Verdict.MOOT, Verdict.UNMEASURED)
"""The verdicts that decide nothing."""


@dataclass(frozen=True)
class Cell:
    """A figure and what the paper prints for it."""

    figure: Figure
    paper: float | None = None
    n: int | None = None
    """The number of instances behind the paper's number, where it is known."""


SELECTED = "the weights that each recipe selects"
BETTER_LACK_IT = "runs of a better kind have no record of it"


def common_seeds(cells: Sequence[Cell], results: Results) -> list[int]:
    """The seeds that have all figures."""
    return sorted(set.intersection(*(set(cell.figure.values(results)) for cell in cells)))


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    verdict: Verdict
    ours: str | None = None
    seeds: int = 0
    """0 if it was not measured, or if it was computed and needs no run."""
    remark: str = ""
    why: str = ""
    """Why it decides nothing, if it does not: the first words of its remark."""
    mean: float | None = None
    left_out: tuple[LeftOut, ...] = ()
    """Runs that do not count."""
    shortened: bool = False
    """Whether a run behind it trained for a quarter of the paper's steps."""
    caveats: tuple[str, ...] = ()
    """Those of the runs behind it."""


def moot_because(remark: str, ours: str | None = None, seeds: int = 0) -> Finding:
    """A check that was measured and says nothing."""
    return Finding(Verdict.MOOT, ours, seeds, remark)


class Check(ABC):
    """A rule over figures."""

    difference: ClassVar[bool] = False
    """Whether it is about a difference between figures, not about a figure."""

    @property
    @abstractmethod
    def cells(self) -> tuple[Cell, ...]: ...

    @property
    @abstractmethod
    def printed(self) -> str:
        """What the paper reports."""

    @property
    def about(self) -> str:
        """A description of the figures it is about."""
        return "; ".join(cell.figure.label for cell in self.cells)

    @property
    def paper_number(self) -> float | None:
        """What the paper reports, where that is a single number."""
        return None

    def among(self, results: Results) -> Results:
        """The results as this check reads them: by runs that can be compared with each other and have all its figures.

        Where several kinds of runs do, by the best; where none does, by the best that can be compared.
        """
        return self._chosen(results)[0]

    def _chosen(self, results: Results) -> tuple[Results, bool]:
        """`among`, and whether runs of a better kind could be compared and lack a figure."""
        lacking = False
        chosen = {cell: cell.figure.schemes for cell in self.cells}
        for task in sorted({task for schemes in chosen.values() for task, _ in schemes}):
            of_task = [cell for cell in self.cells if any(of == task for of, _ in chosen[cell])]
            schemes = {scheme for cell in of_task for of, scheme in chosen[cell] if of == task}
            ways = results.alike(task, schemes)
            place = next((at for at, held in enumerate(ways) if _is_settled(of_task, held)), 0)
            lacking |= place > 0
            if ways:
                results = ways[place]
            elif all(results.runs(task, scheme) for scheme in schemes):
                results = results.without(task)
        return results, lacking

    def judge(self, results: Results) -> Finding:
        """Judge the results; the remark also names the runs that were left out, and the limits of runs and figures."""
        results, lacking = self._chosen(results)
        finding = self._unmeasured(results) or self._found(results)
        left_out = tuple(dict.fromkeys(self._left_out(results)))
        others = f"left out: {why_left_out(left_out)}" if left_out else ""
        limits = dict.fromkeys(cell.figure.limits(results) for cell in self.cells)
        runs = self._runs(results)
        about = *kinds_of(runs), BETTER_LACK_IT * lacking, *limits
        remark = "; ".join(filter(None, (finding.remark, others, *about)))
        seeds = min([finding.seeds, *(cell.figure.training_seeds(results) for cell in self.cells)])
        shortened = any(map(is_shortened, runs))
        behind = replace(finding, left_out=left_out, shortened=shortened, caveats=caveats_of(runs))
        return replace(behind, remark=remark, why=finding.remark if finding.verdict in OPEN else "", seeds=seeds)

    def _runs(self, results: Results) -> list[Run]:
        """The runs behind its figures."""
        return [run for cell in self.cells for run in cell.figure.runs(results)]

    def _left_out(self, results: Results) -> list[LeftOut]:
        return [run for cell in self.cells for run in cell.figure.left_out(results)]

    def _unmeasured(self, results: Results) -> Finding | None:
        """The finding if a figure has no record or too few cases, or if no seed has all figures."""
        figures = [cell.figure for cell in self.cells]
        missing = [(figure, figure.why_missing(results)) for figure in figures if not figure.values(results)]
        if missing:
            figure, why = min(missing, key=lambda held: isinstance(held[1], Moot))  # first what has no record
            verdict = Verdict.MOOT if isinstance(why, Moot) else Verdict.UNMEASURED
            return Finding(verdict, remark=f"{figure.label}: {why}")
        if self.cells and not common_seeds(self.cells, results):
            return Finding(Verdict.UNMEASURED, remark=NO_SEED)
        few = next(((figure, reason) for figure in figures if (reason := figure.few_cases(results))), None)
        return moot_because(f"{few[0].label}: {few[1]}") if few else None

    @abstractmethod
    def _found(self, results: Results) -> Finding:
        """The finding if every figure was measured."""


def _is_settled(cells: Sequence[Cell], results: Results) -> bool:
    """Whether these runs decide about some figures together, if only because they have not learned the task."""
    if not all(cell.figure.settled(results) for cell in cells):
        return False
    if not all(cell.figure.values(results) for cell in cells) or common_seeds(cells, results):
        return True
    return any(run.why == UNLEARNED for cell in cells for run in cell.figure.left_out(results))


@dataclass(frozen=True)
class Judged:
    """A claim with its verdict and one finding for every check."""

    claim: "Claim"
    verdict: Verdict
    findings: tuple[Finding, ...]

    @property
    def seeds(self) -> int:
        """The fewest seeds behind any finding; once it is decided, behind any finding that decides it."""
        return min(finding.seeds for finding in self._decisive or self.findings)

    @property
    def one_seed(self) -> bool:
        """Whether the verdict rests on a single seed."""
        return bool(self._decisive) and self.seeds == 1

    @property
    def shortened(self) -> bool:
        """Whether the verdict rests on a run of a quarter of the paper's steps."""
        return any(finding.shortened for finding in self._decisive)

    @property
    def caveats(self) -> tuple[str, ...]:
        """What must be known of the runs that the verdict rests on."""
        return tuple(dict.fromkeys(caveat for finding in self._decisive for caveat in finding.caveats))

    @property
    def says(self) -> str:
        """`one seed, a quarter of the steps: holds`: only enough seeds of full runs get the full word."""
        limits = {
            "one seed": self.one_seed,
            "a quarter of the steps": self.shortened,
            "with a caveat": bool(self.caveats),
        }
        words = ", ".join(word for word, limited in limits.items() if limited)
        return f"{words}: {self.verdict.value}" if words else self.verdict.value

    @property
    def why(self) -> str:
        """Why it is open; of a claim that holds weaker, how many checks do not hold."""
        asked = Verdict.NOT if self.verdict is Verdict.WEAKER else self.verdict
        found = [finding for finding in self.findings if finding.verdict is asked]
        part = f"{len(found)} of {len(self.findings)} checks"
        if self.verdict in OPEN:
            return f"{part}: {found[0].why}" if len(found) < len(self.findings) else found[0].why
        if self.verdict is Verdict.WEAKER and found:
            return f"{part} {'does' if len(found) == 1 else 'do'} not hold"
        return ""

    @property
    def _decisive(self) -> list[Finding]:
        """The findings that the verdict rests on: those that decide; none as long as the claim is not decided."""
        if self.verdict in OPEN:
            return []
        return [finding for finding in self.findings if finding.verdict not in OPEN]

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Runs that some check leaves out."""
        return tuple(dict.fromkeys(run for finding in self.findings for run in finding.left_out))

    @property
    def ours(self) -> str | None:
        """Our figures in the order of the checks; of many, their range and how many hold."""
        if all(finding.ours is None for finding in self.findings):
            return None
        words = [finding.ours or "–" for finding in self.findings]
        summary = _summary(self.claim.checks, words, [finding.mean for finding in self.findings])
        if len(words) <= SHOWN:
            return summary
        counts = Counter(finding.verdict for finding in self.findings)
        return f"{summary}: {', '.join(verdict.counted(counts[verdict]) for verdict in Verdict if counts[verdict])}"


def _summary(checks: Sequence[Check], words: Sequence[str], numbers: Sequence[float | None]) -> str:
    """The words about every check; of many checks, for each rule their common words or the range of their numbers."""
    if len(words) <= SHOWN:
        return "; ".join(words)
    rows = zip(checks, words, numbers, strict=True)
    return "; ".join(_range(list(run)) for _, run in groupby(rows, key=lambda row: type(row[0])))


def _range(rows: Sequence[tuple[Check, str, float | None]]) -> str:
    words = dict.fromkeys(word for _, word, _ in rows)
    numbers = [number for _, _, number in rows if number is not None]
    if len(words) == 1 or not numbers:
        return "; ".join(words)
    digits, what = ("+.3f", "differences") if rows[0][0].difference else (".3f", "figures")
    return f"{len(numbers)} {what} from {min(numbers):{digits}} to {max(numbers):{digits}}"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper."""

    id: str
    sentence: str
    where: str
    caveat: str = ""
    """How its words are read, where the paper's own numbers contradict it, or what else a reader must know."""
    reports: str = ""
    """What the paper reports (words, counts, a range), where the checks do not give it."""
    settings: str = ""
    """The source's own settings behind the claim, where its sampler or data differ from ours."""
    checks: tuple[Check, ...] = field(default=(), kw_only=True)
    whole: bool = field(default=False, kw_only=True)
    """Whether one check that fails is enough for it to fail."""
    tabled: bool = field(default=False, kw_only=True)
    """Whether its sentence only says which cells of a table are meant, as its id does."""
    weights: str = field(default="the weights that the paper used", kw_only=True)
    """Which weights its figures are about, unless `Results` names others."""

    @property
    def paper(self) -> str:
        """What the paper reports; of many figures, their range."""
        printed = [check.printed for check in self.checks]
        if self.reports or len(set(printed)) == 1:
            return self.reports or printed[0]
        return _summary(self.checks, printed, [check.paper_number for check in self.checks])

    def judge(self, results: Results) -> Judged:
        findings = tuple(check.judge(results) for check in self.checks)
        verdicts = [finding.verdict for finding in findings]
        if self.whole and Verdict.NOT in verdicts:
            return Judged(self, Verdict.NOT, findings)
        return Judged(self, overall(verdicts), findings)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """The overall verdict of several checks."""
    if Verdict.UNMEASURED in verdicts:
        return Verdict.UNMEASURED
    if 2 * list(verdicts).count(Verdict.NOT) >= len(verdicts):
        return Verdict.NOT
    if Verdict.MOOT in verdicts:
        return Verdict.MOOT
    return Verdict.HOLDS if set(verdicts) == {Verdict.HOLDS} else Verdict.WEAKER
