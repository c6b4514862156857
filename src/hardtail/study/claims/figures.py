"""Figures: numbers that claims are about, each computed from recorded results for one training scheme."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import inf
from typing import Literal

from hardtail.core import records
from hardtail.core.errors import HardtailError
from hardtail.measuring.diagnosis.record import Diagnosis
from hardtail.measuring.statistics import Interval
from hardtail.study.claims.evidence import LEARNED, Checkpoint, Estimate, Results, Sample, Value
from hardtail.study.runs import Run, diagnosed_strata

MAX_LOGIT = ("addition", "listops", "countdown")
"""Where the authors' code ranks by the largest logit, though the text says probability."""
NO_SEED = "no seed has all of these figures"
OTHERWISE = {"lowest_index": ("first_in_time", "first in time"), "failures_with": ("failures_only", "and no others")}
"""Steps of paths in diagnoses, those of another reading, and what that one says."""
SCHEMES = {"random": "random masking", "papl": "PAPL", "puma": "PUMA", "papl5": "PAPL α=5"}


class Figure(ABC):
    """A number that results give for each seed."""

    @property
    @abstractmethod
    def share(self) -> bool:
        """Whether it is a share, or a mean of numbers between 0 and 1."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What it is, in words."""

    @property
    def bounds(self) -> Interval:
        """The least and the greatest that it can be: steps and losses are not below zero, as shares are not."""
        return Interval(0.0, inf)

    @abstractmethod
    def samples(self, results: Results) -> list[Sample]:
        """Every recorded number that goes in."""

    @abstractmethod
    def values(self, results: Results) -> dict[int, Value]:
        """The figure by seed; empty where it was not measured."""

    def beside(self) -> "tuple[Figure, ...]":
        """The same in another reading, which is shown and not judged."""
        return ()

    def why_missing(self, results: Results) -> str:
        """Why there is no figure, where there is none."""
        return "no record"

    def moot(self, results: Results) -> bool:
        """Whether it was measured and there is nothing to take it of."""
        return False

    def left_out(self, results: Results) -> list[str]:
        """Runs that do not count because they have not learned the task."""
        return []

    def estimate(self, results: Results) -> Estimate | None:
        values = self.values(results)
        if not values:
            return None
        found = Estimate.of(values.values(), share=self.share)
        if found.low is None or found.high is None:
            return found
        return replace(found, low=max(found.low, self.bounds.low), high=min(found.high, self.bounds.high))


@dataclass(frozen=True)
class _Recorded(Figure):
    """A figure that every run of a scheme has one number for."""

    task: str
    scheme: str
    learned: bool = field(default=False, kw_only=True)
    """Whether it is about the hard tail of a model that has learned the task, so that others do not count."""
    usual: Checkpoint = field(default="best_probe", kw_only=True)
    """The weights it is taken of, unless all figures are of the same."""

    def values(self, results: Results) -> dict[int, Value]:
        return {sample.seed: Value(sample.value, sample.n) for sample in self.samples(results)}

    def samples(self, results: Results) -> list[Sample]:
        found = (self._sample(results, run) for run in self._counted(results))
        return [sample for sample in found if sample is not None]

    def left_out(self, results: Results) -> list[str]:
        counted = [run.name for run in self._counted(results)]
        return [run.name for run in results.runs(self.task, self.scheme) if run.name not in counted]

    def why_missing(self, results: Results) -> str:
        if self.left_out(results) and not self._counted(results):
            return f"natural accuracy is below {LEARNED}: the task is not learned, so nothing tells of its hard tail"
        return "no record"

    def _counted(self, results: Results) -> list[Run]:
        runs = results.runs(self.task, self.scheme)
        return [run for run in runs if not self.learned or self._has_learned(results, run)]

    def _has_learned(self, results: Results, run: Run) -> bool:
        """Whether natural instances are mostly right under confidence; where that was not measured, it is assumed."""
        record = run.measured.get((records.Accuracy, "top1", "natural", results.weights(self.usual)))
        return not isinstance(record, records.Accuracy) or record.exact_match >= LEARNED

    @abstractmethod
    def _sample(self, results: Results, run: Run) -> Sample | None: ...


@dataclass(frozen=True)
class Accuracy(_Recorded):
    """A share of right answers (or cells) of one stratum under one decoding order."""

    policy: str
    stratum: str
    metric: Literal["exact_match", "cell_accuracy", "token_accuracy"] = "exact_match"

    share = True

    @property
    def label(self) -> str:
        return f"{SCHEMES[self.scheme]}, {self.policy}, {self.stratum}"

    def beside(self) -> tuple[Figure, ...]:
        if self.policy == "top1" and self.task in MAX_LOGIT:
            return (replace(self, policy="max-logit"),)
        return ()

    def _sample(self, results: Results, run: Run) -> Sample | None:
        kind = records.Reveal if self.metric == "token_accuracy" else records.Accuracy
        record = run.measured.get((kind, self.policy, self.stratum, results.weights(self.usual)))
        if record is None or (value := getattr(record, self.metric)) is None:
            return None
        return _sample_of(record, run, self.policy, self.stratum, value, record.n, share=True)


