"""The list of recipes that `hardtail train` prints when none is named."""

from collections import defaultdict

from hardtail.core.registry import SCHEMES
from hardtail.study.names import RECIPES, SHIPPED, TUNED, tuned_parts


def list_recipes() -> None:
    """Print each recipe with the endings that its variants add to its name."""
    print("usage: hardtail train RECIPE [--scheme SCHEME] [any field as a flag]")
    print("                      [--out DIR] [--dry-run]\n")
    print(f"SCHEME is one of {', '.join(SCHEMES.names())},")
    print("or package.module:Class; fields follow after commas: papl,alpha=5.")
    print("RECIPE is package.module:function, or one of these (each with --help):\n")
    variants = _variants([name for name in RECIPES.names() if name not in tuned_parts()])
    wide = max(map(len, variants))
    for name, ends in variants.items():
        print(f"  {name:<{wide}}  {' '.join(ends)}".rstrip())
    print("\n-paper follows the text, -smoke takes seconds on a CPU, -small learns fast,")
    print("-quarter has a quarter of the steps, -little a smaller model, -tiny-quarter")
    print("both.")
    print(f"MODEL-then-HOW fine-tunes a shipped model: {', '.join(SHIPPED)};")
    print(f"HOW is {', '.join(TUNED)}.")


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
