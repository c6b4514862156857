"""Names of difficulty strata: `natural`, or conditions on axes joined by commas."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.types import Array

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_RANGE = re.compile(rf"(?P<axis>[a-z]\w*)(?P<sign>>=|<=|=)(?P<value>{_NUMBER})(?:-(?P<top>{_NUMBER}))?", re.ASCII)
_LABEL = re.compile(r"(?P<axis>[a-z]\w*)=(?P<label>[a-z]\w*)", re.ASCII)


@dataclass(frozen=True)
class Condition:
    """One axis within a closed range, or equal to a label."""

    axis: str
    low: float = -np.inf
    high: float = np.inf
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> "Condition | None":
        if match := _LABEL.fullmatch(text):
            return cls(match["axis"], label=match["label"])
        match = _RANGE.fullmatch(text)
        if match is None or (match["top"] and match["sign"] != "="):
            return None
        low, high, sign = float(match["value"]), float(match["top"] or match["value"]), match["sign"]
        return cls(match["axis"], -np.inf if sign == "<=" else low, np.inf if sign == ">=" else high)

    def both(self, other: "Condition") -> "Condition":
        """This condition combined with another one on the same axis."""
        if self.label and other.label and self.label != other.label:
            return Condition(self.axis, np.inf, -np.inf)
        return Condition(self.axis, max(self.low, other.low), min(self.high, other.high), self.label or other.label)

    @property
    def empty(self) -> bool:
        return self.low > self.high

    def holds(self, value_N: Array) -> NDArray[np.bool_]:
        if self.label:
            return np.asarray(value_N == self.label)
        return (value_N >= self.low) & (value_N <= self.high)

    def __str__(self) -> str:
        if self.label:
            return f"{self.axis}={self.label}"
        low, high = (np.format_float_positional(end, trim="-") for end in (self.low, self.high))  # exact, no exponent
        if self.high == np.inf:
            return f"{self.axis}>={low}"
        if self.low == -np.inf:
            return f"{self.axis}<={high}"
        return f"{self.axis}={low}" + ("" if low == high else f"-{high}")


@dataclass(frozen=True)
class Stratum:
    """`chain>=28`, `depth=3`, `m=4-10`, `tier=hard,tl4>=0.95`; without conditions it is `natural`."""

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, text: str, axes: Mapping[str, Sequence[str]], of: str) -> "Stratum":
        """Read a stratum's name. `axes` are those of the task `of`, with their labels (none for numbers)."""
        if text == "natural":
            return cls()
        conditions = []
        for part in text.replace(" ", "").split(","):
            condition = Condition.parse(part)
            if condition is None or condition.axis not in axes:
                axis = next(iter(axes))
                raise HardtailError(
                    f"{of}: {part!r} is not a stratum; give 'natural' or a condition such as '{axis}=3', '{axis}>=3' "
                    f"or '{axis}=3-5' on one of the axes {', '.join(axes)} (several joined by commas)"
                )
            labels = axes[condition.axis]
            if (labels or condition.label) and condition.label not in labels:
                accepted = f"one of {', '.join(labels)}" if labels else "a number"
                raise HardtailError(f"{of}: {part!r} is not a stratum; {condition.axis} must be {accepted}")
            conditions.append(condition)
        stratum = cls(tuple(conditions))
        if void := next((item for item in conditions if stratum.on(item.axis).empty), None):
            raise HardtailError(f"{of}: the stratum {text!r} is empty: no {void.axis} meets all its conditions")
        return stratum

    def on(self, axis: str) -> Condition:
        """All conditions on one axis combined; a condition that always holds if there is none."""
        return reduce(Condition.both, (item for item in self.conditions if item.axis == axis), Condition(axis))

    def holds(self, strata: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Which instances lie in the stratum."""
        everything_N = np.ones(len(next(iter(strata.values()))), dtype=np.bool_)
        return reduce(np.logical_and, (item.holds(strata[item.axis]) for item in self.conditions), everything_N)

    def disjoint(self, other: "Stratum") -> bool:
        """Whether the two provably have no instance in common."""
        return any(item.both(other.on(item.axis)).empty for item in self.conditions)

    def __str__(self) -> str:
        return ",".join(map(str, self.conditions)) or "natural"
