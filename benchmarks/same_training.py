"""Is it the same training? The losses of the step with and without our own products (`models.kernels.linear`).

    python benchmarks/same_training.py --recipes addition-random addition-papl addition-puma addition-mixture

Each recipe trains on its own data at a width where the products are used, with dropout. A repeat begins with the same
weights and draws other dropout, so that the losses of one step scatter among themselves, too. GPU only.
"""

import argparse
import statistics
from dataclasses import replace

import torch

from arguments import how_many
from hardtail.schemes.base import Corpus
from hardtail.study.recipes import recipe_named
from hardtail.tasks import datasets as data
from hardtail.training.begin import begun
from hardtail.training.recipe import Recipe
from hardtail.training.step import Step
from train_step import use_tiles

LAST = 500
"""The steps at the end whose mean loss is compared."""


def losses(recipe: Recipe, corpus: Corpus, tiles: str, repeats: int) -> list[float]:
    """The mean loss of the last steps, for every repeat."""
    use_tiles(tiles)
    step = Step(
        begun(recipe).to("cuda").train(),
        recipe.scheme,
        corpus,
        recipe.optimiser,
        batch=recipe.batch,
        steps=recipe.steps,
        seed=recipe.seed,
        precision="bf16",
    )
    print(f"{recipe.name}, products {tiles}: {step.compile()}", flush=True)
    first = {name: tensor.clone() for name, tensor in step.tensors().items()}
    found = []
    for repeat in range(repeats):
        with torch.no_grad():
            for name, tensor in step.tensors().items():
                tensor.copy_(first[name])
        torch.cuda.manual_seed(repeat)
        total = torch.zeros((), device="cuda")
        for at in range(recipe.steps):
            step()
            if at >= recipe.steps - LAST:
                total += step.loss
        found.append(float(total) / LAST)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = ["addition-random", "addition-papl", "addition-puma", "addition-mixture"]
    parser.add_argument("--recipes", nargs="+", default=known)
    parser.add_argument("--layers", type=how_many, default=4)
    parser.add_argument("--width", type=how_many, default=256)
    parser.add_argument("--steps", type=how_many, default=2000)
    parser.add_argument("--repeats", type=how_many, default=3)
    asked = parser.parse_args()
    if asked.steps < LAST or asked.width % 64:
        parser.error(f"give at least {LAST} steps, and a width that is a multiple of 64")
    for name in asked.recipes:
        recipe = recipe_named(name)
        sizes = replace(recipe.sizes, layers=asked.layers, heads=asked.width // 64, width=asked.width, dropout=0.1)
        recipe = replace(recipe, sizes=sizes, steps=asked.steps)
        instances = data.build(recipe.task, data.TRAIN, recipe.seed, recipe.train_size).instances
        corpus = Corpus.on(torch.device("cuda"), instances, recipe.task.vocabulary.mask_id, recipe.watch.order)
        for tiles in ("off", "on"):
            found = losses(recipe, corpus, tiles, asked.repeats)
            print(f"{name:18} {tiles:3} {statistics.mean(found):.4f}:", *(f"{loss:.4f}" for loss in found), flush=True)


if __name__ == "__main__":
    main()
