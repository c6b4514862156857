"""Names to classes, loaded when asked for; other packages add theirs through entry points.

A package that declares `my_task = "my_package.tasks:MyTask"` under `[project.entry-points."hardtail.tasks"]` has added
the task `my_task`, once it is installed; policies likewise under `hardtail.policies`.
"""

import warnings
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cached_property
from importlib import import_module
from importlib.metadata import entry_points
from inspect import isabstract
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from hardtail.core.errors import HardtailError

if TYPE_CHECKING:
    from hardtail.policies.base import Policy
    from hardtail.tasks.base import Task

T = TypeVar("T")


class Registry(Generic[T]):
    """Built-in and plugged-in classes of one kind. A name with a colon, `package.module:Class`, is loaded as it is."""

    def __init__(self, kind: str, group: str, base: str, builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.base = base
        self.builtin = builtin

    @cached_property
    def _paths(self) -> dict[str, str]:
        paths = dict(self.builtin)
        for point in entry_points(group=self.group):
            if point.name in paths:
                holder = paths[point.name]
                warnings.warn(f"{self.kind} {point.name!r}: {point.value} is ignored for {holder}", stacklevel=2)
            else:
                paths[point.name] = point.value
        return paths

    def names(self) -> list[str]:
        return list(self._paths)

    def load(self, name: str) -> type[T]:
        """The class called `name`; raises `HardtailError` where there is none or where it cannot be imported."""
        path = name if ":" in name else self._paths.get(name)
        if path is None:
            close = get_close_matches(name, self.names(), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            raise HardtailError(f"there is no {self.kind} {name!r}{hint} Known: {', '.join(self.names())}")
        try:
            found = _import(path)
        except (ImportError, AttributeError, ValueError) as error:
            raise HardtailError(f"the {self.kind} {name!r} cannot be loaded from {path!r}: {error}") from error
        base = cast(type[T], _import(self.base))
        if not (isinstance(found, type) and issubclass(found, base)) or isabstract(found):
            raise HardtailError(f"{path!r} is no {self.kind}: it must be a complete subclass of {self.base}")
        return found


def _import(path: str) -> object:
    module, _, attribute = path.partition(":")
    return getattr(import_module(module), attribute)


TASKS: "Registry[Task]" = Registry(
    "task",
    "hardtail.tasks",
    "hardtail.tasks.base:Task",
    {
        "addition": "hardtail.tasks.addition.task:Addition",
        "maze": "hardtail.tasks.maze.task:Maze",
        "listops": "hardtail.tasks.listops.task:ListOps",
        "countdown": "hardtail.tasks.countdown.task:Countdown",
        "sudoku": "hardtail.tasks.sudoku.task:Sudoku",
    },
)

POLICIES: "Registry[Policy]" = Registry(
    "policy",
    "hardtail.policies",
    "hardtail.policies.base:Policy",
    {
        "top1": "hardtail.policies.confidence:Top1",
        "max-logit": "hardtail.policies.confidence:MaxLogit",
        "margin": "hardtail.policies.confidence:Margin",
        "entropy": "hardtail.policies.confidence:Entropy",
        "random": "hardtail.policies.confidence:RandomOrder",
        "l2r": "hardtail.policies.orders:LeftToRight",
        "r2l": "hardtail.policies.orders:RightToLeft",
        "block": "hardtail.policies.orders:Blocks",
        "threshold": "hardtail.policies.parallel:Threshold",
        "factor": "hardtail.policies.parallel:Factor",
        "eb": "hardtail.policies.parallel:EntropyBounded",
        "klass": "hardtail.policies.parallel:Klass",
        "topk": "hardtail.policies.parallel:TopK",
        "loo": "hardtail.policies.remask:LeaveOneOut",
        "remdm": "hardtail.policies.remask:ReMDM",
        "p2": "hardtail.policies.remask:P2",
    },
)
"""The logical orders that a task provides are policies too: `policies.named` knows them by their own names."""
