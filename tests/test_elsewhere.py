"""Our policies inside samplers of the LLaDA and Dream kinds: the same answers as our own loop gives."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import hardtail
from hardtail import HardtailError
from hardtail.core.registry import POLICIES
from hardtail.decoding.elsewhere import PolicyElsewhere
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.policies.base import Commit, Guess, Policy, State
from hardtail.policies.named import policy_named
from tests.test_hf import drawn, hidden, made, only_our_tokens

TASK = hardtail.task("addition", digits=7)
USABLE = [name for name in POLICIES.names() if not POLICIES.load(name).remasks]
DECIDE_THEMSELVES = ("threshold", "factor", "eb", "topk")


def start_of(denoiser: Any, instances: Any) -> Tensor:
    """The canvas that a sampler begins with, in the model's ids."""
    tokens_BL, _ = hidden(instances, denoiser.mask_id, every=1)
    return torch.cat([torch.full((len(tokens_BL), 1), 2), denoiser.id_V[tokens_BL]], 1)


@pytest.mark.parametrize(
    "name", [*(name for name in USABLE if name not in ("block", "noisy", "random")), "block,size=99", "threshold,p=0.2"]
)
def test_inside_a_sampler_of_lladas_kind(name: str) -> None:
    denoiser, instances = only_our_tokens(made("llada", TASK)), drawn(TASK, 6)
    ours = decode(denoiser, instances, policy_named(name)).answer_NA
    x, mask_id = start_of(denoiser, instances), denoiser.their_mask
    policy = PolicyElsewhere(policy_named(name), mask_id)
    while bool((mask_index := x == mask_id).any()):
        one = torch.ones(len(x), dtype=torch.int64)
        token, keep = policy.transfer_index(denoiser.inner(x).logits, 0.0, "low_confidence", mask_index, x, one)
        x[keep] = token[keep]
    assert (denoiser.id_V[torch.from_numpy(ours.astype(np.int64))] == x[:, -ours.shape[1] :]).all()


def test_inside_dreams_generation() -> None:
    """Dream chooses tokens of its own in every step; the hook's canvas replaces them."""
    denoiser, instances = only_our_tokens(made("dream", TASK)), drawn(TASK, 6)
    ours = decode(denoiser, instances, policy_named("margin"), Decoding(Commit(each=2))).answer_NA
    x = start_of(denoiser, instances)
    hook = PolicyElsewhere(policy_named("margin"), denoiser.their_mask, Commit(each=2)).tokens_hook
    x = hook(None, x, None)
    for step in range(6):
        logits = denoiser.inner(x, attention_mask="full").logits
        logits = torch.cat([logits[:, :1], logits[:, :-1]], 1)
        x = hook(step, torch.zeros_like(x), logits)
    assert (denoiser.id_V[torch.from_numpy(ours.astype(np.int64))] == x[:, -ours.shape[1] :]).all()


def test_what_another_sampler_cannot_do_is_refused() -> None:
    with pytest.raises(HardtailError, match="takes tokens back"):
        PolicyElsewhere(policy_named("remdm"), 4)
    x = torch.full((1, 3), 4)
    with pytest.raises(HardtailError, match=r"the temperature is 0\.5"):
        PolicyElsewhere(policy_named("top1"), 4).transfer_index(torch.zeros(1, 3, 5), 0.5, "", x == 4, x)


def test_the_mask_is_never_written_by_a_sampler() -> None:
    """Not even by a model that likes it best: the sampler would never end."""
    x, mask_id = torch.full((2, 4), 3), 3
    logits = torch.zeros((2, 4, 5))
    logits[..., mask_id] = 9.0
    logits[..., 1] = 1.0
    policy = PolicyElsewhere(policy_named("top1"), mask_id)
    token, keep = policy.transfer_index(
        logits, 0.0, "low_confidence", x == mask_id, x, torch.ones(2, dtype=torch.int64)
    )
    assert token[keep].tolist() == [1, 1]


