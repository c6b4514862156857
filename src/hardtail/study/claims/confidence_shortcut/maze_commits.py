"""Claims about the wrong regions of mazes: section 4.2 of the paper."""

from collections.abc import Iterator
from dataclasses import replace

from msgspec import Struct

from hardtail.study.claims.base import Cell, Claim, Section
from hardtail.study.claims.combined import Pooled
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import SCHEMES, Profiled, failure_rate
from hardtail.study.claims.rules import AtLeast, AtMost, Level, above, near_rate


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text prints about mazes; `text/maze.toml` explains each number."""

    instances: int
    failures: dict[str, int]
    removals: dict[str, int]
    additions: dict[str, int]
    two_neighbours: float
    neighbour_wrong: float
    baseline: tuple[float, float]


TEXT = SOURCE.text("maze", Text)


def pooled(path: tuple[str, ...], words: str, *of: tuple[str, ...]) -> Pooled:
    """Over the failures of all three schemes, or over what is counted at `of`."""
    counted = tuple(("profile", *where) for where in of or (("failures",),))
    parts = tuple(
        Profiled("maze", scheme, ("profile", *path), words, counted, learned=True) for scheme in TEXT.failures
    )
    return Pooled(parts, f"all schemes: {words}")


def with_path(direction: str, scheme: str) -> Cell:
    """The share of failures with wrong cells of a direction; in the paper every failure has either, and not both."""
    total = TEXT.failures[scheme]
    counts, others = (TEXT.removals, TEXT.additions) if direction == "removal" else (TEXT.additions, TEXT.removals)
    count = counts[scheme] if scheme in counts else total - others[scheme]
    path, name = ("profile", "directions", "failures_with", direction), f"failures with path {direction}"
    figure = Profiled("maze", scheme, path, name, (("profile", "failures"),), divided=True, learned=True)
    return Cell(figure, count / total)


def claims() -> Iterator[Claim]:
    at = Section("maze.commits", "§4.2, wrong commit profile")
    total, low, high = sum(TEXT.failures.values()), *TEXT.baseline
    given = pooled(("neighbours", "grid", "wrong_given_wrong"), "P(neighbour wrong | wrong), walls included")
    baseline = pooled(("neighbours", "grid", "baseline"), "P(wrong), walls included")
    cells = [("wrong_neighbours", number) for number in ("none", "one", "two", "three", "four")]
    two = pooled(("wrong_neighbours", "exactly_two"), "cells with two wrong neighbours", *cells)
    rates = {scheme: failures / TEXT.instances for scheme, failures in TEXT.failures.items()}
    yield at("count", "Confidence fails on 11 (random masking), 174 (PAPL) and 209 (PUMA) of the diagnosed mazes.").by(
        *(
            Level(Cell(failure_rate("maze", scheme), rate, TEXT.instances), near_rate(rate))
            for scheme, rate in rates.items()
        ),
        caveat="The paper does not say of how many; judged as shares of 2,100, which fits its counts "
        "(docs/study.md §7.2).",
        reports="11; 174; 209",
    )
    yield at("single-path", "In every failure the wrong cells are one contiguous path.").by(
        AtLeast(Cell(pooled(("regions", "single"), "failures with one wrong region")), 1.0),
        AtLeast(Cell(pooled(("regions", "single_path"), "failures with one wrong region, a path")), 1.0),
    )
    yield at("width-one", "Wrong regions are one cell wide.").by(
        AtLeast(Cell(pooled(("regions", "width_one"), "regions of width 1", ("regions", "total"))), 1.0),
        caveat="Where only open cells are hidden the walls alone see to that: a tree of corridors has no 2 × 2.",
    )
    yield at("two-neighbours", "96 % of wrong cells have exactly two wrong neighbours, none has more.").by(
        Level(Cell(two, TEXT.two_neighbours)),
        AtMost(Cell(pooled(("wrong_neighbours", "more_than_two"), "cells with more", *cells)), 0.0),
    )
    yield at("neighbour-wrong", "A neighbour of a wrong cell is wrong with probability 0.45 on average.").by(
        Level(Cell(given, TEXT.neighbour_wrong, total))
    )
    yield at("baseline", "The chance of a wrong cell at any place is 0.12 to 0.15.").by(
        AtLeast(Cell(baseline), low), AtMost(Cell(baseline), high), reports="0.12 to 0.15"
    )
    yield at("clustered", "Next to a wrong cell errors are far more frequent than that.").by(
        above(Cell(given, TEXT.neighbour_wrong), Cell(baseline, (low + high) / 2))
    )

    for scheme, of in TEXT.removals.items():
        yield at(
            f"removal.{scheme}",
            f"{SCHEMES[scheme]} removes path cells in {of} of its {TEXT.failures[scheme]} failures.",
        ).by(Level(replace(with_path("removal", scheme), n=TEXT.failures[scheme])))
    yield at("addition.random", "Random masking adds path cells in 8 of its 11 failures.").by(
        Level(replace(with_path("addition", "random"), n=TEXT.failures["random"]), tolerance=0.3),
        caveat="Eleven failures say little: the paper's own interval is 0.43 to 0.90.",
    )
    yield at(
        "opposite", "Random masking adds path cells more often than PAPL and PUMA do, and removes them less often."
    ).by(
        *(above(with_path("addition", "random"), with_path("addition", scheme)) for scheme in TEXT.removals),
        *(above(with_path("removal", scheme), with_path("removal", "random")) for scheme in TEXT.removals),
        caveat="Read as: a failure that is no path addition is a path removal, and the other way round.",
    )
