"""Wrong regions of mazes: what shape they have, which way they err, and where they began (study §7.2).

What the paper says of its failures, and how it is measured here:

*A single contiguous path.* Wrong cells are put together into 4-connected regions. A region's **width** is the side of
the greatest square of wrong cells in it, so width 1 means no 2 × 2 block. A region is a **path** when it has width 1
and no cell with more than two wrong neighbours, that is when it does not branch. Where only open cells are hidden, the
walls alone keep every region at width 1, as a tree of corridors has no 2 × 2 block: what then says something is that
there is one region and that it does not branch.

*An orthogonal neighbour of a wrong cell is wrong with probability 0.45, against 0.12 to 0.15.* Each failing maze has a
share of its wrong cells' neighbours that are wrong, and a baseline, the share of all cells that are; both are averaged
over failures. `grid` takes all four neighbours and all cells, walls included, which is what the printed figures must
have been; `open` takes only cells that are open in the puzzle, S and E excepted.

*Path removal and path addition.* Gold 1 answered 0, and gold 0 answered 1; `other` is any other token.

Roles: `junction`, with three or more open neighbours, on the path or off it. On the path, the longest corridor is
`corridor_endpoint` next to S or E, `corridor_entrance` next to a junction, else `corridor`, and every other cell is
`backbone`. Off the path, `dead_end_tip` is filled in the first three rounds of dead-end filling, `dead_end` later.
`fixed` are walls, S and E, which are wrong only where the whole answer is hidden.

Shapes: N mazes (F those that failed), A = H × W answer cells, R regions, K commits, 4 neighbours.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.maze.regions import Regions, neighbours, regions, squares
from hardtail.tasks.maze.task import Maze
from hardtail.traces.commits import (
    Commits,
    annotation,
    count,
    counts,
    first_in_time,
    lowest_in_index,
    refuse_misfit,
    summary,
    timing,
    wrong_cells,
)
from hardtail.traces.summary import mean, share

ROLES = (
    "backbone",
    "junction",
    "corridor_endpoint",
    "corridor_entrance",
    "corridor",
    "dead_end_tip",
    "dead_end",
    "fixed",
)
BACKBONE, JUNCTION, ENDPOINT, ENTRANCE, CORRIDOR, TIP, DEAD_END, FIXED = range(8)
DIRECTIONS = ("removal", "addition", "other")
REMOVAL, ADDITION, OTHER = range(3)
TIP_ROUNDS = 3


def profile(task: Maze, trace: Trace) -> dict[str, Any]:
    """Everything this module measures, as JSON holds it; a trace without failures has zero counts and None means.

    `all` are the scored cells of failing mazes, for comparison with the wrong ones.
    """
    refuse_misfit(task, trace)
    failing = trace.take(~trace.exact_N)
    wrong_FA = wrong_cells(failing)
    role_FA = roles(task, failing.instances)
    direction_FA = directions(task, failing.instances.answer_NA, failing.answer_NA)
    found = regions(grids(task, wrong_FA))
    firsts = {
        "first_in_time": first_in_time(failing, wrong_FA),
        "lowest_index": lowest_in_index(failing, wrong_FA),
    }
    by_direction = _directions(wrong_FA, direction_FA, firsts)
    shape = _shape(task, found, wrong_FA, direction_FA)
    cells, shares = _neighbours(task, failing, wrong_FA)
    return {
        "instances": len(trace),
        "failures": len(failing),
        "paper": _claims(len(failing), by_direction, shape, cells, shares),
        "first_wrong": {name: timing(commits) for name, commits in firsts.items()},
        "sizes": {
            "wrong_cells_of_a_failure": summary(wrong_FA.sum(axis=1)),
            "regions_of_a_failure": summary(np.bincount(found.grid_R, minlength=len(failing))),
            "cells_of_a_region": summary(found.size_R),
            "width_of_a_region": summary(found.most(squares(grids(task, wrong_FA)))),
        },
        "regions": shape,
        "wrong_neighbours": cells,
        "neighbours": shares,
        "directions": by_direction,
        "roles": counts(
            {
                "all": role_FA[failing.instances.scored_NA],
                "wrong": role_FA[wrong_FA],
                **{name: role_FA[commits.row_K, commits.cell_K] for name, commits in firsts.items()},
            },
            ROLES,
        ),
    }


def _claims(
    failures: int,
    by_direction: dict[str, dict[str, int]],
    shape: dict[str, Any],
    cells: dict[str, Any],
    shares: dict[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """What the paper says of its 11 (random), 174 (PAPL) and 209 (PUMA) failures, beside our figures."""
    having = by_direction["failures_with"]
    rows = [
        ("wrong cells in one region, of failures", "1", shape["single"]),
        ("in one region that is a path, of failures", "1", shape["single_path"]),
        ("exactly two wrong neighbours, of wrong cells", "0.96", cells["exactly_two"]),
        ("more than two, of wrong cells", "0", cells["more_than_two"]),
        ("P(neighbour wrong | wrong), walls included", "0.45", shares["grid"]["wrong_given_wrong"]),
        ("P(wrong), walls included", "0.12 to 0.15", shares["grid"]["baseline"]),
        ("path removal, of failures", "PAPL 1, PUMA 0.967", share(having["removal"], failures)),
        ("path addition, of failures", "random 0.727", share(having["addition"], failures)),
    ]
    return [{"name": name, "paper": paper, "ours": ours} for name, paper, ours in rows]


# -- arrays -----------------------------------------------------------------------------------------------------


def grids(task: Maze, cell_NA: Array) -> Array:
    """Answer cells as grids [N, H, W]."""
    return cell_NA.reshape(len(cell_NA), task.side, task.side)


def directions(task: Maze, gold_NA: Array, answer_NA: Array) -> NDArray[np.int8]:
    """Which way each cell errs, as an index into `DIRECTIONS`; it says nothing about cells that are right."""
    off, on = task.vocabulary.id("0"), task.vocabulary.id("1")
    removed_NA, added_NA = (gold_NA == on) & (answer_NA == off), (gold_NA == off) & (answer_NA == on)
    return np.where(removed_NA, REMOVAL, np.where(added_NA, ADDITION, OTHER)).astype(np.int8)


def open_cells(task: Maze, instances: Instances) -> NDArray[np.bool_]:
    """`open_NA`: the cells that are open in the puzzle, S and E excepted."""
    return np.asarray(instances.tokens_NL[:, : task.answer_len] == task.vocabulary.id("."))


def roles(task: Maze, instances: Instances) -> NDArray[np.int8]:
    """The role of each cell, as an index into `ROLES`."""
    round_NA = annotation(task, instances.orders, "dead_end_rounds")
    puzzle_NA = instances.tokens_NL[:, : task.answer_len]
    open_NHW = grids(task, puzzle_NA != task.vocabulary.id("#"))
    inner_NHW = grids(task, open_cells(task, instances))
    path_NHW = grids(task, instances.answer_NA == task.vocabulary.id("1"))
    junction_NHW = inner_NHW & (neighbours(open_NHW).sum(axis=-1) >= 3)

    run_NHW = path_NHW & ~junction_NHW
    corridors = regions(run_NHW)
    longest_N = np.zeros(len(instances), dtype=np.int64)
    np.maximum.at(longest_N, corridors.grid_R, corridors.size_R)
    in_longest_R = corridors.size_R == longest_N[corridors.grid_R]
    corridor_NHW = np.append(in_longest_R, False)[corridors.label_NHW]  # label -1 is no corridor

    copied = int(task.maskable == "answer")  # then walls, S and E are a round of their own, before the others
    tip_NHW = grids(task, round_NA < TIP_ROUNDS + copied)
    role_NHW = np.select(
        [
            ~inner_NHW,
            junction_NHW,
            corridor_NHW & neighbours(open_NHW & ~inner_NHW).any(axis=-1),
            corridor_NHW & neighbours(junction_NHW).any(axis=-1),
            corridor_NHW,
            path_NHW,
            tip_NHW,
        ],
        [FIXED, JUNCTION, ENDPOINT, ENTRANCE, CORRIDOR, BACKBONE, TIP],
        DEAD_END,
    )
    return role_NHW.reshape(puzzle_NA.shape).astype(np.int8)


def neighbour_wrong(
    wrong_FHW: NDArray[np.bool_], within_FHW: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each maze P(neighbour wrong | wrong) and the baseline P(wrong), with only the cells of `within` looked at.

    NaN where no wrong cell has a neighbour.
    """
    wrong_FHW = wrong_FHW & within_FHW
    pairs_F = (neighbours(within_FHW).sum(axis=-1) * wrong_FHW).sum(axis=(1, 2))
    wrong_pairs_F = (neighbours(wrong_FHW).sum(axis=-1) * wrong_FHW).sum(axis=(1, 2))
    p_F = np.where(pairs_F > 0, wrong_pairs_F / np.maximum(pairs_F, 1), np.nan)
    return p_F, wrong_FHW.sum(axis=(1, 2)) / within_FHW.sum(axis=(1, 2))


