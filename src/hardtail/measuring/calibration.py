"""Setting the limit of a ladder for one model, by its right answers to natural problems alone."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import Progress
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.influence import with_groups
from hardtail.measuring.passes import HERE, Passes
from hardtail.measuring.subject import Subject
from hardtail.policies.base import Policy
from hardtail.policies.ladder import Ladder

KEPT = 0.99
"""The share of right answers that a limit lets pass; the others cost the ladder one rung more."""
APART = 1_000_000
"""Added to the seed of the problems that are measured, so that others set the limit."""
LEAST = 1e-4
"""The smallest limit, in nats: below, another precision may already move an answer to the other side."""
TRUSTING = 1e30
"""The limit of a ladder that trusts every answer."""


class Calibrated(NamedTuple):
    """A ladder with its limit, its name with that limit, and a sentence about where it comes from."""

    name: str
    ladder: Ladder
    words: str


def ladders(policies: Mapping[str, Policy]) -> dict[str, Ladder]:
    """The named ladders that no limit was given to; HardtailError if there are none."""
    found = {
        name: policy
        for name, policy in policies.items()
        if isinstance(policy, Ladder) and not any(word.strip().startswith("limit=") for word in name.split(","))
    }
    if not found:
        raise HardtailError(
            "--calibrate sets the limit of ladders, and no policy is one without a limit; add `ladder` to --policies"
        )
    return found


def calibrate(
    subject: Subject,
    name: str,
    ladder: Ladder,
    n: int,
    decoding: Decoding,
    *,
    data_seed: int,
    passes: Passes = HERE,
    progress: Progress = lambda done: None,
) -> Calibrated:
    """Set the limit by the right answers of the ladder's last rung to `n` natural problems.

    99 % of them do not exceed it. It is rounded up to two digits, so that it can be written down.
    """
    slowest = ladder.rungs[-1]
    trusting = with_groups(replace(ladder, rungs=(slowest, slowest), limit=TRUSTING, again=0), subject)
    instances = measured_instances(subject.task, "natural", n, data_seed + APART)
    parts = passes.traces(subject, trusting, instances, decoding, {}, trust=False, progress=progress)
    energy = np.concatenate([part.notes["energy"][part.exact_N] for part, _ in parts])
    right = energy[np.isfinite(energy)]  # a problem without hidden cells has no energy
    if not len(right):
        raise HardtailError(
            f"a limit is set by right answers, and {subject.name} solves none of {n:,} natural problems; give more "
            "(--calibrate), or a limit of your own (ladder,limit=1)"
        )
    found = rounded_up(float(np.quantile(right, KEPT, method="inverted_cdf")))
    limit, smallest = max(found, LEAST), " (the smallest)" if found < LEAST else ""
    words = f"limit {limit:g} nats{smallest}, by {len(right):,} right answers to {n:,} natural problems"
    return Calibrated(f"{name},limit={limit:g}", replace(ladder, limit=limit), f"{name}: {words}")


def rounded_up(value: float) -> float:
    """The smallest number of two digits that is not below `value`."""
    if value <= 0:
        return 0.0
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    found = float(f"{value:.1e}")
    return found if found >= value else float(f"{found + unit:.1e}")
