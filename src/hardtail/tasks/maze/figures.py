"""Wrong commits on the maze's grid, as a figure.

Shapes: H rows, W columns, A = H × W answer cells.
"""

from typing import TYPE_CHECKING

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array, Trace
from hardtail.tasks.maze.profile import ADDITION, OTHER, REMOVAL, directions, grids
from hardtail.tasks.maze.task import Maze
from hardtail.tasks.parts import Pen
from hardtail.traces.commits import first_in_time, wrong_cells
from hardtail.traces.states import steps_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WALL, OFF, ON, END = "#2b3440", "#e4e8ec", "#2fae82", "#0072b2"
ADDED, REMOVED, STRANGE = "#e69f00", "#d5322b", "#cc79a7"
ACROSS = 3


def chosen_mazes(trace: Trace) -> list[int]:
    """Failing mazes to show: spread over the numbers of wrong cells, the largest first."""
    wrong_N = wrong_cells(trace).sum(axis=1)
    failing = np.flatnonzero(wrong_N)
    if not failing.size:
        raise HardtailError("there is no failure to draw: every maze of this trace is right")
    by_size = failing[np.argsort(-wrong_N[failing], kind="stable")]
    return by_size[np.unique(np.linspace(0, len(by_size) - 1, min(ACROSS, len(by_size))).astype(int))].tolist()


def regions_figure(task: Maze, trace: Trace, pen: Pen) -> "Figure":
    """Mazes with their gold paths; half of each wrong cell shows its error, a ring marks the first wrong commit."""
    shown = trace.take(np.array(chosen_mazes(trace)))
    figure = pen.sheet(pen.PAGE, 0.3 + pen.PAGE / ACROSS + 0.18)
    panels = figure.subplots(1, ACROSS, squeeze=False).ravel()
    for axes in panels:
        pen.bare(axes)
    for place, axes in enumerate(panels[: len(shown)]):
        _draw(axes, pen, task, shown.take(np.array([place])), chr(ord("a") + place))
    way_NA = directions(task, shown.instances.answer_NA, shown.answer_NA)
    strange = bool((wrong_cells(shown) & (way_NA == OTHER)).any())
    figure.legend(handles=_legend(pen, strange), loc="outside upper center", ncols=7)
    figure.supxlabel(pen.source(trace), fontsize=7, color=pen.SOFT)
    return figure


def _draw(axes: "Axes", pen: Pen, task: Maze, one: Trace, letter: str) -> None:
    from matplotlib.colors import ListedColormap
    from matplotlib.patches import Circle

    gold_A, wrong_A = one.instances.answer(0), wrong_cells(one)[0]
    kinds_A = np.array(["#01SE".find(sign) for sign in task.vocabulary.decode(gold_A)])
    kind_HW = grids(task, kinds_A[None])[0]
    colours = ListedColormap([WALL, OFF, ON, ON, ON])
    side = task.side
    axes.imshow(kind_HW, cmap=colours, vmin=0, vmax=4, interpolation="nearest", extent=(0, side, side, 0))
    for cell in np.flatnonzero(kinds_A >= 3).tolist():
        row, column = divmod(cell, side)
        axes.add_patch(Circle((column + 0.5, row + 0.5), 0.36, facecolor=END, linewidth=0))
    _halves(axes, task, gold_A, one.answer_NA[0], wrong_A)
    first = first_in_time(one, wrong_cells(one))
    row, column = divmod(int(first.cell_K[0]), side)
    axes.add_patch(Circle((column + 0.5, row + 0.5), 0.95, fill=False, edgecolor="white", linewidth=2.4))
    axes.add_patch(Circle((column + 0.5, row + 0.5), 0.95, fill=False, edgecolor=pen.INK, linewidth=1.1))
    axes.set_title(
        f"({letter}) {int(wrong_A.sum())} wrong, the first at step {int(first.step_K[0]) + 1} of {steps_of(one)}",
        fontsize=7,
        fontweight="normal",
    )


def _halves(axes: "Axes", task: Maze, gold_A: Array, answer_A: Array, wrong_A: Array) -> None:
    """The lower right half of every wrong cell in the colour of its error."""
    from matplotlib.collections import PolyCollection

    way_A = directions(task, gold_A[None], answer_A[None])[0]
    corner_32 = np.array([[1, 0], [1, 1], [0, 1]])
    for way, colour in ((ADDITION, ADDED), (REMOVAL, REMOVED), (OTHER, STRANGE)):
        cell_K = np.flatnonzero(wrong_A & (way_A == way))
        at_K2 = np.stack([cell_K % task.side, cell_K // task.side], axis=1)
        axes.add_collection(PolyCollection(at_K2[:, None] + corner_32, facecolors=colour, linewidths=0))


def _legend(pen: Pen, strange: bool) -> list[object]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    ring = Line2D([], [], linestyle="none", marker="o", markersize=6, markerfacecolor="none", markeredgecolor=pen.INK)
    ring.set_label("first wrong commit")
    end = Line2D([], [], linestyle="none", marker="o", markersize=5, color=END, label="start, goal")
    return [
        Patch(facecolor=ON, label="path"),
        Patch(facecolor=OFF, label="off the path"),
        end,
        Patch(facecolor=ADDED, label="added to the path"),
        Patch(facecolor=REMOVED, label="removed from it"),
        *([Patch(facecolor=STRANGE, label="another token")] if strange else []),
        ring,
    ]
