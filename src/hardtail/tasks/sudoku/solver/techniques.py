"""The technique that a person needs for each cell, TL0 … TL4, in two readings.

TL0 singles · TL1 subsets and intersections · TL2 fish and wings · TL3 one guess refuted by propagation · TL4 search.

`closure`: a cell's level is the smallest k such that techniques up to k, applied until nothing changes and with full
propagation after each, determine it. Fewer candidates never prevent a technique, so the result does not depend on the
order in which techniques are tried, the orientation of the board or the names of the digits.

`released`: the weaker hierarchy of the study's code (docs/study.md §6.2). Deletions do not propagate; a cell left with
one candidate is recorded but its peers keep that digit (only hidden singles propagate); levels have a limited number
of passes; and refutation tries only cells with 2 or 3 candidates, deleting one per cell and pass.

Boards must have a solution: all deductions are sound, so no contradiction occurs outside a trial.

Shapes: N boards, C = 81 cells.
"""

from typing import Literal

import numpy as np

from hardtail.tasks.jit import jit
from hardtail.tasks.sudoku.solver.board import (
    COUNT,
    UNITS,
    WORK,
    Board,
    Masks,
    Ranks,
    assign,
    copy,
    propagate,
    ranked,
    read,
    remove,
    single_places,
)
from hardtail.tasks.sudoku.solver.patterns import BOX_LINE, POINTING, fish, intersections, subset, xy_wing

LEVELS = ("TL0", "TL1", "TL2", "TL3", "TL4")
Reading = Literal["released", "closure"]
SEARCH = 4
_PASSES = (0, 30, 20, 15)
_LONGEST = 1000  # more passes than there are candidates to delete


@jit
def _note(board_C: Board, cand_C: Masks, level: int, turn: int, level_C: Ranks, pass_C: Masks) -> int:
    """Record the blanks that have one candidate now; returns how many blanks have more."""
    left = 0
    for cell in range(81):
        if board_C[cell] == 0 and level_C[cell] < 0:
            if COUNT[cand_C[cell]] == 1:
                level_C[cell], pass_C[cell] = level, turn
            else:
                left += 1
    return left


# -- released ---------------------------------------------------------------------------------------------------


@jit
def _place_hidden(cand_C: Masks, work: Masks) -> bool:
    """Assign every digit that has one place left in a unit, with propagation."""
    changed = False
    for unit in range(27):
        single = single_places(cand_C, unit)[1]
        for i in range(9):
            cell = UNITS[unit, i]
            bit = cand_C[cell] & single
            if bit and cand_C[cell] != bit:
                assign(cand_C, cell, bit, work)
                changed = True
    return changed


@jit
def _subsets(cand_C: Masks, with_hidden: bool) -> bool:
    changed = False
    for unit in range(27):
        for kind in range(1 + with_hidden):
            for size in (2, 3):
                changed |= subset(cand_C, unit, size, kind == 1)
    return changed


@jit
def _lines_and_boxes(cand_C: Masks) -> bool:
    return intersections(cand_C, POINTING) | intersections(cand_C, BOX_LINE)


@jit
def _fish_and_wings(cand_C: Masks) -> bool:
    return fish(cand_C, 2) | fish(cand_C, 3) | xy_wing(cand_C)


@jit
def _refute_small(cand_C: Masks, trial_C: Masks, work: Masks) -> bool:
    """In every cell with 2 or 3 candidates delete the lowest one that propagation refutes."""
    changed = False
    for cell in range(81):
        if not 2 <= COUNT[cand_C[cell]] <= 3:
            continue
        for digit in range(9):
            bit = cand_C[cell] & (1 << digit)
            if bit:
                copy(cand_C, trial_C)
                if not assign(trial_C, cell, bit, work):
                    cand_C[cell] ^= bit
                    changed = True
                    break
    return changed


