"""Names of difficulty strata: `natural`, or conditions on axes joined by commas."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.errors import HardtailError
from hardtail.types import Array

_CONDITION = re.compile(r"(?P<axis>\w+)(?P<sign>>=|<=|=)(?P<value>[\w.]+)(?:-(?P<top>[\w.]+))?")


@dataclass(frozen=True)
class Condition:
    """One axis within a closed range, or equal to a label."""

    axis: str
    low: float = -np.inf
    high: float = np.inf
    label: str = ""

    @classmethod
    def parse(cls, text: str) -> "Condition | None":
        match = _CONDITION.fullmatch(text)
        if match is None:
            return None
        axis, sign, value, top = match["axis"], match["sign"], match["value"], match["top"]
        try:
            low, high = float(value), float(top or value)
        except ValueError:
            return cls(axis, label=value) if sign == "=" and top is None else None
        if low > high or (top and sign != "="):
            return None
        return cls(axis, -np.inf if sign == "<=" else low, np.inf if sign == ">=" else high)

    def disjoint(self, other: "Condition") -> bool:
        """Whether no value meets both conditions, which are on one axis."""
        if self.label and other.label:
            return self.label != other.label
        return self.low > other.high or other.low > self.high

    def holds(self, value_N: Array) -> NDArray[np.bool_]:
        if self.label:
            return np.asarray(value_N == self.label)
        return (value_N >= self.low) & (value_N <= self.high)

    def __str__(self) -> str:
        if self.label:
            return f"{self.axis}={self.label}"
        if self.high == np.inf:
            return f"{self.axis}>={self.low:g}"
        if self.low == -np.inf:
            return f"{self.axis}<={self.high:g}"
        return f"{self.axis}={self.low:g}" + ("" if self.low == self.high else f"-{self.high:g}")


@dataclass(frozen=True)
class Stratum:
    """`chain>=28`, `depth=3`, `m=4-10`, `tier=hard,tl4>=0.95`; without conditions it is `natural`."""

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, text: str, axes: Sequence[str], of: str) -> "Stratum":
        """Read a stratum's name; `axes` are the ones that the task `of` has."""
        if text == "natural":
            return cls()
        conditions = []
        for part in text.replace(" ", "").split(","):
            condition = Condition.parse(part)
            if condition is None or condition.axis not in axes:
                axis = axes[0]
                raise HardtailError(
                    f"{of}: {part!r} is no stratum; give 'natural' or a condition such as '{axis}=3', '{axis}>=3' "
                    f"or '{axis}=3-5' on one of the axes {', '.join(axes)} (several joined by commas)"
                )
            conditions.append(condition)
        return cls(tuple(conditions))

    def on(self, axis: str) -> Condition:
        """The condition on one axis; an open one where there is none."""
        return next((item for item in self.conditions if item.axis == axis), Condition(axis))

    def holds(self, strata: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Which instances lie in the stratum."""
        held_N = np.ones(len(next(iter(strata.values()))), dtype=np.bool_)
        for condition in self.conditions:
            held_N &= condition.holds(strata[condition.axis])
        return held_N

    def disjoint(self, other: "Stratum") -> bool:
        """Whether the two provably have no instance in common."""
        return any(item.disjoint(other.on(item.axis)) for item in self.conditions)

    def __str__(self) -> str:
        return ",".join(map(str, self.conditions)) or "natural"
