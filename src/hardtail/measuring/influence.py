"""Which answer cells depend on each other in a model's eyes, and groups that keep such cells apart.

A check hides the cells of a group together, so they cannot see each other (`policies.check`). Which cells must stay
apart is asked of the model, on training problems; the groups are then the same for every problem.

Shapes: N instances, R draws, B batch, L sequence, A answer cells, D width, H heads, V vocabulary.
"""

from dataclasses import replace
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.seeds import Stream, Streams, below
from hardtail.core.types import Instances
from hardtail.measuring.subject import Subject
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.transformer import Block, Transformer, looked_up, pick
from hardtail.policies.base import Policy
from hardtail.policies.check import Check
from hardtail.policies.groups import SIGNS
from hardtail.tasks import datasets as data

BATCH = 32
DRAWS = 12
"""How often half of each answer's cells is hidden."""
By = Literal["attention", "influence"]
WAYS: dict[str, By] = {by: by for by in get_args(By)}


def with_groups(policy: Policy, subject: Subject) -> Policy:
    """The policy with groups that the model has chosen, where a check in it asks for them."""
    held = {name: getattr(policy, name) for name in policy.inner}
    inner = {
        name: tuple(with_groups(each, subject) for each in value)
        if isinstance(value, tuple)
        else with_groups(value, subject)
        for name, value in held.items()
    }
    if inner != held:
        policy = replace(policy, **inner)
    if not isinstance(policy, Check) or (by := WAYS.get(policy.hide)) is None:
        return policy
    if policy not in subject.settled:
        subject.settled[policy] = _settled(policy, dependence(subject, by))
    return subject.settled[policy]


def _settled(check: Check, dependence_AA: NDArray[np.float64]) -> Check:
    regions = dependents(dependence_AA, 2 * check.reach) if check.then == "region" else ()
    return replace(check, hide="given", groups=apart(dependence_AA, check.parts), regions=regions)


def dependence(subject: Subject, by: By = "attention", *, n: int = 128, seed: int = 0) -> NDArray[np.float64]:
    """How much each answer cell depends on each other one in the model's eyes [A, A], from `n` training problems.

    `attention`  how much it attends to the other: one pass for each problem; only for our own transformer
    `influence`  how much hiding the other changes what the model says about it: `DRAWS` passes
    """
    instances = data.build(subject.task, data.TRAIN, seed, n).instances
    if by == "influence":
        rng = Streams(seed).named(f"{subject.task.name}/groups")
        return influence(subject.denoiser, instances, rng, subject.device)
    model = subject.denoiser.model if isinstance(subject.denoiser, ModelDenoiser) else None
    if not isinstance(model, Transformer):
        raise HardtailError(f"{subject.name} does not show its attention; hide=influence needs logits alone")
    return attention(model, instances, subject.device)


@torch.inference_mode()
def influence(denoiser: Denoiser, instances: Instances, rng: Stream, device: str = "cpu") -> NDArray[np.float64]:
    """How much the margin of a hidden cell's gold token changes when another cell is hidden too [A, A].

    A random half of the cells is hidden in each draw. The margin is the token's logit above the best other one, less
    the cell's mean over all draws of the problem: unlike a probability it still moves where the model is sure.
    """
    tokens_NL, at_NA, maskable_NA = _tensors(instances, device)
    gold_NA = tokens_NL.gather(1, at_NA)
    drawn_RNA = below(rng.keys(DRAWS * gold_NA.numel()), 2).reshape(DRAWS, *gold_NA.shape) == 0
    hidden_RNA = torch.from_numpy(drawn_RNA).to(device) & maskable_NA
    margin_RNA = torch.stack([_margins(denoiser, tokens_NL, at_NA, gold_NA, hidden_NA) for hidden_NA in hidden_RNA])
    hidden_RNA = hidden_RNA.to(margin_RNA.dtype)
    mean_NA = (margin_RNA * hidden_RNA).sum(dim=0) / hidden_RNA.sum(dim=0).clamp(min=1)
    moved_KA, hidden_KA = (
        held.flatten(0, 1).double() for held in ((margin_RNA - mean_NA) * hidden_RNA, hidden_RNA)
    )  # K = R·N looks
    shown_KA = maskable_NA.repeat(DRAWS, 1).double() - hidden_KA
    together_AA, alone_AA = (
        moved_KA.T @ other_KA / (hidden_KA.T @ other_KA).clamp(min=1) for other_KA in (hidden_KA, shown_KA)
    )
    return _without_diagonal((alone_AA - together_AA).abs())


def _margins(denoiser: Denoiser, tokens_NL: Tensor, at_NA: Tensor, gold_NA: Tensor, hidden_NA: Tensor) -> Tensor:
    asked_NL = tokens_NL.scatter(1, at_NA, gold_NA.masked_fill(hidden_NA, denoiser.mask_id))
    batches = zip(torch.split(asked_NL, BATCH), torch.split(at_NA, BATCH), strict=True)
    logits_NAV = torch.cat([denoiser.logits(tokens_BL, at_BA).float() for tokens_BL, at_BA in batches])
    own_NA = logits_NAV.gather(-1, gold_NA[..., None])[..., 0]
    return own_NA - logits_NAV.scatter(-1, gold_NA[..., None], -torch.inf).amax(dim=-1)


