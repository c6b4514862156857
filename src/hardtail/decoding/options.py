"""How to decode, besides the policy: one object, from the command line down to the loop."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.policies.base import Commit


@dataclass(frozen=True)
class Decoding:
    """Options of a decode, refused here where no decode can have them."""

    commit: Commit = Commit()  # noqa: RUF009 (it is frozen)
    batch: int | None = None
    """Rows at a time, on a CPU in steps of 32: a bound on memory that changes no result."""
    device: str = "cpu"
    seed: int = 0
    """Of everything random in decoding."""
    temperature: float = 0.0
    """0 commits the most probable token, more samples one from p^(1/temperature)."""
    allowed: Sequence[int] | None = None
    """The tokens that may be committed; by default all but the mask."""

    def __post_init__(self) -> None:
        if self.batch is not None and self.batch < 1:
            raise HardtailError(f"the batch is {self.batch}; it must be at least 1")
        if not 0 <= self.temperature < math.inf:
            raise HardtailError(f"the temperature is {self.temperature}; it is 0 for the most probable token, or more")
        if not 0 <= self.seed < 1 << 63:
            raise HardtailError(f"the seed is {self.seed}; it must be at least 0 and below 2^63")

    def as_json(self) -> dict[str, Any]:
        """What of it a result depends on; the batch is no part of that."""
        commit = self.commit
        return {
            "commit_rule": f"{commit.each} a step" if commit.steps is None else f"{commit.steps} steps",
            "restrict": self.allowed is not None,
            "temperature": self.temperature,
            "decode_seed": self.seed,
        }