@pytest.mark.parametrize("name", [name.replace("block", "block,size=6") for name in USABLE])
def test_every_policy_writes_what_a_sampler_asks_for(name: str) -> None:
    """As many as are asked for in each row, unless the policy decides that; never the mask, whatever its logit."""
    x, mask_id = torch.full((2, 12), 3), 3
    x[1, [0, 1, 10, 11]] = 1
    asked, policy = torch.tensor([[3], [2]]), PolicyElsewhere(policy_named(name), mask_id)
    draw, keeps = torch.Generator().manual_seed(0), []
    for _ in range(4):
        logits = torch.randn((2, 12, 5), generator=draw)
        logits[..., mask_id] = 9.0
        token, keep = policy.transfer_index(logits, 0.0, "", x == mask_id, x, asked)
        assert (token != mask_id).all()
        x = torch.where(keep, token, x)
        keeps.append(keep.sum(dim=1).tolist())
    if name not in DECIDE_THEMSELVES:
        assert keeps == [[3, 2]] * 4
        assert not (x == mask_id).any()


def test_the_masks_own_logit_does_not_order_cells() -> None:
    x, logits = torch.full((1, 6), 4), torch.zeros((1, 6, 5))
    logits[0, 0, 4], logits[0, 3, 1] = 50.0, 5.0
    _, keep = PolicyElsewhere(policy_named("max-logit"), 4).transfer_index(logits, 0.0, "", x == 4, x)
    assert keep.nonzero().tolist() == [[0, 3]]


def kept(policy: PolicyElsewhere, given: Sequence[int] | None, sure: float = 0.0) -> list[int]:
    """How many of eight masked tokens are kept in each of three steps; nothing is ever written."""
    x, mask_id = torch.full((2, 8), 3), 3
    logits = torch.zeros((2, 8, 5))
    logits[:, :3, 1] = sure
    count = None if given is None else torch.tensor(given)
    steps = [policy.transfer_index(logits, 0.0, "", x == mask_id, x, count)[1] for _ in range(3)]
    assert all(bool((keep.sum(dim=1) == keep.sum(dim=1)[:1]).all()) for keep in steps)
    return [int(keep.sum(dim=1)[0]) for keep in steps]


@pytest.mark.parametrize(
    ("name", "commit", "given", "wanted"),
    [
        ("top1", Commit(), [2, 2], [2, 2, 2]),  # the sampler says how many
        ("top1", Commit(each=3), None, [3, 3, 3]),
        ("top1", Commit(steps=4), None, [2, 3, 4]),  # of eight, with four, three and two steps left
        ("threshold", Commit(), [2, 2], [3, 3, 3]),  # the policy decides: three tokens are sure
    ],
)
def test_how_many_tokens_a_sampler_keeps(name: str, commit: Commit, given: list[int] | None, wanted: list[int]) -> None:
    assert kept(PolicyElsewhere(policy_named(name), 3, commit), given, sure=20.0) == wanted


def test_random_order_in_a_sampler_depends_on_seed_row_and_step() -> None:
    x, mask_id = torch.full((2, 40), 3), 3
    logits = torch.zeros((2, 40, 5))

    def orders(seed: int) -> list[list[bool]]:
        """The first row's and the second's in the first step, and both in the second."""
        policy = PolicyElsewhere(policy_named("random"), mask_id, Commit(each=9), seed)
        return [row for _ in range(2) for row in policy.transfer_index(logits, 0.0, "", x == mask_id, x)[1].tolist()]

    assert orders(1) == orders(1)
    assert len(set(map(tuple, orders(1)))) == 4
    assert not set(map(tuple, orders(1))) & set(map(tuple, orders(2)))


@dataclass(frozen=True)
class Second(Policy):
    """Writes the token after the most probable one."""

    def score(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.top_BA

    def token(self, guess: Guess, state: State) -> torch.Tensor:
        return guess.token_BA + 1


def test_a_policy_that_chooses_its_own_tokens_writes_them() -> None:
    x = torch.full((2, 4), 3)
    logits = torch.zeros((2, 4, 5))
    logits[..., 1] = 1.0
    token, keep = PolicyElsewhere(Second(), 3).transfer_index(
        logits, 0.0, "", x == 3, x, torch.ones(2, dtype=torch.int64)
    )
    assert token[keep].tolist() == [2, 2]
