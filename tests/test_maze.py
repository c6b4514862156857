"""Mazes against plain graph code, and the study's figures."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hardtail
from hardtail import HardtailError, Instances, Streams

Grid = list[str]


def grid_of(instances: Instances, i: int, side: int) -> Grid:
    text = "".join("#.01SE="[token] for token in instances.tokens_NL[i, : side * side])
    return [text[at : at + side] for at in range(0, side * side, side)]


def neighbours(grid: Grid, cell: tuple[int, int]) -> list[tuple[int, int]]:
    row, column = cell
    around = [(row, column + 1), (row, column - 1), (row + 1, column), (row - 1, column)]
    return [(r, c) for r, c in around if grid[r][c] != "#"]


def find(grid: Grid, sign: str) -> tuple[int, int]:
    return next((r, row.index(sign)) for r, row in enumerate(grid) if sign in row)


def shortest_path(grid: Grid) -> list[tuple[int, int]]:
    start, goal = find(grid, "S"), find(grid, "E")
    came: dict[tuple[int, int], tuple[int, int]] = {start: start}
    queue = deque([start])
    while queue:
        cell = queue.popleft()
        for other in neighbours(grid, cell):
            if other not in came:
                came[other] = cell
                queue.append(other)
    path = [goal]
    while path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


@pytest.mark.parametrize("preset", ["release", "paper"])
@pytest.mark.parametrize("size", [2, 5, 10])
def test_path_tree_corridor_and_order(preset: str, size: int) -> None:
    task = hardtail.task("maze", preset, size=size)
    instances = task.sample(20, Streams(1).named("paths"))
    side = 2 * size + 1
    for i in range(20):
        grid = grid_of(instances, i, side)
        opened = [(r, c) for r in range(side) for c in range(side) if grid[r][c] != "#"]
        assert len(opened) == 2 * size * size - 1  # a spanning tree of the rooms
        path = shortest_path(grid)
        marked = {divmod(int(cell), side) for cell in np.flatnonzero(instances.answer_NA[i] == 3)}
        assert marked == set(path[1:-1])
        assert instances.strata["path"][i] == len(path)

        longest = run = 0
        for cell in path[1:-1]:
            run = run + 1 if len(neighbours(grid, cell)) < 3 else 0
            longest = max(longest, run)
        assert instances.strata["corridor"][i] == longest

        rank = instances.orders["dead_end_filling"][i]
        rounds = instances.orders["dead_end_rounds"][i]
        inner = [cell for cell in opened if cell not in (path[0], path[-1])]
        in_order = sorted(inner, key=lambda cell: rank[cell[0] * side + cell[1]])
        filled = set[tuple[int, int]]()
        for cell in in_order:
            if cell not in path:  # a dead end at its turn: all but one exit are filled
                assert len([other for other in neighbours(grid, cell) if other not in filled]) == 1
                filled.add(cell)
        assert [cell for cell in in_order if cell in path] == path[1:-1]
        assert in_order[-len(path[1:-1]) :] == path[1:-1]
        assert in_order == sorted(inner, key=lambda cell: (rounds[cell[0] * side + cell[1]], cell))


def test_parents_settle_their_cell() -> None:
    """What the parents' values say, together with the walls, leaves no choice for the cell."""
    task = hardtail.task("maze", size=6)
    instances = task.sample(10, Streams(2).named("parents"))
    side = 13
    assert instances.parents_NAE is not None
    for i in range(10):
        grid = grid_of(instances, i, side)
        path = shortest_path(grid)
        for cell in np.flatnonzero(instances.maskable_NA[i]):
            parents = {divmod(int(p), side) for p in instances.parents_NAE[i, cell] if p >= 0}
            place = divmod(int(cell), side)
            if place in path:
                before = path[path.index(place) - 1]
                exits = set(neighbours(grid, before)) - {
                    place,
                    *path[max(path.index(before) - 1, 0) : path.index(before)],
                }
                assert parents == exits | ({before} - {path[0]})
            else:
                assert len(set(neighbours(grid, place)) - parents) == 1


