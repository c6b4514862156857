"""Figures: numbers that claims are about, each computed from recorded results for one training scheme."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from math import inf
from typing import ClassVar, Literal

from hardtail.core import records
from hardtail.core.errors import HardtailError
from hardtail.measuring.diagnosis.record import Diagnosis
from hardtail.measuring.statistics import Interval
from hardtail.study.claims.evidence import (
    ENOUGH,
    UNIT,
    UNLEARNED,
    Checkpoint,
    Estimate,
    LeftOut,
    Results,
    Sample,
    Schemes,
    Value,
    cases,
)
from hardtail.study.runs import Run, diagnosed_strata

Record = records.Head | records.RunEntry
Metric = Literal["exact_match", "cell_accuracy", "valid", "token_accuracy"]
MAX_LOGIT = ("addition", "listops", "countdown")
"""Where the authors' code ranks by the largest logit, though the text says probability."""
NO_RECORD = "no record"
NO_SEED = "no seed has all of these figures"
UNLIKE = "its runs cannot be compared with the others: other problems, or other shares of the steps"


class Settled(str):
    """Why there is no figure where runs show that there is none."""

    __slots__ = ()


class Moot(Settled):
    """The same where it was measured: there is nothing that it could describe."""

    __slots__ = ()


NOTHING_FAILED = Moot("measured, but no failure is of this kind")
NOT_LEARNED, NOT_SHOWN = Settled("no run has learned the task"), "no run has shown that it learned the task"
OTHER_READINGS = {
    "lowest_index": ("first_in_time", "first in time"),
    "failures_with": ("failures_only", "and no others"),
}
"""Names in the paths of diagnoses, their counterparts in another reading, and what that one means."""
SCHEMES = {"random": "random masking", "papl": "PAPL", "puma": "PUMA", "papl5": "PAPL α=5"}


def measured_as(policy: str) -> type[records.Accuracy | records.Reveal]:
    """The kind of record that has the accuracy of a policy."""
    return records.Reveal if policy == records.HALF_REVEALED else records.Accuracy


def none_counts(left_out: Iterable[LeftOut]) -> str:
    """Why a figure is missing if these are all its runs."""
    return NOT_LEARNED if all(run.why == UNLEARNED for run in left_out) else NOT_SHOWN


def scheme_words(scheme: str) -> str:
    """What a scheme is called in a sentence; another one, such as an arm of your own, by its name."""
    return SCHEMES.get(scheme, scheme)


class Figure(ABC):
    """A number that results give for each seed."""

    @property
    @abstractmethod
    def share(self) -> bool:
        """Whether it is a share, or a mean of numbers between 0 and 1."""

    @property
    @abstractmethod
    def label(self) -> str:
        """A description in words."""

    whole: ClassVar[bool] = False
    """Whether it counts something, such as steps."""
    bounds = Interval(0.0, inf)
    """The range of its possible values; steps, losses and shares are not negative."""

    @property
    def schemes(self) -> Schemes:
        """The schemes whose runs the ledger chooses for it, each with its task."""
        return frozenset()

    @abstractmethod
    def samples(self, results: Results) -> list[Sample]:
        """Every recorded number that goes in."""

    def values(self, results: Results) -> dict[int, Value]:
        """The figure by seed; empty where it was not measured."""
        return {sample.seed: Value(sample.value, sample.n) for sample in self.samples(results)}

    def beside(self) -> "tuple[Figure, ...]":
        """The same figure in another reading, which is shown but not judged."""
        return ()

    def why_missing(self, results: Results) -> str:
        """Why there is no figure, if `values` is empty."""
        return NO_RECORD

    def settled(self, results: Results) -> bool:
        """Whether runs show it, or show why there is none."""
        return bool(self.values(results)) or isinstance(self.why_missing(results), Settled)

    def training_seeds(self, results: Results) -> int:
        """How many training seeds the values rest on."""
        return len(self.values(results))

    def runs(self, results: Results) -> list[Run]:
        """The recorded runs that the values rest on."""
        return results.named(sample.run for sample in self.samples(results))

    def few_cases(self, results: Results) -> str:
        """Why the figure says nothing although it was measured; empty if it says something."""
        total = cases(self.values(results).values())
        return "" if total is None or total >= ENOUGH else f"only {total} cases, and {ENOUGH} are needed"

    def limits(self, results: Results) -> str:
        """How much less was measured than was planned; empty if nothing is known of that."""
        return ""

    def left_out(self, results: Results) -> list[LeftOut]:
        """Runs that do not count, because they have not shown that they learned the task."""
        return []

    def estimate(self, results: Results) -> Estimate | None:
        values = self.values(results).values()
        return Estimate.of(values, share=self.share, bounds=UNIT if self.share else self.bounds) if values else None


