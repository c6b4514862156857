"""A scheme, a policy and a recipe from another package."""

from dataclasses import dataclass

import torch
from torch import Tensor

from hardtail.core.noise import Moment, stream
from hardtail.policies.base import Guess, Policy, State
from hardtail.schemes.base import Carried, Corpus, Scheme, View
from hardtail.schemes.random import Random
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Recipe, Sizes, Watch

from .task import Parity

_START = stream("suffix")


@dataclass(frozen=True)
class Suffix(Scheme):
    """Hides every cell from a random one on."""

    earliest: float = 0.0
    """The random cell is never before this share of the answer."""

    def corrupt(self, state: Carried, corpus: Corpus, batch: int, now: Moment) -> View:
        rows = corpus.batch(batch, now)
        cells = rows.maskable_BA.shape[1]
        start_B = (self.earliest + (1 - self.earliest) * now.uniform(_START, batch)) * cells
        hidden_BA = torch.arange(cells, device=start_B.device) >= start_B.long()[:, None]
        return rows.hide(hidden_BA & rows.maskable_BA, corpus)

    def loss(self, logits_BAV: Tensor, view: View) -> Tensor:
        return Random().loss(logits_BAV, view)


@dataclass(frozen=True)
class EndsFirst(Policy):
    """Commits from both ends of the answer towards the middle."""

    def score(self, guess: Guess, state: State) -> Tensor:
        cells = state.hidden_BA.shape[1]
        return (torch.arange(cells, device=guess.top_BA.device) - (cells - 1) / 2).abs().float()


def parity_suffix() -> Recipe:
    """Seconds on a CPU; what is watched comes from the task."""
    return Recipe(
        task=Parity(bits=8),
        scheme=Suffix(),
        sizes=Sizes(1, 2, 32, dropout=0.0),
        optimiser=AdamW(lr=3e-3, floor=3e-4, warmup=5, ema=0.9),
        watch=Watch(log_every=10, eval_every=20, gen_every=20, save_every=20, probe_size=20, decoded=8, hard="ones>=6"),
        steps=20,
        batch=16,
        train_size=100,
    )
