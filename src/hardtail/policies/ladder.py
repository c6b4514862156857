"""A policy over policies: decode fast, ask whether the answer can be trusted, and decode slowly only where it cannot.

Shapes: B batch, A answer cells, V vocabulary.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar, Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne, Bounds, NonNegative
from hardtail.policies.base import Commit, Guess, Logits, Policy, State
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.groups import GROUPINGS
from hardtail.policies.nested import begun, nested, only, perhaps, restart
from hardtail.policies.parallel import Threshold

_RESTORING = -1
"""The turn of a row that gets its best answer back."""


@dataclass(frozen=True)
class Ladder(Policy):
    """Decode with the first rung; while the answer's energy is above `limit`, go on to the next, and try the last one
    `again` more times. If no answer is trusted, the one with the lowest energy is written again: a last pass.

    The energy is how unlikely the denoiser finds what is written: hide one group of cells after another, add up -log p
    of their tokens; the mean over `splits` divisions into groups. By default the groups are random halves, and the
    energy costs four passes. A `check` repairs the answer of the rung before it; any other policy begins again with all
    cells hidden.
    """

    remasks: ClassVar[bool] = True
    inner: ClassVar[tuple[str, ...]] = ("rungs",)

    rungs: tuple[Policy, ...] = (Threshold(), Check(), Top1())
    """What is tried, from the fastest to the slowest."""
    limit: NonNegative = 1.0
    """In nats, over the whole answer; `hardtail eval --calibrate` sets it for a model, by natural problems."""
    hide: Literal["comb", "random", "block"] = "random"
    """What is hidden together; random groups are drawn anew for every split."""
    parts: AtLeastOne = 2
    """Groups of a division."""
    splits: AtLeastOne = 2
    """Divisions, of which the energy is the mean."""
    again: Annotated[int, Bounds(ge=0)] = 0
    """How many times more the last rung is tried. A random one, such as `noisy`, draws new numbers each time; others
    repeat themselves, and the groups are drawn anew, so that more of the same answers are trusted."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.rungs) < 2:
            raise HardtailError(f"a ladder has {len(self.rungs)} rungs; give at least two, such as threshold/top1")

    @property
    def capturable(self) -> bool:
        return all(policy.capturable for policy in self.rungs)

    def begin(self, state: State) -> dict[str, Tensor]:
        none_B, none_BA = torch.zeros_like(state.key_B), torch.zeros_like(state.at_BA)
        memory = {
            "tried_B": none_B,
            "began_B": none_B + state.step,
            "proving_B": torch.zeros_like(none_B, dtype=torch.bool),
            "done_B": ~state.hidden_BA.any(dim=1),
            "turn_B": none_B.clone(),
            "energy_B": torch.zeros_like(none_B, dtype=torch.float32),
            "group_BA": none_BA,
            "kept_BA": none_BA.clone(),  # what a proof writes back
            "best_BA": none_BA.clone(),
            "best_try_B": none_B.clone(),
            "best_energy_B": torch.full_like(none_B, torch.inf, dtype=torch.float32),
        }
        for rung, policy in enumerate(self.rungs):
            memory |= begun(policy, state, str(rung))
        return memory

    # -- one step -----------------------------------------------------------------------------------------------

    def score(self, guess: Guess, state: State) -> Tensor:
        return self._by_rung(guess.top_BA, state, lambda policy, within: policy.score(guess, within))

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        every_B = state.hidden_BA.sum(dim=1)
        state = replace(state, began=state.memory["began_B"])  # a total of steps is that of one try
        return self._by_rung(every_B, state, lambda policy, within: policy.count(guess, score_BA, within, commit))

    def token(self, guess: Guess, state: State) -> Tensor:
        kept_BA = state.memory["kept_BA"]
        return self._by_rung(kept_BA, state, lambda policy, within: policy.token(guess, within))

    def _by_rung(self, proof: Tensor, state: State, answer: Callable[[Policy, State], Tensor]) -> Tensor:
        """Each row's answer: that of its rung's policy, or of the proof."""
        for rung, policy in enumerate(self.rungs):
            here_B = self._working_B(rung, state)
            here = here_B.reshape(-1, *(1,) * (proof.dim() - 1))
            proof = torch.where(here, answer(policy, nested(state, str(rung))), proof)
        return proof

    def _working_B(self, rung: int, state: State) -> Tensor:
        return self._on_B(rung, state) & ~state.memory["proving_B"] & ~state.memory["done_B"]

    def _on_B(self, rung: int, state: State) -> Tensor:
        """The rows that are on this rung, for the first time or again."""
        return state.memory["tried_B"].clamp(max=len(self.rungs) - 1) == rung

    def overwrite(self, guess: Guess, state: State) -> Tensor | None:
        found_BA = None
        for rung, policy in enumerate(self.rungs):
            anew_BA = policy.overwrite(guess, nested(state, str(rung)))
            if anew_BA is not None:
                anew_BA = anew_BA & self._working_B(rung, state)[:, None]
                found_BA = anew_BA if found_BA is None else found_BA | anew_BA
        return found_BA

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        memory = state.memory
        proving_B, done_B, tried_B = memory["proving_B"], memory["done_B"], memory["tried_B"]
        again_BA, written_B = torch.zeros_like(state.hidden_BA), torch.zeros_like(done_B)
        for rung, policy in enumerate(self.rungs):
            here_B = self._working_B(rung, state)
            within = only(here_B, nested(state, str(rung)))
            if policy.remasks and perhaps(here_B):
                again_BA |= policy.review(guess, within, logits) & here_B[:, None]
            written_B |= here_B & ~(state.hidden_BA | again_BA).any(dim=1) & policy.finished(within)
        failed_B = self._prove(guess, state)
        climbs_B = failed_B & (tried_B < len(self.rungs) - 1 + self.again)
        tried_B.add_(climbs_B)
        memory["began_B"].copy_(torch.where(climbs_B, state.step + 1, memory["began_B"]))
        proving_B.copy_((proving_B | written_B) & ~climbs_B)
        memory["energy_B"].masked_fill_(written_B, 0.0)
        restored_BA = self._restore(failed_B & ~climbs_B, state)
        asked_BA = self._ask(proving_B & ~memory["done_B"] & ~restored_BA.any(dim=1), state)
        return again_BA | restored_BA | asked_BA | self._climb(climbs_B, state)

    def _prove(self, guess: Guess, state: State) -> Tensor:
        """Add this step's looks to the energies; return the rows that are not trusted, and finish those that are."""
        memory = state.memory
        proving_B, turn_B, energy_B = memory["proving_B"] & ~memory["done_B"], memory["turn_B"], memory["energy_B"]
        memory["done_B"].logical_or_(proving_B & (turn_B == _RESTORING))
        proving_B = proving_B & (turn_B != _RESTORING)
        asked_BA = state.maskable_BA & (memory["group_BA"] == (turn_B % self.parts)[:, None])
        log_p_BA = guess.log_p_BAV.gather(-1, memory["kept_BA"][..., None])[..., 0]
        unlikely_B = -torch.where(asked_BA, log_p_BA, 0.0).sum(dim=1) / self.splits
        energy_B.add_(torch.where(proving_B, unlikely_B, 0.0))
        turn_B.add_(proving_B)
        proved_B = proving_B & (turn_B == self.parts * self.splits)
        turn_B.mul_(~proved_B)
        better_B = proved_B & ((memory["tried_B"] == 0) | (energy_B < memory["best_energy_B"]))
        memory["best_energy_B"].copy_(torch.where(better_B, energy_B, memory["best_energy_B"]))
        memory["best_try_B"].copy_(torch.where(better_B, memory["tried_B"], memory["best_try_B"]))
        memory["best_BA"].copy_(torch.where(better_B[:, None], memory["kept_BA"], memory["best_BA"]))
        trusted_B = proved_B & (energy_B <= self.limit)
        memory["done_B"].logical_or_(trusted_B)
        return proved_B & ~trusted_B

    def _restore(self, rows_B: Tensor, state: State) -> Tensor:
        """The cells to hide and write again, in rows that no try satisfied: where the best answer differs."""
        memory = state.memory
        differs_BA = rows_B[:, None] & (memory["best_BA"] != state.token_BA)
        differs_B = differs_BA.any(dim=1)
        memory["kept_BA"].copy_(torch.where(rows_B[:, None], memory["best_BA"], memory["kept_BA"]))
        memory["turn_B"].masked_fill_(differs_B, _RESTORING)
        memory["done_B"].logical_or_(rows_B & ~differs_B)
        return differs_BA

    def _ask(self, rows_B: Tensor, state: State) -> Tensor:
        """The next group to hide, in these rows."""
        memory = state.memory
        turn_B, held_BA, kept_BA = memory["turn_B"], memory["group_BA"], memory["kept_BA"]
        split_B = rows_B & (turn_B % self.parts == 0)
        held_BA.copy_(torch.where(split_B[:, None], GROUPINGS[self.hide](state, self.parts), held_BA))
        kept_BA.copy_(torch.where(rows_B[:, None], state.token_BA, kept_BA))
        return rows_B[:, None] & state.maskable_BA & (held_BA == (turn_B % self.parts)[:, None])

    def _climb(self, climbs_B: Tensor, state: State) -> Tensor:
        """Begin the rung that rows have just reached; return the cells that it hides first."""
        again_BA = torch.zeros_like(state.hidden_BA)
        for rung, policy in enumerate(self.rungs):
            here_B = climbs_B & self._on_B(rung, state)
            if not perhaps(here_B):
                continue
            if isinstance(policy, Check):
                restart(policy, state, str(rung), here_B, state.hidden_BA)
                again_BA |= policy.resume(nested(state, str(rung)), here_B)
            else:
                again_BA |= here_B[:, None] & state.maskable_BA
                restart(policy, state, str(rung), here_B, state.hidden_BA | again_BA)
        return again_BA

    # -- all steps ----------------------------------------------------------------------------------------------

    def finished(self, state: State) -> Tensor:
        return state.memory["done_B"]

    def notes(self, state: State) -> dict[str, Tensor]:
        """The rung that gave the answer, from 0, the last one that was tried, and the answer's energy.

        Further tries of the last rung are numbered on from it.
        """
        names = {"rung": "best_try_B", "tried": "tried_B", "energy": "best_energy_B"}
        return {name: state.memory[held] for name, held in names.items()}

    @property
    def looks(self) -> int:
        """The passes that an answer's energy takes."""
        return self.parts * self.splits

    def steps(self, cells: int, commit: Commit) -> int:
        each = [policy.steps(cells, commit) for policy in self.rungs]
        proofs = (len(each) + self.again) * self.looks
        return 1 + proofs + sum(each) + each[-1] * self.again

    def likely_passes(self, cells: int, commit: Commit) -> float:
        """Half of the answers are trusted at once, the others never: the truth depends on the problems."""
        each = [policy.likely_passes(cells, commit) + self.looks for policy in self.rungs]
        return each[0] + (sum(each[1:]) + each[-1] * self.again) / 2
