"""Draw which package imports which: `python tools/import_graph.py [--src DIR] [--mermaid]`.

Reads the code, runs none of it. With another checkout's `src` it draws that one, so two versions can be compared.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

import grimp

PACKAGE = "hardtail"


def package_of(module: str) -> str:
    """The package or loose module directly below the top level."""
    return module.split(".")[1] if "." in module else PACKAGE


def edges_of(src: Path) -> tuple[list[str], Counter[tuple[str, str]]]:
    """Every package, and how many imports lead from one to another; imports for type checkers do not count."""
    sys.path.insert(0, str(src))
    graph = grimp.build_graph(PACKAGE, exclude_type_checking_imports=True, cache_dir=None)
    edges: Counter[tuple[str, str]] = Counter()
    for importer in graph.modules:
        for imported in graph.find_modules_directly_imported_by(importer):
            pair = package_of(importer), package_of(imported)
            if pair[0] != pair[1]:
                edges[pair] += 1
    return sorted({package_of(module) for module in graph.modules}), edges


def layers(packages: list[str], edges: Counter[tuple[str, str]]) -> list[list[str]]:
    """The packages from the lowest up; those that import each other in a circle share the last layer."""
    left, found = set(packages), list[list[str]]()
    while left:
        free = sorted(package for package in left if not any((package, other) in edges for other in left - {package}))
        found.append(free or sorted(left))
        left -= set(found[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", type=Path, default=Path(__file__).parents[1] / "src", help="folder of the package")
    parser.add_argument("--mermaid", action="store_true", help="print a Mermaid diagram")
    given = parser.parse_args()
    packages, edges = edges_of(given.src.resolve())
    if given.mermaid:
        print("flowchart BT")
        print("\n".join(f"    {importer} --> {imported}" for importer, imported in sorted(edges)))
        return
    loose = [package for package in packages if package != PACKAGE and (given.src / PACKAGE / f"{package}.py").exists()]
    circles = sum((imported, importer) in edges for importer, imported in edges) // 2
    print(
        f"{len(packages)} packages, {len(loose)} of them loose modules; "
        f"{len(edges)} connections, {circles} of them in both directions"
    )
    for layer in layers(packages, edges):
        for package in layer:
            used = sorted(imported for importer, imported in edges if importer == package)
            print(f"  {package:<12} {' '.join(used) or '-'}")
        print()


if __name__ == "__main__":
    main()
