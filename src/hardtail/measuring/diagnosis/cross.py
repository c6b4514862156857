"""Two decodes of the same instances: which of them solved what.

Shapes: N instances.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.records import Count
from hardtail.core.types import Trace


@dataclass(frozen=True)
class Cross:
    """Instances by which of two decodes solved them."""

    instances: Count
    both: Count
    only_first: Count
    only_second: Count
    neither: Count


def cross(first: Trace, second: Trace, groups: Mapping[str, NDArray[np.bool_]] | None = None) -> dict[str, Cross]:
    """The cross table over `all` instances, then over each group of them."""
    if not np.array_equal(first.instances.tokens_NL, second.instances.tokens_NL):
        raise HardtailError(
            f"the two traces are of different instances ({len(first)} and {len(second)}); decode the same ones twice"
        )
    return {
        name: _cross(first.exact_N[inside_N], second.exact_N[inside_N])
        for name, inside_N in with_all(groups, len(first)).items()
    }


def with_all(groups: Mapping[str, NDArray[np.bool_]] | None, n: int) -> dict[str, NDArray[np.bool_]]:
    """`all` of n instances, then the groups."""
    return {"all": np.ones(n, dtype=np.bool_), **(groups or {})}


def _cross(first_N: NDArray[np.bool_], second_N: NDArray[np.bool_]) -> Cross:
    counts = [first_N & second_N, first_N & ~second_N, ~first_N & second_N, ~first_N & ~second_N]
    return Cross(len(first_N), *(int(in_N.sum()) for in_N in counts))
