"""Figures: numbers that claims are about, each computed from recorded results for one training scheme."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from math import inf, isfinite
from typing import Literal

from hardtail.core.errors import HardtailError
from hardtail.measuring.statistics import Interval
from hardtail.study.claims.evidence import (
    DIAGNOSED,
    LEARNED,
    Checkpoint,
    Estimate,
    Record,
    Results,
    Sample,
    Value,
    covers,
    number,
    share_of,
)

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
        found = (self._sample(results, entry) for entry in self._counted(results))
        return [sample for sample in found if sample is not None]

    def left_out(self, results: Results) -> list[str]:
        counted = [entry["name"] for entry in self._counted(results)]
        return [entry["name"] for entry in results.runs(self.task, self.scheme) if entry["name"] not in counted]

    def why_missing(self, results: Results) -> str:
        if self.left_out(results) and not self._counted(results):
            return f"natural accuracy is below {LEARNED}: the task is not learned, so nothing tells of its hard tail"
        return "no record"

    def _counted(self, results: Results) -> list[Record]:
        runs = results.runs(self.task, self.scheme)
        return [entry for entry in runs if not self.learned or self._has_learned(results, entry["name"])]

    def _has_learned(self, results: Results, run: str) -> bool:
        """Whether natural instances are mostly right under confidence; where that was not measured, it is assumed."""
        record = results.evaluation(run, "accuracy", "top1", "natural", self.usual)
        return record is None or share_of(record, "exact_match", f"{run}, top1 on natural").value >= LEARNED

    @abstractmethod
    def _sample(self, results: Results, entry: Record) -> Sample | None: ...


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

    def _sample(self, results: Results, entry: Record) -> Sample | None:
        kind = "reveal" if self.metric == "token_accuracy" else "accuracy"
        record = results.evaluation(entry["name"], kind, self.policy, self.stratum, self.usual)
        if record is None:
            return None
        whose = f"{entry['name']}, {self.policy} on {self.stratum}"
        found = share_of(record, self.metric, whose)
        return _sample_of(record, entry, self.policy, self.stratum, found.value, found.n, share=True)


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
        return {entry["seed"] for entry in self._counted(results) if self._diagnosis(results, entry)}

    def moot(self, results: Results) -> bool:
        return bool(self.diagnosed(results)) and not self.values(results)

    def why_missing(self, results: Results) -> str:
        if self.diagnosed(results):
            return "diagnosed, but there is nothing to take it of"
        if any(results.diagnosis(entry["name"], self.policy, self.usual) for entry in self._counted(results)):
            return f"diagnosed, but not on all of {', '.join(DIAGNOSED[self.task])}"
        return super().why_missing(results)

    def _diagnosis(self, results: Results, entry: Record) -> Record | None:
        """The run's diagnosis, where it is of all strata that the figure is about."""
        record = results.diagnosis(entry["name"], self.policy, self.usual)
        return record if record is not None and covers(record, entry["name"]) else None

    def _sample(self, results: Results, entry: Record) -> Sample | None:
        record = self._diagnosis(results, entry)
        if record is None:
            return None
        whose = f"{entry['name']}, diagnosis of {self.policy}"
        value = number(record, self.path, whose)
        n = sum(number(record, path, whose) or 0.0 for path in self.of)
        if value is None or (self.of and not n):  # nothing failed, so that there is nothing to describe
            return None
        value += sum(number(record, path, whose) or 0.0 for path in self.more)
        value = value / n if self.divided and n else value
        if self.share and not 0 <= value <= 1:
            raise HardtailError(f"{whose}: {'.'.join(self.path)} is {value}, not between 0 and 1; it is damaged")
        n = number(record, self.cases, whose) or 0.0 if self.cases else n
        if not isfinite(value) or not isfinite(n):
            raise HardtailError(f"{whose}: {'.'.join(self.path)} cannot be read; the record is damaged")
        stratum = f"{record['strata'][0]} … {record['strata'][-1]}"
        return _sample_of(record, entry, self.policy, stratum, value, int(n) or None, share=self.share)


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

    def _sample(self, results: Results, entry: Record) -> Sample | None:
        decoded = [line for line in results.log(entry["name"]) if "natural" in line]
        if not decoded:
            return None
        whose = f"{entry['name']}, log"
        at = [(number(line, ("step",), whose), number(line, ("natural",), whose)) for line in decoded]
        reached = [step for step, natural in at if natural is not None and natural >= self.level]
        if not reached and "patience" in entry:  # it ended early, and might have reached it yet
            return None
        step = reached[0] if reached else at[-1][0]
        return _sample_of(entry, entry, "training log", "natural", max(step or 0.0, 1.0), None, share=False)


@dataclass(frozen=True)
class LateLoss(_Recorded):
    """Mean training loss over one part of training."""

    start: float
    end: float

    share = False

    @property
    def label(self) -> str:
        return f"{SCHEMES[self.scheme]}: mean training loss from {self.start:.0%} to {self.end:.0%} of training"

    def _sample(self, results: Results, entry: Record) -> Sample | None:
        if "patience" in entry:  # it ended early, and has no late part of the training that is meant
            return None
        whose = f"{entry['name']}, log"
        lines = [
            (number(line, ("step",), whose), number(line, ("loss",), whose)) for line in results.log(entry["name"])
        ]
        inside = [
            loss
            for step, loss in lines
            if step is not None and loss is not None and self.start <= step / entry["steps"] <= self.end
        ]
        if not inside:
            return None
        return _sample_of(entry, entry, "training log", "loss", sum(inside) / len(inside), None, share=False)


def _sample_of(
    record: Record, entry: Record, policy: str, stratum: str, value: float, n: int | None, *, share: bool
) -> Sample:
    return Sample(
        run=entry["name"],
        seed=entry["seed"],
        checkpoint=str(record.get("checkpoint", "–")),
        policy=policy,
        stratum=stratum,
        n=n,
        value=value,
        share=share,
        commit=str(record.get("commit", "–")),
        device=str(record.get("device", "–")),
    )