@dataclass(frozen=True)
class Profiled(_Recorded):
    """A number of a diagnosis."""

    path: tuple[str, ...]
    name: str
    """What it is, in words."""
    of: tuple[tuple[str, ...], ...] = ()
    """Where what it is over stands, if it is a share: one count or several that add up; with `divided` its divisor."""
    divided: bool = False
    policy: str = "top1"
    more: tuple[tuple[str, ...], ...] = ()
    """Counts that are added to the first before it is divided."""
    cases: tuple[str, ...] = ()
    """Where the number of cases stands, if it is a median: the evidence shows it."""
    between: Interval | None = None
    """Its bounds, where it is no share: what a share can be, its interval keeps by itself."""

    @property
    def share(self) -> bool:
        return bool(self.of)

    @property
    def bounds(self) -> Interval:
        return self.between or super().bounds

    @property
    def label(self) -> str:
        return f"{SCHEMES[self.scheme]}, {self.task}, {self.policy}: {self.name}"

    def beside(self) -> "tuple[Profiled, ...]":
        """Of addition's wrong commits the first in time, not the most significant one; of a maze's directions the
        failures that have no other."""
        words = [OTHERWISE[step][1] for step in self.path if step in OTHERWISE]
        if not words:
            return ()

        def other(path: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(OTHERWISE[step][0] if step in OTHERWISE else step for step in path)

        of, more, name = tuple(map(other, self.of)), tuple(map(other, self.more)), ", ".join((self.name, *words))
        return (replace(self, path=other(self.path), name=name, of=of, more=more, cases=other(self.cases)),)

    def diagnosed(self, results: Results) -> set[int]:
        """The seeds that were diagnosed, whether or not anything failed."""
        return {run.seed for run in self._counted(results) if self._diagnosis(results, run)}

    def moot(self, results: Results) -> bool:
        return bool(self.diagnosed(results)) and not self.values(results)

    def why_missing(self, results: Results) -> str:
        if self.diagnosed(results):
            return "diagnosed, but there is nothing to take it of"
        at = self.policy, results.weights(self.usual)
        if any(at in run.explained for run in self._counted(results)):
            return f"diagnosed, but not on all of {', '.join(diagnosed_strata(self.task))}"
        return super().why_missing(results)

    def _diagnosis(self, results: Results, run: Run) -> Diagnosis | None:
        """The run's diagnosis, where it is of all strata that the figure is about."""
        record = run.explained.get((self.policy, results.weights(self.usual)))
        return record if record is not None and run.covers(record) else None

    def _sample(self, results: Results, run: Run) -> Sample | None:
        record = self._diagnosis(results, run)
        if record is None:
            return None
        value = record.number(self.path)
        n = sum(record.number(path) or 0.0 for path in self.of)
        if value is None or (self.of and not n):  # nothing failed, so that there is nothing to describe
            return None
        value += sum(record.number(path) or 0.0 for path in self.more)
        value = value / n if self.divided and n else value
        if self.share and not 0 <= value <= 1:
            where = f"{run.name}, diagnosis of {self.policy}"
            raise HardtailError(f"{where}: {'.'.join(self.path)} is {value}, not between 0 and 1; it is damaged")
        n = record.number(self.cases) or 0.0 if self.cases else n
        stratum = f"{record.strata[0]} … {record.strata[-1]}"
        return _sample_of(record, run, self.policy, stratum, value, int(n) or None, share=self.share)


def failure_rate(task: str, scheme: str, usual: Checkpoint = "best_probe") -> Profiled:
    """The share of diagnosed instances that confidence gets wrong."""
    of = (("result", "instances"),)
    return Profiled(task, scheme, ("profile", "failures"), "failures", of, divided=True, usual=usual)


@dataclass(frozen=True)
class Reached(_Recorded):
    """The training step at which accuracy on natural instances first was at least `level`; the last step if never."""

    level: float = 0.99

    share = False

    @property
    def label(self) -> str:
        return f"{SCHEMES[self.scheme]}: first step with natural accuracy of {self.level} (or the last)"

    def _sample(self, results: Results, run: Run) -> Sample | None:
        decoded = [(line.step, line.natural) for line in run.log if line.natural is not None]
        if not decoded:
            return None
        reached = [step for step, natural in decoded if natural >= self.level]
        if not reached and run.entry.patience:  # it ended early, and might have reached it yet
            return None
        step = reached[0] if reached else decoded[-1][0]
        return _sample_of(run.entry, run, "training log", "natural", float(max(step, 1)), None, share=False)


@dataclass(frozen=True)
class LateLoss(_Recorded):
    """Mean training loss over one part of training."""

    start: float
    end: float

    share = False

    @property
    def label(self) -> str:
        return f"{SCHEMES[self.scheme]}: mean training loss from {self.start:.0%} to {self.end:.0%} of training"

    def _sample(self, results: Results, run: Run) -> Sample | None:
        if run.entry.patience:  # it ended early, and has no late part of the training that is meant
            return None
        inside = [
            line.loss
            for line in run.log
            if line.loss is not None and self.start <= line.step / run.entry.steps <= self.end
        ]
        if not inside:
            return None
        return _sample_of(run.entry, run, "training log", "loss", sum(inside) / len(inside), None, share=False)


def _sample_of(
    record: records.Head | records.RunEntry,
    run: Run,
    policy: str,
    stratum: str,
    value: float,
    n: int | None,
    *,
    share: bool,
) -> Sample:
    checkpoint = record.checkpoint if isinstance(record, records.Head) else None
    return Sample(
        run=run.name,
        seed=run.seed,
        checkpoint=checkpoint or "–",
        policy=policy,
        stratum=stratum,
        n=n,
        value=value,
        share=share,
        commit=record.commit or "–",
        device=record.device or "–",
    )
