"""What the recorded results say: which runs stand for a scheme, and the mean over seeds.

Whose failures count: claims that compare schemes or orders on the hard tail of addition and mazes, or describe wrong
commits there, are about models that have learned their task. A run that gets fewer than half of the natural instances
right (`LEARNED`) fails everywhere, for another reason. Single cells of the paper's tables are compared with whatever
was measured. `study.runs` says which records of a run count.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from hardtail.measuring.statistics import Interval, t_interval, wilson
from hardtail.study.runs import Run
from hardtail.study.store import Store

Reading = Literal["release", "paper"]
Checkpoint = Literal["last", "best_probe"]
LEARNED = 0.5
"""The natural accuracy under confidence from which a run's failures tell of the hard tail."""


@dataclass(frozen=True)
class Sample:
    """One recorded number."""

    run: str
    seed: int
    checkpoint: str
    policy: str
    stratum: str
    n: int | None
    """What the number is over: instances, failures, cells."""
    value: float
    share: bool
    """Whether it is a share or a mean of numbers between 0 and 1, so that `n` says how sure it is."""
    commit: str
    device: str

    @property
    def interval(self) -> Interval | None:
        return wilson(round(self.value * self.n), self.n) if self.share and self.n else None


@dataclass(frozen=True)
class Value:
    """A figure for one seed, and what it is over."""

    value: float
    n: int | None


@dataclass(frozen=True)
class Estimate:
    """A figure over seeds, with a 95 % interval where there can be one."""

    mean: float
    low: float | None
    high: float | None
    seeds: int

    @classmethod
    def of(cls, values: Iterable[Value], *, share: bool) -> "Estimate":
        """Student's interval over seeds, and never less than Wilson's of all their instances taken together.

        With one seed it is Wilson's alone: three seeds without a failure do not make a figure certain. Cells of one
        answer hang together, so that a share of cells counts its answers, not its cells: that errs on the wide side.
        """
        held = list(values)
        mean = sum(value.value for value in held) / len(held)
        found = [t_interval([value.value for value in held])]
        if share and (total := sum(value.n or 0 for value in held)):
            found.append(wilson(round(mean * total), total))
        low, high = hull(found)
        if share and low is not None and high is not None:
            low, high = max(low, 0.0), min(high, 1.0)
        return cls(mean, low, high, len(held))

    def text(self) -> str:
        digits = ".3f" if abs(self.mean) < 100 else ",.0f"
        mean = f"{self.mean:{digits}}"
        return mean if self.low is None or self.high is None else f"{mean} [{self.low:{digits}}, {self.high:{digits}}]"


def hull(found: Iterable[Interval | None]) -> tuple[float, float] | tuple[None, None]:
    """The interval that covers those that there are."""
    held = [interval for interval in found if interval is not None]
    if not held:
        return None, None
    return min(interval.low for interval in held), max(interval.high for interval in held)


@dataclass(frozen=True)
class Results:
    """A store as the ledger reads it.

    `reading`     `release`: what the authors' code did; `paper`: the text as written (docs/study.md §8)
    `checkpoint`  the weights of all figures; None takes what the paper did: the selected ones for tables, the last
                  ones for addition's wrong commits (docs/study.md §1.5), and the last ones throughout in the reading
                  `paper`, whose text has no selection
    """

    store: Store
    reading: Reading = "release"
    checkpoint: Checkpoint | None = None

    def weights(self, usual: Checkpoint) -> Checkpoint:
        return self.checkpoint or ("last" if self.reading == "paper" else usual)

    def runs(self, task: str, scheme: str) -> list[Run]:
        """The runs of the arm that stands for a scheme."""
        arm = arm_of(task, scheme, self.reading, {run.entry.arm for run in self._runs})
        return [run for run in self._runs if run.entry.arm == arm]

    @cached_property
    def _runs(self) -> list[Run]:
        return self.store.runs()


def arm_of(task: str, scheme: str, reading: Reading, recorded: Collection[str]) -> str | None:
    """The arm that stands for a scheme, if it is recorded: of addition's, tf32 before fp32."""
    of = f"{task}-{scheme}"
    arms = (f"{of}-paper",) if reading == "paper" else (f"{of}-tf32", of)
    return next((arm for arm in arms if arm in recorded), None)
