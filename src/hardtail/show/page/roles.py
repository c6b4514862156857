"""The part that every answer cell plays in its problem, in one form for all tasks.

Shapes: N instances, A answer cells.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Instances
from hardtail.tasks.addition import solver as addition
from hardtail.tasks.base import Task
from hardtail.tasks.countdown import solver as countdown
from hardtail.tasks.listops import solver as listops
from hardtail.tasks.maze import profile as maze
from hardtail.tasks.maze.task import Maze
from hardtail.tasks.sudoku.solver.techniques import LEVELS

NO_ROLE = 255
_EXTRAS: dict[str, tuple[str, Sequence[str]]] = {
    "addition": ("role_NA", addition.ROLES),
    "listops": ("kind_NA", listops.KINDS),
    "countdown": ("kind_NA", countdown.KINDS),
    "sudoku": ("level_NA", LEVELS),
}


@dataclass(frozen=True)
class Roles:
    """`role_NA` indexes `names`; `NO_ROLE` is a cell that plays none."""

    names: tuple[str, ...]
    role_NA: NDArray[np.uint8]


def roles(task: Task, instances: Instances) -> Roles:
    """The roles of a task's cells; none for a task that has no roles or instances without annotations."""
    if isinstance(task, Maze):
        return Roles(maze.ROLES, maze.roles(task, instances).astype(np.uint8))
    extra, names = _EXTRAS.get(task.name, ("", ()))
    if extra not in instances.extras:
        return Roles((), np.full(instances.maskable_NA.shape, NO_ROLE, dtype=np.uint8))
    index_NA = instances.extras[extra]
    return Roles(tuple(names), np.where(index_NA < 0, NO_ROLE, index_NA).astype(np.uint8))
