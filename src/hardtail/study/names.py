"""The names of the recipes, which can be listed without loading torch; `study.recipes` makes the recipes."""

from collections.abc import Callable
from inspect import signature
from typing import TYPE_CHECKING

from hardtail.core.registry import Registry

if TYPE_CHECKING:
    from hardtail.training.recipe import Recipe

TASKS = ("addition", "maze", "listops", "listops-large", "countdown", "sudoku")
SCHEMES = ("random", "papl", "puma", "oracle", "mixture")
VERSIONS = ("", "-paper", "-smoke")
SMALL = {"addition": ("-small", "-small-paper")}
"""The tasks that a small recipe learns in minutes."""


def recipe_parts() -> dict[str, tuple[str, str, str]]:
    """Every name with its task, scheme and version."""
    return {
        f"{task}-{scheme}{version}": (task, scheme, version)
        for task in TASKS
        for scheme in SCHEMES
        for version in (*VERSIONS, *SMALL.get(task, ()))
    }


def _needs_nothing(found: object) -> bool:
    """Whether this can be called without arguments."""
    if not callable(found):
        return False
    asked = signature(found).parameters.values()
    return all(item.default is not item.empty or item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD) for item in asked)


RECIPES: "Registry[Callable[[], Recipe]]" = Registry(
    "recipe",
    "hardtail.recipes",
    {name: f"hardtail.study.recipes:NAMED.{name.replace('-', '_')}" for name in recipe_parts()},
    lambda found: None if _needs_nothing(found) else "it must be a function without arguments that returns a Recipe",
)
