"""Each task's drawing with any cell shown in any way: hidden, just written, wrong, coloured by its step."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hardtail.core.types import Instances
from hardtail.tasks.addition.commits import chain_cells
from hardtail.tasks.addition.solver import ROLES
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Task
from hardtail.tasks.countdown.task import Countdown
from hardtail.tasks.listops.task import ListOps
from hardtail.tasks.listops.text import folded, spans
from hardtail.tasks.maze.task import Maze
from hardtail.tasks.sudoku.task import Sudoku

if TYPE_CHECKING:
    from rich.text import Text

Look = Callable[[int], tuple[str, str]]
"""From an answer cell to its sign and style."""
HIDDEN = "·"
SPACED = 36
"""Up to so many digits stand apart."""


def scene(task: Task, one: Instances, look: Look) -> "Text":
    """The drawing of a single instance."""
    draw: Callable[[Task, Instances, Look], Text] = next(
        (draw for kind, draw in _SCENES.items() if isinstance(task, kind)), _plain
    )
    return draw(task, one, look)


def _addition(task: Task, one: Instances, look: Look) -> "Text":
    from rich.text import Text

    a, b = task.render(one)[0].split("+")
    gap = " " if task.answer_len <= SPACED else ""
    text = Text()
    if "chain" in one.strata and "chain_msb_N" in one.extras:
        marks = gap.join("━" if inside else " " for inside in chain_cells(task, one)[0])
        text.append(f"chain  {marks}\n", "yellow")
    text.append(f"    a  {gap.join(f' {a}')}\n    b  {gap.join(f'+{b}')}\n")
    if "role_NA" in one.extras:
        names = [ROLES[role] for role in one.extras["role_NA"][0]]
        text.append(f" role  {gap.join(' ' if name == 'carry_out' else name[0] for name in names)}\n", "dim")
    text.append("  sum  ", "bold")
    for cell in range(task.answer_len):
        text.append(*look(cell))
        text.append(gap)
    return text


def _maze(task: Task, one: Instances, look: Look) -> "Text":
    from rich.text import Text

    assert isinstance(task, Maze)
    signs = {"#": "██", "0": "  ", "1": "• "}
    text = Text()
    for cell in range(task.answer_len):
        sign, style = look(cell)
        text.append(signs.get(sign, f"{sign} "), style or ("bright_black" if sign == "#" else "bold yellow"))
        if cell % task.side == task.side - 1 and cell + 1 < task.answer_len:
            text.append("\n")
    return text


def _listops(task: Task, one: Instances, look: Look) -> "Text":
    from rich.text import Text

    expression = task.render(one)[0]
    found = spans(expression)
    cells = sorted((start, end, cell) for cell, (start, end) in enumerate(found))
    text = Text(expression)
    for start, end, cell in cells:
        level = sum(outer < start and end < outer_end for outer, outer_end, _ in cells)
        text.append(f"\n  {'  ' * level}{folded(expression[start:end])} = ")
        text.append(*look(cell))
    return _with_rest(text, len(found), task, look)


def _countdown(task: Task, one: Instances, look: Look) -> "Text":
    from rich.text import Text

    *numbers, target = task.render(one)[0].split(",")
    text = Text(f"{' '.join(numbers)}  →  {target}\n  ")
    gold = task.vocabulary.decode(one.answer(0))
    written = int(task.meaningful(one)[0].sum())
    for cell in range(written):
        text.append(*look(cell))
        if gold[cell] == ",":
            text.append("\n  ")
    return _with_rest(text, written, task, look)


def _with_rest(text: "Text", start: int, task: Task, look: Look) -> "Text":
    """The cells from `start` on, which say where the answer ends and fill it up."""
    text.append("\n  end  ", "dim")
    for cell in range(start, task.answer_len):
        text.append(*look(cell))
    return text


def _sudoku(task: Task, one: Instances, look: Look) -> "Text":
    from rich.text import Text

    text = Text()
    for cell in range(task.answer_len):
        row, column = divmod(cell, 9)
        if column == 0 and row:
            text.append("\n──────┼───────┼──────\n" if row in (3, 6) else "\n", "dim")
        sign, style = look(cell)
        text.append(sign, style or "dim")
        text.append(" │ " if column in (2, 5) else " ", "dim")
    return text


def _plain(task: Task, one: Instances, look: Look) -> "Text":
    from rich.text import Text

    text = Text(f"{task.render(one)[0]}  →  ")
    for cell in np.flatnonzero(task.meaningful(one)[0]).tolist():
        text.append(*look(cell))
    return text


_SCENES: dict[type[Task], Callable[[Task, Instances, Look], "Text"]] = {
    Addition: _addition,
    Maze: _maze,
    ListOps: _listops,
    Countdown: _countdown,
    Sudoku: _sudoku,
}
