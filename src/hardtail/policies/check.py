"""Checking what was written: hide some cells of a complete answer, see what the others say, and act where they differ.

Each check is one step: its cells are hidden, the denoiser looks, and they are written again, the same token included
(with `hide=none` it looks first). So a trace shows every check, and a step is a forward pass. A check never sees gold
answers or a task's order.

Shapes: B batch, A answer cells, V vocabulary.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar, Literal

import torch
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne
from hardtail.policies.base import LIKELY_ROUNDS, Commit, Guess, Logits, Policy, State
from hardtail.policies.groups import GROUPINGS, SIGNS, written_out
from hardtail.policies.nested import begun, nested, only, perhaps, restart
from hardtail.policies.parallel import Threshold

_DRAFT = "draft"


@dataclass(frozen=True)
class Check(Policy):
    """Draft an answer, then hide one group of its cells after another, until no group changes.

    `replace`  a hidden cell gets the most probable token given the cells outside its group, at once: block coordinate
               ascent on the denoiser's conditionals (with one cell a group, iterated conditional modes, Besag 1986)
    `refill`   cells keep their tokens until every group was looked at; those that differed are then hidden together,
               and the draft's policy fills them
    `region`   the same, with the `reach` cells on either side of each; if the model chooses the groups, with as many
               cells that depend on it in the model's eyes

    With `hide=none` the model looks at the complete answer, and writes what it now says over every cell: one pass a
    round. That needs a model that has seen wrong tokens in training (the scheme `own`).

    It ends when every cell was looked at since the answer last changed; when the answer after a round is one that it
    had before, unless groups are random; or after `rounds`.
    """

    remasks: ClassVar[bool] = True
    inner: ClassVar[tuple[str, ...]] = ("draft",)

    draft: Policy = Threshold()  # noqa: RUF009 (it is frozen)
    """What writes the first answer, and fills what is hidden again."""
    hide: Literal["comb", "random", "block", "attention", "influence", "given", "none"] = "comb"
    """What is hidden together; random groups are drawn anew in every round. The model itself chooses groups by
    `attention` or `influence`, once, before it is decoded (`measuring.influence`)."""
    parts: AtLeastOne = 3
    """Groups, and so forward passes of a round; not of `none`, where a round is one pass."""
    groups: str = ""
    """Only of `given`: the group of each answer cell, from 0 to 9 and a to z."""
    sweep: Literal["forward", "backward"] = "forward"
    """Whether groups are looked at from the first or from the last one on."""
    then: Literal["replace", "refill", "region"] = "replace"
    """What is done where the model now says something else."""
    reach: AtLeastOne = 2
    """Only of `region`."""
    regions: tuple[tuple[int, ...], ...] = ()
    """Only of `region`: the cells that are hidden with each answer cell, in place of those around it."""
    rounds: AtLeastOne | None = None
    """By default as many as the row has cells to fill."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if bool(self.groups) != (self.hide == "given"):
            raise HardtailError(
                f"check: hide={self.hide} and groups={self.groups!r}; hide=given needs groups, others none"
            )
        if self.groups and set(self.groups) != set(SIGNS[: self.parts]):
            raise HardtailError(
                f"check: groups={self.groups!r} with parts={self.parts}; give one sign for each cell, and every one of "
                f"{SIGNS[: self.parts]!r} at least once"
            )
        if self.regions and self.then != "region":
            raise HardtailError(f"check: regions is set, but then={self.then}; regions needs then=region")
        if self.hide == "none" and (self.parts, self.sweep) != (Check.parts, Check.sweep):
            raise HardtailError(
                f"check: hide=none with parts={self.parts} and sweep={self.sweep}; it looks at the whole answer at "
                "once, so leave both out, or hide groups (hide=comb)"
            )

    @property
    def capturable(self) -> bool:
        return self.draft.capturable and self.hide != "given"  # groups that are written out come from the host

    def begin(self, state: State) -> dict[str, Tensor]:
        if self.hide in ("attention", "influence"):
            raise HardtailError(
                f"check: with hide={self.hide} a model chooses the groups, and no model has been asked; decode with "
                "`hardtail eval` or `ht.decode`, or give the policy to `measuring.influence.with_groups` first"
            )
        if self.groups and len(self.groups) != state.at_BA.shape[1]:
            raise HardtailError(
                f"check: groups={self.groups!r} has {len(self.groups)} signs, but answers have "
                f"{state.at_BA.shape[1]} cells"
            )
        none_B, none_BA = torch.zeros_like(state.key_B), torch.zeros_like(state.at_BA)
        hidden_B = state.hidden_BA.any(dim=1)
        return begun(self.draft, state, _DRAFT) | {
            "drafting_B": hidden_B,
            "done_B": ~hidden_B,
            "settled_B": torch.zeros_like(hidden_B),
            "began_B": none_B + state.step,  # when the draft, or the last refill, began
            "turn_B": none_B,  # checks so far
            "quiet_B": none_B.clone(),  # of these, the last ones since the answer changed
            "differed_B": none_B.clone(),
            "caught_B": none_B.clone(),  # cells that differed in the first round
            "group_BA": none_BA,
            "kept_BA": none_BA.clone(),  # what was written before the check
            "asked_BA": torch.zeros_like(state.hidden_BA),
            "doubted_BA": torch.zeros_like(state.hidden_BA),
            "earlier_BA": torch.full_like(none_BA, -1),
            "compare_B": torch.ones_like(none_B),
        }

    # -- one step -----------------------------------------------------------------------------------------------

    def score(self, guess: Guess, state: State) -> Tensor:
        drafting_B1 = state.memory["drafting_B"][:, None]
        return torch.where(drafting_B1, self.draft.score(guess, nested(state, _DRAFT)), guess.top_BA)

    def count(self, guess: Guess, score_BA: Tensor, state: State, commit: Commit) -> Tensor:
        within = replace(nested(state, _DRAFT), began=state.memory["began_B"])  # a total of steps is that of one draft
        drafted_B = self.draft.count(guess, score_BA, within, commit)
        return torch.where(state.memory["drafting_B"], drafted_B, state.hidden_BA.sum(dim=1))

    def token(self, guess: Guess, state: State) -> Tensor:
        checked_BA = guess.token_BA if self.then == "replace" else state.memory["kept_BA"]
        drafting_B1 = state.memory["drafting_B"][:, None]
        return torch.where(drafting_B1, self.draft.token(guess, nested(state, _DRAFT)), checked_BA)

    def overwrite(self, guess: Guess, state: State) -> Tensor | None:
        drafting_B, done_B = state.memory["drafting_B"], state.memory["done_B"]
        draft_BA = None
        if self.draft.remasks:
            draft_BA = self.draft.overwrite(guess, only(drafting_B, nested(state, _DRAFT)))
        if draft_BA is None and self.hide != "none":
            return None
        anew_BA = torch.zeros_like(state.hidden_BA)
        if draft_BA is not None:
            anew_BA |= draft_BA & drafting_B[:, None]
        if self.hide == "none":  # with `refill` by the tokens that are there: the look is in the trace all the same
            anew_BA |= (~drafting_B & ~done_B)[:, None] & state.memory["asked_BA"]
        return anew_BA

    def review(self, guess: Guess, state: State, logits: Logits) -> Tensor:
        memory = state.memory
        drafting_B, done_B, doubted_BA = (memory[name] for name in ("drafting_B", "done_B", "doubted_BA"))
        within = only(drafting_B, nested(state, _DRAFT))
        again_BA = torch.zeros_like(state.hidden_BA)
        if self.draft.remasks:
            again_BA |= self.draft.review(guess, within, logits) & drafting_B[:, None]
        drafted_B = drafting_B & ~(state.hidden_BA | again_BA).any(dim=1) & self.draft.finished(within)
        checked_B = ~drafting_B & ~done_B
        differs_BA = checked_B[:, None] & memory["asked_BA"] & (guess.token_BA != memory["kept_BA"])
        over_B = self._count(differs_BA, checked_B, state)
        doubted_BA |= differs_BA
        refill_B = over_B & ~done_B & (self.then != "replace")
        refill_BA = refill_B[:, None] & self._region(doubted_BA) & state.maskable_BA
        if self.then != "replace" and perhaps(refill_B):
            restart(self.draft, state, _DRAFT, refill_B, state.hidden_BA | refill_BA)
            memory["began_B"].copy_(torch.where(refill_B, state.step + 1, memory["began_B"]))
            memory["quiet_B"].mul_(~refill_B)  # no group has seen the new tokens yet
        doubted_BA &= ~over_B[:, None]
        drafting_B.copy_((drafting_B & ~drafted_B) | refill_B)
        return again_BA | refill_BA | self._ask((drafted_B | checked_B) & ~done_B & ~refill_B, state)

    def _count(self, differs_BA: Tensor, checked_B: Tensor, state: State) -> Tensor:
        """Count this step's checks, and decide which rows are done; return the rows whose round is over."""
        memory, parts_B = state.memory, self._parts_B(state)
        turn_B, quiet_B = memory["turn_B"], memory["quiet_B"]
        differed_B = differs_BA.sum(dim=1)
        memory["differed_B"].add_(differed_B)
        memory["caught_B"].add_(differed_B * (turn_B < parts_B))
        turn_B.add_(checked_B)
        quiet_B.copy_(torch.where(checked_B, (quiet_B + 1) * (differed_B == 0), quiet_B))
        over_B = checked_B & (turn_B % parts_B == 0)
        settled_B = checked_B & (quiet_B >= parts_B)
        memory["settled_B"].logical_or_(settled_B)
        most_B = state.maskable_BA.sum(dim=1) if self.rounds is None else self.rounds
        spent_B = over_B & (turn_B >= most_B * parts_B)
        memory["done_B"].logical_or_(settled_B | spent_B | self._circling(over_B, turn_B // parts_B, state))
        return over_B

    def _circling(self, over_B: Tensor, round_B: Tensor, state: State) -> Tensor:
        """The rows whose answer is the same as after an earlier round (Brent's algorithm: one answer is remembered)."""
        if self.hide == "random":
            return torch.zeros_like(over_B)
        earlier_BA, compare_B = state.memory["earlier_BA"], state.memory["compare_B"]
        token_BA = state.token_BA
        same_B = over_B & (token_BA == earlier_BA).all(dim=1)
        remember_B = over_B & (round_B == compare_B)
        earlier_BA.copy_(torch.where(remember_B[:, None], token_BA, earlier_BA))
        compare_B.mul_(1 + remember_B.long())
        return same_B

    def _region(self, cells_BA: Tensor) -> Tensor:
        if self.then != "region":
            return cells_BA
        if self.regions:
            return cells_BA.float() @ _together(self.regions, cells_BA.device) > 0
        width = 2 * self.reach + 1
        return torch.nn.functional.max_pool1d(cells_BA.float()[:, None], width, 1, self.reach)[:, 0] > 0

    def _ask(self, rows_B: Tensor, state: State) -> Tensor:
        """The next group to hide, in these rows."""
        memory, parts_B = state.memory, self._parts_B(state)
        turn_B = memory["turn_B"]
        begins_B = rows_B & (turn_B % parts_B == 0)
        drawn_BA = self._groups(state)
        memory["group_BA"].copy_(torch.where(begins_B[:, None], drawn_BA, memory["group_BA"]))
        if self.hide == "random":  # other groups: what was looked at in the last round no longer counts
            memory["quiet_B"].mul_(~begins_B)
        part_B = turn_B % parts_B
        part_B = parts_B - 1 - part_B if self.sweep == "backward" else part_B
        asked_BA = rows_B[:, None] & state.maskable_BA & (memory["group_BA"] == part_B[:, None])
        memory["asked_BA"].copy_(torch.where(rows_B[:, None], asked_BA, memory["asked_BA"]))
        memory["kept_BA"].copy_(torch.where(rows_B[:, None], state.token_BA, memory["kept_BA"]))
        return torch.zeros_like(asked_BA) if self.hide == "none" else asked_BA

    def _groups(self, state: State) -> Tensor:
        if self.groups:
            return written_out(self.groups, state.at_BA)
        return GROUPINGS[self.hide](state, self.parts)

    def _parts_B(self, state: State) -> Tensor:
        if self.groups:
            return torch.full_like(state.key_B, self.parts)
        return state.maskable_BA.sum(dim=1).clamp(min=1, max=1 if self.hide == "none" else self.parts)

    # -- all steps ----------------------------------------------------------------------------------------------

    def resume(self, state: State, rows_B: Tensor) -> Tensor:
        """Check a written answer without a draft, in these rows; return the cells to hide first."""
        state.memory["done_B"].logical_and_(~rows_B)
        return self._ask(rows_B, state)

    def finished(self, state: State) -> Tensor:
        return state.memory["done_B"]

    def notes(self, state: State) -> dict[str, Tensor]:
        """How many checks there were, how many cells differed in all and in the first round, and whether nothing
        differed in the end."""
        names = {"checks": "turn_B", "differed": "differed_B", "caught": "caught_B", "settled": "settled_B"}
        return {name: state.memory[held] for name, held in names.items()}

    def steps(self, cells: int, commit: Commit) -> int:
        draft, rounds = self.draft.steps(cells, commit), cells if self.rounds is None else self.rounds
        return draft + rounds * (self._looks + (0 if self.then == "replace" else draft))

    def likely_passes(self, cells: int, commit: Commit) -> float:
        rounds = LIKELY_ROUNDS if self.rounds is None else min(self.rounds, LIKELY_ROUNDS)
        return self.draft.likely_passes(cells, commit) + rounds * self._looks

    @property
    def _looks(self) -> int:
        """The passes of a round."""
        return 1 if self.hide == "none" else self.parts


@cache
def _together(regions: tuple[tuple[int, ...], ...], device: torch.device) -> Tensor:
    """1 where the cell of the column is hidden with that of the row [A, A]."""
    together_AA = torch.eye(len(regions))
    for cell, others in enumerate(regions):
        together_AA[cell, list(others)] = 1.0
    return together_AA.to(device)
