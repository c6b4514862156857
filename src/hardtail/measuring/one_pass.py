"""What one forward pass shows: the probe, and answers of which half is revealed.

Shapes: N instances, A answer cells.
"""

import math
from dataclasses import replace

import numpy as np
from msgspec import structs

from hardtail.core.records import HALF_REVEALED, Probe, Reveal
from hardtail.core.seeds import Streams, below
from hardtail.core.types import Instances
from hardtail.decoding.options import Decoding
from hardtail.measuring.passes import HERE, Passes
from hardtail.measuring.provenance import head_of
from hardtail.measuring.statistics import wilson
from hardtail.measuring.subject import Subject
from hardtail.tasks.base import Task


def probe(subject: Subject, instances: Instances, stratum: str, decoding: Decoding, passes: Passes = HERE) -> Probe:
    """Mean NLL of the gold tokens with every maskable cell hidden, over the whole vocabulary (docs/study.md §1.5)."""
    nll = passes.judged(subject, instances, instances.maskable_NA, decoding).nll
    head = structs.asdict(head_of(subject, "none", decoding, passes))
    return Probe(**head, stratum=stratum, n=len(instances), probe_nll=nll if math.isfinite(nll) else None)


def half_reveal(task: Task, instances: Instances, seed: int) -> Instances:
    """The same problems with ⌊n / 2⌋ of each answer's n meaningful cells shown, drawn for each (docs/study.md §5).

    Cells after the end of the answer stay hidden, as in the release.
    """
    meant_NA = instances.maskable_NA & task.meaningful(instances)
    key_NA = Streams(seed).named(f"{task.name}/reveal").keys(meant_NA.size).reshape(meant_NA.shape)
    draw_NA = np.where(meant_NA, below(key_NA, 1 << 31), 1 << 31)
    rank_NA = np.argsort(np.argsort(draw_NA, axis=1, kind="stable"), axis=1, kind="stable")
    shown_NA = meant_NA & (rank_NA < meant_NA.sum(axis=1, keepdims=True) // 2)
    return replace(instances, maskable_NA=instances.maskable_NA & ~shown_NA)


def reveal(subject: Subject, instances: Instances, stratum: str, decoding: Decoding, passes: Passes = HERE) -> Reveal:
    """One pass over half-revealed answers: token accuracy over all meaningful cells (release), and exact match."""
    shown = half_reveal(subject.task, instances, decoding.seed)
    judged_NA = shown.maskable_NA & subject.task.meaningful(instances)
    _, right, cells, exact = passes.judged(subject, shown, judged_NA, decoding)
    head, interval = structs.asdict(head_of(subject, HALF_REVEALED, decoding, passes)), wilson(right, cells)._asdict()
    n, tokens = len(instances), right / cells
    return Reveal(**head, stratum=stratum, n=n, tokens=cells, token_accuracy=tokens, exact_match=exact / n, **interval)