# -- figures ----------------------------------------------------------------------------------------------------


def _directions(
    wrong_FA: NDArray[np.bool_], direction_FA: Array, firsts: Mapping[str, Commits]
) -> dict[str, dict[str, int]]:
    """Wrong cells by direction, failures that have such cells, failures that have no others, and first wrong cells."""
    has_F3 = np.stack([(wrong_FA & (direction_FA == way)).any(axis=1) for way in range(3)], axis=1)
    only_F3 = has_F3 & (has_F3.sum(axis=1) == 1)[:, None]
    groups = {
        "wrong_cells": direction_FA[wrong_FA],
        "failures_with": np.nonzero(has_F3)[1],
        "failures_only": np.nonzero(only_F3)[1],
        **{name: direction_FA[commits.row_K, commits.cell_K] for name, commits in firsts.items()},
    }
    return counts(groups, DIRECTIONS)


def _shape(task: Maze, found: Regions, wrong_FA: NDArray[np.bool_], direction_FA: Array) -> dict[str, Any]:
    wrong_FHW, direction_FHW = grids(task, wrong_FA), grids(task, direction_FA)
    narrow_R = found.most(squares(wrong_FHW)) == 1
    path_R = narrow_R & (found.most(neighbours(wrong_FHW).sum(axis=-1)) <= 2)
    purest_R = np.max([found.count(direction_FHW == way) for way in range(3)], axis=0)
    single_R = np.bincount(found.grid_R, minlength=len(wrong_FA))[found.grid_R] == 1
    return {
        "total": len(found),
        "single": share(single_R.sum(), len(wrong_FA)),
        "single_path": share((single_R & path_R).sum(), len(wrong_FA)),
        "width_one": share(narrow_R.sum(), len(found)),
        "path": share(path_R.sum(), len(found)),
        "pure": share((purest_R == found.size_R).sum(), len(found)),
        "purity": mean(purest_R / found.size_R),
    }


def _neighbours(
    task: Maze, failing: Trace, wrong_FA: NDArray[np.bool_]
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """How many wrong neighbours wrong cells have, and the shares of `neighbour_wrong` averaged over failures."""
    wrong_FHW = grids(task, wrong_FA)
    number_K = neighbours(wrong_FHW).sum(axis=-1)[wrong_FHW]
    cells: dict[str, Any] = {
        **count(number_K, [str(number) for number in range(5)]),
        "exactly_two": share((number_K == 2).sum(), number_K.size),
        "more_than_two": share((number_K > 2).sum(), number_K.size),
    }
    within = {"grid": np.ones_like(wrong_FHW), "open": grids(task, open_cells(task, failing.instances))}
    shares = {}
    for name, within_FHW in within.items():
        p_F, baseline_F = neighbour_wrong(wrong_FHW, within_FHW)
        known_F = ~np.isnan(p_F)
        shares[name] = {"wrong_given_wrong": mean(p_F[known_F]), "baseline": mean(baseline_F[known_F])}
    return cells, shares
