"""Training on what the model wrote itself, wrong tokens included.

Other schemes show gold tokens or masks, so a model never sees a wrong token, and trusts every one that is written. Here
chains continue with the tokens that the model put there in the step before, and cells that hold such a token are
scored like hidden ones: the model learns what belongs there although something else is written. To train on a step of
one's own answers is step-unrolled denoising (SUNDAE, Savinov et al. 2022).

Shapes: B chains, A answer cells, V vocabulary.
"""

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne, NonNegative, Probability
from hardtail.core.noise import Moment, gumbel, stream
from hardtail.schemes.base import Carried, Corpus, Scheme, View
from hardtail.schemes.chains import empty_chains, next_rows, ranks, surest, without_mask
from hardtail.schemes.random import Random

_TOKEN, _HEAT, _AGAIN = map(stream, ("own token", "own temperature", "own again"))
_PLAIN = Random()  # made once: compiled code cannot check its fields


@dataclass(frozen=True)
class Own(Scheme):
    """A chain hides cells of a sequence, lets the model fill them in `path` steps, and then rewrite them.

    The loss is the mean over the cells of each sequence that are hidden or hold the model's token, then over the batch.
    Cells that were shown at first keep their gold tokens and cost nothing.
    """

    path: AtLeastOne = 1
    """Steps in which the hidden cells are filled, the surest first: 1 fills all of them at once."""
    again: Probability = 0.5
    """The probability that a complete answer is shown, and after each time that it was rewritten, shown again."""
    temperature: NonNegative = 3.0
    """The highest at which the model's tokens are sampled: that of each chain and step is uniform between 0 and this.
    Ordinary problems show few wrong tokens without it."""
    first: Literal["random", "masked"] = "random"
    """What a chain hides at first: cells with a probability drawn per sequence, or all."""
    scored: Literal["answer", "hidden"] = "answer"
    """Hidden cells and those with the model's tokens, or hidden ones alone; then chains end with the path, and `again`
    means nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scored == "hidden" and self.again != Own.again:
            raise HardtailError(
                f"own: again={self.again} with scored=hidden, which never shows a complete answer; leave `again` out, "
                "or give scored=answer"
            )

    def begin(self, corpus: Corpus, batch: int, now: Moment) -> Carried:
        state = empty_chains(corpus, batch, "hidden_BA", "written_BA")
        state["token_BA"] = torch.zeros_like(state["hidden_BA"], dtype=torch.int64)
        self._replace(state, corpus, torch.ones_like(state["row_B"], dtype=torch.bool), now)
        return state

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        # Copies: `advance` changes the chains while the view is still needed.
        hidden = corpus.rows(state["row_B"].clone()).hide(state["hidden_BA"].clone(), corpus)
        return hidden.with_tokens(state["written_BA"].clone(), state["token_BA"])

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return _PLAIN.loss(logits_BAV, replace(view, hidden_BA=self.trained(view)))

    def trained(self, view: View) -> Tensor:
        return view.hidden_BA if self.scored == "hidden" else view.open_BA

    def advance(self, state: Carried, logits_BAV: Tensor, view: View, corpus: Corpus, now: Moment) -> None:
        """Write the model's tokens of this step: into the next hidden cells, or over those of a complete answer."""
        shown_B = view.open_BA.any(dim=1)
        hidden_B, left_B = view.hidden_BA.sum(dim=1), (self.path - state["stage_B"]).clamp(min=1)
        count_B = (hidden_B + left_B - 1) // left_B
        score_BA = surest(logits_BAV, corpus.mask_id).masked_fill(~view.hidden_BA, -torch.inf)
        fill_BA = view.hidden_BA & (ranks(score_BA) < count_B[:, None])
        write_BA = torch.where(hidden_B[:, None] > 0, fill_BA, view.open_BA)
        token_BA = self._tokens(without_mask(logits_BAV, corpus.mask_id), now)
        hidden_BA = view.hidden_BA & ~write_BA

        state["token_BA"].copy_(torch.where(write_BA, token_BA, state["token_BA"]))
        state["written_BA"].logical_or_(write_BA)
        state["hidden_BA"].copy_(torch.where(shown_B[:, None], hidden_BA, state["hidden_BA"]))
        state["stage_B"].add_(shown_B)
        ends_B = ~hidden_BA.any(dim=1)
        if self.scored == "answer":
            ends_B = ends_B & (now.uniform(_AGAIN, len(ends_B)) >= self.again)
        self._replace(state, corpus, shown_B & ends_B, now)

    def _tokens(self, logits_BAV: Tensor, now: Moment) -> Tensor:
        """Sampled by adding Gumbel noise: log p + T·g, which at a temperature of 0 is the most probable token."""
        heat_B = self.temperature * now.uniform(_HEAT, len(logits_BAV))
        noise_BAV = gumbel(now.uniform(_TOKEN, *logits_BAV.shape))
        return (logits_BAV + heat_B[:, None, None] * noise_BAV).argmax(dim=-1)

    def _replace(self, state: Carried, corpus: Corpus, over_B: Tensor, now: Moment) -> None:
        """Put the next sequences of the epoch's order in place of finished chains."""
        row_B = next_rows(state, corpus, over_B, now)
        hidden_BA = corpus.maskable_NA[row_B]
        if self.first == "random":
            hidden_BA = _PLAIN.hide(hidden_BA, now)[0]
        state["row_B"].copy_(torch.where(over_B, row_B, state["row_B"]))
        state["stage_B"].mul_(~over_B)
        state["hidden_BA"].copy_(torch.where(over_B[:, None], hidden_BA, state["hidden_BA"]))
        state["written_BA"].logical_and_(~over_B[:, None])