@jit
def _released_pass(cand_C: Masks, level: int, trial_C: Masks, work: Masks) -> bool:
    if level == 1:
        changed = _subsets(cand_C, True) | _lines_and_boxes(cand_C)
    elif level == 2:
        changed = _fish_and_wings(cand_C) | _subsets(cand_C, False) | _lines_and_boxes(cand_C)
    else:
        changed = _refute_small(cand_C, trial_C, work)
        for unit in range(27):
            changed |= subset(cand_C, unit, 2, False)
        changed |= intersections(cand_C, POINTING) | fish(cand_C, 2)
    return changed | _place_hidden(cand_C, work)


# -- closure ----------------------------------------------------------------------------------------------------


@jit
def _refute_all(cand_C: Masks, out_C: Masks, trial_C: Masks, work: Masks) -> None:
    """Delete in `out_C` every candidate of `cand_C` that leads to a contradiction when it is assigned."""
    safe_C = np.zeros(81, dtype=np.int16)
    for cell in range(81):
        if COUNT[cand_C[cell]] == 1:
            continue
        for digit in range(9):
            bit = cand_C[cell] & (1 << digit)
            if bit == 0 or safe_C[cell] & bit:
                continue
            copy(cand_C, trial_C)
            if assign(trial_C, cell, bit, work):
                # The consequences of a trial without a contradiction lead to none either.
                for other in range(81):
                    if COUNT[trial_C[other]] == 1:
                        safe_C[other] |= trial_C[other]
            else:
                out_C[cell] &= ~bit


@jit
def _closure_pass(cand_C: Masks, level: int, next_C: Masks, trial_C: Masks, work: Masks) -> bool:
    """All techniques up to `level` once, then full propagation of their deletions."""
    copy(cand_C, next_C)
    _subsets(next_C, True)
    _lines_and_boxes(next_C)
    if level >= 2:
        _fish_and_wings(next_C)
    if level >= 3:
        _refute_all(cand_C, next_C, trial_C, work)
    changed = False
    for cell in range(81):
        gone = cand_C[cell] & ~next_C[cell]
        if gone:
            changed = True
            remove(cand_C, cell, gone, work)
    propagate(cand_C, work)
    return changed


# -- both -------------------------------------------------------------------------------------------------------


@jit
def level_boards(board_NC: Board, closure: bool) -> tuple[Ranks, Masks]:
    level_NC = np.full(board_NC.shape, -1, dtype=np.int8)
    pass_NC = np.zeros(board_NC.shape, dtype=np.int16)
    cand_C, next_C, trial_C = np.empty((3, 81), dtype=np.int16)
    work = np.zeros(WORK, dtype=np.int16)
    for n in range(len(board_NC)):
        board_C, level_C, pass_C = board_NC[n], level_NC[n], pass_NC[n]
        read(board_C, cand_C, work)
        left = _note(board_C, cand_C, 0, 0, level_C, pass_C)
        for level in range(1, SEARCH):
            for turn in range(_LONGEST if closure else _PASSES[level]):
                if left == 0:
                    break
                if closure:
                    changed = _closure_pass(cand_C, level, next_C, trial_C, work)
                else:
                    changed = _released_pass(cand_C, level, trial_C, work)
                if not changed:
                    break
                left = _note(board_C, cand_C, level, turn, level_C, pass_C)
        for cell in range(81):
            if board_C[cell] == 0 and level_C[cell] < 0:
                level_C[cell] = SEARCH
    return level_NC, pass_NC


def levels_many(board_NC: Board, reading: Reading) -> tuple[Ranks, Masks]:
    """The level of each blank (-1 at givens), and the pass of that level in which it was determined."""
    return level_boards(board_NC, reading == "closure")


def technique_order(level_NC: Ranks, pass_NC: Masks) -> Ranks:
    """Blanks by level, then pass, then row by row; -1 at givens."""
    return ranked(level_NC.astype(np.int32) * _LONGEST + pass_NC, level_NC >= 0)