def test_farthest_endpoints() -> None:
    instances = hardtail.task("maze", "paper", size=5).sample(10, Streams(3).named("far"))
    for i in range(10):
        grid = grid_of(instances, i, 11)
        blank = ["".join("." if sign in "SE" else sign for sign in row) for row in grid]
        opened = [(r, c) for r in range(11) for c in range(11) if grid[r][c] != "#"]

        def longest_from(start: tuple[int, int], grid: Grid = blank) -> int:
            depth = {start: 1}
            queue = deque([start])
            while queue:
                cell = queue.popleft()
                for other in neighbours(grid, cell):
                    if other not in depth:
                        depth[other] = depth[cell] + 1
                        queue.append(other)
            return max(depth.values())

        assert instances.strata["path"][i] == max(longest_from(cell) for cell in opened)


def test_figures_of_the_study() -> None:
    """docs/study.md §3: 197 hidden cells, corridor quantiles, path length, and what the released strata change."""
    task = hardtail.task("maze")
    natural = task.sample(3000, Streams(0).named("natural"))
    assert (natural.maskable_NA.sum(axis=1) == 197).all()
    assert hardtail.task("maze").most_hidden == 197
    corridor = natural.strata["corridor"]
    assert np.percentile(corridor, [5, 50, 95]) == pytest.approx([21, 36, 61], abs=2)
    assert [(corridor >= low).mean() for low in (20, 30, 40)] == pytest.approx([0.96, 0.71, 0.38], abs=0.04)
    assert np.median(natural.strata["path"]) == pytest.approx(89, abs=5)
    assert natural.strata["on_path"].mean() == pytest.approx(0.46, abs=0.015)

    straight = task.sample(300, Streams(0).named("straight"), "corridor>=20")
    assert np.median(straight.strata["corridor"]) == pytest.approx(35, abs=2)
    assert np.median(straight.strata["path"]) == pytest.approx(37, abs=2)
    assert straight.strata["straightness"].mean() > natural.strata["straightness"].mean() + 0.3
    unbiased = hardtail.task("maze", stratum_bias="none").sample(300, Streams(0).named("unbiased"), "corridor>=20")
    assert unbiased.strata["straightness"].mean() == pytest.approx(natural.strata["straightness"].mean(), abs=0.02)


MAZE = """
#######
#S..#.#
###.#.#
#...#.#
#.###.#
#....E#
#######
"""


def test_a_drawn_maze() -> None:
    task = hardtail.task("maze").fitted(MAZE)
    instances = task.parse([MAZE])
    expected = "########S11#0####1#0##111#0##1###0##1111E########"
    assert task.answer_text(instances, 0) == expected
    assert task.prompts(MAZE.split()) == ["\n".join(MAZE.split())]
    flat = "".join(MAZE.split())
    assert task.answer_text(task.parse([flat]), 0) == expected
    wrong = task.read_answer(instances, 0, expected.replace("S11", "S01"))
    assert task.fault(instances, 0, wrong) == "row 2, column 3 is '0'; it is on the path ('1'); wrong cells: 1 of 15"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (("#S..#.#", "#S#.#.#"), "no path"),
        (("###.#.#", "#...#.#"), "loop"),
        (("#S..#.#", "#...#.#"), "0 cells S"),
        (("#S..#.#", "#SS.#.#"), "2 cells S"),
        (("#S..#.#", "#Sx.#.#"), "'x' is not a cell"),
        (("#S..#.#", "#S..#.."), "border is open at row 2, column 7"),
        (("#S..#.#\n", ""), "the grid has 6 rows of 7; it must have"),
        (("#.###.#", "#.#####"), "the open cell at row 2, column 6 is not connected with S"),
    ],
)
def test_bad_mazes(change: tuple[str, str], sentence: str) -> None:
    broken = MAZE.replace(*change)
    with pytest.raises(HardtailError, match=sentence):
        hardtail.task("maze").fitted(broken).parse([broken])


@pytest.mark.parametrize(
    ("grid", "given"), [("#S#\n#E", "2 rows of 2 to 3"), ("#S#E#", "5 cells"), ("#S\n#E", "2 rows of 2")]
)
def test_a_grid_of_another_size_says_what_it_has(grid: str, given: str) -> None:
    with pytest.raises(HardtailError, match=f"maze: the grid has {given}; it must have 5 rows of 5"):
        hardtail.task("maze", size=2).parse([grid])


