"""Slow Sudoku logic in plain Python on sets, written for comparison only: nothing is shared with the solvers."""

from collections.abc import Iterable, Iterator
from itertools import combinations

Grid = list[set[int]]
Pairs = set[tuple[int, int]]

UNITS: list[list[int]] = (
    [[9 * r + c for c in range(9)] for r in range(9)]
    + [[9 * r + c for r in range(9)] for c in range(9)]
    + [[9 * (3 * b + r) + 3 * a + c for r in range(3) for c in range(3)] for b in range(3) for a in range(3)]
)
PEERS = [{c for unit in UNITS if cell in unit for c in unit} - {cell} for cell in range(81)]


class ContradictionError(Exception):
    pass


def eliminate(grid: Grid, cell: int, digit: int) -> None:
    """Norvig's recursive elimination: it reacts to what this call changes and to nothing else."""
    if digit not in grid[cell]:
        return
    grid[cell].discard(digit)
    if not grid[cell]:
        raise ContradictionError
    if len(grid[cell]) == 1:
        for peer in PEERS[cell]:
            eliminate(grid, peer, next(iter(grid[cell])))
    for unit in (unit for unit in UNITS if cell in unit):
        places = [c for c in unit if digit in grid[c]]
        if not places:
            raise ContradictionError
        if len(places) == 1:
            assign(grid, places[0], digit)


def assign(grid: Grid, cell: int, digit: int) -> None:
    for other in sorted(grid[cell] - {digit}):
        eliminate(grid, cell, other)


def propagated(board: Iterable[int]) -> Grid:
    grid: Grid = [set(range(1, 10)) for _ in range(81)]
    for cell, digit in enumerate(board):
        if digit:
            if digit not in grid[cell]:
                raise ContradictionError
            assign(grid, cell, digit)
    return grid


def copy(grid: Grid) -> Grid:
    return [set(cell) for cell in grid]


def solver_order(board: list[int]) -> list[int]:
    """Blanks in the order in which a recursive search with the fewest-candidates rule determines them."""

    def determined(grid: Grid, done: list[int]) -> list[int]:
        return [c for c in range(81) if not board[c] and len(grid[c]) == 1 and c not in done]

    def search(grid: Grid, done: list[int]) -> list[int] | None:
        undecided = [c for c in range(81) if len(grid[c]) > 1]
        if not undecided:
            return done
        cell = min(undecided, key=lambda c: (len(grid[c]), c))
        for digit in sorted(grid[cell]):
            trial = copy(grid)
            try:
                assign(trial, cell, digit)
            except ContradictionError:
                continue
            if found := search(trial, done + determined(trial, done)):
                return found
        return None

    grid = propagated(board)
    found = search(grid, determined(grid, []))
    assert found is not None
    return found


def refuted(grid: Grid, cell: int, digit: int) -> bool:
    trial = copy(grid)
    try:
        assign(trial, cell, digit)
    except ContradictionError:
        return True
    return False


# -- single techniques: the (cell, digit) pairs that each pattern rules out, pattern by pattern ---------------------
# Each looks at the grid as it is when the next pattern is asked for, so deletions in between are seen.


def naked(grid: Grid, unit: list[int], size: int) -> Iterator[Pairs]:
    for cells in combinations(unit, size):
        digits = set.union(*(grid[c] for c in cells))
        if all(len(grid[c]) >= 2 for c in cells) and len(digits) <= size:
            yield {(c, d) for c in unit if c not in cells for d in grid[c] & digits}


def hidden(grid: Grid, unit: list[int], size: int) -> Iterator[Pairs]:
    for digits in combinations(range(1, 10), size):
        places = [{c for c in unit if d in grid[c]} for d in digits]
        cells = set.union(*places)
        if all(len(place) >= 2 for place in places) and len(cells) <= size:
            yield {(c, d) for c in cells for d in grid[c] - set(digits)}


def locked(grid: Grid, sources: list[list[int]], targets: list[list[int]]) -> Iterator[Pairs]:
    """Digits whose two or three places in a source unit all lie in a target unit: the rest of that loses them."""
    for source in sources:
        for target in targets:
            for digit in range(1, 10):
                places = {c for c in source if digit in grid[c]}
                if len(places) >= 2 and places <= set(target):
                    yield {(c, digit) for c in set(target) - set(source) if digit in grid[c]}


