"""What happened to commits that were hidden and written again: which wrong ones were caught, which stayed.

Every policy that hides cells again is read alike: `check`, `ladder`, `loo`, `p2`, `remdm`.

Shapes: N instances, A answer cells, T events, K pairs of one commit and the next one of the same cell.
"""

from dataclasses import dataclass

import numpy as np

from hardtail.core.records import Count, Share
from hardtail.core.types import Trace
from hardtail.traces.commits import wrong_cells
from hardtail.traces.summary import mean, share


@dataclass(frozen=True)
class Checks:
    """Commits in scored cells that were hidden and written again, by what was written then."""

    wrong_repaired: Count
    """A wrong token became the gold one."""
    wrong_changed: Count
    """A wrong token became another wrong one."""
    wrong_kept: Count
    """A wrong token was written again: the others vouched for it."""
    right_kept: Count
    right_spoiled: Count
    caught: Share | None
    """Share of the wrong ones that did not stay; None if none was looked at again."""
    spoiled: Share | None
    """Share of the right ones that did not stay."""
    kept_prob: float | None
    """Mean probability of the wrong tokens that were written again, at that moment."""
    failures_vouched: Share | None
    """Share of the failures in which every wrong cell was looked at again and kept its token at the last look."""


def checks(trace: Trace) -> Checks | None:
    """The figures of a trace; None if no cell was written twice."""
    row_E, event_E = np.nonzero(trace.commit_NT & _scored_NT(trace))
    cell_E = trace.cell_NT[row_E, event_E]
    order_E = np.lexsort((event_E, cell_E, row_E))
    row_E, event_E, cell_E = row_E[order_E], event_E[order_E], cell_E[order_E]
    again_K = np.flatnonzero((row_E[1:] == row_E[:-1]) & (cell_E[1:] == cell_E[:-1])) + 1
    if not len(again_K):
        return None
    row_K, cell_K = row_E[again_K], cell_E[again_K]
    now, before = (row_K, event_E[again_K]), (row_K, event_E[again_K - 1])
    gold_K = trace.instances.answer_NA[row_K, cell_K]
    kept_K = trace.token_NT[now] == trace.token_NT[before]
    wrong_K, wrong_now_K = trace.token_NT[before] != gold_K, trace.token_NT[now] != gold_K
    vouched_NA = np.zeros(trace.answer_NA.shape, dtype=np.bool_)
    vouched_NA[row_K, cell_K] = kept_K  # the last of several looks counts
    wrong_NA = wrong_cells(trace)
    failed_N = wrong_NA.any(axis=1)
    return Checks(
        wrong_repaired=int((wrong_K & ~wrong_now_K).sum()),
        wrong_changed=int((wrong_K & wrong_now_K & ~kept_K).sum()),
        wrong_kept=int((wrong_K & kept_K).sum()),
        right_kept=int((~wrong_K & kept_K).sum()),
        right_spoiled=int((~wrong_K & ~kept_K).sum()),
        caught=share((wrong_K & ~kept_K).sum(), wrong_K.sum()),
        spoiled=share((~wrong_K & ~kept_K).sum(), (~wrong_K).sum()),
        kept_prob=mean(trace.prob_NT[now][wrong_K & kept_K]),
        failures_vouched=mean(np.all(vouched_NA | ~wrong_NA, axis=1)[failed_N]),
    )


def _scored_NT(trace: Trace) -> np.ndarray[tuple[int, int], np.dtype[np.bool_]]:
    cell_NT = np.maximum(trace.cell_NT, 0).astype(np.int64)
    return np.asarray(np.take_along_axis(trace.instances.scored_NA, cell_NT, axis=1))
