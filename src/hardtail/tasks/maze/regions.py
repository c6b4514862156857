"""Connected regions of marked cells on grids, many grids at once.

Shapes: N grids, H rows, W columns, K marked cells, R regions, 4 neighbours (right, left, down, up).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array

Grids = NDArray[np.bool_]


@dataclass(frozen=True)
class Regions:
    """4-connected regions, numbered through all grids in the order of their first cells."""

    label_NHW: NDArray[np.int64]
    """The region of each cell; -1 where a cell is not marked."""
    grid_R: NDArray[np.int64]
    """The grid that a region is in."""
    size_R: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.grid_R)

    def count(self, chosen_NHW: Grids) -> NDArray[np.int64]:
        """How many chosen cells each region has."""
        return np.bincount(self.label_NHW[chosen_NHW & (self.label_NHW >= 0)], minlength=len(self))

    def most(self, value_NHW: Array) -> NDArray[np.int64]:
        """The largest value in each region, at least 0."""
        most_R = np.zeros(len(self), dtype=np.int64)
        marked_NHW = self.label_NHW >= 0
        np.maximum.at(most_R, self.label_NHW[marked_NHW], value_NHW[marked_NHW])
        return most_R


def regions(marked_NHW: Grids) -> Regions:
    """Regions by hooking and pointer jumping, which takes few passes even for long winding regions.

    Every cell points to itself at first. A pass makes the targets of two neighbouring cells point to the lower of them,
    then shortens all chains of pointers to one link.
    """
    number_NHW = np.cumsum(marked_NHW).reshape(marked_NHW.shape) - 1
    right_NHW, down_NHW = marked_NHW[:, :, :-1] & marked_NHW[:, :, 1:], marked_NHW[:, :-1] & marked_NHW[:, 1:]
    one_J = np.concatenate([number_NHW[:, :, :-1][right_NHW], number_NHW[:, :-1][down_NHW]])
    other_J = np.concatenate([number_NHW[:, :, 1:][right_NHW], number_NHW[:, 1:][down_NHW]])
    to_K = np.arange(int(marked_NHW.sum()))
    while (to_K[one_J] != to_K[other_J]).any():
        high_J = np.maximum(to_K[one_J], to_K[other_J])
        np.minimum.at(to_K, high_J, np.minimum(to_K[one_J], to_K[other_J]))
        while (to_K != (further_K := to_K[to_K])).any():
            to_K = further_K
    first_R, label_K, size_R = np.unique(to_K, return_inverse=True, return_counts=True)
    label_NHW = np.full(marked_NHW.shape, -1, dtype=np.int64)
    label_NHW[marked_NHW] = label_K
    return Regions(label_NHW, np.nonzero(marked_NHW)[0][first_R], size_R.astype(np.int64))


def neighbours(marked_NHW: Grids) -> NDArray[np.bool_]:
    """`marked_NHW4`: which of a cell's neighbours are marked; nothing beyond the edge is."""
    wide_NHW = np.pad(marked_NHW, ((0, 0), (1, 1), (1, 1)))
    around = wide_NHW[:, 1:-1, 2:], wide_NHW[:, 1:-1, :-2], wide_NHW[:, 2:, 1:-1], wide_NHW[:, :-2, 1:-1]
    return np.stack(around, axis=-1)


def squares(marked_NHW: Grids) -> NDArray[np.int64]:
    """The side of the largest all-marked square with its top left corner at each cell; 0 where not marked."""
    side_NHW = np.zeros(marked_NHW.shape, dtype=np.int64)
    here_NHW = marked_NHW
    while here_NHW.any():
        side_NHW += here_NHW
        next_NHW = np.pad(here_NHW, ((0, 0), (0, 1), (0, 1)))
        here_NHW = here_NHW & next_NHW[:, 1:, :-1] & next_NHW[:, :-1, 1:] & next_NHW[:, 1:, 1:]
    return side_NHW
