"""The commits that a trace's wrong answers go back to, and small figures that JSON can hold.

A *wrong cell* is one that counts and does not hold its gold token at the end. The commit that it goes back to is the
last one that wrote it, so a policy that hides cells again answers for what it let stand, not for what it took back.

Shapes: N instances, A answer cells, T events, K wrong commits (at most one an instance).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Trace
from hardtail.tasks.base import Task
from hardtail.traces.states import standing
from hardtail.traces.summary import mean, median, share


@dataclass(frozen=True)
class Commits:
    """One commit of each of `K` instances."""

    row_K: NDArray[np.int64]
    """The instance, as an index into the trace."""
    cell_K: NDArray[np.int64]
    step_K: NDArray[np.int64]
    """The forward pass, from 0."""
    token_K: NDArray[np.uint8]
    gold_K: NDArray[np.uint8]
    prob_K: NDArray[np.float32]
    gold_rank_K: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.row_K)


def wrong_cells(trace: Trace) -> NDArray[np.bool_]:
    """`wrong_NA`: the scored cells that do not hold their gold token at the end."""
    return (trace.answer_NA != trace.instances.answer_NA) & trace.instances.scored_NA


def first_in_time(trace: Trace, wrong_NA: NDArray[np.bool_]) -> Commits:
    """Each instance's first commit among those that its wrong cells go back to."""
    event_NA = standing(trace).event_NA
    never = trace.cell_NT.shape[1]
    return _of_cells(trace, event_NA, wrong_NA, np.where(wrong_NA, event_NA, never).argmin(axis=1))


def lowest_in_index(trace: Trace, wrong_NA: NDArray[np.bool_]) -> Commits:
    """The commit of each instance's wrong cell with the lowest index: what the study's scripts call the first wrong."""
    return _of_cells(trace, standing(trace).event_NA, wrong_NA, wrong_NA.argmax(axis=1))


def _of_cells(trace: Trace, event_NA: Array, wrong_NA: NDArray[np.bool_], cell_N: NDArray[np.int64]) -> Commits:
    row_K = np.flatnonzero(wrong_NA.any(axis=1))
    cell_K = cell_N[row_K]
    at = row_K, event_NA[row_K, cell_K]
    return Commits(
        row_K=row_K,
        cell_K=cell_K,
        step_K=trace.step_NT[at].astype(np.int64),
        token_K=trace.token_NT[at],
        gold_K=trace.instances.answer_NA[row_K, cell_K],
        prob_K=trace.prob_NT[at],
        gold_rank_K=trace.gold_rank_NT[at],
    )


def revealed_before(trace: Trace, commits: Commits) -> NDArray[np.bool_]:
    """`revealed_KA`: what each commit's forward pass could see; commits of the same pass do not see each other."""
    row_K = commits.row_K
    before_KT = trace.happened_NT[row_K] & (trace.step_NT[row_K] < commits.step_K[:, None])
    last_KA = np.full((len(row_K), trace.answer_NA.shape[1]), -1, dtype=np.int64)
    k_E, event_E = np.nonzero(before_KT)
    np.maximum.at(last_KA, (k_E, trace.cell_NT[row_K[k_E], event_E]), event_E)
    token_KA = np.take_along_axis(trace.token_NT[row_K], np.maximum(last_KA, 0), axis=1)
    return ~trace.instances.maskable_NA[row_K] | ((last_KA >= 0) & (token_KA != trace.mask_id))


# -- figures ----------------------------------------------------------------------------------------------------


def summary(value_K: Array) -> dict[str, Any]:
    """Mean, median and extremes; None where there is nothing."""
    low, high = (float(value_K.min()), float(value_K.max())) if value_K.size else (None, None)
    return {"n": int(value_K.size), "mean": mean(value_K), "median": median(value_K), "low": low, "high": high}


def count(kind_K: Array, names: Sequence[str]) -> dict[str, int]:
    """How many there are of each kind, by name, zeros included."""
    found = np.bincount(kind_K.astype(np.int64).ravel(), minlength=len(names))
    return {name: int(number) for name, number in zip(names, found, strict=True)}


def counts(groups: Mapping[str, Array], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """`count` of several groups: a table with a row for each."""
    return {group: count(kind_K, names) for group, kind_K in groups.items()}


def tallies(groups: Mapping[str, Array]) -> dict[str, dict[str, int]]:
    """How many there are of each whole number in several groups; every row has the numbers that occur in any."""
    number_U = np.unique(np.concatenate([value_K.ravel() for value_K in groups.values()]))
    names = [str(int(number)) for number in number_U]
    return {group: count(np.searchsorted(number_U, value_K), names) for group, value_K in groups.items()}


def timing(commits: Commits) -> dict[str, Any]:
    """When commits were made (steps count from 0), how sure the denoiser was, and where the gold token came."""
    return {
        "n": len(commits),
        "step_mean": mean(commits.step_K),
        "step_median": median(commits.step_K),
        "probability_mean": mean(commits.prob_K),
        "probability_median": median(commits.prob_K),
        "gold_ranked_second": share((commits.gold_rank_K == 1).sum(), len(commits)),
    }


# -- bad input --------------------------------------------------------------------------------------------------


def refuse_misfit(task: Task, trace: Trace) -> None:
    """A trace of another task, or of another size of this one."""
    given = trace.instances.tokens_NL.shape[1], trace.instances.answer_len
    if given != (task.seq_len, task.answer_len):
        raise HardtailError(
            f"{task.name}: the trace has sequences of {given[0]} with {given[1]} answer cells, this configuration "
            f"{task.seq_len} with {task.answer_len}; give the trace's own task and fields"
        )


def annotation(task: Task, group: Mapping[str, Array], name: str) -> Array:
    """An array that bare instances lack."""
    if name not in group:
        raise HardtailError(
            f"{task.name}: these instances carry no {name!r}, which the diagnosis needs; build them without `--bare`"
        )
    return group[name]
