"""Which digits of a sum a trained model looks up: attention from every answer cell to its two operand digits.

    python benchmarks/operands.py zoo:addition-puma
    python benchmarks/operands.py runs/addition-random-paper-s42

A digit of a sum needs both digits of its place, and one of them alone says nothing about it. *Reach* is how much
attention the less seen of the two gets, by the best way there is: one head of any layer, or two in turn, the first
having brought the digit to a position that the second looks at. All answer cells are hidden; each head's attention is
averaged over sums first.
"""

import argparse

import numpy as np
import torch
from torch import Tensor

from arguments import how_many
from hardtail.core.errors import HardtailError
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.subject import load_subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Block, Transformer
from hardtail.tasks.addition.task import Addition

GUESSED = 0.5
"""A digit is called guessed if it is right less often; chance is .1."""


def attention(model: Transformer, tokens_NL: Tensor) -> list[Tensor]:
    """Each layer's attention from every position to every other, averaged over sequences."""
    heads, (rows, length) = model.shape.heads, tokens_NL.shape
    x_NLD = model.embed(tokens_NL) + model.position.weight[:length]
    found: list[Tensor] = []
    for block in model.blocks:
        assert isinstance(block, Block)
        query_NLD, key_NLD, _ = block.qkv(block.norm_attention(x_NLD)).chunk(3, dim=-1)
        query_NHLE, key_NHLE = (x.view(rows, length, heads, -1).transpose(1, 2) for x in (query_NLD, key_NLD))
        scores_NHLL = query_NHLE @ key_NHLE.mT * query_NHLE.shape[-1] ** -0.5
        found.append(scores_NHLL.softmax(dim=-1).mean(dim=0))
        x_NLD = block(x_NLD)
    return found


def paths(layers_HLL: list[Tensor]) -> Tensor:
    """Every way from a position to another: one head, or two of different layers in turn."""
    ways = [*layers_HLL]
    for later in range(1, len(layers_HLL)):
        for earlier in range(later):
            ways.append(torch.einsum("hij,gjk->hgik", layers_HLL[later], layers_HLL[earlier]).flatten(0, 1))
    return torch.cat(ways)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument(
        "--checkpoint", choices=("last", "best_probe"), help="of a run's weights [those its recipe selects]"
    )
    parser.add_argument("-n", type=how_many, default=200, help="natural sums")
    words = parser.parse_args()
    try:
        subject = load_subject(words.model, kind=words.checkpoint)
        instances = measured_instances(subject.task, "natural", words.n, subject.seed)
    except HardtailError as error:
        raise SystemExit(str(error)) from None
    model = subject.denoiser.model if isinstance(subject.denoiser, ModelDenoiser) else None
    if not isinstance(subject.task, Addition) or not isinstance(model, Transformer):
        raise SystemExit(f"{words.model} is not a transformer of ours that was trained on addition")
    digits = subject.task.digits
    gold_NL = torch.from_numpy(instances.tokens_NL.astype(np.int64))
    start = 2 * digits + 2
    tokens_NL = gold_NL.clone()
    tokens_NL[:, start:] = subject.task.vocabulary.mask_id
    with torch.no_grad():
        ways_WLL = paths(attention(model, tokens_NL))
        logits_NAV = model(tokens_NL, slice(start, None))
    right_A = (logits_NAV.argmax(dim=-1) == gold_NL[:, start:]).float().mean(dim=0)
    places = torch.arange(digits)
    cell, first, second = start + digits - places, digits - 1 - places, 2 * digits - places
    best_LL = ways_WLL.amax(dim=0)
    reach_P = torch.minimum(best_LL[cell, first], best_LL[cell, second])
    print(f"{subject.name}, {subject.origin.checkpoint} weights, step {subject.origin.step}")
    print("digit    right   reach")
    for place in reversed(range(digits)):
        right = right_A[digits - place]
        print(f"10^{place:<4} {right:6.2f} {reach_P[place]:7.3f}{'   guessed' if right < GUESSED else ''}")
    guessed = right_A.flip(0)[:digits] < GUESSED
    for label, which in (("known", ~guessed), ("guessed", guessed)):
        if which.any():
            print(f"{int(which.sum())} {label}: reach {reach_P[which].min():.3f} to {reach_P[which].max():.3f}")


if __name__ == "__main__":
    main()
