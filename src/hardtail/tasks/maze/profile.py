"""Wrong regions of mazes: what shape they have, which way they err, and where they began (docs/study.md §7.2).

Wrong cells are put together into 4-connected regions. A region's **width** is the side of the greatest square of wrong
cells in it, so width 1 means no 2 × 2 block. A region is a **path** when it has width 1 and no cell with more than two
wrong neighbours, that is when it does not branch. Where only open cells are hidden, the walls alone keep every region
at width 1, as a tree of corridors has no 2 × 2 block: what then says something is that there is one region and that it
does not branch.

Each failing maze has a share of its wrong cells' neighbours that are wrong, and a baseline, the share of all cells that
are; both are averaged over failures. `grid` takes all four neighbours and all cells, walls included, which is what the
study's figures must have been; `open` takes only cells that are open in the puzzle, S and E excepted.

*Path removal and path addition.* Gold 1 answered 0, and gold 0 answered 1; `other` is any other token.

Roles: `junction`, with three or more open neighbours, on the path or off it. On the path, the longest corridor is
`corridor_endpoint` next to S or E, `corridor_entrance` next to a junction, else `corridor`, and every other cell is
`backbone`. Off the path, `dead_end_tip` is filled in the first three rounds of dead-end filling, `dead_end` later.
`fixed` are walls, S and E, which are wrong only where the whole answer is hidden.

Shapes: N mazes (F those that failed), A = H × W answer cells, R regions, K commits, 4 neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.maze.regions import Grids, Regions, neighbours, regions, squares
from hardtail.tasks.maze.task import Maze
from hardtail.traces.commits import (
    Commits,
    Groups,
    Readings,
    Spread,
    Timing,
    annotation,
    count,
    readings_of,
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


@dataclass(frozen=True)
class Directions(Readings[Mapping[str, int]]):
    """Wrong cells by direction, failures that have such cells, failures that have no others, and the wrong commits."""

    wrong_cells: Mapping[str, int]
    failures_with: Mapping[str, int]
    failures_only: Mapping[str, int]

    @classmethod
    def of(cls, wrong_FA: NDArray[np.bool_], direction_FA: NDArray[np.int8], firsts: Readings[Commits]) -> "Directions":
        has_F3 = np.stack([(wrong_FA & (direction_FA == way)).any(axis=1) for way in range(3)], axis=1)
        only_F3 = has_F3 & (has_F3.sum(axis=1) == 1)[:, None]
        return cls(
            **vars(firsts.map(lambda commits: count(direction_FA[commits.row_K, commits.cell_K], DIRECTIONS))),
            wrong_cells=count(direction_FA[wrong_FA], DIRECTIONS),
            failures_with=count(np.nonzero(has_F3)[1], DIRECTIONS),
            failures_only=count(np.nonzero(only_F3)[1], DIRECTIONS),
        )


@dataclass(frozen=True)
class Shape:
    """Shares of failures (`single`) and of regions; `pure` regions err in one direction only."""

    total: int
    single: float | None
    single_path: float | None
    width_one: float | None
    path: float | None
    pure: float | None
    purity: float | None

    @classmethod
    def of(cls, found: Regions, wrong_FHW: Grids, direction_FHW: NDArray[np.int8]) -> "Shape":
        narrow_R = found.most(squares(wrong_FHW)) == 1
        path_R = narrow_R & (found.most(neighbours(wrong_FHW).sum(axis=-1)) <= 2)
        purest_R = np.max([found.count(direction_FHW == way) for way in range(3)], axis=0)
        single_R = np.bincount(found.grid_R, minlength=len(wrong_FHW))[found.grid_R] == 1
        return cls(
            total=len(found),
            single=share(single_R.sum(), len(wrong_FHW)),
            single_path=share((single_R & path_R).sum(), len(wrong_FHW)),
            width_one=share(narrow_R.sum(), len(found)),
            path=share(path_R.sum(), len(found)),
            pure=share((purest_R == found.size_R).sum(), len(found)),
            purity=mean(purest_R / found.size_R),
        )


@dataclass(frozen=True)
class Sizes:
    """How large failures and regions are."""

    wrong_cells_of_a_failure: Spread
    regions_of_a_failure: Spread
    cells_of_a_region: Spread
    width_of_a_region: Spread


@dataclass(frozen=True)
class WrongNeighbours:
    """How many wrong cells have none, one … four wrong neighbours, and two shares of them."""

    none: int
    one: int
    two: int
    three: int
    four: int
    exactly_two: float | None
    more_than_two: float | None

    @classmethod
    def of(cls, wrong_FHW: Grids) -> "WrongNeighbours":
        number_K = neighbours(wrong_FHW).sum(axis=-1)[wrong_FHW]
        return cls(
            **count(number_K, ("none", "one", "two", "three", "four")),
            exactly_two=share((number_K == 2).sum(), number_K.size),
            more_than_two=share((number_K > 2).sum(), number_K.size),
        )


@dataclass(frozen=True)
class Clustering:
    """`neighbour_wrong`, averaged over failures."""

    wrong_given_wrong: float | None
    baseline: float | None

    @classmethod
    def of(cls, wrong_FHW: Grids, within_FHW: Grids) -> "Clustering":
        p_F, baseline_F = neighbour_wrong(wrong_FHW, within_FHW)
        known_F = ~np.isnan(p_F)
        return cls(mean(p_F[known_F]), mean(baseline_F[known_F]))


@dataclass(frozen=True)
class Neighbours:
    """Clustering among all cells, and among the open ones."""

    grid: Clustering
    open: Clustering


@dataclass(frozen=True)
class Profile:
    """Everything this module measures; a trace without failures has zero counts and None means.

    `all` are the scored cells of failing mazes, for comparison with the wrong ones.
    """

    instances: int
    failures: int
    first_wrong: Readings[Timing]
    sizes: Sizes
    regions: Shape
    wrong_neighbours: WrongNeighbours
    neighbours: Neighbours
    directions: Directions
    roles: Groups[Mapping[str, int]]

    @classmethod
    def of(cls, task: Maze, trace: Trace) -> "Profile":
        failing = trace.take(~trace.exact_N)
        wrong_FA, role_FA = wrong_cells(failing), roles(task, failing.instances)
        direction_FA = directions(task, failing.instances.answer_NA, failing.answer_NA)
        wrong_FHW, open_FHW = grids(task, wrong_FA), grids(task, open_cells(task, failing.instances))
        found, firsts = regions(wrong_FHW), readings_of(failing, wrong_FA)
        return cls(
            instances=len(trace),
            failures=len(failing),
            first_wrong=firsts.map(Timing.of),
            sizes=Sizes(
                wrong_cells_of_a_failure=Spread.of(wrong_FA.sum(axis=1)),
                regions_of_a_failure=Spread.of(np.bincount(found.grid_R, minlength=len(failing))),
                cells_of_a_region=Spread.of(found.size_R),
                width_of_a_region=Spread.of(found.most(squares(wrong_FHW))),
            ),
            regions=Shape.of(found, wrong_FHW, grids(task, direction_FA)),
            wrong_neighbours=WrongNeighbours.of(wrong_FHW),
            neighbours=Neighbours(
                Clustering.of(wrong_FHW, np.ones_like(wrong_FHW)), Clustering.of(wrong_FHW, open_FHW)
            ),
            directions=Directions.of(wrong_FA, direction_FA, firsts),
            roles=Groups.of(firsts, wrong_FA, failing.instances.scored_NA, lambda at: count(role_FA[at], ROLES)),
        )


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
