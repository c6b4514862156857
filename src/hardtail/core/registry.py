"""Classes and functions by name, loaded on demand; other packages add theirs through entry points.

A package that declares `my_task = "my_package.tasks:MyTask"` under `[project.entry-points."hardtail.tasks"]` adds the
task `my_task` once it is installed. Policies, schemes and recipes have the groups `hardtail.policies`,
`hardtail.schemes` and `hardtail.recipes`.
"""

import importlib
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property, reduce
from importlib.metadata import entry_points
from inspect import isabstract
from traceback import extract_tb
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from hardtail.core.errors import HardtailError

if TYPE_CHECKING:
    from hardtail.policies.base import Policy
    from hardtail.schemes.base import Scheme
    from hardtail.tasks.base import Task

T = TypeVar("T")
SEARCHED: list[str] = []
"""Folders in which `package.module:NAME` is looked for in addition to Python's own; the command line sets them."""


class Registry(Generic[T]):
    """Built-in and plugged-in objects of one kind, each as `package.module:name`, which `load` also accepts directly.

    `fault` says what is wrong with a loaded object; None accepts it.
    """

    def __init__(
        self, kind: str, group: str, builtin: Mapping[str, str | T], fault: Callable[[Any], str | None]
    ) -> None:
        self.kind, self.group, self.builtin, self._fault = kind, group, builtin, fault

    @cached_property
    def _known(self) -> dict[str, str | T]:
        known = dict(self.builtin)
        for point in entry_points(group=self.group):
            if point.name in known:
                message = f"{self.kind} {point.name!r}: {point.value} is ignored for {known[point.name]}"
                warnings.warn(message, stacklevel=2)
            else:
                known[point.name] = point.value
        return known

    def names(self) -> list[str]:
        return list(self._known)

    def paths(self) -> dict[str, str]:
        """Where each name is loaded from."""
        return {name: path for name, path in self._known.items() if isinstance(path, str)}

    def load(self, name: str) -> T:
        """Return what is called `name`; raise HardtailError if there is none or it cannot be imported."""
        path = name if ":" in name else self._known.get(name)
        if path is None:
            close = get_close_matches(name, self.names(), n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            known = f"{', '.join(self.names())}, or package.module:NAME for your own"
            raise HardtailError(f"there is no {self.kind} {name!r}; {hint}choose from {known}")
        if not isinstance(path, str):
            return path
        try:
            with _looking_in(SEARCHED if ":" in name else ()):
                found: Any = _import(path)
        except (ImportError, AttributeError, ValueError, SyntaxError) as error:
            source = "" if path == name else f" from {path!r}"
            hint = _place(error) or (_advice(error) if ":" in name else "")
            raise HardtailError(f"the {self.kind} {name!r} cannot be loaded{source}: {error}{hint}") from error
        if fault := self._fault(found):
            raise HardtailError(f"{path!r} is not a {self.kind}: {fault}")
        return found

    def admit(self, path: str) -> T:
        """Load `package.module:Class` or a known name, and register it for the rest of this process.

        Use this only for names that a user gives: a class that a file names is never imported.
        """
        found = self.load(path)
        if ":" in path and path not in self.paths().values():
            self._known[path] = path
        return found


@contextmanager
def _looking_in(folders: Sequence[str]) -> Iterator[None]:
    """Extend the import path for one import: a file that lies in such a folder is never imported by chance."""
    before = list(sys.path)
    sys.path += [folder for folder in folders if folder not in before]
    try:
        yield
    finally:
        sys.path[:] = before


def _import(path: str) -> object:
    module, _, attributes = path.partition(":")
    if not all(part.isidentifier() for part in (*module.split("."), *attributes.split("."))):
        raise ValueError("it must be written as package.module:NAME")
    return reduce(getattr, attributes.split("."), importlib.import_module(module))


def _place(error: Exception) -> str:
    """The line of the imported module that an error is from; nothing if there is none."""
    frames = extract_tb(error.__traceback__)
    machinery = [place for place, frame in enumerate(frames) if frame.filename == importlib.__file__]
    lines = [frame for frame in frames[machinery[-1] + 1 :] if not frame.filename.startswith("<")] if machinery else []
    return f" ({lines[0].filename}:{lines[0].lineno})" if lines else ""


def _advice(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return "; modules are also looked for in the current folder and, with --path DIR, in DIR"
    known = dir(error.obj) if isinstance(error, AttributeError) else []
    close = get_close_matches(getattr(error, "name", None) or "", known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _subclass_of(base: str) -> Callable[[Any], str | None]:
    def fault(found: Any) -> str | None:
        fits = isinstance(found, type) and issubclass(found, _import(base))  # type: ignore[arg-type]
        return None if fits and not isabstract(found) else f"it must be a complete subclass of {base}"

    return fault


TASKS: "Registry[type[Task]]" = Registry(
    "task",
    "hardtail.tasks",
    {
        "addition": "hardtail.tasks.addition.task:Addition",
        "maze": "hardtail.tasks.maze.task:Maze",
        "listops": "hardtail.tasks.listops.task:ListOps",
        "countdown": "hardtail.tasks.countdown.task:Countdown",
        "sudoku": "hardtail.tasks.sudoku.task:Sudoku",
    },
    _subclass_of("hardtail.tasks.base:Task"),
)

POLICIES: "Registry[type[Policy]]" = Registry(
    "policy",
    "hardtail.policies",
    {
        "top1": "hardtail.policies.confidence:Top1",
        "max-logit": "hardtail.policies.confidence:MaxLogit",
        "margin": "hardtail.policies.confidence:Margin",
        "entropy": "hardtail.policies.confidence:Entropy",
        "noisy": "hardtail.policies.confidence:Noisy",
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
        "check": "hardtail.policies.check:Check",
        "ladder": "hardtail.policies.ladder:Ladder",
    },
    _subclass_of("hardtail.policies.base:Policy"),
)
"""A task's logical orders are policies too: `policies.named` finds them by their names."""

SCHEMES: "Registry[type[Scheme]]" = Registry(
    "scheme",
    "hardtail.schemes",
    {
        "random": "hardtail.schemes.random:Random",
        "papl": "hardtail.schemes.papl:Papl",
        "focal": "hardtail.schemes.papl:Focal",
        "puma": "hardtail.schemes.puma:Puma",
        "own": "hardtail.schemes.own:Own",
        "mixture": "hardtail.schemes.mixture:Mixture",
    },
    _subclass_of("hardtail.schemes.base:Scheme"),
)
"""The recipes are registered by the study: `study.names.RECIPES`."""