@dataclass(frozen=True)
class PerRun(Figure):
    """A figure for which every run of a scheme has one number."""

    task: str
    scheme: str
    usual: Checkpoint = field(default="best_probe", kw_only=True)
    """The weights it is about, unless `Results` names the same for all figures."""

    @property
    def schemes(self) -> Schemes:
        return frozenset({(self.task, self.scheme)})

    def samples(self, results: Results) -> list[Sample]:
        found = (self._sample(results, run) for run in self._counted(results))
        return [sample for sample in found if sample is not None]

    def left_out(self, results: Results) -> list[LeftOut]:
        return results.left_out(self.task, self.scheme, self.usual)

    def why_missing(self, results: Results) -> str:
        if "-" not in self.scheme and results.has_none_alike(self.task):
            return UNLIKE
        left_out = self.left_out(results)
        return none_counts(left_out) if left_out and not self._counted(results) else super().why_missing(results)

    def _counted(self, results: Results) -> list[Run]:
        return results.learned(self.task, self.scheme, self.usual)

    @abstractmethod
    def _sample(self, results: Results, run: Run) -> Sample | None: ...

    def _made(self, record: Record, run: Run, policy: str, stratum: str, value: float, n: int | None) -> Sample:
        checkpoint = record.checkpoint if isinstance(record, records.Head) else None
        made_by = record.commit or "–", record.device or "–"
        return Sample(run.name, run.seed, checkpoint or "–", policy, stratum, n, value, self.share, *made_by)


@dataclass(frozen=True)
class ShareRight(PerRun):
    """A share of right answers (or cells) of one stratum under one decoding order."""

    policy: str
    stratum: str
    metric: Metric = "exact_match"

    share = True

    @property
    def label(self) -> str:
        metric = "" if self.metric == "exact_match" else f", {self.metric.replace('_', ' ')}"
        return f"{scheme_words(self.scheme)}, {self.policy}, {self.stratum}{metric}"

    def beside(self) -> tuple[Figure, ...]:
        if self.policy == records.HALF_REVEALED and self.metric == "exact_match":
            return (replace(self, metric="token_accuracy"),)
        return (replace(self, policy="max-logit"),) if self.policy == "top1" and self.task in MAX_LOGIT else ()

    def _sample(self, results: Results, run: Run) -> Sample | None:
        record = run.measured.get((measured_as(self.policy), self.policy, self.stratum, results.weights(self.usual)))
        if record is None or (value := getattr(record, self.metric)) is None:
            return None
        return self._made(record, run, self.policy, self.stratum, value, record.n)


