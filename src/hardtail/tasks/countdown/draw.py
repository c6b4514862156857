"""A puzzle on a terminal: the numbers and the target, then one equation a line."""

from rich.text import Text

from hardtail.core.types import Instances
from hardtail.tasks.countdown.task import Countdown
from hardtail.tasks.parts import Look
from hardtail.tasks.rainbow import EOS


def drawing(task: Countdown, one: Instances, look: Look) -> Text:
    *numbers, target = task.render(one)[0].split(",")
    text = Text(f"{' '.join(numbers)}  →  {target}\n  ")
    ended = False
    for cell, gold in enumerate(task.vocabulary.decode(one.answer(0))):
        sign, style = look(cell)
        if not sign:
            continue
        mark = sign if sign in task.vocabulary.characters else gold  # a hidden cell breaks the line as gold does
        if mark == EOS and not ended:
            ended = True
            text.append("\n  end  ", "dim")
        text.append(sign, style or "bold")
        if mark == "," and not ended:
            text.append("\n  ")
    return text
