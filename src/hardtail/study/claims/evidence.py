"""What the recorded results say: which runs stand for a scheme, which records count, and the mean over seeds.

Which records count: one cell a step, no sampling, every token allowed, in fp32, which is how the paper decodes. Of
several records of one run about the same thing that of the latest weights counts, then the one with most instances, of
equals the last.

Which diagnosis counts: one that covers every stratum its claims are about (`DIAGNOSED`), one of exactly these before
one of more. Diagnoses of some strata each are not put together: they hold medians, which cannot be pooled.

Whose failures count: claims that compare schemes or orders on the hard tail of addition and mazes, or describe wrong
commits there, are about models that have learned their task. A run that gets fewer than half of the natural instances
right (`LEARNED`) fails everywhere, for another reason. Single cells of the paper's tables are compared with whatever
was measured.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Any, Literal

from hardtail.core.errors import HardtailError
from hardtail.measuring.statistics import Interval, t_interval, wilson
from hardtail.study.store import Store
from hardtail.tasks.named import profile_of_file

Record = dict[str, Any]
Reading = Literal["release", "paper"]
Checkpoint = Literal["last", "best_probe"]
DIAGNOSED: dict[str, tuple[str, ...]] = {
    "addition": tuple(f"chain>={k}" for k in (4, 8, 12, 16, 20, 24, 28, 30, 32)),
    "maze": tuple(f"corridor>={k}" for k in (4, 8, 12, 16, 20, 24, 28)),
    "listops": ("natural", *(f"depth={k}" for k in (1, 2, 3, 4, 5))),
    "countdown": ("natural", "heldout=1", "heldout=1,m>=11", "heldout=1,m=4-10", "heldout=1,m=1-3"),
    "sudoku": (
        "natural",
        *(f"tier={tier}" for tier in ("easy", "medium", "hard", "very_hard", "extreme", "top1pct")),
        "tl4>=0.95",
    ),
}
"""The strata that claims about diagnoses are about: what a run of the study is diagnosed on (`explain.diagnosed`)."""
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
    _logs: dict[str, list[Record]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def weights(self, usual: Checkpoint) -> Checkpoint:
        return self.checkpoint or ("last" if self.reading == "paper" else usual)

    def runs(self, task: str, scheme: str) -> list[Record]:
        """Index entries of the arm that stands for a scheme."""
        arm = arm_of(task, scheme, self.reading, {entry["arm"] for entry in self._index})
        return [entry for entry in self._index if entry["arm"] == arm]

    def evaluation(self, run: str, kind: str, policy: str, stratum: str, usual: Checkpoint) -> Record | None:
        return self._evaluations.get((run, kind, policy, stratum, self.weights(usual)))

    def diagnosis(self, run: str, policy: str, usual: Checkpoint) -> Record | None:
        """The diagnosis that counts, whatever strata it is of."""
        return self._diagnoses.get((run, policy, self.weights(usual)))

    def log(self, run: str) -> list[Record]:
        if run not in self._logs:
            self._logs[run] = self.store.log(run)
        return self._logs[run]

    @cached_property
    def _index(self) -> list[Record]:
        return self.store.index()

    @cached_property
    def _evaluations(self) -> Mapping[tuple[str, ...], Record]:
        keys = ("run", "kind", "policy", "stratum", "checkpoint")
        counted = [record for record in self.store.evaluations() if plainly_decoded(record)]
        return largest(counted, keys, ("n",), str(self.store.folder))

    @cached_property
    def _diagnoses(self) -> Mapping[tuple[str, ...], Record]:
        held = [
            record | {"profile": profile_of_file(record.get("task"), record.get("profile"))}
            for record in self.store.diagnoses()
        ]
        return fitting(held, ("run", "policy", "checkpoint"), str(self.store.folder))


def arm_of(task: str, scheme: str, reading: Reading, recorded: Collection[str]) -> str | None:
    """The arm that stands for a scheme, if it is recorded: of addition's, tf32 before fp32."""
    of = f"{task}-{scheme}"
    arms = (f"{of}-paper",) if reading == "paper" else (f"{of}-tf32", of)
    return next((arm for arm in arms if arm in recorded), None)


