"""The diagnosis of mazes: on drawn mazes, against slow references, and on denoisers with planted flaws."""

import json
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from hardtail import HardtailError, Instances, Streams
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.policies.base import Policy
from hardtail.policies.confidence import RandomOrder, Top1
from hardtail.policies.orders import LeftToRight, Logical, RightToLeft
from hardtail.tasks.maze import profile as maze
from hardtail.tasks.maze.regions import neighbours, regions, squares
from hardtail.tasks.maze.task import Maze
from tests.diagnose_toys import profiled
from tests.planted_other import exact_maze, far_dead_ends, local_maze, reciting

SMALL = Maze(size=3)
DRAWN = """
#######
#S....#
#.###.#
#.#...#
#.#.#.#
#.#.#E#
#######"""
ROLE_SIGNS = "bjenctd#"
"""One for each of `maze.ROLES`."""
DRAWN_ROLES = """
#######
##eccc#
#d###n#
#t#tdj#
#t#t#b#
#t#t###
#######"""


def answered(task: Maze, instances: Instances, *flips: list[tuple[int, int]], sure: Any = 0.9) -> Trace:
    """A decode that ends with the labels of the given (row, column) cells swapped, one list for each instance."""
    off, on = task.vocabulary.id("0"), task.vocabulary.id("1")
    answer_NA = instances.answer_NA.copy()
    for i, cells in enumerate(flips):
        for row, column in cells:
            cell = row * task.side + column
            answer_NA[i, cell] = {off: on, on: off}[int(answer_NA[i, cell])]
    sure_NA = np.broadcast_to(np.asarray(sure, dtype=np.float64), answer_NA.shape)
    return decode(reciting(task, instances, answer_NA, sure_NA), instances, Top1())


def flat(*cells: tuple[int, int]) -> list[int]:
    return [row * SMALL.side + column for row, column in cells]


# -- regions ----------------------------------------------------------------------------------------------------


def flooded(marked_HW: NDArray[np.bool_]) -> list[set[tuple[int, int]]]:
    """Regions by flood filling."""
    left = {(int(row), int(column)) for row, column in zip(*np.nonzero(marked_HW), strict=True)}
    found = []
    while left:
        queue = deque([left.pop()])
        region = set(queue)
        while queue:
            row, column = queue.popleft()
            for near in ((row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)):
                if near in left:
                    left.remove(near)
                    region.add(near)
                    queue.append(near)
        found.append(region)
    return found


@settings(max_examples=60, deadline=None)
@given(arrays(np.bool_, st.tuples(st.integers(1, 3), st.integers(1, 9), st.integers(1, 9))))
def test_regions_widths_and_neighbours_are_those_of_a_flood_fill(marked_NHW: NDArray[np.bool_]) -> None:
    found = regions(marked_NHW)
    wide_R = found.most(squares(marked_NHW))
    number_NHW = neighbours(marked_NHW).sum(axis=-1)
    expected = [(n, region) for n in range(len(marked_NHW)) for region in flooded(marked_NHW[n])]
    assert len(found) == len(expected)
    assert ((found.label_NHW >= 0) == marked_NHW).all()
    for n, region in expected:
        labels = {int(found.label_NHW[n, row, column]) for row, column in region}
        assert len(labels) == 1, "a region is torn apart"
        label = labels.pop()
        assert found.grid_R[label] == n
        assert found.size_R[label] == len(region)
        side = 1
        while any(
            all((row + i, column + j) in region for i in range(side + 1) for j in range(side + 1))
            for row, column in region
        ):
            side += 1
        assert wide_R[label] == side
        for row, column in region:
            around = {(row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)}
            assert number_NHW[n, row, column] == len(around & region)


def test_a_region_that_winds_through_a_large_grid_stays_one() -> None:
    marked = np.zeros((2, 101, 101), dtype=np.bool_)
    marked[:, ::2] = True
    marked[:, 1::4, -1] = marked[:, 3::4, 0] = True
    found = regions(marked)
    assert found.size_R.tolist() == [51 * 101 + 50] * 2


# -- one maze by hand -------------------------------------------------------------------------------------------


def test_roles_of_a_drawn_maze() -> None:
    role_A = maze.roles(SMALL, SMALL.parse([DRAWN]))[0]
    assert "".join(ROLE_SIGNS[role] for role in role_A) == "".join(DRAWN_ROLES.split())


def test_roles_do_not_depend_on_what_is_hidden() -> None:
    task = Maze()
    instances = task.sample(20, Streams(3).named("roles"))
    everything = replace(task, maskable="answer", trailing_pad=0)
    same = everything.parse(task.render(instances))
    assert (maze.roles(task, instances) == maze.roles(everything, same)).all()


