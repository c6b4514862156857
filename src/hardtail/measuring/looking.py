"""One forward pass over problems whose maskable cells are all hidden: a run's own probe, and the probes of `eval`.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import in_flight, pass_rows
from hardtail.decoding.workers import Progress, spread
from hardtail.models.denoiser import Denoiser, refuse_strangers, refuse_unread, well_shaped
from hardtail.schemes.base import Corpus, Rows, log_likelihood

Model = Callable[[Tensor, Tensor | slice], Tensor]


@dataclass(frozen=True)
class Look:
    """What a model predicts for some problems."""

    rows: Rows
    there_B: Tensor
    """False for a row that only fills up the last batch."""
    logits_BAV: Tensor
    log_p_BA: Tensor
    """Log-probability of the gold tokens."""


def looks(model: Model, corpus: Corpus, size: int) -> Iterator[Look]:
    """Every problem once, always `size` rows at a time: matrix products of another shape may round differently."""
    return (_look(model, corpus, start, size) for start in range(0, len(corpus), size))


def _look(model: Model, corpus: Corpus, start: int, size: int) -> Look:
    index_B = torch.arange(start, start + size, device=corpus.tokens_NL.device)
    rows = corpus.rows(index_B.clamp(max=len(corpus) - 1))
    view = rows.hide(rows.maskable_BA, corpus)
    logits_BAV = model(view.tokens_BL, view.at_BA)
    return Look(rows, index_B < len(corpus), logits_BAV, log_likelihood(logits_BAV, view.gold_BA))


class Judged(NamedTuple):
    nll: float
    """Mean over the judged cells; infinite if the right token of one of them has probability 0."""
    right: int
    cells: int
    exact: int
    """Instances whose judged cells are all right."""


@torch.inference_mode()
def judge(
    denoiser: Denoiser, instances: Instances, judged_NA: NDArray[np.bool_], decoding: Decoding, name: str
) -> Judged:
    """How well the judged cells are predicted while all maskable cells are hidden; errors start with `name`."""
    refuse_unread(denoiser, instances.tokens_NL)
    device = torch.device(decoding.device)
    corpus = replace(Corpus.on(device, instances, denoiser.mask_id), fixed_answer=None)  # denoisers get every position
    most = int(instances.answer_NA.max(initial=0))
    judged_all_NA = torch.from_numpy(judged_NA).to(device)
    committable = cache(partial(decoding.committable, denoiser.mask_id))  # of a number of tokens that a pass tells
    rows = pass_rows(instances.tokens_NL.shape[1], in_flight(len(instances), decoding), decoding)

    def begin(denoiser: Denoiser, moved: Progress) -> Callable[[int], tuple[float, int, int]]:
        def model(tokens_BL: Tensor, at_BA: Tensor | slice) -> Tensor:
            assert isinstance(at_BA, Tensor)
            logits_BAV = well_shaped(denoiser.logits(tokens_BL, at_BA), at_BA).float()
            refuse_strangers(most, logits_BAV.shape[-1])
            return logits_BAV

        def judged(start: int) -> tuple[float, int, int]:
            """The loss of the judged cells of the problems from `start` on, how many are right, and how many problems
            have all of theirs right."""
            look = _look(model, corpus, start, rows)
            judged_BA = judged_all_NA[look.rows.row_B] & look.there_B[:, None]
            barred_V = ~committable(look.logits_BAV.shape[-1])
            guess_BA = look.logits_BAV.masked_fill(barred_V, -torch.inf).argmax(dim=-1)
            right_BA = guess_BA == look.rows.gold_BA
            exact = int(((right_BA | ~judged_BA).all(dim=1) & look.there_B).sum())
            return -float(look.log_p_BA[judged_BA].double().sum()), int(right_BA[judged_BA].sum()), exact

        return judged

    loss, right, exact, cells = 0.0, 0, 0, int(judged_NA.sum())
    for part in spread(range(0, len(corpus), rows), begin, denoiser, decoding, lambda done: None):
        loss, right, exact = loss + part[0], right + part[1], exact + part[2]
    if math.isnan(loss) or loss == -math.inf:
        raise HardtailError(f"{name}: the model's logits hold NaN or infinities; look at its weights")
    return Judged(loss / max(cells, 1), right, cells, exact)
