"""How many rows are decoded at a time, how many of them a forward pass has, and at how many cells it predicts.

The rows and cells of a pass may change how its sums are rounded. So on a CPU its rows depend on the sequences' length
alone and its cells on those that the row itself may hide; on a GPU both depend on what is decoded together, too.

Shapes: N instances.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from hardtail.decoding.options import Decoding

CPU_BATCH = 32
"""Rows in flight on a CPU; every tile divides it."""
TILE_TOKENS = 2048
"""Tokens of a forward pass on a CPU: activations stay in its caches, and matrix products are still large."""
GPU_BATCH = 512
GPU_TILE_TOKENS = 1 << 17
"""Tokens of a forward pass on a GPU, enough to fill it: a larger batch takes several."""

CELLS = 16
"""Cells are predicted in steps of this many, so that rows with nearly as many maskable cells go together."""


def in_flight(n: int, decoding: Decoding) -> int:
    """How many rows are decoded at a time if there are `n`.

    On a GPU a batch that is more than half full has as many as any other, so that all of them share a compiled step.
    """
    kind = torch.device(decoding.device).type
    rows = decoding.batch or (GPU_BATCH if kind == "cuda" else CPU_BATCH)
    if kind == "cpu":
        rows = -(-rows // CPU_BATCH) * CPU_BATCH
    elif 2 * n > rows:
        return rows
    return min(rows, -(-n // CPU_BATCH) * CPU_BATCH)


def pass_rows(length: int, in_flight: int, decoding: Decoding) -> int:
    """Rows of every forward pass over sequences of this length, so that a compiled model is compiled for one shape."""
    if torch.device(decoding.device).type == "cpu":
        return tile(length)
    return min(_power(GPU_TILE_TOKENS // length), in_flight)


def tile(length: int) -> int:
    """Rows of a forward pass on a CPU: a power of two that depends on the sequences' length alone."""
    return min(_power(TILE_TOKENS // length), CPU_BATCH)


def predicted(maskable_N: NDArray[np.int_], answer: int, decoding: Decoding) -> NDArray[np.int_]:
    """At how many cells each row is predicted, for the number that each may hide, of answers with this many.

    On a GPU it is the same number for all rows, so that they share a captured step.
    """
    predicted_N = np.minimum(-(-np.maximum(maskable_N, 1) // CELLS) * CELLS, answer)
    if torch.device(decoding.device).type != "cpu":
        predicted_N[:] = predicted_N.max()
    return predicted_N


def _power(most: int) -> int:
    """The largest power of two that is at most `most`, and at least four."""
    return 1 << (max(most, 4).bit_length() - 1)


def batch_rows(rows: int, n: int, tile: int, workers: int) -> int:
    """Rows of a batch, at most `rows`: fewer where `n` instances would otherwise not reach every worker."""
    return min(rows, -(-n // (workers * tile)) * tile) if workers > 1 else rows


def batches(order_N: NDArray[np.int_], predicted_N: NDArray[np.int_], rows: int) -> list[NDArray[np.int_]]:
    """Instances in this order, in batches of at most `rows` that are predicted at the same number of cells."""
    alike = np.split(order_N, np.flatnonzero(np.diff(predicted_N[order_N])) + 1)
    return [part_N[at : at + rows] for part_N in alike for at in range(0, len(part_N), rows)]