def largest(
    records: Iterable[Record], keys: tuple[str, ...], size: tuple[str, ...], of: str
) -> dict[tuple[str, ...], Record]:
    """One record for each combination of `keys`: of the latest weights the largest, of equals the last."""
    found: dict[tuple[str, ...], tuple[tuple[float, float], Record]] = {}
    for record in records:
        whose = f"{of}/{record['run']}" if "run" in record else of
        if missing := [key for key in keys if key not in record]:
            raise HardtailError(f"{whose}: a record has no {missing[0]!r}; it is damaged")
        key = tuple(str(record[name]) for name in keys)
        rank = number(record, ("step",), whose) or 0.0, number(record, size, whose) or 0.0
        if key not in found or rank >= found[key][0]:
            found[key] = rank, record
    return {key: record for key, (_, record) in found.items()}


def fitting(records: Iterable[Record], keys: tuple[str, ...], of: str) -> dict[tuple[str, ...], Record]:
    """One diagnosis for each combination of `keys`: of exactly the strata that claims are about, else of these and
    more, else of others; of such the largest, of equals the last."""
    exactly, covering, others = list[Record](), list[Record](), list[Record]()
    for record in filter(plainly_decoded, records):
        exact = covers(record, of) and set(record["strata"]) == wanted(record)
        (exactly if exact else covering if covers(record, of) else others).append(record)
    size = ("result", "instances")
    return largest(others, keys, size, of) | largest(covering, keys, size, of) | largest(exactly, keys, size, of)


def covers(record: Mapping[str, Any], of: str) -> bool:
    """Whether a diagnosis is of all strata that claims are about."""
    strata = record.get("strata")
    if not isinstance(strata, list) or not all(isinstance(stratum, str) for stratum in strata):
        raise HardtailError(f"{of}: the strata of a diagnosis are {strata!r}, not a list of names; it is damaged")
    return set(strata) >= wanted(record)


def wanted(record: Mapping[str, Any]) -> set[str]:
    """The strata that claims about diagnoses of this record's task are about."""
    return set(DIAGNOSED.get(str(record.get("task")), ()))


def number(record: Mapping[str, Any], path: tuple[str, ...], whose: str) -> float | None:
    """The number at a path of a record; None where there is none, a clear word where there is something else."""
    inner: Any = record
    for step in path:
        if not isinstance(inner, Mapping):
            raise HardtailError(f"{whose}: {'.'.join(path)} cannot be read; the record is damaged")
        if step not in inner:
            return None
        inner = inner[step]
    if inner is None:
        return None
    if isinstance(inner, bool) or not isinstance(inner, int | float):
        raise HardtailError(f"{whose}: {'.'.join(path)} is {inner!r}, not a number; the record is damaged")
    return float(inner)


def share_of(record: Mapping[str, Any], metric: str, whose: str) -> Value:
    """A recorded share, and the number of instances it is over."""
    value, n = number(record, (metric,), whose), number(record, ("n",), whose)
    if value is None or not 0 <= value <= 1 or n is None or not 1 <= n < inf:
        raise HardtailError(f"{whose}: a record has no {metric} between 0 and 1, or no n; it is damaged")
    return Value(value, int(n))


def plainly_decoded(record: Mapping[str, Any]) -> bool:
    """One cell a step, nothing sampled or restricted, on the instances and random orders of the run's own seed, in
    the precision that all runs are measured in."""
    rule = record.get("commit_rule", "1 a step"), record.get("restrict", False), record.get("temperature", 0.0)
    own = record.get("data_seed", record.get("seed")) == record.get("seed") and record.get("decode_seed", 0) == 0
    return own and rule == ("1 a step", False, 0.0) and record.get("decode_precision", "fp32") == "fp32"
