"""Failures on long carry chains, digit by digit, as a figure.

Shapes: A answer cells, K failing instances.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.tables import probability
from hardtail.core.types import Array, Trace
from hardtail.tasks.addition.commits import Example, chain_cells, wrong_commits
from hardtail.tasks.addition.solver import ROLES, G, K
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.parts import Pen
from hardtail.traces.commits import annotation
from hardtail.traces.states import hidden_before, standing, steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEIGHT = 1.9
"""Inches per failure."""
GUTTER, WORDS = 0.14, 0.84
"""The width of the rows' names, and of the sentence under a drawing, as parts of the whole width."""
DENSE = 40
"""With more columns than this, signs get smaller."""
ROWS = ("a", "b", "role", "true sum", "seen", "answer", "commit step")
A, B, ROLE, GOLD, SEEN, ANSWER, STEP = range(7)
_SHIFT = (0.0, 0.9, 1.95, 3.0, 4.15, 5.3, 6.35)
"""Where each row is, from the top."""


@dataclass(frozen=True)
class DrawnFailure(Example):
    """A failing sum and the wrong commit that is shown."""

    alike: int
    """Failures of the trace with this role and difference, this one included."""
    failures: int


def chosen_failures(task: Addition, trace: Trace, most: int = 2) -> list[DrawnFailure]:
    """The failures to show: if possible one where a k cell misses its carry and one where a g cell got a carry that
    never came; then others. Preferred: wrong first in time, above the chain, a long chain, a sure commit."""
    readings = wrong_commits(task, trace)
    found = readings.lowest_index
    later_K = found.cell_K != readings.first_in_time.cell_K
    if not len(found):
        raise HardtailError("there is no failure to draw: every sum of this trace is right")
    best_K = np.lexsort((-found.prob_K, -found.chain_K, ~found.at_chain_msb_K, later_K)).tolist()
    kinds = list(zip(found.role_K.tolist(), found.difference_K.tolist(), strict=True))
    typical = [f for kind in ((K, -1), (G, 1)) for f in [f for f in best_K if kinds[f] == kind][:1]]
    order = list(dict.fromkeys([*typical, *best_K]))[:most]
    return [DrawnFailure(**vars(found.example(f)), alike=kinds.count(kinds[f]), failures=len(found)) for f in order]


def failures_figure(task: Addition, trace: Trace, pen: Pen, failures: Sequence[DrawnFailure] | None = None) -> "Figure":
    """Operands, roles and answer of failing sums, the chain marked, and what was known at the wrong commit."""
    shown = chosen_failures(task, trace) if failures is None else failures
    figure = pen.sheet(pen.PAGE, HEIGHT * len(shown), arranged=False)
    for place, failure in enumerate(shown):
        axes = figure.add_axes((0.005, 1 - (place + 1) / len(shown), 0.99, 1 / len(shown)))
        one = trace.take(np.array([failure.instance]))
        _draw(axes, pen, task, one, failure)
        _words(axes, pen, task, one, failure, chr(ord("a") + place))
    return figure


def _draw(axes: "Axes", pen: Pen, task: Addition, one: Trace, failure: DrawnFailure) -> None:
    cells, instances, decode = task.answer_len, one.instances, task.vocabulary.decode
    pen.bare(axes)
    axes.set_xlim(_left(cells), cells)
    axes.set_ylim(9.3, -2.8)
    hidden_A, step_A = hidden_before(one)[0, failure.step], standing(one).step_NA[0]
    role_A = annotation(task, instances.extras, "role_NA")[0]
    before_T = one.commit_NT[0] & (one.step_NT[0] < failure.step)
    cell_T, seen_A, seen_step_A = one.cell_NT[0, before_T], one.answer_NA[0].copy(), step_A.copy()
    seen_A[cell_T], seen_step_A[cell_T] = one.token_NT[0, before_T], one.step_NT[0, before_T]  # the last of each cell
    seen = decode(seen_A)
    gold, answer, prompt = decode(instances.answer(0)), decode(one.answer_NA[0]), decode(instances.prompt(0))
    a, b, last = prompt[: task.digits], prompt[task.digits + 1 : -1], max(steps_of(one) - 1, 1)

    _chain(axes, pen, chain_cells(task, instances)[0])
    for row, name in enumerate(ROWS):
        label = f"seen at step {failure.step + 1}" if row == SEEN else name
        axes.text(-0.5, _SHIFT[row] + 0.5, label, ha="right", va="center", color=pen.SOFT)
    for row, text in {A: f" {a}", B: f" {b}", GOLD: gold}.items():
        for cell, sign in enumerate(text):
            _sign(axes, cell, row, sign, pen.INK, size=8)
    axes.plot([0, cells], [_SHIFT[ROLE] - 0.02] * 2, color=pen.RULE, linewidth=0.6)
    for cell in range(cells):
        kind = ROLES[role_A[cell]][0] if ROLES[role_A[cell]] != "carry_out" else "·"
        _sign(axes, cell, ROLE, kind, *((pen.SOFT, "normal") if kind == "p" else (pen.INK, "bold")))
        fill, ink = pen.ramp(step_A[cell] / last)
        _sign(axes, cell, STEP, str(step_A[cell] + 1), ink, fill=fill, size=6.5)
        if answer[cell] != gold[cell]:
            _sign(axes, cell, ANSWER, answer[cell], "white", "bold", fill=pen.WRONG, size=8)
        else:
            _sign(axes, cell, ANSWER, answer[cell], pen.INK, size=8)
        if cell == failure.cell:
            _sign(axes, cell, SEEN, "?", pen.WRONG, "bold", fill="white", edge=pen.WRONG, size=8)
        elif hidden_A[cell]:
            _sign(axes, cell, SEEN, "", pen.INK, fill=pen.HIDDEN)
        else:
            fill, ink = pen.ramp(seen_step_A[cell] / last)
            _sign(axes, cell, SEEN, seen[cell], ink, fill=fill, size=8)


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
    left, right = start + 0.1, end - 0.1
    axes.plot([left, left, right, right], [-0.15, -0.5, -0.5, -0.15], color=pen.SOFT, linewidth=0.8)
    words = f"carry chain: {end - start} cells whose digits sum to 9"
    axes.text((start + end) / 2, -0.62, words, ha="center", va="bottom", color=pen.SOFT)


