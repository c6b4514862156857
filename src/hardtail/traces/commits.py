"""The commits that caused a trace's wrong answers, and the small figures that task profiles are made of.

A *wrong cell* is scored and does not have its gold token at the end. Its *wrong commit* is the last one that wrote it,
so commits that a policy took back do not count.

Shapes: N instances, A answer cells, T events, K wrong commits (at most one per instance).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Tokens, Trace
from hardtail.traces.states import standing
from hardtail.traces.summary import mean, median

T = TypeVar("T")
U = TypeVar("U")
Mask = NDArray[np.bool_]
Places = tuple[Array, ...]
"""Cells as an index into [N, A]."""


class TracedTask(Protocol):
    """What reading a trace needs to know about its task."""

    name: ClassVar[str]

    @property
    def seq_len(self) -> int: ...

    @property
    def answer_len(self) -> int: ...


@dataclass(frozen=True)
class Commits:
    """One commit of each of `K` instances."""

    row_K: NDArray[np.int64]
    """The instance, as an index into the trace."""
    cell_K: NDArray[np.int64]
    step_K: NDArray[np.int64]
    """The forward pass, from 0."""
    token_K: Tokens
    gold_K: Tokens
    prob_K: NDArray[np.float32]
    gold_rank_K: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.row_K)


def wrong_cells(trace: Trace) -> Mask:
    """`wrong_NA`: the scored cells that do not have their gold token at the end."""
    return (trace.answer_NA != trace.instances.answer_NA) & trace.instances.scored_NA


def first_in_time(trace: Trace, wrong_NA: Mask) -> Commits:
    """Each instance's earliest wrong commit; of several in one step, the best-scored."""
    event_NA = np.where(wrong_NA, standing(trace).event_NA, trace.cell_NT.shape[1])
    return _of_cells(trace, wrong_NA, event_NA.argmin(axis=1))


def lowest_index(trace: Trace, wrong_NA: Mask) -> Commits:
    """The wrong commit of each instance's wrong cell with the lowest index: the study's scripts call it the first."""
    return _of_cells(trace, wrong_NA, wrong_NA.argmax(axis=1))


def _of_cells(trace: Trace, wrong_NA: Mask, cell_N: NDArray[np.int64]) -> Commits:
    row_K = np.flatnonzero(wrong_NA.any(axis=1))
    cell_K = cell_N[row_K]
    at = row_K, standing(trace).event_NA[row_K, cell_K]
    return Commits(
        row_K=row_K,
        cell_K=cell_K,
        step_K=trace.step_NT[at].astype(np.int64),
        token_K=trace.token_NT[at],
        gold_K=trace.instances.answer_NA[row_K, cell_K],
        prob_K=trace.prob_NT[at],
        gold_rank_K=trace.gold_rank_NT[at],
    )


def revealed_before(trace: Trace, commits: Commits) -> Mask:
    """`revealed_KA`: the cells that each commit's forward pass saw; commits of one pass do not see each other."""
    row_K = commits.row_K
    before_KT = trace.happened_NT[row_K] & (trace.step_NT[row_K] < commits.step_K[:, None])
    last_KA = np.full((len(row_K), trace.answer_NA.shape[1]), -1, dtype=np.int64)
    k_E, event_E = np.nonzero(before_KT)
    np.maximum.at(last_KA, (k_E, trace.cell_NT[row_K[k_E], event_E]), event_E)
    token_KA = np.take_along_axis(trace.token_NT[row_K], np.maximum(last_KA, 0), axis=1)
    return ~trace.instances.maskable_NA[row_K] | ((last_KA >= 0) & (token_KA != trace.mask_id))


# -- figures ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Readings(Generic[T]):
    """One figure in both readings of "the wrong commit" of an instance."""

    first_in_time: T
    lowest_index: T

    def map(self, figure: Callable[[T], U]) -> "Readings[U]":
        return Readings(figure(self.first_in_time), figure(self.lowest_index))


