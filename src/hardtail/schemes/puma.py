"""PUMA: train on the states that confidence-based decoding would visit, with the gold tokens revealed.

A buffer holds one chain per row of the batch. Every step trains on the chains as they are and then reveals, in each,
the cells that the same forward pass was most confident about. Three published readings differ in how many cells a stage
reveals and in how chains begin (docs/study.md §1.8, §10.1); each difference is a field here.

Shapes: B chains, A answer cells, V vocabulary.
"""

from dataclasses import dataclass, field
from math import log
from typing import Annotated, Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from hardtail.core.noise import Moment, stream
from hardtail.schemes.base import Carried, Corpus, Scheme, View
from hardtail.schemes.chains import empty_chains, next_rows, ranks, surest
from hardtail.schemes.random import Random
from hardtail.schemes.stages import Fixed, Stages, Stairs

_SCORE, _COUNT, _CHANGE = map(stream, ("score", "count", "change"))
_PHASE, _FRESH, _PLACE = map(stream, ("phase", "fresh", "place"))
_PLAIN = Random()  # made once: compiled code cannot check its fields


@dataclass(frozen=True)
class Puma(Scheme):
    """Chains that are revealed stage by stage; a finished one is replaced by the next sequence."""

    stages: Stages = field(default_factory=lambda: Stairs(3, 16, 3))
    law: Literal["even", "centred", "around", "interval"] = "even"
    """Cells a stage reveals. `even`: ⌈hidden / stages left⌉ (release); `centred`: n/K rounded up or down at random, and
    then one more, one less or neither, n/K on average (paper); `around`: a uniform number from ⌊n/K⌋-1 to ⌈n/K⌉+1, at
    least one, which is more on average (recorded runs of `paper`); `interval`: up to a cumulative count of round(n·u),
    u uniform in the next of K equal intervals (official)."""
    threshold: Annotated[float, Bounds(gt=0, le=1)] | None = 0.9
    """Cells above this confidence are also revealed."""
    start: Literal["masked", "spread"] = "masked"
    """The first chains: all hidden, or spread over all stages with random cells revealed (official)."""
    refill: Literal["masked", "fraction"] = "masked"
    """A new chain: all hidden, or with a random fraction below 1/K revealed (official)."""
    new_k: Literal["keep", "rebuild"] = "keep"
    """When K changes: continue, or start again with spread chains (official)."""
    score: Literal["confidence", "random", "logical"] = "confidence"
    """Which cells go first: the surest, random ones (a control), or those that the task's logical order puts first."""

    # -- the three verbs ----------------------------------------------------------------------------------------

    def begin(self, corpus: Corpus, batch: int, now: Moment) -> Carried:
        if self.score == "logical" and corpus.rank_NA is None:
            raise HardtailError("PUMA in logical order needs data with that order; build it without --bare")
        state = empty_chains(corpus, batch, "hidden_BA")
        everyone_B = torch.ones_like(state["row_B"], dtype=torch.bool)
        self._replace(state, corpus, everyone_B, now, spread=self.start == "spread")
        return state

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        # Copies: `advance` changes the chains while the view is still needed.
        return corpus.rows(state["row_B"].clone()).hide(state["hidden_BA"].clone(), corpus)

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        """Per sequence the mean over its hidden cells, then the mean over the batch."""
        return _PLAIN.loss(logits_BAV, view)

    def advance(self, state: Carried, logits_BAV: Tensor, view: View, corpus: Corpus, now: Moment) -> None:
        """Reveal one stage in every chain that was shown, with the confidences of this step's own forward pass."""
        shown_B = view.hidden_BA.any(dim=1)
        surest_BA = surest(logits_BAV, corpus.mask_id)
        stages = self.stages.at(now.step, now.steps)
        n_B, hidden_B = view.maskable_BA.sum(dim=1), view.hidden_BA.sum(dim=1)
        count_B = self._count(n_B, hidden_B, state["stage_B"], stages, now)

        first_BA = ranks(self._score(surest_BA, view, corpus, now).masked_fill(~view.hidden_BA, -torch.inf))
        reveal_BA = first_BA < count_B[:, None]
        if self.threshold is not None:
            reveal_BA = reveal_BA | (surest_BA > log(self.threshold))
        hidden_BA = view.hidden_BA & ~reveal_BA
        left_B = hidden_BA.sum(dim=1)
        stage_B = state["stage_B"] + 1
        if self.law == "interval" and self.threshold is not None:
            stage_B = torch.maximum(stage_B, (n_B - left_B) * stages // n_B)  # the threshold may skip stages
        over_B = left_B == 0
        if self.law not in ("around", "centred"):
            over_B = over_B | (stage_B >= stages)

        state["hidden_BA"].copy_(torch.where(shown_B[:, None], hidden_BA, state["hidden_BA"]))
        state["stage_B"].copy_(torch.where(shown_B, stage_B, state["stage_B"]))
        self._replace(state, corpus, shown_B & over_B, now, spread=False)
        if self.new_k == "rebuild":
            changed = self.stages.at(now.step + 1, now.steps) != stages
            self._replace(state, corpus, changed.expand_as(over_B), now, spread=True)

    # -- parts --------------------------------------------------------------------------------------------------

    def _score(self, surest_BA: Tensor, view: View, corpus: Corpus, now: Moment) -> Tensor:
        """Higher is revealed first."""
        if self.score == "random":
            return now.uniform(_SCORE, *surest_BA.shape)
        if self.score == "logical":
            assert corpus.rank_NA is not None
            return surest_BA.exp() / 2 - corpus.rank_NA[view.row_B].float()  # ties of the order by confidence
        return surest_BA

    def _count(self, n_B: Tensor, hidden_B: Tensor, stage_B: Tensor, stages: Tensor, now: Moment) -> Tensor:
        """How many cells of each chain this stage reveals."""
        if self.law == "even":
            left_B = (stages - stage_B).clamp(min=1)
            return ((hidden_B + left_B - 1) // left_B).clamp(min=1)
        draw_B = now.uniform(_COUNT, len(n_B))
        if self.law == "centred":
            nearest_B = (n_B / stages + draw_B).long().clamp(min=1)  # n/K on average, for n/K of 1 and more
            change_B = (now.uniform(_CHANGE, len(n_B)) * 3).long() - 1
            return torch.where(nearest_B > 1, nearest_B + change_B, nearest_B)
        if self.law == "around":
            low_B = (n_B // stages - 1).clamp(min=1)
            high_B = (n_B + stages - 1) // stages + 1
            return low_B + (draw_B * (high_B - low_B + 1)).long()
        return (_upto(stage_B + 1, draw_B, n_B, stages) - (n_B - hidden_B)).clamp(min=0)

    def _replace(self, state: Carried, corpus: Corpus, over_B: Tensor, now: Moment, spread: bool) -> None:
        """Put the next sequences of the epoch's order in place of finished chains."""
        row_B = next_rows(state, corpus, over_B, now)
        maskable_BA = corpus.maskable_NA[row_B]
        stages = self.stages.at(now.step + 1, now.steps)  # a chain put in now is first shown in the next step
        phase_B = torch.zeros_like(state["stage_B"])
        if spread:
            slot_B = torch.arange(len(over_B), device=over_B.device)
            phase_B = ranks(now.uniform(_PHASE, 1, len(over_B)))[0] * stages // len(slot_B)
        hidden_BA = maskable_BA
        if spread or self.refill == "fraction":
            count_B = _upto(phase_B, now.uniform(_FRESH, len(over_B)), maskable_BA.sum(dim=1), stages)
            place_BA = now.uniform(_PLACE, *maskable_BA.shape).masked_fill(~maskable_BA, -torch.inf)
            hidden_BA = maskable_BA & (ranks(place_BA) >= count_B[:, None])

        state["row_B"].copy_(torch.where(over_B, row_B, state["row_B"]))
        state["stage_B"].copy_(torch.where(over_B, phase_B, state["stage_B"]))
        state["hidden_BA"].copy_(torch.where(over_B[:, None], hidden_BA, state["hidden_BA"]))


def _upto(phase_B: Tensor, draw_B: Tensor, n_B: Tensor, stages: Tensor) -> Tensor:
    """The cumulative number of revealed cells in a phase: round(n·u), u in [phase/K, (phase+1)/K), at most n-1."""
    return torch.minimum(((phase_B + draw_B) / stages * n_B).round().long(), n_B - 1)


def paper(stages: Stages) -> Puma:
    """PUMA as the paper's text describes it: a stochastic stage size and no threshold."""
    return Puma(stages=stages, law="centred", threshold=None)


def official(stages: Stages | None = None, threshold: float | None = None) -> Puma:
    """PUMA as its own authors released it; with a threshold, their mode `confidence_collapse`."""
    stages = stages or Fixed(8)
    return Puma(stages, "interval", threshold, start="spread", refill="fraction", new_k="rebuild")


def oracle_order(stages: Stages) -> Puma:
    """PUMA's chain revealed in the task's logical order instead of by confidence."""
    return Puma(stages=stages, threshold=None, score="logical")
