"""Two schemes in one batch: a share of the sequences follows the second."""

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Probability
from hardtail.core.noise import Moment, stream
from hardtail.schemes.base import Carried, Corpus, Scheme, View
from hardtail.schemes.puma import Puma
from hardtail.schemes.random import Random

_MIXTURE = stream("mixture")


@dataclass(frozen=True)
class Mixed(View):
    """A batch of two schemes."""

    second_B: Tensor = field(kw_only=True)
    """Which sequences are the second scheme's."""


@dataclass(frozen=True)
class Mixture(Scheme):
    """Each sequence of a batch is the second scheme's with probability `share`, else the first's.

    `share` moves linearly to `share_end` over training, if that is given. A chain whose place in the batch went to the
    other scheme waits: it is neither trained nor advanced in that step.
    """

    first: Scheme = field(default_factory=Puma)
    second: Scheme = field(default_factory=Random)
    share: Probability = 0.2
    share_end: Probability | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.first, Mixture) or isinstance(self.second, Mixture):
            raise HardtailError("Mixture: first and second must not be mixtures themselves")

    @property
    def shareable(self) -> bool:
        return not (self.first.pooled or self.second.pooled)

    def begin(self, corpus: Corpus, batch: int, now: Moment) -> Carried:
        parts = {"first": self.first.begin(corpus, batch, now), "second": self.second.begin(corpus, batch, now)}
        return {f"{name}/{key}": tensor for name, part in parts.items() for key, tensor in part.items()}

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        one = self.first.corrupt(_part(state, "first"), corpus, batch, now)
        two = self.second.corrupt(_part(state, "second"), corpus, batch, now)
        end = self.share if self.share_end is None else self.share_end
        share = self.share + (end - self.share) * (now.step / now.steps)
        second_B = now.uniform(_MIXTURE, batch) < share

        def chosen(left: Tensor, right: Tensor) -> Tensor:
            return torch.where(second_B.reshape(-1, *[1] * (left.dim() - 1)), right, left)

        at_BA = one.at_BA
        if isinstance(one.at_BA, Tensor) and isinstance(two.at_BA, Tensor):
            at_BA = chosen(one.at_BA, two.at_BA)
        names = "tokens_BL", "gold_BA", "hidden_BA", "maskable_BA", "row_B"
        merged = {name: chosen(getattr(one, name), getattr(two, name)) for name in names}
        ones_B = torch.ones(batch, device=second_B.device)
        rate_B = chosen(ones_B if one.rate_B is None else one.rate_B, ones_B if two.rate_B is None else two.rate_B)
        if one.written_BA is not None or two.written_BA is not None:
            none_BA = torch.zeros_like(one.hidden_BA)
            written = (none_BA if part.written_BA is None else part.written_BA for part in (one, two))
            merged["written_BA"] = chosen(*written)
        return Mixed(at_BA=at_BA, **merged, rate_B=rate_B, second_B=second_B)

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        first_B, second_B = _owners(view)
        return _loss(self.first, logits_BAV, view, first_B) + _loss(self.second, logits_BAV, view, second_B)

    def trained(self, view: View) -> Tensor:
        first_B, second_B = _owners(view)
        return self.first.trained(_only(view, first_B)) | self.second.trained(_only(view, second_B))

    def advance(self, state: Carried, logits_BAV: Tensor, view: View, corpus: Corpus, now: Moment) -> None:
        first_B, second_B = _owners(view)
        self.first.advance(_part(state, "first"), logits_BAV, _only(view, first_B), corpus, now)
        self.second.advance(_part(state, "second"), logits_BAV, _only(view, second_B), corpus, now)


def _part(state: Carried, name: str) -> Carried:
    """The tensors of one of the two schemes, under their own names."""
    return {key.removeprefix(f"{name}/"): tensor for key, tensor in state.items() if key.startswith(f"{name}/")}


def _owners(view: View) -> tuple[Tensor, Tensor]:
    """Which sequences are the first scheme's, and which the second's."""
    assert isinstance(view, Mixed)
    return ~view.second_B, view.second_B


def _only(view: View, mine_B: Tensor) -> View:
    """The view in which only one scheme's sequences hide anything or hold a token of the model's."""
    written_BA = None if view.written_BA is None else view.written_BA & mine_B[:, None]
    return replace(view, hidden_BA=view.hidden_BA & mine_B[:, None], written_BA=written_BA)


def _loss(scheme: Scheme, logits_BAV: Tensor, view: View, mine_B: Tensor) -> Tensor:
    """One scheme's part of the loss; a mean over its own cells is weighted by its share of the batch."""
    loss = scheme.loss(logits_BAV, _only(view, mine_B))
    return loss * mine_B.float().mean() if scheme.pooled else loss