@torch.inference_mode()
def attention(model: Transformer, instances: Instances, device: str = "cpu") -> NDArray[np.float64]:
    """How much cells of complete answers attend to each other [A, A]: the strongest head of each layer, added up over
    the layers; the mean over problems."""
    total_AA = torch.zeros(instances.answer_len, instances.answer_len, dtype=torch.float64, device=device)
    tokens_NL, at_NA, _ = _tensors(instances, device)
    for tokens_BL, at_BA in zip(torch.split(tokens_NL, BATCH), torch.split(at_NA, BATCH), strict=True):
        x_BLD = looked_up(tokens_BL, model.embed.weight) + model.position.weight[: tokens_BL.shape[1]]
        for block in model.blocks:
            assert isinstance(block, Block)
            total_AA += _attended(block, x_BLD, at_BA).amax(dim=1).double().sum(dim=0)
            x_BLD = block(x_BLD)
    return _without_diagonal(total_AA / len(instances))


def _attended(block: Block, x_BLD: Tensor, at_BA: Tensor) -> Tensor:
    """The attention of answer cells to answer cells [B, H, A, A], out of all cells."""
    query_BLD, key_BLD, _ = block.qkv(block.norm_attention(x_BLD)).chunk(3, dim=-1)
    query_BHAD, key_BHLD = (
        held.unflatten(-1, (block.heads, -1)).transpose(1, 2) for held in (pick(query_BLD, at_BA), key_BLD)
    )
    weight_BHAL = (query_BHAD @ key_BHLD.mT / query_BHAD.shape[-1] ** 0.5).softmax(dim=-1)
    return weight_BHAL.gather(-1, at_BA[:, None, None].expand(*weight_BHAL.shape[:3], -1))


def apart(dependence_AA: NDArray[np.float64], parts: int) -> str:
    """Divide cells into groups of nearly the same size that have little dependence inside: one sign for each cell.

    Cells go one after another, those that depend most on others first, into the group where they add least; then pairs
    are exchanged while that helps.
    """
    cells = len(dependence_AA)
    if not 1 <= parts <= min(len(SIGNS), cells):
        raise HardtailError(f"{parts} groups of {cells} cells; give at least 1, and at most {min(len(SIGNS), cells)}")
    both_AA = dependence_AA + dependence_AA.T
    np.fill_diagonal(both_AA, 0.0)
    most = -(-cells // parts)
    group_A = np.full(cells, -1)
    for cell in np.argsort(-both_AA.sum(axis=1), kind="stable"):
        adds = [both_AA[cell, group_A == part].sum() for part in range(parts)]
        full = [int((group_A == part).sum()) >= most for part in range(parts)]
        group_A[cell] = int(np.argmin(np.where(full, np.inf, adds)))
    while _exchanged(both_AA, group_A, parts):
        pass
    return "".join(SIGNS[part] for part in group_A)


def dependents(dependence_AA: NDArray[np.float64], most: int) -> tuple[tuple[int, ...], ...]:
    """For each cell those that depend most on it, at most this many, and at all."""
    strongest_AA = np.argsort(-dependence_AA, axis=0, kind="stable")[:most]
    return tuple(
        tuple(int(other) for other in strongest_AA[:, cell] if dependence_AA[other, cell] > 0)
        for cell in range(len(dependence_AA))
    )


def _exchanged(both_AA: NDArray[np.float64], group_A: NDArray[np.int_], parts: int) -> bool:
    """Exchange the two cells that reduce the dependence inside groups most; False if none do."""
    inside_AP = np.stack([both_AA[:, group_A == part].sum(axis=1) for part in range(parts)], axis=1)
    now_A = inside_AP[np.arange(len(group_A)), group_A]
    moved_AA = inside_AP[:, group_A]  # the first cell among the group of the second
    gain_AA = now_A[:, None] + now_A[None] - moved_AA - moved_AA.T + 2 * both_AA
    gain_AA = np.where(group_A[:, None] == group_A[None], -np.inf, gain_AA)
    one, two = np.unravel_index(int(gain_AA.argmax()), gain_AA.shape)
    if not gain_AA[one, two] > 1e-9:
        return False
    group_A[one], group_A[two] = group_A[two], group_A[one]
    return True


def _tensors(instances: Instances, device: str) -> tuple[Tensor, Tensor, Tensor]:
    held = (instances.tokens_NL, instances.answer_at_NA, instances.maskable_NA)
    tokens_NL, at_NA, maskable_NA = (torch.from_numpy(array).to(device) for array in held)
    return tokens_NL.long(), at_NA.long(), maskable_NA


def _without_diagonal(dependence_AA: Tensor) -> NDArray[np.float64]:
    found: NDArray[np.float64] = dependence_AA.fill_diagonal_(0).cpu().numpy()
    return found
