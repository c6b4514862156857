"""Evidence: which recorded runs count, and their figures over seeds.

A run that has not learned its task decides nothing: it fails everywhere, for reasons that no claim is about. `GATES`
says what a run must reach; the others are named next to the verdict and never averaged. `study.runs` defines which
records of a run count.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from hardtail.core import records
from hardtail.measuring.statistics import Interval, t_interval, wilson
from hardtail.study.names import ON, PUBLISHED, QUARTER
from hardtail.study.runs import Run
from hardtail.study.store import Fact, Store

Schemes = frozenset[tuple[str, str]]
"""Schemes, each after its task."""
Reading = Literal["release", "paper"]
Checkpoint = Literal["last", "best_probe"]
UNIT = Interval(0.0, 1.0)
ENOUGH = 10
"""A figure is about at least this many cases, over all seeds together."""
SHORTENED = (f"{QUARTER}{PUBLISHED}", QUARTER)
KINDS: dict[Reading, tuple[tuple[str, ...], ...]] = {
    "release": ((PUBLISHED,), ("-tf32", ""), *((ending,) for ending in SHORTENED)),
    "paper": (("-paper",),),
}
"""Kinds of runs, each by the endings of its arms, the best one first; runs are compared within a kind. All steps come
before a quarter of them; among runs of one length published problems, as in the study, before generated ones; and for
addition tf32 before fp32."""
OF_A_QUARTER = "runs of a quarter of the paper's steps"
"""What must be said of the steps of shortened runs."""
FROM_LISTS = ("countdown", "sudoku")
"""The tasks whose problems the study took from published lists."""


class LeftOut(NamedTuple):
    """A run that does not count, and why."""

    run: str
    why: str


def why_left_out(runs: Iterable[LeftOut]) -> str:
    """`one, another (not learned); a third (not measured on natural problems)`; empty if there are none."""
    by_reason: dict[str, list[str]] = {}
    for run, why in dict.fromkeys(runs):
        by_reason.setdefault(why, []).append(run)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in by_reason.items())


UNLEARNED = "not learned"
"""Why a run is left out that a record shows not to have learned its task."""


@dataclass(frozen=True)
class Gate:
    """A run has learned its task if it is right this often under confidence."""

    at_least: float = 0.5
    stratum: str = "natural"
    metric: Literal["exact_match", "cell_accuracy"] = "exact_match"

    def bars(self, run: Run, weights: str) -> str:
        """Why the run does not count; empty if a record shows that it has learned."""
        return self.bars_share(self._share(run, weights))

    def bars_share(self, share: float | None) -> str:
        """The same of a share that was recorded, or of none."""
        if share is None:
            return f"not measured on {self.stratum} problems"
        return "" if share >= self.at_least else UNLEARNED

    def _share(self, run: Run, weights: str) -> float | None:
        record = run.measured.get((records.Accuracy, "top1", self.stratum, weights))
        return getattr(record, self.metric) if isinstance(record, records.Accuracy) else None


GATES = {"countdown": Gate(0.1, "heldout=1"), "sudoku": Gate(0.25, "tier=easy", "cell_accuracy")}
"""Countdown: the paper's own PUMA solves .29 of its test puzzles, an untrained model none. Sudoku: the paper counts
single cells, of which guessing gets one in nine right."""


def gate_of(task: str) -> Gate:
    """What a run of a task must reach, natural problems if nothing else is said."""
    return GATES.get(task, Gate())


@dataclass(frozen=True)
class Sample:
    """One recorded number."""

    run: str
    seed: int
    checkpoint: str
    policy: str
    stratum: str
    n: int | None
    """How many instances, failures or cells the number is about."""
    value: float
    share: bool
    """Whether it is a share or a mean of numbers between 0 and 1, so that `n` determines its interval."""
    commit: str
    device: str

    @property
    def interval(self) -> Interval | None:
        return wilson(round(self.value * self.n), self.n) if self.share and self.n else None


class Value(NamedTuple):
    """A figure for one seed, and how many cases it is about."""

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
    def of(cls, values: Iterable[Value], *, share: bool, bounds: Interval = UNIT) -> "Estimate":
        """Student's interval over seeds, and never less than Wilson's of all their cases taken together.

        With one seed it is Wilson's alone, and three seeds without a failure do not make a figure certain. Cells of one
        answer depend on each other, so that the n of a share of cells is its answers, which errs on the wide side.
        """
        held = list(values)
        low, high = hull((t_interval([value.value for value in held]), pooled_wilson(held) if share else None))
        return cls(mean_of(held), low, high, len(held)).within(bounds)

    def within(self, bounds: Interval) -> "Estimate":
        """The same with an interval that stays inside what the figure can be."""
        if self.interval is None:
            return self
        return replace(self, low=max(self.interval.low, bounds.low), high=min(self.interval.high, bounds.high))

    @property
    def interval(self) -> Interval | None:
        return None if self.low is None or self.high is None else Interval(self.low, self.high)

    def text(self, *, signed: bool = False, whole: bool = False) -> str:
        """`0.984 [0.969, 0.992]`, or `+50,000` for large numbers and `whole` ones."""
        digits = "+" * signed + (",.0f" if whole or abs(self.mean) >= 100 else ".3f")
        shown = (f"{bound:{digits}}" for bound in self.interval or ())
        return f"{self.mean:{digits}}" + (f" [{', '.join(shown)}]" if self.interval else "")


def cases(values: Iterable[Value]) -> int | None:
    """How many cases these are about together; None if a number is not about cases."""
    counts = [value.n for value in values]
    return None if None in counts else sum(count or 0 for count in counts)


def mean_of(values: Sequence[Value]) -> float:
    """The mean over all cases together; over seeds where a number is not about cases."""
    total = cases(values)
    if not total:
        return sum(value.value for value in values) / len(values)
    return sum(value.value * (value.n or 0) for value in values) / total


def pooled_wilson(values: Sequence[Value]) -> Interval | None:
    """Wilson's interval of a share over all cases together."""
    total = cases(values)
    return wilson(round(mean_of(values) * total), total) if total else None


