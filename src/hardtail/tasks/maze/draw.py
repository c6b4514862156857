"""A maze on a terminal: walls, the path, start and goal."""

from rich.text import Text

from hardtail.core.types import Instances
from hardtail.tasks.maze.task import Maze
from hardtail.tasks.parts import Look

_LOOKS = {"#": ("██", "bright_black"), "0": ("  ", ""), "1": ("• ", "bold cyan")}


def drawing(task: Maze, one: Instances, look: Look) -> Text:
    text = Text()
    for cell in range(task.answer_len):
        if cell and cell % task.side == 0:
            text.append("\n")
        sign, style = look(cell)
        drawn, usual = _LOOKS.get(sign, (f"{sign} ", "bold yellow"))
        text.append(drawn, style or usual)
    return text
