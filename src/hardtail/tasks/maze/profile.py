"""Wrong regions of mazes: what shape they have, which way they err, and where they began (docs/study.md §7.2).

Wrong cells form 4-connected regions. A region's *width* is the side of the largest square of wrong cells in it. It is a
*path* when it has width 1 and no cell with more than two wrong neighbours. Where only open cells are hidden, the walls
alone keep every region at width 1; then the informative figures are `single` and `single_path`.

Shapes: N mazes (F those that failed), A = H × W answer cells, R regions, K commits, 4 neighbours.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.tables import percent
from hardtail.core.types import Array, Instances, Trace
from hardtail.tasks.maze.regions import Grids, Regions, neighbours, regions, squares
from hardtail.tasks.maze.task import Maze
from hardtail.traces.commits import Groups, Readings, Spread, Timing, Wrong, annotation, count, readings_of, wrong_cells
from hardtail.traces.states import standing
from hardtail.traces.summary import mean, share

_CORRIDOR = "corridor_endpoint", "corridor_entrance", "corridor"
ROLES = ("backbone", "junction", *_CORRIDOR, "dead_end_tip", "dead_end", "fixed")
BACKBONE, JUNCTION, ENDPOINT, ENTRANCE, CORRIDOR, TIP, DEAD_END, FIXED = range(8)
"""A junction, on the path or off it, has three or more open neighbours. The longest corridor of the path has endpoints
next to S or E and entrances next to junctions; the rest of the path is backbone. Off the path, tips are filled in the
first `TIP_ROUNDS` rounds of dead-end filling. Walls, S and E are fixed."""
TIP_ROUNDS = 3
DIRECTIONS = ("removal", "addition", "other")
NEVER = np.iinfo(np.int64).max
REMOVAL, ADDITION, OTHER = range(3)
"""Gold 1 answered 0; gold 0 answered 1; any other token."""


@dataclass(frozen=True)
class Directions(Readings[Mapping[str, int]]):
    """Wrong commits and wrong cells by direction, failures that have such cells, and failures that have no others."""

    wrong_cells: Mapping[str, int]
    failures_with: Mapping[str, int]
    failures_only: Mapping[str, int]

    @classmethod
    def of(cls, counted: Wrong[Mapping[str, int]], wrong_FA: Array, direction_FA: Array) -> "Directions":
        has_F3 = np.stack([(wrong_FA & (direction_FA == way)).any(axis=1) for way in range(3)], axis=1)
        only_F3 = has_F3 & (has_F3.sum(axis=1) == 1)[:, None]
        return cls(
            first_in_time=counted.first_in_time,
            lowest_index=counted.lowest_index,
            wrong_cells=counted.wrong,
            failures_with=count(np.nonzero(has_F3)[1], DIRECTIONS),
            failures_only=count(np.nonzero(only_F3)[1], DIRECTIONS),
        )


@dataclass(frozen=True)
class RegionShares:
    """Shares of failures (`single`) and of regions; `pure` regions err in one direction only."""

    total: int
    single: float | None
    single_path: float | None
    width_one: float | None
    path: float | None
    pure: float | None
    purity: float | None

    @classmethod
    def of(cls, found: Regions, wrong_FHW: Grids, direction_FHW: NDArray[np.int8]) -> "RegionShares":
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
class FailureSizes:
    wrong_cells_of_a_failure: Spread
    regions_of_a_failure: Spread
    cells_of_a_region: Spread
    width_of_a_region: Spread


@dataclass(frozen=True)
class WrongNeighbours:
    """How many wrong cells have no, one … four wrong neighbours, and two shares of them."""

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
    """P(neighbour wrong | wrong) and P(wrong) of each failing maze, averaged over failures."""

    wrong_given_wrong: float | None
    baseline: float | None

    @classmethod
    def of(cls, wrong_FHW: Grids, within_FHW: Grids) -> "Clustering":
        """Clustering among the cells of `within` alone, over the mazes where a wrong cell has a neighbour."""
        wrong_FHW = wrong_FHW & within_FHW
        pairs_F = (neighbours(within_FHW).sum(axis=-1) * wrong_FHW).sum(axis=(1, 2))
        wrong_pairs_F = (neighbours(wrong_FHW).sum(axis=-1) * wrong_FHW).sum(axis=(1, 2))
        known_F = pairs_F > 0
        baseline_K = wrong_FHW[known_F].sum(axis=(1, 2)) / within_FHW[known_F].sum(axis=(1, 2))
        return cls(mean(wrong_pairs_F[known_F] / pairs_F[known_F]), mean(baseline_K))


@dataclass(frozen=True)
class Neighbours:
    """Clustering among all cells, walls included, as the study must have measured it; and among the open ones."""

    grid: Clustering
    open: Clustering


@dataclass(frozen=True)
class Profile:
    """Everything this module measures; `all` are the scored cells of failing mazes, to compare the wrong ones with."""

    instances: int
    failures: int
    first_wrong: Readings[Timing]
    sizes: FailureSizes
    regions: RegionShares
    wrong_neighbours: WrongNeighbours
    neighbours: Neighbours
    directions: Directions
    roles: Groups[Mapping[str, int]]
    spread: float | None = None
    """Of the wrong commits after the first of a maze, the share next to a cell that was already wrong."""

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
            sizes=FailureSizes(
                wrong_cells_of_a_failure=Spread.of(wrong_FA.sum(axis=1)),
                regions_of_a_failure=Spread.of(np.bincount(found.grid_R, minlength=len(failing))),
                cells_of_a_region=Spread.of(found.size_R),
                width_of_a_region=Spread.of(found.most(squares(wrong_FHW))),
            ),
            regions=RegionShares.of(found, wrong_FHW, grids(task, direction_FA)),
            wrong_neighbours=WrongNeighbours.of(wrong_FHW),
            neighbours=Neighbours(
                Clustering.of(wrong_FHW, np.ones_like(wrong_FHW)), Clustering.of(wrong_FHW, open_FHW)
            ),
            directions=Directions.of(
                Wrong.among(firsts, wrong_FA, lambda at: count(direction_FA[at], DIRECTIONS)), wrong_FA, direction_FA
            ),
            roles=Groups.of(firsts, wrong_FA, failing.instances.scored_NA, lambda at: count(role_FA[at], ROLES)),
            spread=spread(grids(task, np.where(wrong_FA, standing(failing).step_NA, NEVER))),
        )

    def in_words(self) -> str | None:
        if not self.failures or self.regions.single_path is None:
            return None
        only = {name: percent(found / self.failures) for name, found in self.directions.failures_only.items()}
        return (
            f"{only['removal']} of the failures only leave out cells of the path, {only['addition']} only add cells; "
            f"in {percent(self.regions.single_path)} the wrong cells form one connected path."
        )


# -- arrays -----------------------------------------------------------------------------------------------------


def grids(task: Maze, cell_NA: Array) -> Array:
    """Answer cells as grids [N, H, W]."""
    return cell_NA.reshape(len(cell_NA), task.side, task.side)


def spread(step_NHW: Array) -> float | None:
    """Of the wrong cells after the first, the share that extend an earlier one, from the steps that wrote them (`NEVER`
    where right)."""
    around_NHW = np.pad(step_NHW, ((0, 0), (1, 1), (1, 1)), constant_values=NEVER)
    sides = around_NHW[:, 1:-1, 2:], around_NHW[:, 1:-1, :-2], around_NHW[:, 2:, 1:-1], around_NHW[:, :-2, 1:-1]
    extends_NHW = np.minimum.reduce(sides) < step_NHW
    later_NHW = (step_NHW < NEVER) & (step_NHW > step_NHW.min(axis=(1, 2), keepdims=True, initial=NEVER))
    return mean(extends_NHW[later_NHW])


def directions(task: Maze, gold_NA: Array, answer_NA: Array) -> NDArray[np.int8]:
    """Which way each cell errs, as an index into `DIRECTIONS`; meaningless for cells that are right."""
    off, on = task.vocabulary.id("0"), task.vocabulary.id("1")
    removed_NA, added_NA = (gold_NA == on) & (answer_NA == off), (gold_NA == off) & (answer_NA == on)
    return np.where(removed_NA, REMOVAL, np.where(added_NA, ADDITION, OTHER)).astype(np.int8)


def open_cells(task: Maze, instances: Instances) -> NDArray[np.bool_]:
    """`open_NA`: the cells that are open in the puzzle, except S and E."""
    return np.asarray(instances.tokens_NL[:, : task.answer_len] == task.vocabulary.id("."))


def roles(task: Maze, instances: Instances) -> NDArray[np.int8]:
    """The role of each cell, as an index into `ROLES`."""
    round_NA = annotation(task, instances.orders, "dead_end_rounds")
    puzzle_NA = instances.tokens_NL[:, : task.answer_len]
    open_NHW = grids(task, puzzle_NA != task.vocabulary.id("#"))
    inner_NHW = grids(task, open_cells(task, instances))
    path_NHW = grids(task, instances.answer_NA == task.vocabulary.id("1"))
    junction_NHW = inner_NHW & (neighbours(open_NHW).sum(axis=-1) >= 3)

    corridors = regions(path_NHW & ~junction_NHW)
    longest_N = np.zeros(len(instances), dtype=np.int64)
    np.maximum.at(longest_N, corridors.grid_R, corridors.size_R)
    in_longest_R = corridors.size_R == longest_N[corridors.grid_R]
    corridor_NHW = np.append(in_longest_R, False)[corridors.label_NHW]  # label -1: not a corridor

    copied = int(task.maskable == "answer")  # then walls, S and E are a round of their own, before the others
    tip_NHW = grids(task, round_NA < TIP_ROUNDS + copied)
    endpoint_NHW = corridor_NHW & neighbours(open_NHW & ~inner_NHW).any(axis=-1)
    entrance_NHW = corridor_NHW & neighbours(junction_NHW).any(axis=-1)
    role_NHW = np.select(
        [~inner_NHW, junction_NHW, endpoint_NHW, entrance_NHW, corridor_NHW, path_NHW, tip_NHW],
        [FIXED, JUNCTION, ENDPOINT, ENTRANCE, CORRIDOR, BACKBONE, TIP],
        DEAD_END,
    )
    return role_NHW.reshape(puzzle_NA.shape).astype(np.int8)