def _sign(
    axes: "Axes", cell: int, row: int, sign: str, ink: str, weight: str = "normal", *, size: float = 7, **box: Any
) -> None:
    """One character, in a box if a `fill` is given."""
    from matplotlib.patches import Rectangle

    top, size = _SHIFT[row], size * min(1.0, DENSE / axes.get_xlim()[1])
    if "fill" in box:
        look = {"facecolor": box["fill"], "edgecolor": box.get("edge", "none"), "linewidth": 1}
        axes.add_patch(Rectangle((cell + 0.06, top + 0.03), 0.88, 0.94, **look))
    look = {"color": ink, "fontweight": weight, "fontsize": size}
    axes.text(cell + 0.5, top + 0.53, sign, ha="center", va="center_baseline", **look)


def _words(axes: "Axes", pen: Pen, task: Addition, one: Trace, failure: DrawnFailure, letter: str) -> None:
    """What happened, in a heading and below the drawing."""
    ways = {1: "a carry was assumed, none arrives (+1)", -1: "no carry was assumed, one arrives (−1)"}
    off = failure.difference or 0
    what = ways.get(off, f"the digit is off by {off:+d}".replace("-", "−"))
    place = {"k": "k cell", "g": "g cell", "carry_out": "carry-out"}.get(failure.role, "p cell")
    left, end, at = _left(task.answer_len), task.answer_len, failure.cell + 0.5
    heading = axes.text(left, -2.1, f"({letter}) {place}: {what}", va="center", fontweight="bold", fontsize=7.5)
    typical = f"  {failure.alike} of {failure.failures} failures"
    axes.annotate(typical, (1, 0), xycoords=heading, va="bottom", color=pen.SOFT)
    axes.text(end, -2.1, pen.source(one), ha="right", va="center", color=pen.SOFT)

    wrong, gold = (task.vocabulary.decode(row[0])[failure.cell] for row in (one.answer_NA, one.instances.answer_NA))
    hidden = round((failure.masked or 0) * failure.chain)
    sure = "" if failure.prob is None else f" with p {probability(failure.prob, '= ')}"
    sentence = (
        f"step {failure.step + 1} of {steps_of(one)}: writes {wrong}{sure}, while {hidden} of "
        f"{failure.chain} chain cells are masked; {_gold_words(one, failure, gold)}"
    )
    fits = at - 1 + WORDS * (end - left) <= end
    to, side = (at - 1 if fits else end, _SHIFT[STEP] + 2.1), "left" if fits else "right"
    line = {"color": pen.WRONG, "linewidth": 0.9, "shrinkA": 0, "shrinkB": 0}
    arrow = line | {"arrowstyle": "-|>", "relpos": (0 if fits else 0.02, 1)}
    tip = at, _SHIFT[STEP] + 1.05
    axes.annotate(sentence, xy=tip, xytext=to, ha=side, va="center", color=pen.WRONG, arrowprops=arrow)


def _gold_words(one: Trace, failure: DrawnFailure, gold: str) -> str:
    """Where the gold digit came, if the trace knows."""
    if failure.gold_rank is None:
        return f"{gold} is true"
    nth = {1: "second", 2: "third"}.get(failure.gold_rank, f"number {failure.gold_rank + 1}")
    gold_prob = float(one.gold_prob_NT[0, standing(one).event_NA[0, failure.cell]])
    return f"the true {gold} is {nth} (p {probability(gold_prob, '= ')})"
