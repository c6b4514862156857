"""Claims about mazes: section 4.2 of the paper and its Table 2."""

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.combined import Weighted
from hardtail.study.claims.confidence_shortcut import SOURCE, THREE
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.claims.rules import AtLeast, Gap, Recovery, above
from hardtail.study.claims.source import Checks

TABLES = SOURCE.about("maze")
CORRIDORS, tail, row = TABLES.strata, TABLES.tail, TABLES.row


def mean(scheme: str, order: str) -> Cell:
    """The mean over all corridor lengths, of models that are right on natural mazes."""
    cells = [tail(scheme, order, corridor) for corridor in CORRIDORS]
    name = f"{SCHEMES[scheme]}, {TABLES.order(order).policy}, mean over corridor lengths"
    paper = sum(cell.paper or 0.0 for cell in cells) / len(cells)
    figure = Weighted(tuple(cell.figure for cell in cells), (1.0,) * len(cells), name)
    return Cell(figure, paper, sum(cell.n or 0 for cell in cells))


def claims() -> list[Claim]:
    random, papl, puma = (mean(scheme, "confidence") for scheme in THREE)
    orders = ("confidence", "dead-end")
    widening = Gap(
        (tail("puma", "dead-end", "30"), tail("puma", "confidence", "4")),
        (tail("puma", "confidence", "30"), tail("puma", "dead-end", "4")),
    )
    checks: Checks = {
        "maze.random.high": [AtLeast(cell, 0.99) for order in orders for cell in row("random", order)],
        "maze.puma.lower": [above(tail("random", "confidence", k), tail("puma", "confidence", k)) for k in CORRIDORS],
        "maze.puma.recovered": [
            *(AtLeast(cell, 0.91) for cell in row("puma", "dead-end")),
            Recovery(puma, mean("puma", "dead-end")),
        ],
        "maze.puma.widening": [widening],
        "maze.papl.between": [above(random, papl), above(papl, puma)],
        "maze.papl.recovered": [
            *(AtLeast(cell, 0.97) for cell in row("papl", "dead-end")),
            Recovery(papl, mean("papl", "dead-end")),
        ],
        "maze.random-decode.worse": [
            above(mean(scheme, order), mean(scheme, "random")) for scheme in THREE for order in orders
        ],
        "maze.random-decode.puma-weakest": [
            above(mean(scheme, "random"), mean("puma", "random")) for scheme in ("random", "papl")
        ],
    }
    return TABLES.claims() + SOURCE.stated("maze", checks)