def fish(grid: Grid, size: int) -> Iterator[Pairs]:
    for digit in range(1, 10):
        for lines, crossing in ((UNITS[:9], UNITS[9:18]), (UNITS[9:18], UNITS[:9])):
            for chosen in combinations(lines, size):
                places = [{c for c in line if digit in grid[c]} for line in chosen]
                marks = set.union(*places)
                covers = [line for line in crossing if marks & set(line)]
                if all(len(place) >= 2 for place in places) and len(covers) <= size:
                    yield {(c, digit) for line in covers for c in set(line) - marks if digit in grid[c]}


def xy_wing(grid: Grid) -> Iterator[Pairs]:
    for pivot in range(81):
        for one, other in combinations(sorted(PEERS[pivot]), 2):
            common = grid[one] & grid[other]
            if (
                len(grid[pivot]) == len(grid[one]) == len(grid[other]) == 2
                and other not in PEERS[one]
                and len(common) == 1
                and (grid[one] | grid[other]) - common == grid[pivot]
            ):
                (z,) = common
                yield {(c, z) for c in PEERS[one] & PEERS[other] if z in grid[c]}


# -- the two readings ---------------------------------------------------------------------------------------------


def closure_levels(board: list[int]) -> list[int]:
    """One technique at a time, the dearest first, everything propagated at once: another order, the same end."""
    grid = propagated(board)
    level = [-1 if board[c] else 0 if len(grid[c]) == 1 else 4 for c in range(81)]
    for top in (1, 2, 3):
        while gone := _one_closure_step(grid, top):
            for cell, digit in sorted(gone, reverse=True):
                eliminate(grid, cell, digit)
        for cell in range(81):
            if level[cell] == 4 and len(grid[cell]) == 1:
                level[cell] = top
    return level


def _one_closure_step(grid: Grid, top: int) -> Pairs:
    wings = [xy_wing(grid), fish(grid, 3), fish(grid, 2)] if top >= 2 else []
    intersections = [locked(grid, UNITS[:18], UNITS[18:]), locked(grid, UNITS[18:], UNITS[:18])]
    subsets = [kind(grid, unit, size) for kind in (hidden, naked) for unit in reversed(UNITS) for size in (3, 2)]
    for technique in (*wings, *intersections, *subsets):
        if gone := next(filter(None, technique), None):
            return gone
    if top >= 3:
        for cell in reversed(range(81)):
            if len(grid[cell]) > 1 and (gone := {(cell, d) for d in grid[cell] if refuted(grid, cell, d)}):
                return gone
    return set()


def released_levels(board: list[int]) -> tuple[list[int], list[int]]:
    """Level and pass of each blank by the released recipe: deletions are silent, passes are limited."""
    grid = propagated(board)
    level = [-1 if board[c] else 0 if len(grid[c]) == 1 else 4 for c in range(81)]
    turns = [0] * 81
    for top, passes in ((1, 30), (2, 20), (3, 15)):
        for turn in range(passes):
            before = copy(grid)
            _released_pass(grid, top)
            if grid == before:
                break
            for cell in range(81):
                if level[cell] == 4 and len(grid[cell]) == 1:
                    level[cell], turns[cell] = top, turn
    return level, turns


def _released_pass(grid: Grid, top: int) -> None:
    def delete(technique: Iterable[Pairs]) -> None:
        for gone in technique:
            for cell, digit in gone:
                grid[cell].discard(digit)

    if top == 3:
        for cell in range(81):
            digits = sorted(grid[cell]) if len(grid[cell]) in (2, 3) else []
            first = next((d for d in digits if refuted(grid, cell, d)), None)
            grid[cell] -= {first}
    if top == 2:
        delete(fish(grid, 2))
        delete(fish(grid, 3))
        delete(xy_wing(grid))
    for unit in UNITS:
        delete(naked(grid, unit, 2))
        if top < 3:
            delete(naked(grid, unit, 3))
        if top == 1:
            delete(hidden(grid, unit, 2))
            delete(hidden(grid, unit, 3))
    delete(locked(grid, UNITS[18:], UNITS[:18]))
    if top < 3:
        delete(locked(grid, UNITS[:18], UNITS[18:]))
    else:
        delete(fish(grid, 2))
    for unit in UNITS:
        for digit in range(1, 10):
            places = [c for c in unit if digit in grid[c]]
            if len(places) == 1 and len(grid[places[0]]) > 1:
                assign(grid, places[0], digit)
