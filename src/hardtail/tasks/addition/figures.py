"""Failures on long carry chains, digit by digit, as a figure.

Shapes: A answer cells, F failing instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Trace
from hardtail.tasks.addition.commits import WrongCommits, chain_cells, wrong_commits
from hardtail.tasks.addition.solver import ROLES, G, K
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.parts import Pen
from hardtail.traces.commits import annotation
from hardtail.traces.states import hidden_before, standing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 1.9
"""Inches that a failure takes."""
GUTTER, WORDS = 0.14, 0.84
"""Parts of the width that the rows' names take, and the sentence under a drawing."""
DENSE = 40
"""Columns from which on signs get smaller."""
ROWS = ("a", "b", "role", "true sum", "seen", "answer", "commit step")
A, B, ROLE, GOLD, SEEN, ANSWER, STEP = range(7)
_SHIFT = (0.0, 0.9, 1.95, 3.0, 4.15, 5.3, 6.35)
"""Where the rows stand, downwards."""


@dataclass(frozen=True)
class Failure:
    """A failing sum and the wrong commit that is shown."""

    instance: int
    cell: int
    role: int
    step: int
    prob: float
    difference: int
    alike: int
    """Failures of the trace with this role and difference, itself included: how typical it is."""
    failures: int


def chosen_failures(task: Addition, trace: Trace, most: int = 2) -> list[Failure]:
    """The failures to show: one in which a k cell lost its carry and one in which a g cell got one that never came,
    as far as there are such, the surest first; then others of the longest chains. What was wrong first comes first."""
    readings = wrong_commits(task, trace)
    found = readings.lowest_index
    later_F = found.cell_F != readings.first_in_time.cell_F
    if not len(found):
        raise HardtailError("there is no failure to draw: every sum of this trace is right")
    best_F = np.lexsort((-found.prob_F, -found.chain_F, ~found.at_chain_msb_F, later_F))
    typical = [
        next((f for f in best_F if found.role_F[f] == role and found.difference_F[f] == way), None)
        for role, way in ((K, -1), (G, 1))
    ]
    order = list(dict.fromkeys(int(f) for f in (*(f for f in typical if f is not None), *best_F)))
    return [_failure(found, f) for f in order[:most]]


def _failure(found: WrongCommits, f: int) -> Failure:
    return Failure(
        int(found.instance_F[f]),
        int(found.cell_F[f]),
        int(found.role_F[f]),
        int(found.step_F[f]),
        float(found.prob_F[f]),
        int(found.difference_F[f]),
        int(((found.role_F == found.role_F[f]) & (found.difference_F == found.difference_F[f])).sum()),
        len(found),
    )


def failures_figure(task: Addition, trace: Trace, pen: Pen, failures: Sequence[Failure] | None = None) -> "Figure":
    """Operands, roles and answer of failing sums, the chain marked, and what was known at the wrong commit."""
    shown = chosen_failures(task, trace) if failures is None else failures
    figure = pen.sheet(pen.PAGE, HEIGHT * len(shown), arranged=False)
    for place, failure in enumerate(shown):
        bottom = 1 - (place + 1) / len(shown)
        axes = figure.add_axes((0.005, bottom, 0.99, 1 / len(shown)))
        _draw(axes, pen, task, trace.take(np.array([failure.instance])), failure, chr(ord("a") + place))
    return figure


def _draw(axes: "Axes", pen: Pen, task: Addition, one: Trace, failure: Failure, letter: str) -> None:
    cells, instances = task.answer_len, one.instances
    pen.bare(axes)
    axes.set_xlim(_left(cells), cells)
    axes.set_ylim(9.3, -2.8)
    steps = int(one.step_NT[0][one.happened_NT[0]].max()) + 1
    hidden_A = hidden_before(one)[0, failure.step]
    chain_A = chain_cells(task, instances)[0]
    role_A = annotation(task, instances.extras, "role_NA")[0]
    step_A = standing(one).step_NA[0]
    gold_A, answer_A = instances.answer(0), one.answer_NA[0]
    prompt_A = task.vocabulary.decode(instances.prompt(0))
    digits = task.digits
    texts = {A: f" {prompt_A[:digits]}", B: f" {prompt_A[digits + 1 : -1]}", GOLD: task.vocabulary.decode(gold_A)}

    _chain(axes, pen, chain_A)
    for row, name in enumerate(ROWS):
        said = f"seen at step {failure.step + 1}" if row == SEEN else name
        axes.text(-0.5, _SHIFT[row] + 0.5, said, ha="right", va="center", color=pen.SOFT)
    for row, text in texts.items():
        for cell, sign in enumerate(text):
            _sign(axes, cell, row, sign, color=pen.INK, size=8)
    axes.plot([0, cells], [_SHIFT[ROLE] - 0.02] * 2, color=pen.RULE, linewidth=0.6)
    for cell in range(cells):
        kind = ROLES[role_A[cell]][0] if ROLES[role_A[cell]] != "carry_out" else "·"
        _sign(
            axes,
            cell,
            ROLE,
            kind,
            color=pen.SOFT if kind == "p" else pen.INK,
            weight="normal" if kind == "p" else "bold",
        )
        wrong = answer_A[cell] != gold_A[cell]
        fill, ink = pen.ramp(step_A[cell] / max(steps - 1, 1))
        _sign(axes, cell, STEP, str(step_A[cell] + 1), fill=fill, color=ink, size=6.5)
        written = task.vocabulary.decode(answer_A[cell : cell + 1])
        if wrong:
            _sign(axes, cell, ANSWER, written, fill=pen.WRONG, color="white", weight="bold", size=8)
        else:
            _sign(axes, cell, ANSWER, written, color=pen.INK, size=8)
        if cell == failure.cell:
            _sign(axes, cell, SEEN, "?", fill="white", edge=pen.WRONG, color=pen.WRONG, weight="bold", size=8)
        elif hidden_A[cell]:
            _sign(axes, cell, SEEN, "", fill=pen.HIDDEN, color=pen.INK)
        else:
            _sign(axes, cell, SEEN, written, fill=fill, color=ink, size=8)
    _words(axes, pen, task, one, failure, int((chain_A & hidden_A).sum()), int(chain_A.sum()), steps, letter)


