"""A sum on a terminal, written in columns: operands, sum, roles and carries, with the longest chain marked."""

from rich.text import Text

from hardtail.core.types import Instances
from hardtail.tasks.addition.solver import ROLES
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.parts import Look

SPACED = 36
"""The most digits that are written with spaces between them."""


def drawing(task: Addition, one: Instances, look: Look) -> Text:
    a, b = task.render(one)[0].split("+")
    gap = " " if task.answer_len <= SPACED else ""
    working = task.working(one, 0)
    top = task.digits - int(working.chain_top_N[0])
    chain = range(top, top + int(working.chain_N[0]))
    roles = (ROLES[role] for role in working.role_NS[0, ::-1])
    text = Text()
    text.append(f"chain  {gap.join('━' if cell in chain else ' ' for cell in range(task.answer_len))}\n", "yellow")
    text.append(f"    a  {gap.join(f' {a}')}\n    b  {gap.join(f'+{b}')}\n")
    text.append("  sum  ", "bold")
    for cell in range(task.answer_len):
        sign, style = look(cell)
        text.append(sign, style or "bold")
        text.append(gap)
    text.append(f"\n role  {gap.join(' ' if role == 'carry_out' else role[0] for role in roles)}")
    text.append(f"\ncarry  {gap.join('1' if carry else ' ' for carry in working.carry_in_NS[0, ::-1])}", "dim")
    return text
