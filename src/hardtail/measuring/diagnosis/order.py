"""How much like reading the cells were written: AR-ness, finalisation parallelism, Kendall's τ along the answer.

Like all figures of readiness these cover the commits that stand at the end, in scored cells. Cells of one step count as
written from left to right.

Shapes: N instances, A answer cells, C commits of the row with most of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.records import Share
from hardtail.core.types import Array, Trace
from hardtail.measuring.diagnosis.kendall import rank_correlation
from hardtail.measuring.diagnosis.readiness import Agreement, mean_agreement
from hardtail.traces.states import blocks, standing
from hardtail.traces.summary import mean, share

SPANS = (1, 2, 4, 8)
"""The values of k."""
_LAST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class WritingOrder:
    """The field's measures of a decoding order; a decode from left to right has 1 everywhere, parallelism included."""

    ar_ness: Mapping[str, Mapping[str, Share | None]]
    """By k (DiffuCoder, Gong et al. 2025, arXiv:2506.20639, section 4.1, figure 3 and appendix A.2).

    `local`: the share of commits that continue the k last ones from left to right, each right behind the one before:
    p_(t-i) = p_t - i for i = 1, …, k. Appendix A.2 compares the two sides as sets, which would let the k last ones be
    in any order; figure 3 asks for an increasing sequence, and only that never grows with k, as the paper says. The
    first k commits do not count, as they have no k others before them; counted as misses they would keep a decode from
    left to right below the 1 that the paper gives it. `global`: the share of commits into one of the first k cells that
    were still hidden."""
    parallelism: float | None
    """Average finalisation parallelism: commits / steps with a commit that stands, mean over instances; 1 is one cell
    at a time (Zhong et al. 2026, arXiv:2601.15593)."""
    left_to_right: Agreement
    """Kendall's τ_b and γ between steps and places in the answer (ibid.)."""


def writing_order(trace: Trace) -> WritingOrder:
    """The order in which a trace's cells were written."""
    local, overall = (np.zeros((len(SPANS), 2), dtype=np.int64) for _ in range(2))
    parallel: list[NDArray[np.float64]] = []
    agreement: list[tuple[NDArray[np.float64], ...]] = []
    for block in blocks(trace):
        held = standing(block)
        counts_NA = held.there_NA & block.instances.scored_NA
        place_NC, there_NC = _sequence(held.step_NA, counts_NA)
        local += _local(place_NC, there_NC)
        overall += _global(place_NC, there_NC)
        parallel.append(_parallelism(held.step_NA, counts_NA))
        place_NA = np.broadcast_to(np.arange(counts_NA.shape[1]), counts_NA.shape)
        agreement.append(rank_correlation(held.step_NA, place_NA, counts_NA))
    return WritingOrder(
        ar_ness={
            str(k): {"local": share(*local[place]), "global": share(*overall[place])} for place, k in enumerate(SPANS)
        },
        parallelism=mean(np.concatenate(parallel)),
        left_to_right=mean_agreement(*map(np.concatenate, zip(*agreement, strict=True))),
    )


def _sequence(step_NA: Array, counts_NA: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The cells of each row in the order of writing, numbered from left to right among those that count; and which
    places of this table are filled."""
    number_N = counts_NA.sum(axis=1)
    order_NA = np.argsort(np.where(counts_NA, step_NA, _LAST), axis=1, kind="stable")
    most = int(number_N.max(initial=0))
    place_NA = np.cumsum(counts_NA, axis=1) - 1
    return np.take_along_axis(place_NA, order_NA, axis=1)[:, :most], np.arange(most) < number_N[:, None]


def _local(place_NC: NDArray[np.int64], there_NC: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each k, the commits that continue k others, and all that could."""
    follows_NC = np.zeros_like(there_NC)
    follows_NC[:, 1:] = there_NC[:, 1:] & (place_NC[:, 1:] == place_NC[:, :-1] + 1)
    found, run_NC = [], there_NC
    for k in range(1, max(SPANS) + 1):
        run_NC = np.pad(run_NC, ((0, 0), (1, 0)))[:, :-1] & follows_NC
        if k in SPANS:
            found.append((run_NC.sum(), there_NC[:, k:].sum()))
    return np.array(found, dtype=np.int64)


def _global(place_NC: NDArray[np.int64], there_NC: NDArray[np.bool_]) -> NDArray[np.int64]:
    """For each k, the commits into one of the first k hidden cells, and all commits."""
    cells = place_NC.shape[1]
    later_CC = np.triu(np.ones((cells, cells), dtype=np.bool_), k=1)
    passed_NCC = (place_NC[:, None, :] < place_NC[:, :, None]) & later_CC & there_NC[:, None, :]
    passed_NC = np.count_nonzero(passed_NCC, axis=2)
    return np.array([(((passed_NC < k) & there_NC).sum(), there_NC.sum()) for k in SPANS], dtype=np.int64)


def _parallelism(step_NA: Array, counts_NA: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Commits of each row by steps that have one; NaN for a row without commits."""
    sorted_NA = np.sort(np.where(counts_NA, step_NA, _LAST), axis=1)
    fresh_NA = np.ones_like(counts_NA)
    fresh_NA[:, 1:] = sorted_NA[:, 1:] != sorted_NA[:, :-1]
    steps_N = (fresh_NA & (sorted_NA != _LAST)).sum(axis=1)
    return np.divide(counts_NA.sum(axis=1), steps_N, out=np.full(len(steps_N), np.nan), where=steps_N > 0)
