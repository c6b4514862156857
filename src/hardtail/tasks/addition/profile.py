"""Addition's wrong-commit profile (definitions as in docs/study.md §7.1).

Shapes: N instances, K failing instances that have a wrong commit.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hardtail.core.tables import percent
from hardtail.core.types import Array, Trace
from hardtail.tasks.addition.commits import NO_DIGIT, Example, WrongCommits, wrong_commits
from hardtail.tasks.addition.solver import P_ABOVE_G, P_BOTTOM, ROLES, G, K
from hardtail.tasks.addition.task import DIAGNOSIS
from hardtail.tasks.base import Task
from hardtail.traces.commits import Readings, gold_second
from hardtail.traces.summary import mean, median

LONG = 28
"""Chains of this many cells and more are reported on their own."""
EXAMPLES = 20
"""Failures that a profile shows one by one."""
CHAINS = (0, *DIAGNOSIS)
"""The longest chains from which a new bin begins."""


@dataclass(frozen=True)
class Differences:
    """Wrong commits in cells of one role, by committed minus gold digit. A mistaken carry is +1 or −1 at g, k and the
    carry-out, and +9 or −9 at p, where the digit is 9 without a carry and 0 with one."""

    failures: int
    plus_one: int
    minus_one: int
    plus_nine: int
    minus_nine: int
    other: int

    @classmethod
    def of(cls, difference_K: Array) -> "Differences":
        ways = {"plus_one": 1, "minus_one": -1, "plus_nine": 9, "minus_nine": -9}
        found = {name: int((difference_K == way).sum()) for name, way in ways.items()}
        return cls(failures=len(difference_K), **found, other=len(difference_K) - sum(found.values()))


@dataclass(frozen=True)
class Summary:
    """The wrong commits of a trace in one reading; a share or mean of nothing is None."""

    failures: int
    at_chain_msb: float | None
    plus_one_at_g: float | None
    """Share of the wrong g cells whose digit is one too large: a carry was assumed."""
    minus_one_at_k: float | None
    """Share of the wrong k cells whose digit is one too small: no carry was assumed."""
    inside_chain: float | None
    """Share of failures at p cells."""
    nine_inside_chain: float | None
    """Share of the wrong p cells that are off by nine."""
    no_digit: int
    confidence_mean: float | None
    gold_second: float | None
    premature: float | None
    """Share of failures whose commit was made while the digit below, which it waits for, was hidden."""
    chain_masked_mean: float | None
    chain_masked_median: float | None
    step_mean: float | None
    step_median: float | None
    long_failures: int
    long_step_median: float | None
    roles: Mapping[str, Differences]

    @classmethod
    def of(cls, wrong: WrongCommits) -> "Summary":
        role_K, difference_K = wrong.role_K, wrong.difference_K
        p_K = (role_K >= P_ABOVE_G) & (role_K <= P_BOTTOM)
        long_K = wrong.chain_K >= LONG
        return cls(
            failures=len(wrong),
            at_chain_msb=mean(wrong.at_chain_msb_K),
            plus_one_at_g=mean(difference_K[role_K == G] == 1),
            minus_one_at_k=mean(difference_K[role_K == K] == -1),
            inside_chain=mean(p_K),
            nine_inside_chain=mean(np.abs(difference_K[p_K]) == 9),
            no_digit=int((difference_K == NO_DIGIT).sum()),
            confidence_mean=mean(wrong.prob_K),
            gold_second=gold_second(wrong.gold_rank_K),
            premature=mean(~wrong.ready_K),
            chain_masked_mean=mean(wrong.masked_K),
            chain_masked_median=median(wrong.masked_K),
            step_mean=mean(wrong.step_K),
            step_median=median(wrong.step_K),
            long_failures=int(long_K.sum()),
            long_step_median=median(wrong.step_K[long_K]),
            roles={name: Differences.of(difference_K[role_K == role]) for role, name in enumerate(ROLES)},
        )


@dataclass(frozen=True)
class ChainLine:
    """The wrong commits of the instances whose longest chain is in one bin."""

    chain: str
    instances: int
    failures: int
    at_chain_msb: float | None
    plus_one_at_g: float | None
    minus_one_at_k: float | None
    inside_chain: float | None
    premature: float | None
    confidence_mean: float | None
    chain_masked_median: float | None
    step_median: float | None

    @classmethod
    def of(cls, name: str, inside_N: NDArray[np.bool_], wrong: WrongCommits) -> "ChainLine":
        found = vars(Summary.of(wrong.take(inside_N[wrong.row_K])))
        shared = {field.name: found[field.name] for field in fields(cls) if field.name in found}
        return cls(chain=name, instances=int(inside_N.sum()), **shared)


@dataclass(frozen=True)
class Profile:
    """Everything about a trace's wrong commits."""

    failures: int
    without_a_wrong_commit: int
    one_cell_in_both_readings: float | None
    wrong_commits: Readings[Summary]
    by_chain: Readings[tuple[ChainLine, ...]]
    """A line for every bin of the longest chain that has instances."""
    examples: Readings[tuple[Example, ...]]

    @classmethod
    def of(cls, task: Task, trace: Trace) -> "Profile":
        wrong = wrong_commits(task, trace)
        bins = chain_bins(trace.instances.strata["chain"])
        failures = int((~trace.exact_N).sum())
        return cls(
            failures=failures,
            without_a_wrong_commit=failures - len(wrong.lowest_index),
            one_cell_in_both_readings=mean(wrong.lowest_index.cell_K == wrong.first_in_time.cell_K),
            wrong_commits=wrong.map(Summary.of),
            by_chain=wrong.map(
                lambda found: tuple(ChainLine.of(name, inside_N, found) for name, inside_N in bins.items())
            ),
            examples=wrong.map(lambda found: tuple(map(found.example, range(min(len(found), EXAMPLES))))),
        )

    def in_words(self) -> str | None:
        first = self.wrong_commits.first_in_time
        if not first.failures:
            return None
        above, inside = percent(first.at_chain_msb), percent(first.inside_chain)
        rest = 1 - (first.at_chain_msb or 0.0) - (first.inside_chain or 0.0)
        elsewhere = f", elsewhere in {percent(rest)}" if round(rest, 9) > 0 else ""
        return (
            f"The earliest wrong digit is directly above the longest chain in {above} of the failures, "
            f"inside one in {inside}{elsewhere}."
        )


def chain_bins(chain_N: Array) -> dict[str, NDArray[np.bool_]]:
    """The instances of each bin of the longest chain; only bins that have some."""
    bins = {f"{low}-{high - 1}": (chain_N >= low) & (chain_N < high) for low, high in pairwise(CHAINS)}
    bins[f">={CHAINS[-1]}"] = chain_N >= CHAINS[-1]
    return {name: inside_N for name, inside_N in bins.items() if inside_N.any()}
