"""Fine-tuning recipes: a shipped model, then a tenth of its training with another scheme (docs/remedy-details.md).

`own`, `hot` and `whole` show it its own tokens, wrong ones included, so that it learns to overwrite them: next to gold
tokens; with more wrong ones; or alone, in whole answers. `path` shows half-hidden answers along its own decoding path,
`mixture` is PUMA and random masking, and `more`, the control, is the scheme that it was trained with.

The optimiser is the same for all, `more` included, and not that of the training: the learning rate is lower, and
addition-random had a weight decay of .1 (here .01) and an EMA of .9999 (here .999), addition-papl-paper no EMA and a
beta2 of .95 (here .99).
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

from hardtail.schemes.base import Scheme
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.own import Own
from hardtail.schemes.puma import Puma
from hardtail.schemes.random import Random
from hardtail.schemes.stages import Fixed
from hardtail.study.names import tuned_parts
from hardtail.study.recipes import recipe_named
from hardtail.training.begin import identified
from hardtail.training.optimiser import AdamW
from hardtail.training.recipe import Recipe

STEPS = 30_000
"""A tenth of the 300,000 that the models were trained for."""
SCHEME_OF: dict[str, Callable[[Recipe], Scheme]] = {
    "own": lambda recipe: Own(),
    "hot": lambda recipe: Own(temperature=25.0),
    "whole": lambda recipe: Own(first="masked", temperature=12.0, again=0.75),
    "path": lambda recipe: Own(path=8, first="masked", scored="hidden"),
    "mixture": lambda recipe: Mixture(Puma(stages=Fixed(16)), Random(), share=0.5),
    "more": lambda recipe: recipe.scheme,
}


def fine_tuned(model: str, how: str) -> Recipe:
    """The model of the zoo that a recipe of the same name trained, and then a scheme of `SCHEME_OF`.

    The learning rate is a third of the training's; the weights that count are the last ones, as the probe, which hides
    everything, is not what is to improve.
    """
    recipe = recipe_named(model)
    return replace(
        recipe,
        scheme=SCHEME_OF[how](recipe),
        optimiser=AdamW(lr=3e-4, floor=3e-5, warmup=500, weight_decay=0.01, ema=0.999),
        steps=STEPS,
        selection="last",
        model=identified(f"zoo:{model}"),
        name=f"{model}-then-{how}",
    )


NAMED = SimpleNamespace(
    **{name.replace("-", "_"): partial(fine_tuned, *parts) for name, parts in tuned_parts().items()}
)
"""The recipes by name, with _ for -; `RECIPES` finds them here."""
