"""What a scheme is: three methods that every training step calls, and that never wait for the host.

A scheme is a frozen configuration. What it carries from step to step (PUMA's chains) is a dictionary of tensors that
`begin` makes and the other methods change in place, so that a captured graph can replay them and a checkpoint can
hold them.

Shapes: N instances, B batch, L sequence, A answer cells, V vocabulary.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Checked
from hardtail.core.noise import Moment, shuffled, stream
from hardtail.core.types import Instances

Carried = dict[str, Tensor]
"""What a scheme carries from step to step, by name."""
_EPOCH = stream("epoch")


@dataclass(frozen=True)
class Corpus:
    """A data set on the device."""

    tokens_NL: Tensor
    answer_at_NA: Tensor
    maskable_NA: Tensor
    mask_id: int
    fixed_answer: slice | None
    """The place of the answer, if it is the same in every instance."""
    rank_NA: Tensor | None = None
    """Ranks of the logical order that the run follows or measures; -1 where a cell is never hidden."""

    @classmethod
    def on(cls, device: torch.device, instances: Instances, mask_id: int, order: str | None = None) -> "Corpus":
        if order is not None and order not in instances.orders:
            known = ", ".join(instances.orders) or "none: build the data without --bare"
            raise HardtailError(f"these instances have no order {order!r}; they have {known}")
        if not (hidden_N := instances.maskable_NA.any(axis=1)).all():
            raise HardtailError(
                f"problem {int(hidden_N.argmin()) + 1} has no cell that may be hidden, so there is nothing to learn"
            )
        at_NA = torch.from_numpy(instances.answer_at_NA)
        start = int(at_NA[0, 0])
        fixed = slice(start, start + at_NA.shape[1]) if bool((at_NA == at_NA[:1]).all()) else None
        rank_NA = torch.from_numpy(instances.orders[order].astype("int16")).to(device) if order is not None else None
        tokens_NL, maskable_NA = (torch.from_numpy(x).to(device) for x in (instances.tokens_NL, instances.maskable_NA))
        at_NA = at_NA.to(device, torch.int16 if tokens_NL.shape[1] <= 1 << 15 else torch.int32)
        return cls(tokens_NL, at_NA, maskable_NA, mask_id, fixed, rank_NA)

    def __len__(self) -> int:
        return len(self.tokens_NL)

    def share(self, rank: int, world: int) -> "Corpus":
        """Every `world`-th instance, the same number for each rank; all of them for a single one."""
        if world == 1:
            return self
        if len(self) < world:
            raise HardtailError(f"{len(self)} training instances cannot be shared by {world} processes")
        mine = slice(rank, len(self) - len(self) % world, world)
        tokens_NL, answer_at_NA, maskable_NA = (
            x[mine].contiguous() for x in (self.tokens_NL, self.answer_at_NA, self.maskable_NA)
        )
        rank_NA = None if self.rank_NA is None else self.rank_NA[mine].contiguous()
        return Corpus(tokens_NL, answer_at_NA, maskable_NA, self.mask_id, self.fixed_answer, rank_NA)

    def rows(self, row_B: Tensor) -> "Rows":
        at_BA = self.answer_at_NA[row_B].long()
        tokens_BL = self.tokens_NL[row_B].long()
        return Rows(row_B, tokens_BL, at_BA, tokens_BL.gather(1, at_BA), self.maskable_NA[row_B])

    def batch(self, size: int, now: Moment) -> "Rows":
        """The next `size` instances of the epoch's random order; the incomplete last batch of an epoch is dropped."""
        batches = max(len(self) // size, 1)
        position_B = (now.step % batches) * size + torch.arange(size, device=now.step.device)
        return self.rows(self.epoch_rows(position_B, now.step // batches, now.seed))

    def epoch_rows(self, position_B: Tensor, epoch: Tensor, seed: int) -> Tensor:
        """The instances at places `position_B` of an epoch's random order."""
        key = Moment(seed, epoch, 0).words(_EPOCH, 1)
        return shuffled(position_B % len(self), len(self), key)


@dataclass(frozen=True)
class Rows:
    """Some instances of a corpus."""

    row_B: Tensor
    tokens_BL: Tensor
    at_BA: Tensor
    gold_BA: Tensor
    maskable_BA: Tensor

    def hide(self, hidden_BA: Tensor, corpus: Corpus, rate_B: Tensor | None = None) -> "View":
        """The same instances with some answer cells masked."""
        shown_BA = torch.where(hidden_BA, corpus.mask_id, self.gold_BA)
        tokens_BL = self.tokens_BL.scatter(1, self.at_BA, shown_BA)
        at_BA = self.at_BA if corpus.fixed_answer is None else corpus.fixed_answer
        return View(tokens_BL, at_BA, self.gold_BA, hidden_BA, self.maskable_BA, self.row_B, rate_B)


@dataclass(frozen=True)
class View:
    """What the model sees in one step, and the right answers."""

    tokens_BL: Tensor
    at_BA: Tensor | slice
    gold_BA: Tensor
    hidden_BA: Tensor
    maskable_BA: Tensor
    row_B: Tensor
    rate_B: Tensor | None = None
    """The masking rate λ that each sequence was drawn with, if there is one."""
    written_BA: Tensor | None = None
    """Cells that show a token of the model's own instead of the gold one, if there can be any."""

    @property
    def open_BA(self) -> Tensor:
        """The cells whose gold token is not shown: hidden, or written by the model."""
        return self.hidden_BA if self.written_BA is None else self.hidden_BA | self.written_BA

    def with_tokens(self, written_BA: Tensor, token_BA: Tensor) -> "View":
        """The same with some cells, none of them hidden, showing other tokens."""
        at_BA = self.at_BA
        if isinstance(at_BA, slice):
            at_BA = torch.arange(at_BA.start, at_BA.stop, device=token_BA.device).expand_as(token_BA)
        shown_BA = torch.where(written_BA, token_BA, self.tokens_BL.gather(1, at_BA))
        return replace(self, tokens_BL=self.tokens_BL.scatter(1, at_BA, shown_BA), written_BA=written_BA)


@dataclass(frozen=True)
class Scheme(Checked, ABC):
    """Which answer cells are hidden, and what each costs."""

    @property
    def pooled(self) -> bool:
        """Whether the loss is one mean over all hidden cells of a batch; otherwise each sequence counts the same."""
        return False

    @property
    def shareable(self) -> bool:
        """Whether the loss of a batch is the mean of those of its shares, weighted by hidden cells if it is pooled."""
        return True

    def begin(self, corpus: Corpus, batch: int, now: Moment) -> Carried:
        """What the scheme carries from step to step; nothing by default."""
        return {}

    @abstractmethod
    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        """The next batch with some answer cells hidden."""

    @abstractmethod
    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        """A scalar in float32; cells that show their gold token cost nothing.

        Logits of cells that their instance never hides are 0: they are not computed.
        """

    def trained(self, view: View) -> Tensor:
        """The cells that the loss is of [B, A]: by default all that do not show their gold token."""
        return view.open_BA

    def advance(self, state: Carried, logits_BAV: Tensor, view: View, corpus: Corpus, now: Moment) -> None:
        """Advance what the scheme carries, with the logits of this step."""
        return


def log_likelihood(logits_BAV: Tensor, gold_BA: Tensor) -> Tensor:
    """log p(gold) of every answer cell, over the whole vocabulary, in float32."""
    return logits_BAV.float().log_softmax(dim=-1).gather(-1, gold_BA[..., None])[..., 0]
