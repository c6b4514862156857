"""Answer cells that a model has not learned: the mean over all cells hides one that is nearly always wrong.

Shapes: N instances, A answer cells.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.records import Count, Share
from hardtail.tasks.base import Task

FEWEST = 20
"""The fewest instances in which a cell must be judged to be listed."""
SHOWN = 12


@dataclass(frozen=True)
class WorstCell:
    """A cell, the number of instances in which it was judged, and the share of these in which it was right."""

    cell: str
    n: Count
    right: Share


def mostly_wrong(
    task: Task, right_NA: NDArray[np.bool_], judged_NA: NDArray[np.bool_]
) -> tuple[int, tuple[WorstCell, ...]]:
    """How many cells are wrong in more than half of the instances, and the worst of these."""
    n_A, right_A = judged_NA.sum(axis=0), (right_NA & judged_NA).sum(axis=0)
    share_A = right_A / np.maximum(n_A, 1)
    wrong = np.flatnonzero((n_A >= FEWEST) & (share_A < 0.5))
    worst = wrong[np.argsort(share_A[wrong], kind="stable")][:SHOWN]
    return len(wrong), tuple(WorstCell(task.cell_name(cell), int(n_A[cell]), float(share_A[cell])) for cell in worst)