def hull(found: Iterable[Interval | None]) -> tuple[float, float] | tuple[None, None]:
    """The smallest interval that covers all given ones."""
    held = [interval for interval in found if interval is not None]
    return (min(low for low, _ in held), max(high for _, high in held)) if held else (None, None)


@dataclass(frozen=True)
class Results:
    """A store as the ledger reads it.

    `reading`     `release`: what the authors' code did; `paper`: the text as written (docs/study.md §8)
    `checkpoint`  the weights of all figures; None uses those of the paper: the selected ones for tables, the last ones
                  for addition's wrong commits (docs/study.md §1.5), and the last ones throughout in the reading
                  `paper`, whose text has no selection
    `endings`     tasks, each with the endings of the arms whose runs are read; for the others, every check chooses the
                  best runs that it can compare
    """

    store: Store
    reading: Reading = "release"
    checkpoint: Checkpoint | None = None
    endings: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def weights(self, usual: Checkpoint) -> Checkpoint:
        return self.checkpoint or ("last" if self.reading == "paper" else usual)

    def alike(self, task: str, schemes: Iterable[str]) -> "list[Results]":
        """The same, read by runs of these schemes that can be compared with each other, by those of the best kind
        first; the same alone if its runs have been chosen."""
        if task in dict(self.endings):
            return [self]
        plain = [scheme for scheme in schemes if "-" not in scheme]
        ways = endings_of(task, plain, self.reading, self._arms) if plain else [("",)]
        return [self._by(task, endings) for endings in ways]

    def without(self, task: str) -> "Results":
        """The same without any run of this task, but for those whose arm is named with its ending."""
        return self._by(task, ())

    def has_none_alike(self, task: str) -> bool:
        """Whether there are runs of this task, none of which can be compared with the others."""
        return dict(self.endings).get(task) == ()

    def _by(self, task: str, endings: tuple[str, ...]) -> "Results":
        found = replace(self, endings=(*self.endings, (task, endings)))
        vars(found).update(_runs=self._runs, facts=self.facts)  # read once
        return found

    def runs(self, task: str, scheme: str) -> list[Run]:
        """The runs of the arm that represents a scheme, whether or not they have learned the task."""
        chosen = dict(self.endings).get(task)
        endings = chain(*endings_of(task, [scheme], self.reading, self._arms)) if chosen is None else chosen
        arm = arm_of(task, scheme, endings, self._arms)
        return [run for run in self._runs if run.entry.arm == arm]

    def run(self, name: str) -> Run | None:
        """One recorded run."""
        return next((run for run in self._runs if run.name == name), None)

    def named(self, names: Iterable[str]) -> list[Run]:
        """Those of these runs that are recorded, each once."""
        return [run for name in dict.fromkeys(names) if (run := self.run(name))]

    def learned(self, task: str, scheme: str, usual: Checkpoint) -> list[Run]:
        """Those of them that count."""
        return [run for run in self.runs(task, scheme) if not gate_of(task).bars(run, self.weights(usual))]

    def left_out(self, task: str, scheme: str, usual: Checkpoint) -> list[LeftOut]:
        """The others."""
        judged = [LeftOut(run.name, gate_of(task).bars(run, self.weights(usual))) for run in self.runs(task, scheme)]
        return [run for run in judged if run.why]

    @cached_property
    def facts(self) -> list[Fact]:
        return self.store.facts()

    @cached_property
    def _runs(self) -> list[Run]:
        return self.store.runs()

    @property
    def _arms(self) -> set[str]:
        return {run.entry.arm for run in self._runs}


