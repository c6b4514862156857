"""What a decode records while it runs: one event for each token written, in tensors of a fixed size.

Shapes: B batch, A answer cells, T events.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.types import NO_EVENT
from hardtail.policies.base import Guess

Segment = tuple[NDArray[np.int64], dict[str, NDArray[Any]]]
"""How many events each row has, and the arrays of a `Trace` that hold them."""
_COLUMNS = {
    "cell_NT": torch.int16,
    "step_NT": torch.int16,
    "token_NT": torch.int32,
    "prob_NT": torch.float32,
    "gold_prob_NT": torch.float32,
    "gold_rank_NT": torch.int32,
    "runner_up_NT": torch.int16,
    "margin_NT": torch.float32,
}


class Events:
    """The events of a batch; noting one never waits for the host, so a captured step can do it."""

    def __init__(self, rows: int, cells: int, remasks: bool, device: torch.device) -> None:
        self.cells = cells
        self.capacity = 8 * cells if remasks else cells
        self.used_B = torch.zeros(rows, dtype=torch.int64, device=device)
        # One more column than there can be events: cells without an event are written there.
        self.columns = {
            name: torch.zeros((rows, self.capacity + 1), dtype=dtype, device=device) for name, dtype in _COLUMNS.items()
        }

    @property
    def crowded(self) -> bool:
        """Whether one more step might not fit: a cell has at most three events, hidden, committed and hidden again."""
        return int(self.used_B.max()) + 3 * self.cells > self.capacity

    def note(
        self,
        guess: Guess,
        step: Tensor,
        gold_BA: Tensor,
        cell_BA: Tensor,
        chosen_BA: Tensor,
        token_BA: Tensor,
        judged_BA: Tensor,
        runner_up_B1: Tensor,
        margin_BA: Tensor,
    ) -> None:
        """Append one event for each chosen cell. `cell_BA` lists cells, best first, and `chosen_BA` says how many
        of them; `token_BA` (what is written) and `judged_BA` (whose probability is noted) are by cell."""
        log_p_BA = guess.log_p_BAV.gather(-1, judged_BA[..., None])[..., 0]
        gold_log_p_BA1 = guess.log_p_BAV.gather(-1, gold_BA[..., None])
        values = {
            "cell_NT": cell_BA,
            "step_NT": step.expand_as(cell_BA),
            "token_NT": token_BA.gather(1, cell_BA),
            "prob_NT": log_p_BA.exp().gather(1, cell_BA),
            "gold_prob_NT": gold_log_p_BA1[..., 0].exp().gather(1, cell_BA),
            "gold_rank_NT": (guess.log_p_BAV > gold_log_p_BA1).sum(dim=-1).gather(1, cell_BA),
            "runner_up_NT": runner_up_B1.expand_as(cell_BA),
            "margin_NT": margin_BA,
        }
        place_BA = self.used_B[:, None] + torch.arange(self.cells, device=self.used_B.device)
        place_BA = place_BA.masked_fill(~chosen_BA, self.capacity)
        for name, value_BA in values.items():
            self.columns[name].scatter_(1, place_BA, value_BA.to(_COLUMNS[name]))
        self.used_B.add_(chosen_BA.sum(dim=1))

    def flush(self, n: int) -> Segment:
        """Remove and return the events of the first `n` rows."""
        used_N = self.used_B[:n].cpu().numpy().copy()
        self.used_B.zero_()
        longest = int(used_N.max())
        happened_NT = np.arange(longest) < used_N[:, None]
        arrays: dict[str, NDArray[Any]] = {}
        for name, column_BT in self.columns.items():
            array_NT = column_BT[:n, :longest].cpu().numpy()
            arrays[name] = np.where(happened_NT, array_NT, array_NT.dtype.type(NO_EVENT.get(name, 0)))
        if np.isnan(arrays["prob_NT"]).any():
            raise HardtailError(
                "a cell has no probabilities: the denoiser's logits hold NaN or +inf, or -inf for every token that "
                "may be committed; look at its weights"
            )
        return used_N, arrays


def joined(segments: Sequence[Segment]) -> dict[str, NDArray[Any]]:
    """The events of several segments one after another, without gaps in a row."""
    if len(segments) == 1:
        return segments[0][1]
    total_N = np.sum([used_N for used_N, _ in segments], axis=0)
    n, longest = len(total_N), int(total_N.max())
    whole = {
        name: np.full((n, longest), NO_EVENT.get(name, 0), dtype=array.dtype) for name, array in segments[0][1].items()
    }
    offset_N = np.zeros(n, dtype=np.int64)
    for used_N, arrays in segments:
        row_K, event_K = np.nonzero(np.arange(int(used_N.max())) < used_N[:, None])
        for name, array in arrays.items():
            whole[name][row_K, offset_N[row_K] + event_K] = array[row_K, event_K]
        offset_N += used_N
    return whole
