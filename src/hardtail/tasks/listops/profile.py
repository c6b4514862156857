"""Wrong nodes of ListOps: how deep they lie, whether their children were there, and what was guessed (study §7.3).

A node is one operator, so one cell of the trace. Its *depth* is its distance from the root, which has 1; its *height*
is the number of levels of its own expression, 1 where all its arguments are digits. The *leaf-only* value of a node is
its operator applied to the arguments that are digits, as if its sub-expressions were not there: a guess that needs no
child. It is defined for nodes that have arguments of both kinds, and it *could* have misled where it is not gold.

Shapes: N instances (F those that failed), L sequence, A answer cells, E children, K commits, 10 digits.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.listops.solver import EOS, KINDS, MAX, MEDIAN, MIN, OPERATORS
from hardtail.tasks.listops.task import ListOps
from hardtail.traces.commits import (
    Commits,
    annotation,
    counts,
    first_in_time,
    lowest_in_index,
    refuse_misfit,
    revealed_before,
    summary,
    tallies,
    timing,
    wrong_cells,
)
from hardtail.traces.summary import share

NONE = -1
"""The value of an operator without arguments."""
CHILDREN = ("none", "revealed_right", "revealed_wrong", "hidden_right", "hidden_wrong")
"""A node's children when it was committed: it has none; the forward pass saw all of them, or some were still hidden;
and all of them are right at the end, or some are not."""


def profile(task: ListOps, trace: Trace) -> dict[str, Any]:
    """Everything this module measures, as JSON holds it; a trace without failures has zero counts and None means.

    `all` are the nodes of failing trees, for comparison with the wrong ones.
    """
    refuse_misfit(task, trace)
    failing = trace.take(~trace.exact_N)
    kind_FA, depth_FA = (annotation(task, failing.instances.extras, name) for name in ("kind_NA", "node_depth_NA"))
    height_FA = heights(task, failing.instances)
    node_FA = kind_FA < EOS
    wrong_FA = wrong_cells(failing) & node_FA
    firsts = {
        "first_in_time": first_in_time(failing, wrong_FA),
        "first_in_trace": lowest_in_index(failing, wrong_FA),
    }
    places = {name: (commits.row_K, commits.cell_K) for name, commits in firsts.items()}
    groups = {"all": np.nonzero(node_FA), "wrong": np.nonzero(wrong_FA), **places}
    guessed = {name: at for name, at in groups.items() if name != "all"}
    return {
        "instances": len(trace),
        "failures": len(failing),
        "after_the_trace_only": int((~wrong_FA.any(axis=1)).sum()),
        "wrong_nodes": int(wrong_FA.sum()),
        "wrong_nodes_that_follow_from_their_children": _following(task, failing, wrong_FA),
        "first_wrong": {name: timing(commits) for name, commits in firsts.items()},
        "children": counts(
            {name: children_states(task, failing, commits) for name, commits in firsts.items()}, CHILDREN
        ),
        "leaf_only": _leaf_only(task, failing, guessed),
        "height": tallies({name: height_FA[at] for name, at in groups.items()}),
        "depth": tallies({name: depth_FA[at] for name, at in groups.items()}),
        "operator": counts({name: kind_FA[at] for name, at in groups.items()}, KINDS[: len(OPERATORS)]),
        "position": {name: summary(commits.cell_K) for name, commits in firsts.items()},
    }


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

    `NONE` after the trace, and where a child's answer is no digit.
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
    """`state_K`: of each committed node, how it stood with its children; an index into `CHILDREN`."""
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


# -- figures ----------------------------------------------------------------------------------------------------


def _leaf_only(task: ListOps, trace: Trace, groups: Mapping[str, tuple[Array, ...]]) -> dict[str, dict[str, Any]]:
    """How many nodes of each group hold their leaf-only value: of those where it could have misled, and of all."""
    heuristic_NA, zero = leaf_only(task, trace.instances), task.vocabulary.id("0")
    figures = {}
    for name, at in groups.items():
        value_K, gold_K, answer_K = heuristic_NA[at], trace.instances.answer_NA[at], trace.answer_NA[at]
        could_K = (value_K != NONE) & (value_K + zero != gold_K)
        matches = int((could_K & (value_K + zero == answer_K)).sum())
        figures[name] = {
            "nodes": value_K.size,
            "could": int(could_K.sum()),
            "matches": matches,
            "share_of_could": share(matches, could_K.sum()),
            "share": share(matches, value_K.size),
        }
    return figures


def _following(task: ListOps, trace: Trace, wrong_NA: NDArray[np.bool_]) -> float | None:
    """The share of wrong nodes that only passed an error on: their value is right for what their children hold."""
    value_NA = from_children(task, trace.instances, trace.answer_NA)
    follows_NA = (value_NA != NONE) & (value_NA + task.vocabulary.id("0") == trace.answer_NA)
    return share((wrong_NA & follows_NA).sum(), wrong_NA.sum())