def _left(cells: int) -> float:
    """Where the rows' names begin, in columns."""
    return -cells * GUTTER / (1 - GUTTER)


def _chain(axes: "Axes", pen: Pen, chain_A: Array) -> None:
    """The chain as a band through all rows, with a bracket over it."""
    from matplotlib.patches import Rectangle

    inside = np.flatnonzero(chain_A)
    if not inside.size:
        return
    start, end = int(inside[0]), int(inside[-1]) + 1
    axes.add_patch(Rectangle((start, -0.05), end - start, _SHIFT[SEEN] - 0.05, facecolor=pen.CHAIN, linewidth=0))
    axes.plot(
        [start + 0.1, start + 0.1, end - 0.1, end - 0.1], [-0.15, -0.5, -0.5, -0.15], color=pen.SOFT, linewidth=0.8
    )
    words = f"carry chain: {end - start} cells whose digits sum to 9"
    axes.text((start + end) / 2, -0.62, words, ha="center", va="bottom", color=pen.SOFT)


def _sign(
    axes: "Axes",
    cell: int,
    row: int,
    sign: str,
    *,
    fill: object = None,
    edge: str | None = None,
    color: str,
    weight: str = "normal",
    size: float = 7,
) -> None:
    """One character in its box."""
    from matplotlib.patches import Rectangle

    top, size = _SHIFT[row], size * min(1.0, DENSE / axes.get_xlim()[1])
    if fill is not None:
        box = Rectangle((cell + 0.06, top + 0.03), 0.88, 0.94, facecolor=fill, edgecolor=edge or "none", linewidth=1)
        axes.add_patch(box)
    axes.text(
        cell + 0.5, top + 0.53, sign, ha="center", va="center_baseline", color=color, fontweight=weight, fontsize=size
    )


def _words(
    axes: "Axes",
    pen: Pen,
    task: Addition,
    one: Trace,
    failure: Failure,
    hidden: int,
    chain: int,
    steps: int,
    letter: str,
) -> None:
    """What happened, in a heading and below the drawing."""
    kind = ROLES[failure.role]
    ways = {1: "a carry was assumed, none arrives (+1)", -1: "no carry was assumed, one arrives (−1)"}
    what = ways.get(failure.difference, f"the digit is off by {failure.difference:+d}".replace("-", "−"))
    place = {"k": "k cell", "g": "g cell", "carry_out": "carry-out"}.get(kind, "p cell")
    left = _left(task.answer_len)
    typical = f"{failure.alike} of {failure.failures} failures"
    heading = axes.text(left, -2.1, f"({letter}) {place}: {what}", va="center", fontweight="bold", fontsize=7.5)
    axes.annotate(f"  {typical}", (1, 0), xycoords=heading, va="bottom", color=pen.SOFT)
    axes.text(task.answer_len, -2.1, pen.source(one), ha="right", va="center", color=pen.SOFT)

    event = int(standing(one).event_NA[0, failure.cell])
    wrong, gold = (
        task.vocabulary.decode(np.array([row[0, failure.cell]])) for row in (one.answer_NA, one.instances.answer_NA)
    )
    rank = int(one.gold_rank_NT[0, event])
    nth = {1: "second", 2: "third"}.get(rank, f"number {rank + 1}")
    said = (
        f"step {failure.step + 1} of {steps}: writes {wrong} with {_chance(failure.prob)}, while {hidden} of {chain} "
        f"chain cells are masked; the true {gold} is {nth} ({_chance(float(one.gold_prob_NT[0, event]))})"
    )
    at, end = failure.cell + 0.5, task.answer_len
    fits = at - 1 + WORDS * (end - left) <= end
    axes.annotate(
        said,
        xy=(at, _SHIFT[STEP] + 1.05),
        xytext=(at - 1 if fits else end, _SHIFT[STEP] + 2.1),
        ha="left" if fits else "right",
        va="center",
        color=pen.WRONG,
        arrowprops={
            "arrowstyle": "-|>",
            "color": pen.WRONG,
            "linewidth": 0.9,
            "shrinkA": 0,
            "shrinkB": 0,
            "relpos": (0 if fits else 0.02, 1),
        },
    )


def _chance(p: float) -> str:
    """A probability to four digits that is never said to be 0 or 1."""
    if p > 0.9999:
        return "p > 0.9999"
    return "p < 0.0001" if p < 0.0001 else f"p = {p:.4f}"
