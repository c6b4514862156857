"""The optional parts of a task, as the rest of hardtail asks for them: words, drawing, roles, page scene, figures.

Shapes: N instances, A answer cells.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Instances, Trace

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Look = Callable[[int], tuple[str, str]]
"""Returns the sign and the style of an answer cell. A drawing uses its own style if that is empty, and leaves out a
cell without a sign."""
WRONG = "bold white on red"
NO_ROLE = 255


@dataclass(frozen=True)
class Words:
    """What a person calls the parts of a task, for sentences about it."""

    problems: str = "instances"
    cell: str = "cell"
    orders: Mapping[str, str] = field(default_factory=dict)
    """What each logical order does, such as "lowest digit first"."""
    instruction: str = ""
    """What a language model is told before a problem."""
    stratum: tuple[str, str] = ("", "")
    """How strata of the main axis begin, and what their problems are called, with the number as {}: `chain>=` and
    "sums with a carry chain of {} or more digits"."""
    fails: str = "fails on"
    """What a model does where its answer is not the gold one: the same, unless there are other solutions."""


class Profile(Protocol):
    """Wrong commits in terms of one task: a frozen dataclass of plain values, mappings and such dataclasses."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @classmethod
    def of(cls, task: Any, trace: Trace) -> "Profile": ...


@runtime_checkable
class Telling(Protocol):
    """A profile that can say in a sentence what is typical of its wrong commits."""

    def in_words(self) -> str | None: ...


@dataclass(frozen=True)
class Roles:
    """The role of each answer cell in its problem: `role_NA` indexes `names`, or is `NO_ROLE`."""

    names: tuple[str, ...]
    role_NA: NDArray[np.uint8]

    @classmethod
    def none(cls, instances: Instances) -> "Roles":
        return cls((), np.full(instances.maskable_NA.shape, NO_ROLE, dtype=np.uint8))

    @classmethod
    def of_extra(cls, instances: Instances, extra: str, names: Sequence[str]) -> "Roles":
        """Roles that instances have as an annotation (-1: no role); bare instances have no roles."""
        if extra not in instances.extras:
            return cls.none(instances)
        index_NA = instances.extras[extra]
        return cls(tuple(names), np.where(index_NA < 0, NO_ROLE, index_NA).astype(np.uint8))


class Showcase(NamedTuple):
    """What a first look at a task shows: ordinary instances and the hard tail, by confidence and in logical order."""

    ordinary: str
    """The stratum of ordinary instances."""
    hard: str
    """The stratum of the hard tail."""
    order: str
    """The logical order to compare confidence with; empty if the task has none."""


class Scene(NamedTuple):
    """A task's drawing on the page: a JavaScript module that registers it, and its style sheet."""

    script: str
    style: str

    @classmethod
    def beside(cls, kind: type) -> "Scene | None":
        """`scene.js` and `scene.css` in the package of a class, or of the nearest class it inherits from."""
        packages = (sys.modules[held.__module__].__package__ for held in kind.__mro__)
        for folder in (files(package) for package in packages if package):
            if (folder / "scene.js").is_file():
                sources = [folder / name for name in ("scene.js", "scene.css")]
                return cls(*(path.read_text(encoding="utf-8") if path.is_file() else "" for path in sources))
        return None


class Pen(Protocol):
    """Colours, widths and empty sheets for figures, the same for all tasks."""

    INK: str
    SOFT: str
    RULE: str
    WRONG: str
    CHAIN: str
    HIDDEN: str
    PAGE: float

    def sheet(self, width: float, height: float, *, arranged: bool = True) -> "Figure": ...

    def bare(self, axes: "Axes") -> None: ...

    def ramp(self, part: float) -> tuple[tuple[float, float, float], str]: ...

    def source(self, trace: Trace) -> str: ...
