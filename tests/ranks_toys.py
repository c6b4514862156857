"""One of several processes that take steps together: `torchrun … -m tests.ranks_toys OUT SCHEME`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from hardtail.models.transformer import Transformer
from hardtail.schemes.base import Corpus, View
from hardtail.schemes.named import scheme_named
from hardtail.study.recipes import recipe_named
from hardtail.tasks import datasets as data
from hardtail.training.ranks import Ranks, open_ranks
from hardtail.training.step import Step

STEPS = 5


def stepping(scheme: str, ranks: Ranks) -> Step:
    """A small run's step, with this process's share of the batch and of the data."""
    recipe = recipe_named("addition-random-smoke")
    recipe = replace(recipe, sizes=replace(recipe.sizes, dropout=0.0))
    instances = data.build(recipe.task, data.TRAIN, 42, 101).instances
    corpus = Corpus.on(torch.device("cpu"), instances, recipe.task.vocabulary.mask_id, recipe.watch.order)
    return Step(
        Transformer(recipe.shape).initialise(torch.Generator().manual_seed(1)).train(),
        scheme_named(scheme),
        corpus.share(ranks.rank, ranks.world),
        recipe.optimiser,
        batch=8 // ranks.world,
        steps=STEPS,
        seed=42,
        ranks=ranks,
    )


def recorded(step: Step) -> tuple[list[View], list[Tensor]]:
    """The views that a step's scheme shows from now on, and the gradients that its update gets."""
    views: list[View] = []
    gradients: list[Tensor] = []
    corrupt, apply = step._parts.corrupt, step._apply

    def shown(*given: Any) -> View:
        views.append(corrupt(*given))
        return views[-1]

    def applied(gradient_P: Tensor) -> None:
        gradients.append(gradient_P.clone())
        apply(gradient_P)

    step._parts, step._apply = replace(step._parts, corrupt=shown), applied  # type: ignore[method-assign]
    return views, gradients


if __name__ == "__main__":
    out, name = Path(sys.argv[1]), sys.argv[2]
    with open_ranks("cpu") as (ranks, device):
        step = stepping(name, ranks)
        views, gradients = recorded(step)
        losses: list[Tensor] = []
        for _ in range(STEPS):
            step()
            losses.append(step.loss.clone())
        kept = {"weight_P": step.flat.weight_P, "losses": torch.stack(losses), "gradient_P": gradients[0]}
        for place, view in enumerate(views):
            kept |= {f"row_B/{place}": view.row_B, f"hidden_BA/{place}": view.hidden_BA}
            kept |= {} if view.rate_B is None else {f"rate_B/{place}": view.rate_B}
        save_file(kept, out / f"{ranks.rank}.safetensors")