@given(st.text("#.SE\n ", max_size=60))
@settings(deadline=None)
def test_garbage_gets_a_sentence(text: str) -> None:
    task = hardtail.task("maze").fitted(text)
    try:
        instances = task.parse([text])
    except HardtailError:
        return
    assert task.check(instances, instances.answer_NA).all()


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["#######"] * 6, "6 lines of 7 characters"),
        (["#######"] * 8, "8 lines of 7 characters"),
        (["#######"] * 6 + ["######"], "7 lines of 6 to 7 characters"),
        (["S" + "." * 40 + "E"] * 2, "2 lines of 42 characters"),  # too short, and no square
        (["S" + "." * 79, "." * 80], "2 lines of 80 characters"),  # no E
    ],
)
def test_lines_that_are_no_square_grids_are_refused(lines: list[str], found: str) -> None:
    """A maze that lost a line would otherwise be read together with the next one."""
    with pytest.raises(HardtailError, match=f"maze: {found} do not form square grids"):
        hardtail.task("maze").prompts(lines)


def test_a_flat_maze_without_an_end_is_named() -> None:
    task, flat = hardtail.task("maze"), "#" * 22 + "S" + "." * 18 + "##" + "E" + "#" * 397
    grids = task.prompts([flat.replace("E", "."), flat])
    with pytest.raises(HardtailError, match="problem 1: maze: the grid has 0 cells E; it must have exactly one"):
        task.parse_numbered(grids, [1, 2])


def test_grids_below_each_other_and_flat_mazes_are_told_apart() -> None:
    """A flat maze is longer than the widest grid, whose lines have 65 characters."""
    task, flat = hardtail.task("maze"), "S" + "#" * 63 + "E"
    assert task.prompts([f" {flat}", flat]) == [flat, flat]
    small = [hardtail.task("maze", size=size) for size in (2, 3)]
    for one in small:
        drawn = one.render(one.sample(3, Streams(0).named("flat"), "natural"))
        assert one.prompts(["".join(text.split()) for text in drawn]) == ["".join(text.split()) for text in drawn]
    grid = [flat, *["#" * 65] * 63, flat[::-1]]
    assert task.prompts(grid * 2) == ["\n".join(grid)] * 2


def test_loops_and_rooms_that_nothing_leads_to_are_refused() -> None:
    around = MAZE.split()
    for island in (["#...###", "#.#.###", "#...###"], ["###.###", "#######", "#######"]):
        grid = "\n".join([*around[:1], *island, "#######", "#S...E#", around[-1]])
        with pytest.raises(HardtailError, match=r"open cell at row 2, column [24] is not connected"):
            hardtail.task("maze").fitted(grid).parse([grid])


def test_no_mazes_are_no_instances() -> None:
    assert len(hardtail.task("maze").parse([])) == 0


def test_bad_fields_get_a_sentence() -> None:
    for fields in ({"size": 1}, {"bias": 1.5}, {"trailing_pad": -1}):
        with pytest.raises(HardtailError, match=f"maze: {next(iter(fields))} is"):
            hardtail.task("maze", **fields)


@pytest.mark.parametrize("preset", ["release", "paper"])
def test_bare_instances_are_judged_and_drawn_as_full_ones(preset: str) -> None:
    task = hardtail.task("maze", preset, size=4)
    full = task.sample(3, Streams(0).named("bare"))
    bare = full.bare()
    zero, one = task.vocabulary.id("0"), task.vocabulary.id("1")
    wrong_NA = np.where(full.answer_NA == one, zero, full.answer_NA)
    for i in range(3):
        assert task.fault(bare, i, full.answer_NA[i]) is None
        assert task.fault(bare, i, wrong_NA[i]) == task.fault(full, i, wrong_NA[i]) is not None
        assert task.picture(bare, i, wrong_NA[i]) == task.picture(full, i, wrong_NA[i])


def test_unreachable_stratum_says_so() -> None:
    task = hardtail.task("maze", size=2)
    with pytest.raises(HardtailError, match="no instance with corridor>=50"):
        task.sample(1, Streams(0).named("x"), "corridor>=50")


@pytest.mark.parametrize(("side", "size"), [(5, 2), (7, 3), (21, 10), (65, 32)])
def test_a_maze_has_the_size_that_it_is_drawn_in(side: int, size: int) -> None:
    grid = "\n".join("." * side for _ in range(side))
    assert hardtail.task("maze").fitted(grid) == replace(hardtail.task("maze"), size=size)  # type: ignore[call-arg]
