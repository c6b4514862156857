"""What a user may leave open: which policies and strata are measured, on which problems, and how many."""

from collections.abc import Sequence

from hardtail.core.fields import spelled
from hardtail.core.types import Instances
from hardtail.policies.base import Policy
from hardtail.policies.named import policy_named
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task

DEFAULT_N = 500
"""Instances of each stratum."""


def measured_split(task: Task, stratum: str) -> str:
    """The split that a stratum is measured on: the study's own where it has the stratum, `test` for any other."""
    wanted = str(task.stratum(stratum))
    for split, parts in task.splits().items():
        if split != data.TRAIN and any(str(task.stratum(part.stratum)) == wanted for part in parts):
            return split
    return "test"


def measured_instances(task: Task, stratum: str, n: int, seed: int) -> Instances:
    """`n` instances of a stratum that no training run of this task has seen.

    Countdown separates training from test by their targets alone: a few in ten thousand of the puzzles whose targets
    are not held out (`natural`) are also in the full training set, by chance.
    """
    return data.draw(task, measured_split(task, stratum), Part(stratum, n), seed)


def chosen_policies(task: Task, names: Sequence[str]) -> dict[str, Policy]:
    """The named policies; by default confidence, the study's logical order and random order."""
    chosen = names or ("top1", *task.order_names[:1], "random")
    return {name: policy_named(name, task.order_names) for name in dict.fromkeys(map(spelled, chosen))}


def chosen_strata(task: Task, names: Sequence[str]) -> list[str]:
    """The named strata as the task writes them; by default all of the study's."""
    return list(dict.fromkeys(str(task.stratum(name)) for name in names or task.strata()))
