"""The list of recipes that `hardtail train` prints when none is named."""

from collections import defaultdict

from hardtail.core.registry import SCHEMES
from hardtail.study.names import RECIPES


def list_recipes() -> None:
    """Print each recipe with the endings that its variants add to its name."""
    print("usage: hardtail train RECIPE [--scheme SCHEME] [any field as a flag]")
    print("                      [--out DIR] [--dry-run]\n")
    print(f"SCHEME is one of {', '.join(SCHEMES.names())}, or package.module:Class;")
    print("fields follow after commas: papl,alpha=5.")
    print("RECIPE is package.module:function, or one of these (each with --help):\n")
    variants = _variants(RECIPES.names())
    wide = max(map(len, variants))
    for name, ends in variants.items():
        print(f"  {name:<{wide}}  {' '.join(ends)}".rstrip())
    print("\n-paper follows the text, -smoke takes seconds on a CPU, -small learns fast.")


def _variants(names: list[str]) -> dict[str, list[str]]:
    """The names that no other name begins, and the endings of those that do."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in sorted(names, key=len):
        base = next((held for held in found if name.startswith(f"{held}-")), None)
        if base is None:
            found[name] = []
        else:
            found[base].append(name.removeprefix(base))
    return {name: found[name] for name in names if name in found}