def test_a_path_that_is_cut() -> None:
    instances = SMALL.parse([DRAWN])
    cut = [(1, 3), (1, 4), (1, 5), (2, 5)]
    sure_A = np.full(49, 0.9)
    sure_A[flat((1, 5))] = 0.95  # committed before all others, though not the lowest of the wrong ones
    figures = profiled(SMALL, answered(SMALL, instances, cut, sure=sure_A))
    ways = figures["directions"]
    assert ways["wrong_cells"] == {"removal": 4, "addition": 0, "other": 0}
    assert ways["failures_with"] == ways["failures_only"] == {"removal": 1, "addition": 0, "other": 0}
    by_number = {"none": 0, "one": 2, "two": 2, "three": 0, "four": 0}
    assert figures["wrong_neighbours"] == by_number | {"exactly_two": 0.5, "more_than_two": 0}
    assert figures["neighbours"]["grid"] == {"wrong_given_wrong": 6 / 16, "baseline": 4 / 49}
    assert figures["neighbours"]["open"] == {"wrong_given_wrong": 6 / 8, "baseline": 4 / 15}
    shape = figures["regions"]
    assert (shape["total"], shape["single"], shape["single_path"], shape["pure"]) == (1, 1, 1, 1)
    assert {name: sizes["mean"] for name, sizes in figures["sizes"].items()} == {
        "wrong_cells_of_a_failure": 4,
        "regions_of_a_failure": 1,
        "cells_of_a_region": 4,
        "width_of_a_region": 1,
    }
    first, lowest = (figures["first_wrong"][name] for name in ("first_in_time", "lowest_index"))
    assert (first["n"], first["step_mean"]) == (1, 0)
    assert first["probability_mean"] == pytest.approx(0.95)
    assert lowest["step_median"] == 2  # after the surest cell and the one at (1, 2)
    assert ways["first_in_time"]["removal"] == figures["roles"]["first_in_time"]["corridor"] == 1
    assert figures["roles"]["wrong"]["corridor"] == 3
    assert figures["roles"]["wrong"]["corridor_entrance"] == 1
    assert sum(figures["roles"]["all"].values()) == 15


def test_a_region_that_branches_is_no_path_and_a_mixed_one_is_not_pure() -> None:
    instances = SMALL.parse([DRAWN])
    figures = profiled(SMALL, answered(SMALL, instances, [(3, 5), (2, 5), (4, 5), (3, 4), (5, 1)]))
    shape = figures["regions"]
    assert (shape["total"], shape["path"], shape["single"], shape["single_path"]) == (2, 0.5, 0, 0)
    assert (shape["pure"], shape["purity"]) == (0.5, (0.75 + 1) / 2)
    assert figures["wrong_neighbours"]["more_than_two"] == 1 / 5
    assert figures["directions"]["wrong_cells"] == {"removal": 3, "addition": 2, "other": 0}
    assert figures["directions"]["failures_with"] == {"removal": 1, "addition": 1, "other": 0}
    assert figures["directions"]["failures_only"] == {"removal": 0, "addition": 0, "other": 0}


def test_where_walls_are_hidden_a_block_of_wrong_cells_is_wide() -> None:
    task = Maze(size=3, maskable="answer")
    instances = task.parse([DRAWN])
    answer_NA = instances.answer_NA.copy()
    answer_NA[0, flat((0, 0), (0, 1), (1, 0))] = task.vocabulary.id("0")
    answer_NA[0, flat((1, 1))] = task.vocabulary.id("1")
    figures = profiled(
        task, decode(reciting(task, instances, answer_NA, np.full((1, 49), 0.9)), instances, LeftToRight())
    )
    assert figures["sizes"]["width_of_a_region"]["mean"] == 2
    assert figures["regions"]["path"] == figures["regions"]["width_one"] == 0
    assert figures["directions"]["wrong_cells"]["other"] == figures["roles"]["wrong"]["fixed"] == 4
    # The corner has two neighbours in the grid, the cells beside it three: 2 + 3 + 3 + 4, of which 8 are wrong.
    assert figures["neighbours"]["grid"] == {"wrong_given_wrong": 8 / 12, "baseline": 4 / 49}
    assert figures["neighbours"]["open"] == {"wrong_given_wrong": None, "baseline": None}


def test_a_maze_of_start_and_goal_alone_has_no_open_cells_to_compare_with() -> None:
    task = Maze(size=2, maskable="answer")
    instances = task.parse(["##### #SE## ##### ##### #####"])
    wall = task.vocabulary.id("#")
    answer_NA = np.where(instances.answer_NA == wall, task.vocabulary.id("0"), instances.answer_NA)
    trace = decode(reciting(task, instances, answer_NA, np.full((1, 25), 0.9)), instances, LeftToRight())
    figures = profiled(task, trace)
    assert figures["neighbours"]["open"] == {"wrong_given_wrong": None, "baseline": None}
    assert figures["neighbours"]["grid"]["baseline"] == 23 / 25


