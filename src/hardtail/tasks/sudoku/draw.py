"""A puzzle and its answer side by side on a terminal, filled cells in the colour of their technique level."""

import numpy as np
from rich.text import Text

from hardtail.core.types import Instances
from hardtail.tasks.parts import Look
from hardtail.tasks.sudoku.solver.techniques import LEVELS

_STYLES = ("bold green", "bold cyan", "bold blue", "bold magenta", "bold yellow")


def drawing(one: Instances, look: Look) -> Text:
    puzzle_A = one.tokens_NL[0, :81]
    level_A = one.extras["level_NA"][0] if "level_NA" in one.extras else np.full(81, -1)
    text = Text()
    for row in range(9):
        if row in (3, 6):
            text.append("──────┼───────┼──────     ──────┼───────┼──────\n", "dim")
        cells = range(9 * row, 9 * row + 9)
        _line(text, [(str(digit) if digit else ".", "") for digit in puzzle_A[cells]])
        text.append("    ")
        usual = ["" if puzzle_A[cell] else (*_STYLES, "bold")[level_A[cell]] for cell in cells]
        _line(text, [(sign, style or own) for (sign, style), own in zip(map(look, cells), usual, strict=True)])
        text.append("\n")
    for level, style in enumerate(_STYLES):
        if count := int((level_A == level).sum()):
            text.append(f"{LEVELS[level]} {count}  ", style)
    text.rstrip()
    return text


def _line(text: Text, cells: list[tuple[str, str]]) -> None:
    for column, (sign, style) in enumerate(cells):
        text.append(sign, style)
        text.append(" │ " if column in (2, 5) else " ", "dim")
