"""hardtail: masked diffusion models on reasoning tasks whose logical order is known exactly."""

from typing import TYPE_CHECKING

from hardtail.core.cores import wait_asleep
from hardtail.core.errors import HardtailError
from hardtail.core.files import load_instances, save_instances
from hardtail.core.registry import TASKS
from hardtail.core.seeds import Stream, Streams
from hardtail.core.types import Instances
from hardtail.core.version import __version__

if TYPE_CHECKING:
    from hardtail.tasks.base import Task

__all__ = [
    "TASKS",
    "HardtailError",
    "Instances",
    "Stream",
    "Streams",
    "__version__",
    "load_instances",
    "save_instances",
    "task",
]

wait_asleep()


def task(name: str, preset: str = "release", **fields: object) -> "Task":
    """The task `name` in one of its readings: `task("addition", digits=8).sample(3, Streams(0).named("mine"))`."""
    return TASKS.load(name).preset(preset, **fields)