def endings_of(
    task: str, schemes: Collection[str], reading: Reading, recorded: Collection[str]
) -> list[tuple[str, ...]]:
    """The endings by which runs of all these schemes can be compared with each other, those of the best kind first.

    An ending that all of them have comes before several, of which each has its first.
    """
    found: list[tuple[str, ...]] = []
    for kind in KINDS[reading]:
        held = [{ending for ending in kind if f"{task}-{scheme}{ending}" in recorded} for scheme in schemes]
        if all(held) and (task in FROM_LISTS or ON not in kind[0]):
            common = set(kind).intersection(*held)
            found += [(ending,) for ending in kind if ending in common] or [kind]
    return found


def arm_of(task: str, scheme: str, endings: Iterable[str], recorded: Collection[str]) -> str | None:
    """The first recorded arm of a scheme with one of these endings; one that is named with its ending is meant as it
    is."""
    arms = [f"{task}-{scheme}{ending}" for ending in ([""] if "-" in scheme else endings)]
    return next((arm for arm in arms if arm in recorded), None)


def is_shortened(run: Run) -> bool:
    """Whether a run trained for a quarter of the paper's steps, on the study's data or on other data."""
    return run.entry.arm.partition(ON)[0].endswith(QUARTER)


def is_on_published(run: Run) -> bool:
    """Whether a run was trained and measured on published problems."""
    return run.entry.arm.endswith(PUBLISHED)


def kinds_of(runs: Iterable[Run]) -> tuple[str, ...]:
    """What must be said of the steps and problems of runs that are judged or shown together."""
    held = list(runs)
    found = []
    for is_of, words, others in (
        (is_shortened, OF_A_QUARTER, "runs of all steps"),
        (is_on_published, "runs on published problems", "runs on generated ones"),
    ):
        ours, rest = ({run.task for run in held if is_of(run) is whether} for whether in (True, False))
        if ours:
            found.append(words + (f", next to {others}" if ours & rest else ""))
    return tuple(found)


def caveats_of(runs: Iterable[Run]) -> tuple[str, ...]:
    """What must be known of some runs, each caveat once."""
    return tuple(dict.fromkeys(run.entry.caveat for run in runs if run.entry.caveat))


def repeats_the_paper(variant: str) -> bool:
    """Whether arms with this ending repeat the paper's own runs, so that its numbers belong next to them."""
    ending = f"-{variant}" if variant else ""
    return ending not in SHORTENED and any(ending in kind for kinds in KINDS.values() for kind in kinds)