@dataclass(frozen=True)
class Wrong(Readings[T]):
    """One figure of the wrong commits in both readings, and of all wrong cells."""

    wrong: T

    @classmethod
    def among(cls, firsts: Readings[Commits], wrong_NA: Mask, figure: Callable[[Places], T]) -> "Wrong[T]":
        found = firsts.map(lambda commits: figure((commits.row_K, commits.cell_K)))
        return cls(found.first_in_time, found.lowest_index, figure(np.nonzero(wrong_NA)))


@dataclass(frozen=True)
class Groups(Wrong[T]):
    """Like `Wrong`, and also the figure of all cells that could be wrong, for comparison."""

    all: T

    @classmethod
    def of(cls, firsts: Readings[Commits], wrong_NA: Mask, all_NA: Mask, figure: Callable[[Places], T]) -> "Groups[T]":
        return cls(**vars(Wrong.among(firsts, wrong_NA, figure)), all=figure(np.nonzero(all_NA)))


@dataclass(frozen=True)
class Spread:
    """Mean, median and extremes of `n` numbers; None where there are none."""

    n: int
    mean: float | None
    median: float | None
    low: float | None
    high: float | None

    @classmethod
    def of(cls, value_K: Array) -> "Spread":
        low, high = (float(value_K.min()), float(value_K.max())) if value_K.size else (None, None)
        return cls(int(value_K.size), mean(value_K), median(value_K), low, high)


@dataclass(frozen=True)
class Timing:
    """When `n` commits were made (steps count from 0), how sure the model was, and how often gold came second."""

    n: int
    step_mean: float | None
    step_median: float | None
    probability_mean: float | None
    probability_median: float | None
    gold_ranked_second: float | None

    @classmethod
    def of(cls, commits: Commits) -> "Timing":
        return cls(
            n=len(commits),
            step_mean=mean(commits.step_K),
            step_median=median(commits.step_K),
            probability_mean=mean(commits.prob_K),
            probability_median=median(commits.prob_K),
            gold_ranked_second=gold_second(commits.gold_rank_K),
        )


def readings_of(trace: Trace, wrong_NA: Mask) -> Readings[Commits]:
    """The wrong commit of each instance that has wrong cells, in both readings."""
    return Readings(first_in_time(trace, wrong_NA), lowest_index(trace, wrong_NA))


def gold_second(gold_rank_K: Array) -> float | None:
    """Share of the commits in which only one token was more probable than the gold one; unknown ranks (-1) are left
    out."""
    return mean(gold_rank_K[gold_rank_K >= 0] == 1)


def count(kind_K: Array, names: Sequence[str]) -> dict[str, int]:
    """The number of each kind, by name, zeros included."""
    found = np.bincount(kind_K.astype(np.int64).ravel(), minlength=len(names))
    return {name: int(number) for name, number in zip(names, found, strict=True)}


def tally(value_K: Array, among: Array) -> dict[str, int]:
    """The number of each integer that occurs in `among`, so that tables have the same columns."""
    number_U = np.unique(among)
    return count(np.searchsorted(number_U, value_K), [str(int(number)) for number in number_U])


# -- bad input --------------------------------------------------------------------------------------------------


def refuse_misfit(task: TracedTask, trace: Trace) -> None:
    """Refuse a trace of another task, or of another size of this one."""
    given = trace.instances.tokens_NL.shape[1], trace.instances.answer_len
    if given != (task.seq_len, task.answer_len):
        raise HardtailError(
            f"{task.name}: the trace has sequences of {given[0]} with {given[1]} answer cells, this configuration "
            f"{task.seq_len} with {task.answer_len}; give the trace's own task and fields"
        )


def annotation(task: TracedTask, group: Mapping[str, Array], name: str) -> Array:
    """An array that annotated instances have and bare ones lack."""
    if name not in group:
        raise HardtailError(
            f"{task.name}: these instances have no {name!r}, which the diagnosis needs; build them without `--bare`"
        )
    return group[name]
