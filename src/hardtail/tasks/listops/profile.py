"""Wrong nodes of ListOps: how deep they are, whether their children were known, what was guessed (docs/study.md §7.3).

A node is one operator, so one cell of the trace. Its *depth* is its distance from the root, which has 1; its *height*
is the number of levels of its own expression, 1 where all its arguments are digits. The *leaf-only* value of a node is
its operator applied to the arguments that are digits, as if its sub-expressions were not there: a guess that needs no
child. It is defined for nodes that have arguments of both kinds, and it *could* have misled where it is not gold.

Shapes: N instances (F those that failed), L sequence, A answer cells, E children, K commits, 10 digits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.listops.solver import EOS, KINDS, MAX, MEDIAN, MIN, OPERATORS
from hardtail.tasks.listops.task import ListOps
from hardtail.traces.commits import (
    Commits,
    Groups,
    Readings,
    Spread,
    Timing,
    Wrong,
    annotation,
    count,
    readings_of,
    revealed_before,
    tally,
    wrong_cells,
)
from hardtail.traces.summary import share

NONE = -1
"""The value of an operator without arguments."""
CHILDREN = ("none", "revealed_right", "revealed_wrong", "hidden_right", "hidden_wrong")
"""A node's children when it was committed: it has none; the forward pass saw all of them, or some were still hidden;
and all of them are right at the end, or some are not."""


@dataclass(frozen=True)
class LeafOnly:
    """How many nodes hold their leaf-only value: of those where it could have misled, and of all."""

    nodes: int
    could: int
    matches: int
    share_of_could: float | None
    share: float | None

    @classmethod
    def of(cls, value_K: Array, gold_K: Array, answer_K: Array) -> "LeafOnly":
        """Values, gold and answer are digits; a value may be `NONE`."""
        could_K = (value_K != NONE) & (value_K != gold_K)
        matches = int((could_K & (value_K == answer_K)).sum())
        return cls(
            nodes=value_K.size,
            could=int(could_K.sum()),
            matches=matches,
            share_of_could=share(matches, could_K.sum()),
            share=share(matches, value_K.size),
        )


@dataclass(frozen=True)
class Profile:
    """Everything this module measures; a trace without failures has zero counts and None means.

    `all` are the nodes of failing trees, for comparison with the wrong ones.
    """

    instances: int
    failures: int
    after_the_trace_only: int
    wrong_nodes: int
    wrong_nodes_that_follow_from_their_children: float | None
    first_wrong: Readings[Timing]
    children: Readings[Mapping[str, int]]
    leaf_only: Wrong[LeafOnly]
    height: Groups[Mapping[str, int]]
    depth: Groups[Mapping[str, int]]
    operator: Groups[Mapping[str, int]]
    position: Readings[Spread]

    @classmethod
    def of(cls, task: ListOps, trace: Trace) -> "Profile":
        failing = trace.take(~trace.exact_N)
        instances, zero = failing.instances, task.vocabulary.id("0")
        kind_FA, depth_FA = (annotation(task, instances.extras, name) for name in ("kind_NA", "node_depth_NA"))
        height_FA, heuristic_FA = heights(task, instances), leaf_only(task, instances)
        gold_FA, answer_FA = (token_FA.astype(np.int64) - zero for token_FA in (instances.answer_NA, failing.answer_NA))
        node_FA = kind_FA < EOS
        wrong_FA = wrong_cells(failing) & node_FA
        firsts = readings_of(failing, wrong_FA)
        groups = firsts, wrong_FA, node_FA
        return cls(
            instances=len(trace),
            failures=len(failing),
            after_the_trace_only=int((~wrong_FA.any(axis=1)).sum()),
            wrong_nodes=int(wrong_FA.sum()),
            wrong_nodes_that_follow_from_their_children=_following(task, failing, wrong_FA),
            first_wrong=firsts.map(Timing.of),
            children=firsts.map(lambda commits: count(children_states(task, failing, commits), CHILDREN)),
            leaf_only=Wrong.among(
                firsts, wrong_FA, lambda at: LeafOnly.of(heuristic_FA[at], gold_FA[at], answer_FA[at])
            ),
            height=Groups.of(*groups, lambda at: tally(height_FA[at], height_FA[node_FA])),
            depth=Groups.of(*groups, lambda at: tally(depth_FA[at], depth_FA[node_FA])),
            operator=Groups.of(*groups, lambda at: count(kind_FA[at], KINDS[: len(OPERATORS)])),
            position=firsts.map(lambda commits: Spread.of(commits.cell_K)),
        )


# -- arrays -----------------------------------------------------------------------------------------------------


def heights(task: ListOps, instances: Instances) -> NDArray[np.int64]:
    """`height_NA`: the levels of each node's expression; more than any tree has after the trace."""
    return annotation(task, instances.orders, "post_order").astype(np.int64) + 1


