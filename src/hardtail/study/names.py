"""The names of the recipes, which can be listed without loading torch; `study.recipes` makes the recipes."""

import re
from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING

from hardtail.core.registry import Registry

if TYPE_CHECKING:
    from hardtail.training.recipe import Recipe

TASKS = ("addition", "maze", "listops", "listops-large", "countdown", "sudoku")
THREE = ("random", "papl", "puma")
"""What the paper calls its schemes; PAPL with α = 5 is in its tables alone."""
SCHEMES = (*THREE, "oracle", "mixture")
VERSIONS = ("", "-paper", "-smoke")
QUARTER, LITTLE, TINY = "-quarter", "-little", "-tiny"
"""A quarter of the paper's steps, and models small enough to be shipped."""
ON = "-on-"
"""Between an arm and the file of problems that its runs were trained on."""
PUBLISHED = f"{ON}published"
"""Trained and measured on published problems, as the study's are (`benchmarks/published_sudokus.py`)."""
MORE_VERSIONS = {
    "addition": ("-small", "-small-paper"),
    "countdown": (QUARTER, LITTLE),
    "sudoku": (QUARTER, LITTLE, TINY + QUARTER),
}
"""More versions, of the tasks that have them."""
SHIPPED = ("addition-papl-paper", "addition-random")
"""The models of the zoo that recipes fine-tune."""
TUNED = ("own", "hot", "whole", "path", "mixture", "more")
"""What they are fine-tuned with; `study.fine_tuning` makes these recipes."""


def in_a_name(stem: str) -> str:
    """A file's name without its ending as a part of an arm's name."""
    return re.sub(r"[^a-zA-Z0-9.]+", "-", stem).strip("-.")


def recipe_parts() -> dict[str, tuple[str, str, str]]:
    """Every name with its task, scheme and version."""
    return {
        f"{task}-{scheme}{version}": (task, scheme, version)
        for task in TASKS
        for scheme in SCHEMES
        for version in (*VERSIONS, *MORE_VERSIONS.get(task, ()))
    }


def tuned_parts() -> dict[str, tuple[str, str]]:
    """Every name of a fine-tuning recipe with its model and scheme."""
    return {f"{model}-then-{how}": (model, how) for model in SHIPPED for how in TUNED}


def _places() -> dict[str, str]:
    """Where each recipe is found."""
    found: dict[str, str] = {}
    for module, names in (("recipes", recipe_parts()), ("fine_tuning", tuned_parts())):
        found |= {name: f"hardtail.study.{module}:NAMED.{name.replace('-', '_')}" for name in names}
    return found


def _needs_nothing(found: object) -> bool:
    """Whether this can be called without arguments."""
    if not callable(found):
        return False
    asked = signature(found).parameters.values()
    return all(item.default is not item.empty or item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in asked)


RECIPES: "Registry[Callable[[], Recipe]]" = Registry(
    "recipe",
    "hardtail.recipes",
    _places(),
    lambda found: None if _needs_nothing(found) else "it must be a function without arguments that returns a Recipe",
)
