"""Answer cells that a model has not learned: the mean over all cells hides one that is nearly always wrong.

Shapes: N instances, A answer cells.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.tasks.base import Task

FEWEST = 20
"""Instances in which a cell must be judged to count."""
SHOWN = 12


def mostly_wrong(task: Task, right_NA: NDArray[np.bool_], judged_NA: NDArray[np.bool_]) -> dict[str, Any]:
    """How many cells are wrong in more than half of the instances, and the worst of these by name."""
    n_A, right_A = judged_NA.sum(axis=0), (right_NA & judged_NA).sum(axis=0)
    share_A = right_A / np.maximum(n_A, 1)
    wrong = np.flatnonzero((n_A >= FEWEST) & (share_A < 0.5))
    worst = wrong[np.argsort(share_A[wrong], kind="stable")][:SHOWN]
    return {
        "cells_mostly_wrong": len(wrong),
        "worst_cells": [{"cell": task.cell_name(cell), "n": n_A[cell], "right": share_A[cell]} for cell in worst],
    }
