"""Mazes: carving, the path, dead-end filling.

A maze of `size` × `size` rooms is a grid of side 2·size + 1 whose odd/odd cells are rooms; cells are row-major indices.
Its open cells form a tree, so the path between two of them is unique and dead-end filling finds it: a cell with one
open neighbour (other than start and goal) is off the path; fill it and look again.

Shapes: N mazes, C cells.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks import rng
from hardtail.tasks.jit import jit

SOLVED, NO_PATH, LOOP, ISLAND = range(4)
PARENTS = 3
"""The most cells that a cell waits for: three dead ends, or the path cell before it and the dead ends of that one."""

Cells = NDArray[np.bool_]
Index = NDArray[np.int64]
Order = NDArray[np.int16]
KEPT = 9
"""The number of open neighbours that start and goal pretend to have, so that they are never filled."""


class Annotation(NamedTuple):
    """Everything the task knows about each maze; rank, round and parent are -1 where there is none."""

    status_N: NDArray[np.int64]
    on_path_NC: Cells
    rank_NC: Order
    """Dead-end filling, one cell after another; then the path from start to goal. Start and goal have no rank."""
    round_NC: Order
    """The same with all dead ends of a round tied."""
    parent_NCE: NDArray[np.int16]
    corridor_N: NDArray[np.int16]
    """Longest run of path cells with fewer than three open neighbours, start and goal excluded."""
    path_N: NDArray[np.int16]
    """Cells on the path, start and goal included."""
    straightness_N: NDArray[np.float32]
    """Of the rooms with two openings, the share whose openings are opposite."""


# -- generating -------------------------------------------------------------------------------------------------


@jit
def generate_many(
    key_N: NDArray[np.uint64], size: int, bias: float, random_root: bool, farthest: bool
) -> tuple[Cells, Index, Index]:
    """A maze per key: open cells, start, goal (opposite corners, or the two rooms farthest apart)."""
    side = 2 * size + 1
    open_NC = np.zeros((key_N.size, side * side), dtype=np.bool_)
    start_N = np.full(key_N.size, side + 1, dtype=np.int64)
    goal_N = np.full(key_N.size, side * side - side - 2, dtype=np.int64)
    state = np.zeros(1, dtype=np.uint64)
    for n in range(key_N.size):
        state[0] = key_N[n]
        root = rng.below(state, size * size) if random_root else 0
        _carve(state, open_NC[n], size, root, bias)
        if farthest:
            start_N[n] = search(open_NC[n], side, side + 1)[0][-1]  # the cell that is reached last
            goal_N[n] = search(open_NC[n], side, start_N[n])[0][-1]
    return open_NC, start_N, goal_N


@jit
def _carve(state: rng.State, open_C: Cells, size: int, root: int, bias: float) -> None:
    """Randomised depth-first search. With probability `bias` a passage continues straight ahead where it can."""
    side = 2 * size + 1
    stack = np.empty(size * size, dtype=np.int64)
    choice = np.empty(4, dtype=np.int64)
    cell = (2 * (root // size) + 1) * side + 2 * (root % size) + 1
    open_C[cell] = True
    stack[0] = cell
    depth, before = 0, 0  # `before`: the last step, 0 after a retreat
    while depth >= 0:
        cell = stack[depth]
        row, column = cell // side, cell % side
        found, straight = 0, False
        right, left, down, up = column + 2 < side, column - 2 > 0, row + 2 < side, row - 2 > 0
        for step, inside in ((1, right), (-1, left), (side, down), (-side, up)):
            if inside and not open_C[cell + 2 * step]:
                choice[found] = step
                found += 1
                straight |= step == before
        if found == 0:
            depth -= 1
            before = 0
            continue
        if not (straight and bias > 0.0 and rng.unit(state) < bias):
            before = choice[rng.below(state, found)]
        open_C[cell + before] = True
        open_C[cell + 2 * before] = True
        depth += 1
        stack[depth] = cell + 2 * before


@jit
def search(open_C: Cells, side: int, start: int) -> tuple[Index, Index, int]:
    """Breadth-first search: the cells reached in order, where each was reached from, how many passages there are."""
    came_from = np.full(open_C.size, -1, dtype=np.int64)
    queue = np.empty(open_C.size, dtype=np.int64)
    queue[0] = start
    came_from[start] = start
    head, tail, passages = 0, 1, 0
    while head < tail:
        cell = queue[head]
        head += 1
        for neighbour in (cell + 1, cell - 1, cell + side, cell - side):
            if open_C[neighbour]:
                passages += 1
                if came_from[neighbour] < 0:
                    came_from[neighbour] = cell
                    queue[tail] = neighbour
                    tail += 1
    return queue[:tail], came_from, passages // 2


# -- solving ----------------------------------------------------------------------------------------------------


@jit
def annotate_many(open_NC: Cells, start_N: Index, goal_N: Index, side: int) -> Annotation:
    """Solve and describe mazes. The border must be closed; a maze that is not a tree only gets its status."""
    n, c = open_NC.shape
    status_N = np.zeros(n, dtype=np.int64)
    on_path_NC = np.zeros((n, c), dtype=np.bool_)
    rank_NC, round_NC = np.full((n, c), -1, dtype=np.int16), np.full((n, c), -1, dtype=np.int16)
    parent_NCE = np.full((n, c, PARENTS), -1, dtype=np.int16)
    corridor_N, path_N = np.zeros(n, dtype=np.int16), np.zeros(n, dtype=np.int16)
    straightness_N = np.zeros(n, dtype=np.float32)
    for i in range(n):
        open_C, start, goal = open_NC[i], start_N[i], goal_N[i]
        reached, came_from, passages = search(open_C, side, start)
        if came_from[goal] < 0:
            status_N[i] = NO_PATH
            continue
        if passages != reached.size - 1:
            status_N[i] = LOOP
            continue
        if reached.size < open_C.sum():
            status_N[i] = ISLAND
            continue
        path = _walk(came_from, start, goal)
        path_N[i] = path.size
        on_path_NC[i][path] = True
        degree = _degrees(open_C, side)
        corridor_N[i] = _longest_corridor(path, degree)
        straightness_N[i] = _straightness(open_C, side, degree)
        degree[start], degree[goal] = KEPT, KEPT
        ranked, rounds = _fill_dead_ends(open_C, side, degree, rank_NC[i], round_NC[i])
        for step in range(path.size - 2):
            rank_NC[i, path[step + 1]] = ranked + step
            round_NC[i, path[step + 1]] = rounds + step
        _link_parents(open_C, side, path, on_path_NC[i], round_NC[i], parent_NCE[i])
    return Annotation(status_N, on_path_NC, rank_NC, round_NC, parent_NCE, corridor_N, path_N, straightness_N)


@jit
def _walk(came_from: Index, start: int, goal: int) -> Index:
    """The path from `start` to `goal`."""
    path = [goal]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return np.array(path[::-1])


@jit
def _degrees(open_C: Cells, side: int) -> Index:
    degree = np.zeros(open_C.size, dtype=np.int64)
    for cell in range(side, open_C.size - side):
        if open_C[cell]:
            for neighbour in (cell + 1, cell - 1, cell + side, cell - side):
                degree[cell] += open_C[neighbour]
    return degree


@jit
def _longest_corridor(path: Index, degree: Index) -> int:
    longest, run = 0, 0
    for step in range(1, path.size - 1):
        run = run + 1 if degree[path[step]] < 3 else 0
        longest = max(longest, run)
    return longest


@jit
def _straightness(open_C: Cells, side: int, degree: Index) -> float:
    passages, straight = 0, 0
    for row in range(1, side, 2):
        for column in range(1, side, 2):
            cell = row * side + column
            if degree[cell] == 2:
                passages += 1
                straight += open_C[cell - 1] == open_C[cell + 1]
    return straight / max(passages, 1)


@jit
def _fill_dead_ends(open_C: Cells, side: int, left_C: Index, rank_C: Order, round_C: Order) -> tuple[int, int]:
    """Fill in rounds, cells of a round in ascending order; returns how many cells and rounds there were.

    `left_C` counts the open neighbours of each cell that are not filled yet; it is updated.
    """
    ranked, rounds = 0, 0
    current = np.flatnonzero(left_C == 1)
    while current.size:
        for cell in current:
            rank_C[cell] = ranked
            round_C[cell] = rounds
            ranked += 1
        found = []
        for cell in current:
            for neighbour in (cell + 1, cell - 1, cell + side, cell - side):
                if open_C[neighbour] and rank_C[neighbour] < 0:
                    left_C[neighbour] -= 1
                    if left_C[neighbour] == 1:
                        found.append(neighbour)
        current = np.sort(np.array(found, dtype=np.int64))
        rounds += 1
    return ranked, rounds


@jit
def _link_parents(
    open_C: Cells, side: int, path: Index, on_path_C: Cells, round_C: Order, parent_CE: NDArray[np.int16]
) -> None:
    """A dead end waits for the dead ends that open into it; a path cell for the one before it and that one's dead ends.

    Each is exactly what settles the cell: all but one exit closed, or the path's head with one exit left.
    """
    for cell in range(open_C.size):
        if open_C[cell] and not on_path_C[cell]:
            found = 0
            for neighbour in (cell + 1, cell - 1, cell + side, cell - side):
                if open_C[neighbour] and not on_path_C[neighbour] and round_C[neighbour] < round_C[cell]:
                    parent_CE[cell, found] = neighbour
                    found += 1
    for step in range(1, path.size - 1):
        cell, before, found = path[step], path[step - 1], 0
        if step > 1:
            parent_CE[cell, 0], found = before, 1
        for neighbour in (before + 1, before - 1, before + side, before - side):
            if open_C[neighbour] and not on_path_C[neighbour]:
                parent_CE[cell, found] = neighbour
                found += 1
