"""Claims about mazes and their wrong regions: section 4.2 of the paper and its Table 2."""

from dataclasses import replace

from msgspec import Struct

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.combined import Pooled
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import Profiled, failure_rate
from hardtail.study.claims.recovery import Recovery
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, above, near_rate
from hardtail.study.claims.source import Checks
from hardtail.study.names import THREE

TABLES = SOURCE.about("maze")
CORRIDORS, cell, row, mean = TABLES.strata, TABLES.cell, TABLES.row, TABLES.mean
NEIGHBOURS = tuple(f"wrong_neighbours.{number}" for number in ("none", "one", "two", "three", "four"))


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text prints about mazes; `text/maze.toml` explains each number."""

    random_at_least: float
    dead_end_at_least: dict[str, float]
    instances: int
    failures: dict[str, int]
    removals: dict[str, int]
    additions: dict[str, int]
    two_neighbours: float
    neighbour_wrong: float
    baseline: tuple[float, float]


TEXT = SOURCE.text("maze", Text)


def recovered(scheme: str) -> list[Recovery]:
    """What dead-end filling repairs, at every corridor length."""
    least = TEXT.dead_end_at_least[scheme]
    return [Recovery(cell(scheme, "confidence", k), cell(scheme, "dead-end", k), least) for k in CORRIDORS]


def claims() -> list[Claim]:
    random, papl, puma = (mean(scheme, "confidence") for scheme in THREE)
    orders = ("confidence", "dead-end")
    widening = Gap(
        (cell("puma", "dead-end", "30"), cell("puma", "confidence", "4")),
        (cell("puma", "confidence", "30"), cell("puma", "dead-end", "4")),
    )
    checks: Checks = {
        "maze.random.high": [AtLeast(of, TEXT.random_at_least) for order in orders for of in row("random", order)],
        "maze.puma.lower": [above(cell("random", "confidence", k), cell("puma", "confidence", k)) for k in CORRIDORS],
        "maze.puma.recovered": recovered("puma"),
        "maze.puma.widening": [widening, above(cell("puma", "dead-end", "30"), cell("puma", "confidence", "30"))],
        "maze.papl.between": [above(random, papl), above(papl, puma)],
        "maze.papl.recovered": recovered("papl"),
        "maze.random-decode.worse": [above(mean(s, order), mean(s, "random")) for s in THREE for order in orders],
        "maze.random-decode.puma-weakest": [above(mean(s, "random"), mean("puma", "random")) for s in THREE[:2]],
    }
    return TABLES.claims() + SOURCE.stated("maze", checks) + SOURCE.stated("maze_commits", _commits())


# -- wrong regions ----------------------------------------------------------------------------------------------


def pooled(path: str, words: str, *of: str) -> Cell:
    """A share over the failures of all three schemes, or over what is counted at `of`."""
    counted = tuple(f"profile.{where}" for where in of or ("failures",))
    parts = tuple(Profiled("maze", scheme, f"profile.{path}", words, counted) for scheme in TEXT.failures)
    return Cell(Pooled(parts, f"all schemes: {words}"))


def with_path(direction: str, scheme: str) -> Cell:
    """The share of failures with wrong cells of a direction; in the paper every failure has either, and not both."""
    total = TEXT.failures[scheme]
    counts, others = (TEXT.removals, TEXT.additions) if direction == "removal" else (TEXT.additions, TEXT.removals)
    count = counts[scheme] if scheme in counts else total - others[scheme]
    path, name = f"profile.directions.failures_with.{direction}", f"failures with path {direction}"
    figure = Profiled("maze", scheme, path, name, ("profile.failures",), divided=True)
    return Cell(figure, count / total)


def _commits() -> Checks:
    low, high = TEXT.baseline
    given = replace(
        pooled("neighbours.grid.wrong_given_wrong", "P(neighbour wrong | wrong), walls included"),
        paper=TEXT.neighbour_wrong,
    )
    baseline = pooled("neighbours.grid.baseline", "P(wrong), walls included")
    two = pooled("wrong_neighbours.exactly_two", "cells with two wrong neighbours", *NEIGHBOURS)
    more = pooled("wrong_neighbours.more_than_two", "cells with more", *NEIGHBOURS)
    rates = [
        Cell(failure_rate("maze", s), count / TEXT.instances, TEXT.instances) for s, count in TEXT.failures.items()
    ]
    adds, removes = ({scheme: with_path(way, scheme) for scheme in TEXT.failures} for way in ("addition", "removal"))
    return {
        "maze.commits.count": [Level(rate, near_rate(rate.paper or 0.0)) for rate in rates],
        "maze.commits.single-path": [
            AtLeast(pooled("regions.single", "failures with one wrong region"), 1.0),
            AtLeast(pooled("regions.single_path", "failures with one wrong region, a path"), 1.0),
        ],
        "maze.commits.width-one": [AtLeast(pooled("regions.width_one", "regions of width 1", "regions.total"), 1.0)],
        "maze.commits.two-neighbours": [Level(replace(two, paper=TEXT.two_neighbours)), AtMost(more, 0.0)],
        "maze.commits.neighbour-wrong": [Level(replace(given, n=sum(TEXT.failures.values())))],
        "maze.commits.baseline": [AtLeast(baseline, low), AtMost(baseline, high)],
        "maze.commits.clustered": [above(given, replace(baseline, paper=(low + high) / 2))],
        "maze.commits.cascade": [AtLeast(pooled("spread", "later wrong commits next to an earlier one"), 0.9)],
        "maze.commits.removal.papl": [Level(replace(removes["papl"], n=TEXT.failures["papl"]))],
        "maze.commits.removal.puma": [Level(replace(removes["puma"], n=TEXT.failures["puma"]))],
        "maze.commits.addition.random": [Level(replace(adds["random"], n=TEXT.failures["random"]), 0.3)],
        "maze.commits.opposite": [
            *(above(adds["random"], adds[scheme]) for scheme in TEXT.removals),
            *(above(removes[scheme], removes["random"]) for scheme in TEXT.removals),
        ],
    }