@dataclass(frozen=True)
class Profiled(PerRun):
    """A number of a diagnosis, at a path of names such as `profile.failures`."""

    path: str
    name: str
    """A description in words."""
    of: tuple[str, ...] = ()
    """Only of a share: the paths of the counts that add up to its n; with `divided` also its divisor."""
    divided: bool = False
    policy: str = "top1"
    more: tuple[str, ...] = ()
    """Paths of counts that are added to the first before it is divided."""
    cases: str = ""
    """The path of the number of cases, where `of` does not count them: of a median, or of a share of cells."""
    bounds: Interval = Figure.bounds

    @property
    def share(self) -> bool:
        return bool(self.of)

    @property
    def label(self) -> str:
        return f"{scheme_words(self.scheme)}, {self.task}, {self.policy}: {self.name}"

    def beside(self) -> "tuple[Profiled, ...]":
        """For addition's wrong commits the first in time instead of the most significant; for a maze's directions the
        failures that have no other direction."""
        for name, (counterpart, words) in OTHER_READINGS.items():
            if name in self.path:
                path, cases, *of = (at.replace(name, counterpart) for at in (self.path, self.cases, *self.of))
                more = tuple(at.replace(name, counterpart) for at in self.more)
                return (replace(self, path=path, name=f"{self.name}, {words}", of=tuple(of), more=more, cases=cases),)
        return ()

    def estimate(self, results: Results) -> Estimate | None:
        """Of a median over several seeds: the mean of theirs by cases, between the smallest and the largest. The
        median of all cases together lies between these, and records hold no more than the medians."""
        ours, values = super().estimate(results), self.values(results).values()
        if ours is None or self.share or not self.cases or ours.seeds == 1:
            return ours
        return replace(ours, low=min(value.value for value in values), high=max(value.value for value in values))

    def diagnosed(self, results: Results) -> set[int]:
        """The seeds that were diagnosed, whether or not anything failed."""
        return {run.seed for run in self._counted(results) if self._diagnosis(results, run)}

    def why_missing(self, results: Results) -> str:
        if held := [record for run in self._counted(results) if (record := self._diagnosis(results, run))]:
            lacking = all(getattr(record, self._part) is None for record in held)
            return f"diagnosed, but the record has no {self._part.replace('_', ' ')}" if lacking else NOTHING_FAILED
        at = self.policy, results.weights(self.usual)
        if any(at in run.explained for run in self._counted(results)):
            return f"diagnosed, but not on all of {', '.join(diagnosed_strata(self.task))}"
        return super().why_missing(results)

    @property
    def _part(self) -> str:
        """The part of a diagnosis that it is from."""
        return self.path.partition(".")[0]

    def _diagnosis(self, results: Results, run: Run) -> Diagnosis | None:
        """The run's diagnosis, where it covers all strata that the figure is about."""
        record = run.explaining(self._part).get((self.policy, results.weights(self.usual)))
        return record if record is not None and run.covers(record) else None

    def _sample(self, results: Results, run: Run) -> Sample | None:
        record = self._diagnosis(results, run)
        if record is None:
            return None
        value, n = record.number(self.path.split(".")), _total(record, self.of)
        if value is None or (self.of and not n):  # nothing failed, so that there is nothing to describe
            return None
        value += _total(record, self.more)
        value = value / n if self.divided and n else value
        if self.share and not 0 <= value <= 1:
            where = f"{run.name}, diagnosis of {self.policy}"
            raise HardtailError(f"{where}: {self.path} is {value}, not between 0 and 1; the record is damaged")
        n = _total(record, (self.cases,)) if self.cases else n
        stratum = f"{record.strata[0]} … {record.strata[-1]}"
        return self._made(record, run, self.policy, stratum, value, int(n) or None)


def _total(record: Diagnosis, paths: tuple[str, ...]) -> float:
    return sum(record.number(path.split(".")) or 0.0 for path in paths)


def failure_rate(task: str, scheme: str, usual: Checkpoint = "best_probe") -> Profiled:
    """The share of diagnosed instances that confidence gets wrong."""
    return Profiled(task, scheme, "profile.failures", "failures", ("result.instances",), divided=True, usual=usual)


@dataclass(frozen=True)
class _Logged(PerRun):
    """A figure from a run's training log, which is not a share."""

    share = False
    column: ClassVar[str]

    def _sample(self, results: Results, run: Run) -> Sample | None:
        value = self._value(run)
        return None if value is None else self._made(run.entry, run, "training log", self.column, value, None)

    @abstractmethod
    def _value(self, run: Run) -> float | None: ...


@dataclass(frozen=True)
class Reached(_Logged):
    """The training step at which accuracy on natural instances first was at least `level`; the last step if never."""

    level: float = 0.99
    column = "natural"
    whole = True

    @property
    def label(self) -> str:
        return f"{scheme_words(self.scheme)}: first step with natural accuracy of {self.level} (or the last)"

    def _value(self, run: Run) -> float | None:
        if run.watched:  # it decoded problems of its test file, hard ones among them
            return None
        decoded = [(line.step, line.natural) for line in run.log if line.natural is not None]
        reached = [step for step, natural in decoded if natural >= self.level]
        if not decoded or (not reached and run.entry.patience):  # a run that stopped early might have reached it later
            return None
        return float(max(reached[0] if reached else decoded[-1][0], 1))


@dataclass(frozen=True)
class LateLoss(_Logged):
    """Mean training loss over one part of training; without runs that stopped early, whose late part is missing."""

    start: float
    end: float
    column = "loss"

    @property
    def label(self) -> str:
        return f"{scheme_words(self.scheme)}: mean training loss from {self.start:.0%} to {self.end:.0%} of training"

    def _value(self, run: Run) -> float | None:
        steps = run.entry.steps
        lines = [line for line in run.log if self.start <= line.step / steps <= self.end]
        losses = [line.loss for line in lines if line.loss is not None]
        return sum(losses) / len(losses) if losses and not run.entry.patience else None
