"""Addition's wrong-commit profile, beside what the paper says of it (its section 3.4; definitions as in study §7.1).

Shapes: N instances, F failing instances that have a wrong commit.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array, Trace
from hardtail.tasks.addition.commits import NO_DIGIT, WrongCommits, wrong_commits
from hardtail.tasks.addition.solver import P_ABOVE_G, P_BOTTOM, ROLES, G, K
from hardtail.tasks.addition.task import DIAGNOSIS
from hardtail.tasks.base import Task
from hardtail.traces.summary import mean, median

LONG = 28
"""The paper's hardest stratum: chains of so many cells and more."""
EXAMPLES = 20
"""Failures that a profile shows one by one."""
CHAINS = (0, *DIAGNOSIS)
"""The longest chains from which a new bin begins."""


@dataclass(frozen=True)
class Directions:
    """Wrong commits in cells of one role, by committed minus gold digit. A mistaken carry is +1 or −1 at g, k and the
    carry-out, and +9 or −9 at p, where the digit is 9 without a carry and 0 with one."""

    failures: int
    plus_one: int
    minus_one: int
    plus_nine: int
    minus_nine: int
    other: int

    @classmethod
    def of(cls, difference_F: Array) -> "Directions":
        counts = [int((difference_F == wanted).sum()) for wanted in (1, -1, 9, -9)]
        plus_one, minus_one, plus_nine, minus_nine = counts
        other = len(difference_F) - sum(counts)
        return cls(len(difference_F), plus_one, minus_one, plus_nine, minus_nine, other)


@dataclass(frozen=True)
class Summary:
    """The wrong commits of a trace in one reading. Shares and means are None where there is nothing to take them of."""

    failures: int
    at_chain_msb: float | None
    plus_one_at_g: float | None
    """Share of the wrong g cells in which the committed digit is one too large: a carry was assumed."""
    minus_one_at_k: float | None
    """Share of the wrong k cells in which it is one too small: no carry was assumed."""
    inside_chain: float | None
    """Share of failures at p cells."""
    nine_inside_chain: float | None
    """Share of the wrong p cells that are off by nine."""
    no_digit: int
    """Failures in which the committed token is no digit."""
    confidence_mean: float | None
    gold_second: float | None
    """Share of failures in which one token only was more probable than the gold one."""
    premature: float | None
    """Share of failures whose commit was made while the digit below it, which it waits for, was hidden."""
    chain_masked_mean: float | None
    chain_masked_median: float | None
    """Of the longest chain's cells, the part that was hidden when the commit's step looked."""
    step_mean: float | None
    step_median: float | None
    long_failures: int
    """Failures with a longest chain of 28 and more."""
    long_step_median: float | None
    roles: Mapping[str, Directions]

    @classmethod
    def of(cls, wrong: WrongCommits) -> "Summary":
        role_F, difference_F = wrong.role_F, wrong.difference_F
        g_F, k_F = role_F == G, role_F == K
        p_F = (role_F >= P_ABOVE_G) & (role_F <= P_BOTTOM)
        masked_F, long_F = wrong.masked_F[~np.isnan(wrong.masked_F)], wrong.chain_F >= LONG
        return cls(
            failures=len(wrong),
            at_chain_msb=mean(wrong.at_chain_msb_F),
            plus_one_at_g=mean(difference_F[g_F] == 1),
            minus_one_at_k=mean(difference_F[k_F] == -1),
            inside_chain=mean(p_F),
            nine_inside_chain=mean(np.abs(difference_F[p_F]) == 9),
            no_digit=int((difference_F == NO_DIGIT).sum()),
            confidence_mean=mean(wrong.prob_F),
            gold_second=mean(wrong.gold_rank_F == 1),
            premature=mean(~wrong.ready_F),
            chain_masked_mean=mean(masked_F),
            chain_masked_median=median(masked_F),
            step_mean=mean(wrong.step_F),
            step_median=median(wrong.step_F),
            long_failures=int(long_F.sum()),
            long_step_median=median(wrong.step_F[long_F]),
            roles={name: Directions.of(difference_F[role_F == role]) for role, name in enumerate(ROLES)},
        )

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper beside our figure for it."""

    name: str
    paper: str
    ours: int | float | None


def claims(summary: Summary) -> list[Claim]:
    """The paper's aggregate sentences as rows. Theirs are for 32 digits and, it seems, the task's split `diagnosis`."""
    return [
        Claim("failures", "39 (random), 367 (PUMA)", summary.failures),
        Claim("at the chain-MSB cell, of failures", "0.998 (random and PUMA)", summary.at_chain_msb),
        Claim("+1, of failures at g cells", "nearly 1", summary.plus_one_at_g),
        Claim("-1, of failures at k cells", "1", summary.minus_one_at_k),
        Claim("mean probability of the wrong token", "0.997", summary.confidence_mean),
        Claim("gold token ranked second, of failures", "consistently", summary.gold_second),
        Claim("median part of the chain masked", "random 0.68, PUMA 1.00; PAPL 0.28", summary.chain_masked_median),
        Claim(f"median step from 0, chain >= {LONG}", "random 12, PUMA 3 of 33", summary.long_step_median),
        Claim("median step from 0", "PAPL 28 of 33", summary.step_median),
        Claim("at p cells inside a chain, of failures", "PAPL only", summary.inside_chain),
        Claim("off by nine, of failures at p cells", "PAPL", summary.nine_inside_chain),
    ]


def profile(task: Task, trace: Trace) -> dict[str, Any]:
    """Everything about a trace's wrong commits, as JSON holds it."""
    wrong = wrong_commits(task, trace)
    summaries = {reading: Summary.of(found) for reading, found in wrong.items()}
    chain_N = trace.instances.strata["chain"]
    failures = int((~trace.exact_N).sum())
    return {
        "failures": failures,
        "without_a_wrong_commit": failures - len(wrong["top"]),
        "one_cell_in_both_readings": mean(wrong["top"].cell_F == wrong["first"].cell_F),
        "paper": {reading: [asdict(claim) for claim in claims(found)] for reading, found in summaries.items()},
        "wrong_commits": {reading: found.as_json() for reading, found in summaries.items()},
        "by_chain": {reading: _by_chain(found, chain_N) for reading, found in wrong.items()},
        "examples": {reading: found.records(EXAMPLES) for reading, found in wrong.items()},
    }


_BY_CHAIN = (
    "at_chain_msb",
    "plus_one_at_g",
    "minus_one_at_k",
    "inside_chain",
    "premature",
    "confidence_mean",
    "chain_masked_median",
    "step_median",
)


def _by_chain(wrong: WrongCommits, chain_N: Array) -> list[dict[str, Any]]:
    """A line for every bin of the longest chain that has instances."""
    lines = []
    for name, inside_N in chain_bins(chain_N).items():
        found = Summary.of(wrong.take(inside_N[wrong.instance_F]))
        lines.append(
            {
                "chain": name,
                "instances": int(inside_N.sum()),
                "failures": found.failures,
                **{field: getattr(found, field) for field in _BY_CHAIN},
            }
        )
    return lines


def chain_bins(chain_N: Array) -> dict[str, NDArray[np.bool_]]:
    """The instances of each bin of the longest chain; only bins that have some."""
    bins = {
        f"{low}-{high - 1}" if high > low + 1 else f"{low}": (chain_N >= low) & (chain_N < high)
        for low, high in pairwise(CHAINS)
    }
    bins[f">={CHAINS[-1]}"] = chain_N >= CHAINS[-1]
    return {name: inside_N for name, inside_N in bins.items() if inside_N.any()}
