"""How many rows are decoded at a time, and how many of them a forward pass has.

The rows of a pass may change how its sums are rounded. So on a CPU they depend on the sequences' length alone, and on a
GPU on that and on the rows in flight.
"""

import torch

from hardtail.decoding.options import Decoding

CPU_BATCH = 32
"""Rows in flight on a CPU; every tile divides it."""
TILE_TOKENS = 2048
"""Tokens of a forward pass on a CPU: activations stay in its caches, and matrix products are still large."""
GPU_BATCH = 512
GPU_TILE_TOKENS = 1 << 17
"""Tokens of a forward pass on a GPU, enough to fill it: a larger batch takes several."""


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


def _power(most: int) -> int:
    """The largest power of two that is at most `most`, and at least four."""
    return 1 << (max(most, 4).bit_length() - 1)


def batch_rows(rows: int, n: int, tile: int, workers: int) -> int:
    """Rows of a batch, at most `rows`: fewer where `n` instances would otherwise not reach every worker."""
    return min(rows, -(-n // (workers * tile)) * tile) if workers > 1 else rows
