"""Claims about mazes: section 4.2 of the paper and its Table 2."""

from collections.abc import Iterator

from hardtail.study.claims.base import Cell, Claim, Section
from hardtail.study.claims.combined import average
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.claims.rules import AtLeast, Gap, Recovery, above

TABLES = SOURCE.about("maze")
CORRIDORS, tail, row = TABLES.strata, TABLES.tail, TABLES.row


def mean(scheme: str, order: str) -> Cell:
    """The mean over all corridor lengths, of models that are right on natural mazes."""
    cells = [tail(scheme, order, corridor) for corridor in CORRIDORS]
    name = f"{SCHEMES[scheme]}, {TABLES.order(order).policy}, mean over corridor lengths"
    paper = sum(cell.paper or 0.0 for cell in cells) / len(cells)
    return Cell(average(tuple(cell.figure for cell in cells), name), paper, sum(cell.n or 0 for cell in cells))


def claims() -> Iterator[Claim]:
    yield from TABLES.claims()
    at = Section("maze", "§4.2, Table 2")
    yield at(
        "random.high",
        "Random masking is at 0.99 or above, under confidence and by dead-end filling, at every corridor length.",
    ).by(
        *(AtLeast(held, 0.99) for order in ("confidence", "dead-end") for held in row("random", order)),
        caveat="Three of the printed cells are 0.983 to 0.987; of 300 mazes that still meets 0.99.",
    )
    yield at("puma.lower", "PUMA is below random masking under confidence at every corridor length.").by(
        *(above(tail("random", "confidence", k), tail("puma", "confidence", k)) for k in CORRIDORS)
    )
    yield at("puma.recovered", "Dead-end filling brings PUMA to 0.91 and above at every corridor length.").by(
        *(AtLeast(held, 0.91) for held in row("puma", "dead-end")),
        Recovery(mean("puma", "confidence"), mean("puma", "dead-end")),
    )
    yield at("puma.widening", "What dead-end filling gains PUMA grows with the corridor: more at 30 than at 4.").by(
        Gap(
            (tail("puma", "dead-end", "30"), tail("puma", "confidence", "4")),
            (tail("puma", "confidence", "30"), tail("puma", "dead-end", "4")),
        ),
        caveat="Longer corridors are drawn from straighter mazes: the texture of the walls changes with them "
        "(docs/study.md §3).",
    )
    yield at("papl.between", "Under confidence PAPL lies between random masking and PUMA.").by(
        above(mean("random", "confidence"), mean("papl", "confidence")),
        above(mean("papl", "confidence"), mean("puma", "confidence")),
    )
    yield at(
        "papl.recovered",
        "Dead-end filling brings PAPL to 0.97 and above at every corridor length: it does not collapse on mazes.",
    ).by(
        *(AtLeast(held, 0.97) for held in row("papl", "dead-end")),
        Recovery(mean("papl", "confidence"), mean("papl", "dead-end")),
    )

    at = Section("maze.random-decode", at.where)
    yield at("worse", "Random order is much worse than confidence and than dead-end filling for all three schemes.").by(
        *(
            above(mean(scheme, order), mean(scheme, "random"))
            for scheme in ("random", "papl", "puma")
            for order in ("confidence", "dead-end")
        )
    )
    yield at("puma-weakest", "In random order PUMA is by far the weakest.").by(
        *(above(mean(scheme, "random"), mean("puma", "random")) for scheme in ("random", "papl"))
    )
