"""What a policy is: it scores hidden cells and decides how many of the best are committed in one step.

Higher scores go first, and ties go to the cell that comes first. Scores are float32. A policy is a frozen
configuration; what it carries from step to step is in `State.memory`: tensors that `begin` makes and that it changes in
place. On a GPU a step is captured once and replayed, so a policy never waits for the host: no `.item()`, no `if` on a
value (`Policy.capturable`).

Shapes: B batch, K further sequences, L sequence, A answer cells, V vocabulary.
"""

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds, Checked
from hardtail.core.noise import mix, signed, unit

Logits = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Another forward pass over any number of sequences: `logits(tokens_KL, at_KA, row_K)` are the float32 logits [K, A, V]
of the cells at `at_KA`, with -inf for tokens that cannot be committed; each is counted as a pass of its row."""
_ANSWERS = {
    "score": torch.float32,
    "count": torch.int64,
    "token": torch.int64,
    "overwrite": torch.bool,
    "review": torch.bool,
    "finished": torch.bool,
    "notes": torch.float32,
}
"""The types that a policy's methods must return, or that their results can be cast to."""
LIKELY_ROUNDS = 2
"""The rounds that a policy which looks again until nothing differs takes for most answers, if it may."""
REFUSED = torch.finfo(torch.float32).min
"""The score of a hidden cell that the policy scored -inf: not now, unless nothing else is left."""


@dataclass
class State:
    """A batch in the middle of being decoded."""

    tokens_BL: Tensor
    at_BA: Tensor
    """Where the answer cells sit in the sequence."""
    hidden_BA: Tensor
    maskable_BA: Tensor
    key_B: Tensor
    """A random int64 word per instance, from the seed and the problem alone, whatever else is in the batch."""
    step: Tensor
    """Steps taken so far, an int64 on the device."""
    mask_id: int
    vocab_size: int = 0
    """How many tokens there are, the mask included."""
    orders: Mapping[str, Tensor] = field(default_factory=dict)
    """Ranks [B, A] of the task's logical orders; lower first."""
    memory: dict[str, Tensor] = field(default_factory=dict)
    """What the policy carries from step to step."""
    began: Tensor | int = 0
    """The step with which a row was begun, or begun again."""

    @property
    def token_BA(self) -> Tensor:
        """The answer so far, with the mask token in hidden cells."""
        return self.tokens_BL.gather(1, self.at_BA)

    @property
    def taken(self) -> Tensor:
        """Steps taken since a row was begun; one number, or one for each row."""
        return self.step - self.began

    def noise(self, stream: int, *shape: int) -> Tensor:
        """Uniform float32 in (0, 1) of shape [B, *shape]; new in every step and for every `noise.stream` name."""
        key_B = mix(mix(self.key_B + signed(stream << 32)) + self.step)
        index = torch.arange(torch.Size(shape).numel(), device=key_B.device)
        return unit(mix(mix(key_B[:, None] + index) ^ key_B[:, None])).reshape(len(key_B), *shape)


@dataclass(frozen=True)
class Guess:
    """The denoiser's prediction for every answer cell in float32, with -inf for tokens that cannot be committed.

    Of cells that are never hidden it says nothing: our transformer does not predict them.
    """

    logits_BAV: Tensor
    log_p_BAV: Tensor
    token_BA: Tensor
    """The token that would be committed."""
    top_BA: Tensor
    """log p of the most probable token."""

    @property
    def p_BAV(self) -> Tensor:
        return self.log_p_BAV.exp()


