"""Fitting a small head on a frozen model, on training problems only: which written tokens to trust, or which cells to
write next. `policies.learned` decodes with them.

Shapes: B batch, L sequence, A answer cells, V vocabulary.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne, Checked
from hardtail.measuring.subject import Subject
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.heads import CellHead
from hardtail.models.transformer import Transformer
from hardtail.schemes.base import Corpus, Rows
from hardtail.tasks import datasets as data


class Lesson(NamedTuple):
    """What a head sees in one step, and what it should say."""

    tokens_BL: Tensor
    label_BA: Tensor
    """0 or 1."""
    judged_BA: Tensor
    """The cells that count."""


class Teacher(Checked, ABC):
    """Makes lessons for a head out of training problems."""

    @abstractmethod
    def lesson(self, denoiser: Denoiser, rows: Rows, rank_BA: Tensor | None, draw: torch.Generator) -> Lesson: ...


@dataclass(frozen=True)
class Written(Teacher):
    """Is this written token right? PRISM (Kim et al. 2025): the minimiser is p(x_i = y_i | y without i).

    A random part of a right answer is hidden and filled at once with tokens from p^(1/temperature); those cells are
    judged. A temperature above 1 makes wrong tokens common enough to learn from in a model that is nearly always sure.
    """

    temperature: float = 3.0

    def lesson(self, denoiser: Denoiser, rows: Rows, rank_BA: Tensor | None, draw: torch.Generator) -> Lesson:
        hidden_BA = _hidden(rows, draw)
        logits_BAV = _logits(denoiser, rows, hidden_BA)
        logits_BAV[..., denoiser.mask_id] = -torch.inf
        noise_BAV = torch.rand(logits_BAV.shape, generator=draw).clamp(min=1e-20).to(logits_BAV.device)
        drawn_BA = (logits_BAV / self.temperature - (-noise_BAV.log()).log()).argmax(dim=-1)
        written_BA = torch.where(hidden_BA, drawn_BA, rows.gold_BA)
        tokens_BL = rows.tokens_BL.scatter(1, rows.at_BA, written_BA)
        return Lesson(tokens_BL, (written_BA == rows.gold_BA).float(), hidden_BA)


@dataclass(frozen=True)
class InOrder(Teacher):
    """Is this hidden cell the next in the logical order? Half of the states are those of that order, half random."""

    def lesson(self, denoiser: Denoiser, rows: Rows, rank_BA: Tensor | None, draw: torch.Generator) -> Lesson:
        if rank_BA is None:
            raise HardtailError("the task has no logical order, so there is nothing for InOrder to teach")
        rank_BA = rank_BA.masked_fill(~rows.maskable_BA, 1 << 14)
        next_B1 = (
            torch.rand(len(rank_BA), 1, generator=draw).to(rank_BA.device) * rows.maskable_BA.sum(1, True)
        ).long()
        ordered_BA = rows.maskable_BA & (rank_BA >= rank_BA.sort(dim=1).values.gather(1, next_B1))
        half_B1 = (torch.arange(len(rank_BA), device=rank_BA.device) % 2 == 0)[:, None]
        hidden_BA = torch.where(half_B1, ordered_BA, _hidden(rows, draw))
        first_B1 = torch.where(hidden_BA, rank_BA, 1 << 14).amin(dim=1, keepdim=True)
        return Lesson(_shown(denoiser, rows, hidden_BA), (rank_BA == first_B1).float(), hidden_BA)


@dataclass(frozen=True)
class Agreeing(Teacher):
    """Would the model, once all other cells are written, still say what it says about this hidden cell now?

    One hidden cell of each state is judged: the second look hides it alone.
    """

    def lesson(self, denoiser: Denoiser, rows: Rows, rank_BA: Tensor | None, draw: torch.Generator) -> Lesson:
        hidden_BA = _hidden(rows, draw)
        key_BA = torch.rand(hidden_BA.shape, generator=draw).to(hidden_BA.device)
        one_BA = F.one_hot(key_BA.masked_fill(~hidden_BA, -1.0).argmax(dim=1), hidden_BA.shape[1]).bool()
        now_BA, alone_BA = (_logits(denoiser, rows, cells_BA).argmax(dim=-1) for cells_BA in (hidden_BA, one_BA))
        return Lesson(_shown(denoiser, rows, hidden_BA), (now_BA == alone_BA).float(), one_BA)


@dataclass(frozen=True)
class Fit(Checked):
    """How a head is fitted: Adam on the mean cross-entropy over judged cells."""

    problems: AtLeastOne = 4000
    steps: AtLeastOne = 600
    batch: AtLeastOne = 64
    rate: float = 1e-3
    seed: int = 0


USUAL = Fit()


def fitted(subject: Subject, teacher: Teacher, how: Fit = USUAL) -> tuple[CellHead, list[float]]:
    """A head for the subject's model, and its losses."""
    denoiser = subject.denoiser
    model = denoiser.model if isinstance(denoiser, ModelDenoiser) else None
    if not isinstance(model, Transformer):
        raise HardtailError(f"{subject.name} is not our own transformer; a head reads the features of one")
    draw, device = torch.Generator().manual_seed(how.seed), torch.device(subject.device)
    instances = data.build(subject.task, data.TRAIN, how.seed, how.problems).instances
    order = next(iter(instances.orders), None)
    corpus = Corpus.on(device, instances, denoiser.mask_id, order)
    head = CellHead(model, draw).to(device)
    optimiser = torch.optim.Adam(head.layers.parameters(), how.rate)
    losses = []
    for _ in range(how.steps):
        row_B = torch.randint(len(corpus), (how.batch,), generator=draw).to(device)
        rows = corpus.rows(row_B)
        with torch.no_grad():
            rank_BA = None if corpus.rank_NA is None else corpus.rank_NA[row_B]
            lesson = teacher.lesson(denoiser, rows, rank_BA, draw)
        said_BA = head(lesson.tokens_BL, rows.at_BA)
        cost_BA = F.binary_cross_entropy_with_logits(said_BA, lesson.label_BA, reduction="none")
        loss = (cost_BA * lesson.judged_BA).sum() / lesson.judged_BA.sum().clamp(min=1)
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        losses.append(float(loss.detach()))
    return head.eval().requires_grad_(False), losses


def _hidden(rows: Rows, draw: torch.Generator) -> Tensor:
    """Each cell with a probability that is drawn for its row, and at least one."""
    batch, cells = rows.maskable_BA.shape
    key_BA = torch.rand(batch, cells, generator=draw).to(rows.gold_BA.device).masked_fill(~rows.maskable_BA, 2.0)
    rate_B1 = torch.rand(batch, 1, generator=draw).to(key_BA.device)
    return (key_BA < rate_B1) | (key_BA == key_BA.amin(dim=1, keepdim=True))


def _shown(denoiser: Denoiser, rows: Rows, hidden_BA: Tensor) -> Tensor:
    return rows.tokens_BL.scatter(1, rows.at_BA, rows.gold_BA.masked_fill(hidden_BA, denoiser.mask_id))


def _logits(denoiser: Denoiser, rows: Rows, hidden_BA: Tensor) -> Tensor:
    return denoiser.logits(_shown(denoiser, rows, hidden_BA), rows.at_BA).float()
