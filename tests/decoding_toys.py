"""Small things to decode: problems without meaning, denoisers that are hashes of what they see, a user's policy."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.noise import mix
from hardtail.core.registry import POLICIES
from hardtail.core.types import Instances
from hardtail.models.denoiser import Function
from hardtail.policies.base import Guess, Policy, State
from hardtail.policies.named import policy_named
from hardtail.testing.policies import same_decode

CELLS, VOCAB, MASK = 9, 8, 7
Numbers = NDArray[np.float64]
same_trace = same_decode
NAMES = (
    *(name for name in POLICIES.names() if name not in ("check", "ladder")),
    "check,rounds=2",
    "zigzag",
    "block,size=4",
    "threshold,p=0.3",
    "factor,f=3",
    "eb,gamma=2",
    "klass,p=0.2,kl=3,history=1",
    "loo,rounds=3",
    "remdm,eta=0.5",
    "remdm,variant=conf",
    "p2,eta=4",
    "check,draft=eb+gamma=2,hide=random,parts=2,rounds=2",
    "check,draft=klass+p=0.2+kl=3+history=1,hide=block,then=refill,rounds=2,sweep=backward",
    "check,draft=loo+rounds=1,then=region,reach=1,rounds=1",
    "check,hide=none,rounds=3",
    "check,hide=none,then=refill,rounds=3",
    "ladder,rungs=factor/check+hide=none+rounds=2/top1,limit=16,splits=1",
    "ladder,rungs=factor/check+rounds=1/klass,limit=16,splits=1",
    "ladder,rungs=top1/noisy,limit=8,splits=1,again=2",
    "tests.decoding_toys:EveryOther",
)
"""Every registered policy, a logical order, a user's class; also with fields that make rare branches common, and few
rounds where a denoiser without sense would be asked again and again."""


def problems(n: int, seed: int = 0, cells: int = CELLS) -> Instances:
    """Prompts of 6 to 8 tokens, 0 to `cells` hidden cells, and an order with ties."""
    rng = np.random.default_rng(seed)
    maskable_NA = rng.random((n, cells)) < rng.choice([0.3, 0.8, 1.0], size=(n, 1))
    rank_NA = np.where(maskable_NA, np.abs(np.arange(cells) - cells // 2), -1).astype(np.int8)
    return Instances(
        tokens_NL=rng.integers(0, MASK, size=(n, 8 + cells), dtype=np.uint8),
        prompt_len_N=rng.integers(6, 9, size=n, dtype=np.int32),
        maskable_NA=maskable_NA,
        scored_NA=maskable_NA,
        orders={"zigzag": rank_NA},
    )


def hashed_logits(tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
    """Logits in 0 … 12 that depend on every token of the row; cells next to each other often have exactly the same."""
    key_B = torch.zeros_like(tokens_BL[:, 0])
    for token_B in tokens_BL.unbind(dim=1):
        key_B = mix(key_B + token_B + 1)
    cell_BA = at_BA // 2 * 64
    word_BAV = mix(mix(key_B[:, None, None] + cell_BA[..., None] + torch.arange(VOCAB, device=at_BA.device)))
    return (word_BAV & 0xFFFF).float() * (12 / 0xFFFF)


TOY = Function(hashed_logits, MASK)


@dataclass(frozen=True)
class EveryOther(Policy):
    """A user's own: cells `first`, `first` + 2 … before the others."""

    first: int = 1

    def score(self, guess: Guess, state: State) -> Tensor:
        return (torch.arange(state.hidden_BA.shape[1], device=guess.top_BA.device) % 2 == self.first % 2).float()


class Row:
    """One instance, decoded in plain Python: tokens, hidden cells, and one look after another."""

    def __init__(self, instances: Instances, row: int) -> None:
        self.tokens_L = instances.tokens_NL[row].astype(np.int64)
        self.at_A = instances.answer_at_NA[row]
        self.maskable = np.flatnonzero(instances.maskable_NA[row]).tolist()
        self.rank_A = instances.orders["zigzag"][row]
        self.tokens_L[self.at_A[self.maskable]] = MASK
        self.history: list[Numbers] = []

    def look(self, tokens_L: NDArray[np.int64]) -> Numbers:
        logits_AV = TOY.logits(torch.from_numpy(tokens_L)[None], torch.from_numpy(self.at_A)[None])[0].double().numpy()
        logits_AV[:, MASK] = -np.inf
        return np.asarray(logits_AV)

    def step(self) -> None:
        self.logits_AV = self.look(self.tokens_L)
        self.p_AV = np.exp(self.logits_AV) / np.exp(self.logits_AV).sum(axis=-1, keepdims=True)
        self.history.append(self.p_AV)

    def top(self, cell: int) -> float:
        return float(self.p_AV[cell].max())

    def entropy(self, cell: int) -> float:
        return sum(-p * math.log(p) for p in self.p_AV[cell] if p > 0)

    def hidden(self) -> list[int]:
        return [cell for cell in self.maskable if self.tokens_L[self.at_A[cell]] == MASK]

    def write(self, cells: list[int]) -> None:
        for cell in cells:
            self.tokens_L[self.at_A[cell]] = self.p_AV[cell].argmax()


def best(cells: list[int], score: Callable[[int], float], count: int = 1) -> list[int]:
    return sorted(cells, key=lambda cell: (-score(cell), cell))[:count]


def toy_policy(name: str) -> Policy:
    return policy_named(name, ("zigzag",))


@dataclass(frozen=True)
class PlainEntropy(Policy):
    """As one would write it first: 0 · -inf is NaN, for the mask in every cell."""

    def score(self, guess: Guess, state: State) -> Tensor:
        return (guess.p_BAV * guess.log_p_BAV).sum(dim=-1)
