"""The diagnosis of ListOps: its arithmetic against gold and a slow parser, and a denoiser with a planted flaw."""

import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from hardtail import HardtailError, Instances, Streams
from hardtail.core.types import Array, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.policies.base import Commit, Policy
from hardtail.policies.confidence import RandomOrder, Top1
from hardtail.policies.orders import LeftToRight, Logical, RightToLeft
from hardtail.tasks.listops import profile as listops
from hardtail.tasks.listops.task import ListOps
from hardtail.traces.commits import first_in_time, wrong_cells
from tests.diagnose_toys import profiled
from tests.planted_other import hasty_listops, nodes_of, reciting

TASK = ListOps()
W = 2


def sampled(depth: int, n: int = 40) -> Instances:
    return TASK.sample(n, Streams(5).named("diagnose"), f"depth={depth}")


def answered(instances: Instances, changes: dict[int, str], first: list[int], policy: Policy | None = None) -> Trace:
    """A decode of the first instance that ends with other characters in some cells, `first` committed before all."""
    answer_NA, sure_NA = instances.answer_NA.copy(), np.full(instances.maskable_NA.shape, 0.5)
    for cell, character in changes.items():
        answer_NA[0, cell] = TASK.vocabulary.id(character)
    for place, cell in enumerate(first):
        sure_NA[0, cell] = 0.9 - 0.01 * place
    return decode(reciting(TASK, instances, answer_NA, sure_NA), instances, policy or Top1())


# -- arithmetic -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("median", ["upper", "truncated_mean"])
def test_operators_on_digits_and_gold_children_give_gold(median: str) -> None:
    task = ListOps.preset(median=median, arguments=(1, 2, 3, 4))
    instances = task.sample(300, Streams(5).named("gold"), "depth=4")
    node_NA = np.arange(20) < instances.strata["nodes"][:, None]
    value_NA = listops.from_children(task, instances, instances.answer_NA)
    assert (value_NA[node_NA] == instances.answer_NA[node_NA]).all()
    assert (value_NA[~node_NA] == listops.NONE).all()


def test_the_leaf_only_value_is_the_operator_on_the_digits_of_nodes_that_have_both_kinds_of_arguments() -> None:
    instances = sampled(4)
    value_NA, height_NA = listops.leaf_only(TASK, instances), listops.heights(TASK, instances)
    for i, expression in enumerate(TASK.render(instances)):
        for cell, node in enumerate(nodes_of(expression)):
            assert value_NA[i, cell] == (node.guess() if node.digits and node.children else listops.NONE)
            assert height_NA[i, cell] == node.height


def test_a_child_whose_answer_is_no_digit_makes_its_parent_undefined() -> None:
    instances = TASK.parse(["[X 3 [N 2 5] 7]"])
    answer_NA = instances.answer_NA.copy()
    answer_NA[0, 0] = TASK.vocabulary.id("$")
    assert listops.from_children(TASK, instances, answer_NA)[0, :3].tolist() == [2, listops.NONE, listops.NONE]


# -- one tree by hand -------------------------------------------------------------------------------------------

TREE = "[S 1 [X 2 [N 3 8] 1] [N 9 4]]"
"""Trace: [N 3 8] = 3, [X …] = 3, [N 9 4] = 4, [S …] = 8; leaf-only: [X …] = 2, [S …] = 1."""


def test_a_root_that_is_guessed_first() -> None:
    figures = profiled(TASK, answered(TASK.parse([TREE]), {3: "1"}, first=[0, 3]))
    assert figures["height"]["all"] == {"1": 2, "2": 1, "3": 1}
    assert figures["height"]["first_in_time"] == {"1": 0, "2": 0, "3": 1}
    assert figures["depth"]["first_in_time"] == {"1": 1, "2": 0, "3": 0}
    assert figures["operator"]["first_in_time"] == {"max": 0, "min": 0, "median": 0, "sum": 1}
    assert figures["position"]["first_in_time"]["mean"] == 3
    assert figures["first_wrong"]["first_in_time"]["step_mean"] == 1
    assert figures["children"]["first_in_time"]["hidden_right"] == 1
    led = {"nodes": 1, "could": 1, "matches": 1, "share_of_could": 1, "share": 1}
    assert figures["leaf_only"]["wrong"] == figures["leaf_only"]["first_in_time"] == led
    assert figures["wrong_nodes_that_follow_from_their_children"] == 0


def test_an_error_that_is_passed_on() -> None:
    trace = answered(TASK.parse([TREE]), {0: "8", 1: "8", 3: "3"}, first=[3, 0, 1])
    figures = profiled(TASK, trace)
    assert figures["wrong_nodes"] == 3
    assert figures["wrong_nodes_that_follow_from_their_children"] == 2 / 3  # 8 is passed on; 1 + 8 + 4 = 13
    assert {name: position["mean"] for name, position in figures["position"].items()} == {
        "first_in_time": 3,
        "lowest_index": 0,
    }
    assert figures["children"]["first_in_time"]["hidden_wrong"] == figures["children"]["lowest_index"]["none"] == 1
    assert figures["first_wrong"]["lowest_index"]["step_mean"] == 1
    not_led = {"nodes": 1, "could": 0, "matches": 0, "share_of_could": None, "share": 0}
    assert figures["leaf_only"]["lowest_index"] == not_led