def test_averages_are_over_failures_and_mazes_that_are_right_do_not_count() -> None:
    task = Maze(size=4)
    instances = task.sample(6, Streams(3).named("averages"))
    rng = np.random.default_rng(0)
    flips = [
        [divmod(int(cell), task.side) for cell in rng.choice(np.flatnonzero(instances.maskable_NA[i]), 2 * i, False)]
        for i in range(6)
    ]
    trace = answered(task, instances, *flips)
    figures = profiled(task, trace)
    assert (figures["instances"], figures["failures"]) == (6, 5)
    shares, open_shares = [], []
    for i, cells in enumerate(flips[1:], start=1):
        pairs = [
            (row + down, column + right) for row, column in cells for down, right in ((0, 1), (1, 0), (0, -1), (-1, 0))
        ]
        shares.append(sum(near in cells for near in pairs) / len(pairs))
        inner = [near for near in pairs if instances.maskable_NA[i, near[0] * task.side + near[1]]]
        open_shares.append(sum(near in cells for near in inner) / len(inner))
    assert figures["neighbours"]["grid"]["wrong_given_wrong"] == pytest.approx(np.mean(shares))
    assert figures["neighbours"]["open"]["wrong_given_wrong"] == pytest.approx(np.mean(open_shares))
    assert figures["neighbours"]["grid"]["baseline"] == pytest.approx(np.mean([2, 4, 6, 8, 10]) / task.answer_len)


# -- planted flaws ----------------------------------------------------------------------------------------------

ORDERS: list[Policy] = [
    Top1(),
    RandomOrder(),
    LeftToRight(),
    RightToLeft(),
    Logical("dead_end_filling"),
    Logical("dead_end_rounds"),
]


@pytest.mark.parametrize("policy", ORDERS, ids=str)
def test_who_knows_the_path_is_right_in_every_order_and_has_an_empty_profile(policy: Policy) -> None:
    task = Maze(size=5)
    instances = task.sample(12, Streams(3).named("exact"))
    trace = decode(exact_maze(task, instances), instances, policy)
    assert trace.exact_N.all()
    figures = profiled(task, trace)
    assert figures["failures"] == figures["regions"]["total"] == figures["first_wrong"]["first_in_time"]["n"] == 0
    assert figures["regions"]["single"] is figures["neighbours"]["grid"]["baseline"] is None
    json.dumps(figures, allow_nan=False)


W = 6


@pytest.fixture(scope="module")
def long_dead_ends() -> tuple[Maze, Instances]:
    task = Maze(size=5)
    return task, task.sample(40, Streams(3).named("local"))


def test_local_evidence_fails_exactly_where_dead_ends_are_long_by_adding_them_to_the_path(
    long_dead_ends: tuple[Maze, Instances],
) -> None:
    task, instances = long_dead_ends
    trace = decode(local_maze(task, instances, W), instances, Top1())
    far_NA = far_dead_ends(task, instances, W)
    long_N = far_NA.any(axis=1)
    assert 3 < long_N.sum() < 37, "the sample shows nothing: all mazes are of one kind"
    assert (trace.exact_N == ~long_N).all()

    figures = profiled(task, trace)
    json.dumps(figures, allow_nan=False)
    failures = int(long_N.sum())
    ways = figures["directions"]
    assert figures["failures"] == ways["failures_only"]["addition"] == failures
    assert ways["wrong_cells"] == {"removal": 0, "addition": far_NA.sum(), "other": 0}
    # The far cells of a dead end hang together, and dead ends meet only on the path, which is right.
    assert figures["regions"]["total"] == sum(len(flooded(grid)) for grid in maze.grids(task, far_NA))
    assert figures["regions"]["width_one"] == figures["regions"]["pure"] == 1
    first = figures["first_wrong"]["first_in_time"]
    assert first["n"] == ways["first_in_time"]["addition"] == failures
    assert figures["roles"]["first_in_time"]["dead_end"] + figures["roles"]["first_in_time"]["junction"] == failures
    assert first["probability_mean"] == pytest.approx(0.99)
    assert figures["roles"]["wrong"]["dead_end_tip"] == figures["roles"]["wrong"]["backbone"] == 0
    assert figures["neighbours"]["grid"]["wrong_given_wrong"] > 2 * figures["neighbours"]["grid"]["baseline"]


@pytest.mark.parametrize("order", Maze.order_names)
def test_local_evidence_never_fails_when_dead_ends_are_filled_from_their_tips(
    order: str, long_dead_ends: tuple[Maze, Instances]
) -> None:
    task, instances = long_dead_ends
    assert decode(local_maze(task, instances, W), instances, Logical(order)).exact_N.all()


# -- bad input --------------------------------------------------------------------------------------------------


def test_a_trace_of_another_size_or_of_bare_instances_is_refused_in_a_sentence() -> None:
    instances = SMALL.parse([DRAWN])
    trace = answered(SMALL, instances, [(1, 3)])
    with pytest.raises(HardtailError, match="49 answer cells, this configuration"):
        profiled(Maze(size=4), trace)
    with pytest.raises(HardtailError, match=r"'dead_end_rounds'.*without `--bare`"):
        profiled(SMALL, replace(trace, instances=instances.bare()))
