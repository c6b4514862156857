"""Policies inside a policy: each keeps its own memory, in the same `State.memory` under its own name.

Shapes: B batch.
"""

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.policies.base import Policy, State


def nested(state: State, name: str) -> State:
    """The state as the inner policy called `name` sees it: the same tensors, and only its own memory."""
    prefix = f"{name}/"
    own = {key.removeprefix(prefix): held for key, held in state.memory.items() if key.startswith(prefix)}
    return replace(state, memory=own)


def only(rows_B: Tensor, state: State) -> State:
    """The state with nothing written in other rows, so that an inner policy has no reason to look at them."""
    return replace(state, hidden_BA=torch.where(rows_B[:, None], state.hidden_BA, state.maskable_BA))


def perhaps(rows_B: Tensor) -> bool:
    """Whether some row is meant; where asking would wait, one may always be."""
    return asking_waits(rows_B.device) or bool(rows_B.any())


def asking_waits(device: torch.device) -> bool:
    """Whether the host has to wait for a value on this device."""
    return device.type == "cuda"


def begun(policy: Policy, state: State, name: str) -> dict[str, Tensor]:
    """The memory of an inner policy before its first step."""
    return {f"{name}/{key}": fresh for key, fresh in policy.begin(nested(state, name)).items()}


def restart(policy: Policy, state: State, name: str, rows_B: Tensor, hidden_BA: Tensor) -> None:
    """Let an inner policy begin anew in some rows with the next step, when these cells are hidden; what it keeps of
    other rows stays."""
    fresh: Mapping[str, Tensor] = begun(policy, replace(state, hidden_BA=hidden_BA, step=state.step + 1), name)
    for key, held in fresh.items():
        if held.shape[:1] != rows_B.shape:
            raise HardtailError(
                f"{policy} keeps {key.rpartition('/')[2]!r} {list(held.shape)}; inside another policy each tensor must "
                "have one entry for each row of the batch"
            )
        kept = state.memory[key]
        kept.copy_(torch.where(rows_B.reshape(-1, *(1,) * (kept.dim() - 1)), held, kept))