@dataclass(frozen=True)
class Commit(Checked):
    """How many cells a step commits, unless the policy decides that itself."""

    each: Annotated[int, Bounds(ge=1, lt=1 << 31)] = 1
    """This many cells per step."""
    steps: Annotated[int, Bounds(ge=1, lt=1 << 31)] | None = None
    """Instead, this many steps in all, each with ⌈hidden / steps left⌉ cells."""
    schedule: Literal["even", "dream"] = "even"
    """How a total of steps is divided: evenly, or as Dream's sampler does it, whose last step takes what is left."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.each != 1 and self.steps is not None:
            raise HardtailError(f"a commit has each={self.each} and steps={self.steps}; give only one of them")
        if self.schedule != "even" and self.steps is None:
            raise HardtailError(f"the schedule {self.schedule!r} divides a total of steps; give that total too")

    def __str__(self) -> str:
        if self.steps is None:
            return f"{self.each} a step"
        return f"{self.steps} steps" + ("" if self.schedule == "even" else f", {self.schedule}")

    def steps_for(self, cells: int) -> int:
        """The steps of a row with this many hidden cells."""
        return -(-cells // self.each) if self.steps is None else min(self.steps, cells)

    def count(self, state: State) -> Tensor:
        """Cells to commit now, for each row."""
        hidden_B = state.hidden_BA.sum(dim=1)
        if self.steps is None:
            return torch.full_like(hidden_B, self.each)
        if self.schedule == "dream":
            table_CS = _dream_counts(state.maskable_BA.shape[1], self.steps, hidden_B.device)
            return table_CS[state.maskable_BA.sum(dim=1), state.taken.clamp(max=self.steps - 1)]
        left = (self.steps - state.taken).clamp(min=1)
        return (hidden_B + left - 1) // left


@cache
def _dream_counts(most: int, steps: int, device: torch.device) -> Tensor:
    """How many of C = 0 … `most` hidden cells Dream's sampler writes in each of its steps, [C, S].

    At times t from 1 to 0.001 it writes ⌊hidden · (1 - s / t)⌋, and everything in its last step. Steps in which that is
    nothing change nothing and are left out.
    """
    time_S = torch.linspace(1, 1e-3, steps + 1)
    share_S = 1 - time_S[1:] / time_S[:-1]
    hidden_C = torch.arange(most + 1)
    used_C, table_CS = torch.zeros_like(hidden_C), torch.zeros((most + 1, steps), dtype=torch.int64)
    for step in range(steps):
        count_C = (hidden_C * share_S[step]).long() if step < steps - 1 else hidden_C
        table_CS.scatter_(1, used_C[:, None], count_C[:, None])  # the next count replaces a zero
        used_C, hidden_C = used_C + (count_C > 0), hidden_C - count_C
    return table_CS.to(device)


@dataclass(frozen=True)
class Policy(Checked, ABC):
    """Which hidden cells are committed next."""

    remasks: ClassVar[bool] = False
    """Whether committed cells may be written anew or hidden again; if so, `overwrite` is called before the commits of
    every step, and `review` after them."""
    inner: ClassVar[tuple[str, ...]] = ()
    """The fields that hold other policies."""

    @property
    def capturable(self) -> bool:
        """Whether a GPU can capture a step: it never waits for the host, and makes no further passes. A policy that
        remasks may do both, unless it says here that it does not."""
        return not self.remasks

    def begin(self, state: State) -> dict[str, Tensor]:
        """What the policy carries from step to step, before the first one; nothing by default."""
        return {}

    @abstractmethod
    def score(self, guess: Guess, state: State) -> Tensor:
        """A score for every answer cell, -inf for "not now"; only those of hidden cells are read, which must not be
        NaN."""

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        """How many of the best hidden cells to commit in each row; the decoder commits at least one, if any is hidden.

        `score_BA` holds this step's scores, -inf where a cell is not hidden.
        """
        return commit.count(state)

    def token(self, guess: Guess, state: State) -> Tensor:
        """What a commit writes into each cell [B, A]; by default what the denoiser would write."""
        return guess.token_BA

    def overwrite(self, guess: Guess, state: State) -> Tensor | None:
        """The committed cells [B, A] that this step may write anew, although the denoiser saw their tokens: they count
        as hidden for its commits. None, the default, if there are none in any row."""
        return None

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        """The committed cells [B, A] to hide again, after this step's commits; none by default."""
        return torch.zeros_like(state.hidden_BA)

    def finished(self, state: State) -> Tensor:
        """Which rows [B] have nothing left to do."""
        return ~state.hidden_BA.any(dim=1)

    def notes(self, state: State) -> dict[str, Tensor]:
        """Numbers about each row [B] that go into the trace by name, after the last step; none by default."""
        return {}

    def steps(self, cells: int, commit: Commit) -> int:
        """The most steps that a row with this many hidden cells can take."""
        return commit.steps_for(cells)

    def likely_passes(self, cells: int, commit: Commit) -> float:
        """About how many forward passes a row with this many hidden cells takes, so that a command can say how long it
        will run; by default one for each step that `Commit` asks for."""
        return commit.steps_for(cells)


def ranked(score_BA: Tensor) -> tuple[Tensor, Tensor]:
    """Scores from the best on, and the cells that have them; equal scores in the order of the cells."""
    return torch.sort(score_BA, dim=1, descending=True, stable=True)


def fitting(answer: Tensor, like: Tensor, policy: Policy, method: str) -> Tensor:
    """What a policy returned, in the required shape; it may be broadcast."""
    wanted = _ANSWERS[method]
    try:
        fits = answer.broadcast_to(like.shape)
    except (AttributeError, RuntimeError):
        fits = None
    if fits is None or not torch.can_cast(fits.dtype, wanted):
        given = (
            f"a tensor {list(answer.shape)} of {answer.dtype}" if isinstance(answer, Tensor) else reprlib.repr(answer)
        )
        raise HardtailError(f"{policy}: {method} returned {given}; it must be {list(like.shape)} of {wanted}")
    return fits


def only_hidden(score_BA: Tensor, hidden_BA: Tensor) -> Tensor:
    """Scores with -inf for cells that are not hidden; a hidden cell's own -inf or NaN becomes the lowest number.

    A NaN is refused later (`refuse_unscored`); until then it must not disturb the order of the others.
    """
    return score_BA.float().nan_to_num(nan=REFUSED, neginf=REFUSED).masked_fill(~hidden_BA, -torch.inf)


def refuse_unscored(unscored: Tensor, policy: Policy) -> None:
    """Raise HardtailError if a hidden cell's score was NaN, which would decide nothing: cells would go by position."""
    if bool(unscored):
        raise HardtailError(
            f"{policy}: score returned NaN for a hidden cell; tokens that cannot be committed have p = 0 and "
            "log p = -inf, so use torch.special.entr for -p log p, and give -inf for 'not now'"
        )


def in_tiles(ask: Callable[[Tensor, Tensor], Tensor], tile: int, tokens_KL: Tensor, at_KA: Tensor) -> Tensor:
    """What `ask` says of each row if it is asked about `tile` rows at a time, so that it depends on that row alone."""
    n = len(tokens_KL)
    if short := -n % tile:
        tokens_KL, at_KA = (torch.cat([part, part[:1].expand(short, -1)]) for part in (tokens_KL, at_KA))
    tiles = zip(torch.split(tokens_KL, tile), torch.split(at_KA, tile), strict=True)
    return torch.cat([ask(tokens, at) for tokens, at in tiles])[:n]