def test_a_leaf_only_value_that_is_gold_misled_nobody() -> None:
    figures = profiled(TASK, answered(TASK.parse(["[X 9 [N 2 5]]"]), {1: "4"}, first=[1]))
    assert figures["leaf_only"]["first_in_time"]["could"] == 0


@pytest.mark.parametrize(
    ("changes", "order", "state"),
    [
        ({1: "5"}, [0, 1], "revealed_right"),
        ({1: "5"}, [1, 0], "hidden_right"),
        ({1: "5", 0: "4"}, [1, 0], "hidden_wrong"),
        ({3: "5"}, [0, 1, 3], "hidden_right"),  # one of two children is revealed
        ({2: "5"}, [2], "none"),
    ],
)
def test_how_a_wrong_node_stood_with_its_children(changes: dict[int, str], order: list[int], state: str) -> None:
    figures = profiled(TASK, answered(TASK.parse([TREE]), changes, first=order))
    assert figures["children"]["first_in_time"][state] == 1


def test_commits_of_one_pass_do_not_see_each_other() -> None:
    instances = TASK.parse([TREE])
    answer_NA = instances.answer_NA.copy()
    answer_NA[0, 1] = 5
    sure_NA = np.full(answer_NA.shape, 0.5)
    sure_NA[0, :2] = 0.9, 0.8
    trace = decode(reciting(TASK, instances, answer_NA, sure_NA), instances, Top1(), Decoding(Commit(each=2)))
    assert profiled(TASK, trace)["children"]["first_in_time"]["hidden_right"] == 1


def test_wrong_padding_counts_only_where_the_whole_answer_is_scored() -> None:
    padding = {10: "a"}  # it is an f
    assert profiled(TASK, answered(TASK.parse([TREE]), padding, []))["failures"] == 0
    whole = replace(TASK, metric="answer")
    figures = profiled(whole, answered(whole.parse([TREE]), padding, []))
    assert (figures["failures"], figures["after_the_trace_only"], figures["wrong_nodes"]) == (1, 1, 0)
    json.dumps(figures, allow_nan=False)


# -- the planted flaw -------------------------------------------------------------------------------------------


def wrong_guesses(instances: Instances, w: int) -> Array:
    """The nodes of more than `w` levels whose digits alone do not give their value."""
    wrong_NA = np.zeros(instances.maskable_NA.shape, dtype=np.bool_)
    for i, expression in enumerate(TASK.render(instances)):
        for cell, node in enumerate(nodes_of(expression)):
            wrong_NA[i, cell] = node.height > w and node.guess() != instances.answer_NA[i, cell]
    return wrong_NA


@pytest.mark.parametrize(
    "policy", [Top1(), RandomOrder(), LeftToRight(), RightToLeft(), Logical("post_order")], ids=str
)
def test_who_sees_far_enough_is_right_in_every_order_and_has_an_empty_profile(policy: Policy) -> None:
    instances = sampled(4)
    trace = decode(hasty_listops(TASK, instances, w=4), instances, policy)
    assert trace.exact_N.all()
    figures = profiled(TASK, trace)
    assert figures["failures"] == figures["wrong_nodes"] == 0
    assert figures["leaf_only"]["wrong"]["share"] is None
    json.dumps(figures, allow_nan=False)


@pytest.mark.parametrize("depth", [2, 3, 4])
def test_haste_fails_exactly_on_trees_that_are_too_deep_where_the_digits_mislead(depth: int) -> None:
    instances = sampled(depth)
    trace = decode(hasty_listops(TASK, instances, W), instances, Top1())
    expected_NA = wrong_guesses(instances, W)
    assert (wrong_cells(trace) == expected_NA).all()
    failures = int(expected_NA.any(axis=1).sum())
    assert (failures > 10) == (depth > W), "the sample shows nothing"

    figures = profiled(TASK, trace)
    json.dumps(figures, allow_nan=False)
    assert figures["failures"] == figures["first_wrong"]["first_in_time"]["n"] == failures
    assert figures["wrong_nodes"] == expected_NA.sum()
    children = figures["children"]["first_in_time"]
    assert children["hidden_right"] + children["hidden_wrong"] == failures
    # Nodes without a digit of their own were guessed too, but by no leaf.
    heuristic_NA = listops.leaf_only(TASK, instances)
    commits = first_in_time(trace, wrong_cells(trace))
    led = int((heuristic_NA[commits.row_K, commits.cell_K] != listops.NONE).sum())
    assert figures["leaf_only"]["first_in_time"]["could"] == figures["leaf_only"]["first_in_time"]["matches"] == led
    # The surest guess is that of the highest node, so the highest wrong one is the first.
    highest = Counter(
        max(int(height) for height in listops.heights(TASK, instances)[i][expected_NA[i]])
        for i in np.flatnonzero(expected_NA.any(axis=1))
    )
    assert all(int(height) > W for height in highest)
    assert figures["height"]["first_in_time"] == {height: highest[int(height)] for height in figures["height"]["all"]}


def test_haste_never_fails_in_post_order() -> None:
    instances = sampled(5)
    assert decode(hasty_listops(TASK, instances, W), instances, Logical("post_order")).exact_N.all()


# -- bad input --------------------------------------------------------------------------------------------------


def test_bare_instances_are_refused_in_a_sentence() -> None:
    trace = answered(TASK.parse([TREE]), {0: "8"}, [])
    with pytest.raises(HardtailError, match=r"'kind_NA'.*without `--bare`"):
        profiled(TASK, replace(trace, instances=trace.instances.bare()))
