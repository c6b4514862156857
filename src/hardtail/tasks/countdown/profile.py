"""Wrong chains of Countdown: which token went wrong first, and what the answers are worth (docs/study.md §5, §7.3).

The first wrong token is the first that differs from gold. In a valid chain that is a different solution and not a
mistake; so there are figures of all inexact answers, and of the *unsolved* ones alone. In them, `all` are the cells of
the same answers; kinds and equations (from 0; -1 after the chain) are those of gold.

Shapes: N instances (F those that were not exact), A answer cells, K commits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.tables import percent
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.countdown.solver import KINDS
from hardtail.tasks.countdown.task import Countdown
from hardtail.tasks.countdown.text import read_equation
from hardtail.traces.commits import Groups, Readings, Spread, Timing, annotation, count, readings_of, tally, wrong_cells
from hardtail.traces.summary import share

VALIDITY = ("exact", "valid", "cheat", "wrong_target", "arithmetic", "malformed")
EXACT, VALID, CHEAT, WRONG_TARGET, ARITHMETIC, MALFORMED = range(6)
"""The gold answer; another one that the task accepts; true equations that reach the target but do not use each number
once; true equations that end elsewhere; equations of which one is false; anything else."""


@dataclass(frozen=True)
class WrongTokens:
    """The wrong tokens of some answers, compared with all their tokens."""

    answers: int
    first_wrong: Readings[Timing]
    kind: Groups[Mapping[str, int]]
    equation: Groups[Mapping[str, int]]
    position: Readings[Spread]

    @classmethod
    def of(cls, task: Countdown, failing: Trace) -> "WrongTokens":
        wrong_FA = wrong_cells(failing)
        kind_FA, equation_FA = (annotation(task, failing.instances.extras, name) for name in ("kind_NA", "step_NA"))
        firsts = readings_of(failing, wrong_FA)
        groups = firsts, wrong_FA, np.ones_like(wrong_FA)
        return cls(
            answers=len(failing),
            first_wrong=firsts.map(Timing.of),
            kind=Groups.of(*groups, lambda at: count(kind_FA[at], KINDS)),
            equation=Groups.of(*groups, lambda at: tally(equation_FA[at], equation_FA)),
            position=firsts.map(lambda commits: Spread.of(commits.cell_K)),
        )


@dataclass(frozen=True)
class Profile:
    """Everything this module measures; a trace without failures has zero counts and None means."""

    instances: int
    failures: int
    validity: Mapping[str, int]
    solved: float | None
    inexact: WrongTokens
    unsolved: WrongTokens

    @classmethod
    def of(cls, task: Countdown, trace: Trace) -> "Profile":
        validity_N = validity(task, trace.instances, trace.answer_NA)
        return cls(
            instances=len(trace),
            failures=int((~trace.exact_N).sum()),
            validity=count(validity_N, VALIDITY),
            solved=share((validity_N <= VALID).sum(), len(trace)),
            inexact=WrongTokens.of(task, trace.take(validity_N > EXACT)),
            unsolved=WrongTokens.of(task, trace.take(validity_N > VALID)),
        )

    def in_words(self) -> str | None:
        said = {
            "valid": "are other solutions",
            "cheat": "do not use each number once",
            "wrong_target": "miss the target",
            "arithmetic": "have a false equation",
            "malformed": "are not written as equations",
        }
        counts = {words: self.validity[name] for name, words in said.items() if self.validity[name]}
        parts = [f"{percent(count / sum(counts.values()))} {words}" for words, count in counts.items()]
        return f"Of the answers that are not gold, {', '.join(parts)}." if parts else None


def validity(task: Countdown, instances: Instances, answer_NA: Array) -> NDArray[np.int8]:
    """What each answer is, as an index into `VALIDITY`; a chain with several faults is the last of them there."""
    target_N = annotation(task, instances.strata, "target")
    validity_N = np.full(len(instances), EXACT, dtype=np.int8)
    for i in np.flatnonzero((answer_NA != instances.answer_NA).any(axis=1)):
        validity_N[i] = _judged(task, instances, int(i), answer_NA[i], int(target_N[i]))
    return validity_N


def _judged(task: Countdown, instances: Instances, i: int, answer_A: Array, target: int) -> int:
    if task.fault(instances, i, answer_A) is None:
        return VALID
    read = [read_equation(equation) for equation in task.answer_text(instances, i, answer_A).split(",")]
    steps = [step for step, _ in read if step]
    if len(steps) < len(read):
        return MALFORMED
    if any(fault for _, fault in read):
        return ARITHMETIC
    return CHEAT if steps[-1][-1] == target else WRONG_TARGET
