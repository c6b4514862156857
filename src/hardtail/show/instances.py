"""Instances in a terminal: pictures, strata and orders; and the same as JSON."""

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from rich.console import Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances
from hardtail.tasks.base import Task

_STEPS_SHOWN = 6
_CELLS_SHOWN = 4


def task_table(names: Sequence[str], make: Callable[[str], Task]) -> Table:
    """List tasks with their shapes, strata, splits and orders, or the reason why one cannot be loaded."""
    table = Table(caption="L sequence, A answer cells, V vocabulary", caption_justify="left", show_lines=True)
    for heading in ("task", "L", "A", "V", "axes, strata, splits", "orders"):
        short = heading in ("task", "L", "A", "V")  # the others share what a narrow screen leaves
        table.add_column(heading, justify="right" if len(heading) == 1 else "left", no_wrap=short, overflow="fold")
    for name in names:
        try:
            task = make(name)
        except HardtailError as error:
            table.add_row(name, "", "", "", Text(str(error), "red"))
            continue
        shapes = (str(task.seq_len), str(task.answer_len), str(task.vocabulary.size))
        sizes = ", ".join(f"{split} {sum(part.n for part in parts):,}" for split, parts in task.splits().items())
        about = Text.assemble((", ".join(task.axes), "bold"), f"\n{_condensed(task.strata())}\n", (sizes, "dim"))
        table.add_row(name, *shapes, about, "\n".join(task.order_names))
    return table


def _condensed(strata: Sequence[str]) -> str:
    """Write the shared start of conditions that differ only in their value once: `natural; chain>= 2 3 4`."""
    groups = groupby(strata, lambda stratum: stratum[: stratum.find("=") + 1])
    return "; ".join(f"{head} {' '.join(item.removeprefix(head) for item in items)}".strip() for head, items in groups)


def as_json(task: Task, instances: Instances, i: int) -> dict[str, Any]:
    """Return one instance with the keys `prompt`, `answer`, `strata` and `orders`.

    An order has a rank for each character of `answer`, or null for a cell that is never hidden.
    """
    answer = task.answer_text(instances, i)
    rank_A = {name: instances.orders[name][i, : len(answer)] for name in task.order_names if name in instances.orders}
    return {
        "prompt": task.render(instances.take(slice(i, i + 1)))[0],
        "answer": answer,
        "strata": _strata(task, instances, i),
        "orders": {name: [None if rank < 0 else rank for rank in ranks.tolist()] for name, ranks in rank_A.items()},
    }


def _strata(task: Task, instances: Instances, i: int) -> dict[str, Any]:
    values = {axis: instances.strata[axis][i].item() for axis in task.axes if axis in instances.strata}
    return {axis: round(value, 4) if isinstance(value, float) else value for axis, value in values.items()}


def strata_line(task: Task, instances: Instances, i: int) -> Text:
    return Text("   ".join(f"{axis} {value}" for axis, value in _strata(task, instances, i).items()), style="green")


def order_line(task: Task, instances: Instances, i: int, name: str) -> Text:
    """Return the first and last steps of a logical order; cells of the same step are grouped."""
    rank_A = instances.orders[name][i]
    steps = [np.flatnonzero(rank_A == rank) for rank in np.unique(rank_A[rank_A >= 0])]
    shown = steps if len(steps) <= _STEPS_SHOWN else [*steps[: _STEPS_SHOWN - 1], None, steps[-1]]
    words = ["…" if step is None else _step([task.cell_name(int(cell)) for cell in step]) for step in shown]
    return Text.assemble((name, "magenta"), f" ({len(steps)} steps)  " + " → ".join(words))


def _step(names: Sequence[str]) -> str:
    return " ".join(names[:_CELLS_SHOWN]) + (f" +{len(names) - _CELLS_SHOWN}" if len(names) > _CELLS_SHOWN else "")


def instance_panel(task: Task, instances: Instances, i: int, title: str, widest: int | None = None) -> Panel:
    """Show everything about one instance in a frame of at most `widest` columns."""
    picture = task.picture(instances, i)
    orders = [order_line(task, instances, i, name) for name in task.order_names if name in instances.orders]
    body = Group(picture, Text(), strata_line(task, instances, i), *orders)
    width = None
    if widest is not None:  # as wide as the picture: orders are lists and may wrap
        width = min(max(max(line.cell_len for line in picture.split("\n")), 40) + 4, widest)
    return Panel(body, title=title, title_align="left", padding=(0, 1), expand=False, width=width)


def side_by_side(panels: Sequence[Panel], width: int) -> Table | Group:
    """Put panels in one row if they fit, otherwise below each other."""
    if sum(panel.width or width for panel in panels) + len(panels) > width:
        return Group(*panels)
    row = Table.grid(padding=(0, 1, 0, 0))
    row.add_row(*panels)
    return row
