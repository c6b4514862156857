"""How far an answer can be trusted, asked of the model itself: hide some of what is written and look again.

A *score* is a number for each answer, higher where it is more likely wrong. How well it tells right answers from wrong
ones is one `Trust` record.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from msgspec import structs
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.noise import row_keys
from hardtail.core.records import Head, Trust
from hardtail.core.types import Array, Trace
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import in_flight, pass_rows
from hardtail.measuring.statistics import auroc
from hardtail.models.denoiser import Denoiser
from hardtail.policies.base import State
from hardtail.policies.groups import GROUPINGS
from hardtail.traces.states import standing

COVERAGES = (0.5, 0.8, 0.9, 0.95)
"""The shares of answers, the most trusted ones, whose accuracy is recorded."""
HIGH = 0.99
"""The quantile of a score that is recorded."""
Committable = Callable[[int], Tensor]
"""Which tokens may be committed, by how many of them the denoiser predicts: known after the first pass."""


@dataclass(frozen=True)
class Question:
    """Cells that are hidden together: `parts` groups of one kind, drawn `repeats` times."""

    hide: str
    parts: int
    repeats: int = 1
    scores: tuple[str, ...] = ("energy", "differs")
    """Which of the numbers in `Reply` are scores."""

    @property
    def passes(self) -> int:
        return self.parts * self.repeats


QUESTIONS: Mapping[str, Question] = {
    "halves": Question("random", 2, repeats=2),
    "comb": Question("comb", 3),
    "first look": Question("comb", 1, scores=("entropy",)),
}
"""The questions of `hardtail eval --trust`; the last one hides everything."""
SCORES = {f"{name} {kind}": of.passes for name, of in QUESTIONS.items() for kind in of.scores} | {"own doubt": 0}
"""The scores that are compared, with the forward passes that each costs."""


class Reply(NamedTuple):
    """What a question found, for each answer: sums over its cells, and means over the question's repeats."""

    energy: Array
    """-log p of what is written, with the cell's group hidden; finite, as a decode writes only possible tokens."""
    differs: Array
    """Cells where the model would write something else."""
    entropy: Array


def trusted(denoiser: Denoiser, trace: Trace, decoding: Decoding) -> Trace:
    """The trace with every score among its notes."""
    found = {name: asked(denoiser, trace, question, decoding) for name, question in QUESTIONS.items()}
    every = {f"{name} {kind}": score_N for name, held in found.items() for kind, score_N in held._asdict().items()}
    every["own doubt"] = own_doubt(trace)
    return replace(trace, notes=dict(trace.notes) | {name: every[name] for name in SCORES})


@torch.inference_mode()
def asked(denoiser: Denoiser, trace: Trace, question: Question, decoding: Decoding) -> Reply:
    """Ask one question about every answer."""
    rows = pass_rows(trace.instances.tokens_NL.shape[1], in_flight(len(trace), decoding), decoding)
    parts = (trace.take(slice(at, at + rows)) for at in range(0, len(trace), rows))
    committable = cache(partial(decoding.committable, denoiser.mask_id))
    found = [_batch(denoiser, part, rows, question, decoding, committable) for part in parts]
    return Reply(*(np.concatenate(held) for held in zip(*found, strict=True)))


def _batch(
    denoiser: Denoiser, trace: Trace, rows: int, question: Question, decoding: Decoding, committable: Committable
) -> Reply:
    """The same for at most `rows` answers, in passes of exactly `rows`: other shapes may round differently."""
    filled, instances, device = np.minimum(np.arange(rows), len(trace) - 1), trace.instances, decoding.device

    def put(array_N: Array) -> Tensor:
        return torch.from_numpy(array_N[filled]).to(device)

    tokens_BL, at_BA = put(instances.tokens_NL).long(), put(instances.answer_at_NA)
    written_BA, maskable_BA = put(trace.answer_NA).long(), put(instances.maskable_NA)
    key_B = row_keys(tokens_BL, put(instances.prompt_len_N).long(), decoding.seed)
    step = torch.zeros_like(key_B[0])
    state = State(tokens_BL, at_BA, torch.zeros_like(maskable_BA), maskable_BA, key_B, step, denoiser.mask_id)
    total_3B = torch.zeros((3, rows), device=device)
    for _ in range(question.repeats):
        group_BA = GROUPINGS[question.hide](state, question.parts)
        for part in range(question.parts):
            hidden_BA = maskable_BA & (group_BA == part)
            asked_BL = tokens_BL.scatter(1, at_BA, written_BA.masked_fill(hidden_BA, denoiser.mask_id))
            total_3B += torch.where(hidden_BA, _scores(denoiser, asked_BL, at_BA, written_BA, committable), 0.0).sum(-1)
        step += 1
    energy_N, differs_N, entropy_N = (total_3B[:, : len(trace)] / question.repeats).cpu().numpy()
    return Reply(energy_N, differs_N, entropy_N)


def _scores(
    denoiser: Denoiser, tokens_BL: Tensor, at_BA: Tensor, written_BA: Tensor, committable: Committable
) -> Tensor:
    """Energy, difference and entropy of every cell [3, B, A], over the tokens that may be committed."""
    logits_BAV = denoiser.logits(tokens_BL, at_BA).float()
    log_p_BAV = logits_BAV.masked_fill(~committable(logits_BAV.shape[-1]), -torch.inf).log_softmax(dim=-1)
    energy_BA = -log_p_BAV.gather(-1, written_BA[..., None])[..., 0]
    differs_BA = (log_p_BAV.argmax(dim=-1) != written_BA).float()
    return torch.stack([energy_BA, differs_BA, torch.special.entr(log_p_BAV.exp()).sum(dim=-1)])


def own_doubt(trace: Trace) -> NDArray[np.float32]:
    """The model's own -log p of an answer: of every token that stands, at the time it was written."""
    held = standing(trace)
    log_p_NA = np.log(np.maximum(held.prob_NA, np.finfo(np.float32).tiny))
    return -np.where(held.there_NA, log_p_NA, 0.0).sum(axis=1)


def trust_records(head: Head, stratum: str, right_N: NDArray[np.bool_], notes: Mapping[str, Array]) -> list[Trust]:
    """One record for each score; `head` has the fields that all of them share."""
    return [
        Trust(
            **structs.asdict(head),
            stratum=stratum,
            n=len(right_N),
            score=name,
            passes=passes,
            wrong=int((~right_N).sum()),
            **auroc(notes[name], ~right_N)._asdict(),
            high_score=float(np.quantile(notes[name], HIGH)),
            accuracy_at=_at_coverages(notes[name], right_N),
        )
        for name, passes in SCORES.items()
    ]


def _at_coverages(score_N: Array, right_N: NDArray[np.bool_]) -> dict[str, float]:
    """Accuracy of the most trusted answers; where scores tie at the edge, the mean over the tied ones counts."""
    found = {}
    for coverage in COVERAGES:
        count = max(round(coverage * len(right_N)), 1)
        edge = np.sort(score_N, kind="stable")[count - 1]
        below_N, tied_N = score_N < edge, score_N == edge
        right = right_N[below_N].sum() + right_N[tied_N].mean() * (count - below_N.sum())
        found[f"{coverage:g}"] = float(right / count)
    return found