def digit_arguments(task: ListOps, instances: Instances) -> NDArray[np.int64]:
    """`count_NA10`: how many 0s, 1s … 9s each node has among its own arguments.

    A digit belongs to the innermost bracket that is open, which is the next one of its level to close; and the t-th
    bracket that closes is that of trace cell t.
    """
    opened, closed, zero = (task.vocabulary.id(character) for character in "[]0")
    token_NL = np.where(
        np.arange(instances.tokens_NL.shape[1]) < instances.prompt_len_N[:, None], instances.tokens_NL, closed + 1
    )
    opens_NL, closes_NL = token_NL == opened, token_NL == closed
    level_NL = np.cumsum(opens_NL, axis=1) - np.cumsum(closes_NL, axis=1) + closes_NL  # a bracket has its inside's
    cell_NL = np.cumsum(closes_NL, axis=1) - 1
    digit_NL = (token_NL >= zero) & (token_NL < zero + 10)
    count_NA10 = np.zeros((*instances.maskable_NA.shape, 10), dtype=np.int64)
    for level in range(1, int(level_NL.max(initial=0)) + 1):
        here_NL = level_NL == level
        next_NL = np.where(here_NL & closes_NL, cell_NL, instances.answer_len)
        next_NL = np.minimum.accumulate(next_NL[:, ::-1], axis=1)[:, ::-1]
        row_K, at_K = np.nonzero(here_NL & digit_NL)
        np.add.at(count_NA10, (row_K, next_NL[row_K, at_K], token_NL[row_K, at_K] - zero), 1)
    return count_NA10


def values(task: ListOps, instances: Instances, count_NA10: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each node's operator applied to arguments given as the number of 0s, 1s … 9s; `NONE` where there are none."""
    kind_NA = annotation(task, instances.extras, "kind_NA")
    seen_NA10 = np.cumsum(count_NA10, axis=-1)
    total_NA = seen_NA10[..., -1]

    def nth(place_NA: Array) -> NDArray[np.int64]:
        """The argument at a place of the sorted list."""
        return np.argmax(seen_NA10 > place_NA[..., None], axis=-1)

    upper_NA, lower_NA = nth(total_NA // 2), nth((total_NA - 1) // 2)
    middle_NA = upper_NA if task.median == "upper" else (lower_NA + upper_NA) // 2
    value_NA = np.select(
        [kind_NA == MAX, kind_NA == MIN, kind_NA == MEDIAN],
        [nth(total_NA - 1), nth(np.zeros_like(total_NA)), middle_NA],
        (count_NA10 * np.arange(10)).sum(axis=-1) % 10,
    )
    return np.where((total_NA > 0) & (kind_NA < EOS), value_NA, NONE)


def leaf_only(task: ListOps, instances: Instances) -> NDArray[np.int64]:
    """The leaf-only value of each node; `NONE` for nodes that lack digits or lack sub-expressions."""
    value_NA = values(task, instances, digit_arguments(task, instances))
    return np.where((_children(task, instances) >= 0).any(axis=-1), value_NA, NONE)


def from_children(task: ListOps, instances: Instances, answer_NA: Array) -> NDArray[np.int64]:
    """The value that each node should have, given what an answer says of its children.

    `NONE` after the trace, and where a child's answer is not a digit.
    """
    count_NA10 = digit_arguments(task, instances)
    row_K, cell_K, place_K = np.nonzero((child_NAE := _children(task, instances)) >= 0)
    digit_K = answer_NA[row_K, child_NAE[row_K, cell_K, place_K]].astype(np.int64) - task.vocabulary.id("0")
    is_digit_K = (digit_K >= 0) & (digit_K < 10)
    np.add.at(count_NA10, (row_K[is_digit_K], cell_K[is_digit_K], digit_K[is_digit_K]), 1)
    value_NA = values(task, instances, count_NA10)
    value_NA[row_K[~is_digit_K], cell_K[~is_digit_K]] = NONE
    return value_NA


def children_states(task: ListOps, trace: Trace, commits: Commits) -> NDArray[np.int64]:
    """`state_K`: what was known of each committed node's children; an index into `CHILDREN`."""
    child_KE = _children(task, trace.instances)[commits.row_K, commits.cell_K].astype(np.int64)
    there_KE, at_KE = child_KE >= 0, np.maximum(child_KE, 0)
    right_KA = (trace.answer_NA == trace.instances.answer_NA)[commits.row_K]
    revealed_K, right_K = (
        (np.take_along_axis(known_KA, at_KE, axis=1) | ~there_KE).all(axis=1)
        for known_KA in (revealed_before(trace, commits), right_KA)
    )
    return np.where(there_KE.any(axis=1), 1 + 2 * ~revealed_K + ~right_K, 0)


def _children(task: ListOps, instances: Instances) -> Array:
    if instances.parents_NAE is None:
        raise HardtailError(f"{task.name}: these instances carry no parents; build them without `--bare`")
    return instances.parents_NAE


def _following(task: ListOps, trace: Trace, wrong_NA: NDArray[np.bool_]) -> float | None:
    """The share of wrong nodes that only passed an error on: their value is right for what their children hold."""
    value_NA = from_children(task, trace.instances, trace.answer_NA)
    follows_NA = (value_NA != NONE) & (value_NA + task.vocabulary.id("0") == trace.answer_NA)
    return share((wrong_NA & follows_NA).sum(), wrong_NA.sum())
