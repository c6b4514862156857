"""An expression on a terminal, and its tree: one operator a line with its value, sub-expressions below it."""

from rich.text import Text

from hardtail.core.types import Instances
from hardtail.tasks.listops.task import ListOps
from hardtail.tasks.listops.text import folded, spans
from hardtail.tasks.parts import Look


def drawing(task: ListOps, one: Instances, look: Look) -> Text:
    expression = task.render(one)[0]
    cells = sorted((start, end, cell) for cell, (start, end) in enumerate(spans(expression)))
    text = Text(expression)
    for start, end, cell in cells:
        level = sum(outer < start and end < outer_end for outer, outer_end, _ in cells)
        text.append(f"\n  {'  ' * level}{folded(expression[start:end])} = ")
        sign, style = look(cell)
        text.append(sign, style or "bold")
    rest = Text.assemble(*(look(cell) for cell in range(len(cells), task.answer_len)))
    return text.append("\n  end  ", "dim").append(rest) if rest else text
