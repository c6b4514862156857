"""How to decode, apart from the policy: one object from the command line down to the loop.

Shapes: V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from hardtail.core.fields import AtLeastOne, Bounds, Checked, NonNegative
from hardtail.policies.base import Commit


@dataclass(frozen=True)
class Decoding(Checked):
    """Options of a decode."""

    commit: Commit = Commit()  # noqa: RUF009 (it is frozen)
    batch: AtLeastOne | None = None
    """Rows at a time, on a CPU in steps of 32. It affects memory; on a GPU it may also change how sums are rounded."""
    device: str = "cpu"
    seed: Annotated[int, Bounds(ge=0, lt=1 << 63)] = 0
    """The seed of everything random in decoding."""
    temperature: NonNegative = 0.0
    """0 commits the most probable token; above it, one is sampled from p^(1/temperature)."""
    allowed: Sequence[int] | None = None
    """The tokens that may be committed; by default all but the mask."""
    workers: AtLeastOne | None = None
    """Single-threaded workers that share the instances on a CPU; affects time, not results. By default as many as
    there are cores to use, and one for a denoiser that is not ours, since it may not expect calls from several
    threads."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.allowed is not None:
            object.__setattr__(self, "allowed", tuple(self.allowed))  # so that it can be compared

    def committable(self, mask_id: int, size: int) -> Tensor:
        """Which of the first `size` tokens may be committed, on the decode's device; never the mask."""
        token_V = torch.arange(size, device=self.device)
        committable_V = token_V != mask_id
        if self.allowed is not None:
            allowed = torch.tensor(self.allowed, dtype=torch.int64, device=self.device)
            committable_V &= torch.isin(token_V, allowed)
        return committable_V
