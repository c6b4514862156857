"""Wrong nodes of ListOps: how deep they are, whether their children were known, what was guessed (docs/study.md §7.3).

A node is one operator, so one cell of the trace. Its *depth* is its distance from the root, which has depth 1; its
*height* is the number of levels of its own expression, 1 where all arguments are digits. The *leaf-only* value of a
node is its operator applied to its digits alone: a guess that needs no child. It is defined for nodes with arguments of
both kinds, and it *could* have misled where it is not gold.

Shapes: N instances (F those that failed), A answer cells, E children, K commits, 10 digits.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.tables import percent
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.listops.solver import EOS, KINDS, OPERATORS, value_of
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
"""The children of a committed node: none; all revealed at the commit or some hidden, all right at the end or not."""


@dataclass(frozen=True)
class LeafOnly:
    """How many nodes have their leaf-only value, among those where it could have misled and among all."""

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
    """Everything this module measures; `all` are the nodes of failing trees, for comparison with the wrong ones."""

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
            children=firsts.map(lambda commits: count(children_states(failing, commits), CHILDREN)),
            leaf_only=Wrong.among(
                firsts, wrong_FA, lambda at: LeafOnly.of(heuristic_FA[at], gold_FA[at], answer_FA[at])
            ),
            height=Groups.of(*groups, lambda at: tally(height_FA[at], height_FA[node_FA])),
            depth=Groups.of(*groups, lambda at: tally(depth_FA[at], depth_FA[node_FA])),
            operator=Groups.of(*groups, lambda at: count(kind_FA[at], KINDS[: len(OPERATORS)])),
            position=firsts.map(lambda commits: Spread.of(commits.cell_K)),
        )

    def in_words(self) -> str | None:
        states = self.children.first_in_time
        if not (total := sum(states.values())):
            return None
        early = states["hidden_right"] + states["hidden_wrong"]
        return (
            f"{percent(early / total)} of the earliest wrong values were written before a value inside their brackets, "
            f"{percent(states['none'] / total)} have no brackets inside; "
            f"{percent(self.wrong_nodes_that_follow_from_their_children)} of all wrong values only pass an error on."
        )


# -- arrays -----------------------------------------------------------------------------------------------------


def heights(task: ListOps, instances: Instances) -> NDArray[np.int64]:
    """`height_NA`: how many levels each node's expression has; cells after the tree get more than any tree has."""
    return annotation(task, instances.orders, "post_order").astype(np.int64) + 1


def digit_arguments(task: ListOps, instances: Instances) -> NDArray[np.int64]:
    """`count_NA10`: how many 0s, 1s … 9s each node has among its own arguments."""
    count_NA10 = np.zeros((*instances.maskable_NA.shape, 10), dtype=np.int64)
    for n, expression in enumerate(task.render(instances)):
        cell, opened = 0, []
        for sign in expression:
            if sign == "[":
                opened.append(np.zeros(10, dtype=np.int64))
            elif sign == "]":
                count_NA10[n, cell] = opened.pop()
                cell += 1
            elif sign.isdigit():
                opened[-1][int(sign)] += 1
    return count_NA10


def values(task: ListOps, instances: Instances, count_NA10: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each node's operator applied to arguments given as the number of 0s, 1s … 9s; `NONE` where there are none."""
    kind_NA = annotation(task, instances.extras, "kind_NA")
    value_NA = np.full(kind_NA.shape, NONE, dtype=np.int64)
    for at in zip(*np.nonzero((kind_NA < EOS) & count_NA10.any(axis=-1)), strict=True):
        value_NA[at] = value_of(kind_NA[at], count_NA10[at], task.median == "upper")
    return value_NA


def leaf_only(task: ListOps, instances: Instances) -> NDArray[np.int64]:
    """The leaf-only value of each node; `NONE` for nodes that lack digits or lack sub-expressions."""
    value_NA = values(task, instances, digit_arguments(task, instances))
    return np.where((_children(instances) >= 0).any(axis=-1), value_NA, NONE)


def from_children(task: ListOps, instances: Instances, answer_NA: Array) -> NDArray[np.int64]:
    """The value that follows from an answer's values of a node's children; `NONE` after the trace and where a child's
    value is not a digit."""
    count_NA10 = digit_arguments(task, instances)
    row_K, cell_K, place_K = np.nonzero((child_NAE := _children(instances)) >= 0)
    digit_K = answer_NA[row_K, child_NAE[row_K, cell_K, place_K]].astype(np.int64) - task.vocabulary.id("0")
    is_digit_K = (digit_K >= 0) & (digit_K < 10)
    np.add.at(count_NA10, (row_K[is_digit_K], cell_K[is_digit_K], digit_K[is_digit_K]), 1)
    value_NA = values(task, instances, count_NA10)
    value_NA[row_K[~is_digit_K], cell_K[~is_digit_K]] = NONE
    return value_NA


def children_states(trace: Trace, commits: Commits) -> NDArray[np.int64]:
    """`state_K`: what was known about each committed node's children; an index into `CHILDREN`."""
    child_KE = _children(trace.instances)[commits.row_K, commits.cell_K].astype(np.int64)
    there_KE, at_KE = child_KE >= 0, np.maximum(child_KE, 0)
    right_KA = (trace.answer_NA == trace.instances.answer_NA)[commits.row_K]
    revealed_K, right_K = (
        (np.take_along_axis(known_KA, at_KE, axis=1) | ~there_KE).all(axis=1)
        for known_KA in (revealed_before(trace, commits), right_KA)
    )
    return np.where(there_KE.any(axis=1), 1 + 2 * ~revealed_K + ~right_K, 0)


def _children(instances: Instances) -> Array:
    assert instances.parents_NAE is not None  # `annotation` has refused bare instances
    return instances.parents_NAE


def _following(task: ListOps, trace: Trace, wrong_NA: NDArray[np.bool_]) -> float | None:
    """The share of wrong nodes whose value is right given their children's values: they only pass an error on."""
    value_NA = from_children(task, trace.instances, trace.answer_NA)
    follows_NA = (value_NA != NONE) & (value_NA + task.vocabulary.id("0") == trace.answer_NA)
    return share((wrong_NA & follows_NA).sum(), wrong_NA.sum())
