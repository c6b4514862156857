"""Claims about Sudoku: section 4.3 of the paper, its Table 3 and the appendix's table of solver orders."""

from collections.abc import Iterator
from itertools import product

from hardtail.study.claims.base import Cell, Claim, Section
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import Accuracy
from hardtail.study.claims.rules import Gap, above

TABLES = SOURCE.about("sudoku")
STRATA, cell = TABLES.strata, TABLES.cell
THREE = ("random", "papl", "puma")
SOLVERS = ("propagation", "technique")
IN_WORDS = {"overall": "overall", "top1": "on the hardest 1 %", "tl4": "where 95 % of cells take search"}


def in_tier(scheme: str, order: str, tier: str) -> Cell:
    return Cell(Accuracy("sudoku", scheme, TABLES.order(order).policy, tier, "cell_accuracy"))


def claims() -> Iterator[Claim]:
    yield from TABLES.claims()
    at = Section("sudoku", "§4.3, Table 3")
    for stratum in STRATA:
        yield at(f"puma.best.{stratum}", f"Under confidence PUMA is the best of the three {IN_WORDS[stratum]}.").by(
            *(above(cell("puma", "confidence", stratum), cell(s, "confidence", stratum)) for s in THREE[:2])
        )
    for stratum in ("top1", "tl4"):
        yield at(
            f"trajectory.{stratum}", f"PUMA's lead over random masking shrinks in random order {IN_WORDS[stratum]}."
        ).by(
            Gap(
                (cell("puma", "confidence", stratum), cell("random", "random", stratum)),
                (cell("random", "confidence", stratum), cell("puma", "random", stratum)),
            )
        )

    at = Section("sudoku.orders", "App. E.3")
    _, *tiers = TABLES.tables[0].strata[0].of
    yield at("worse", "Both solver orders are worse than confidence for every scheme at every difficulty.").by(
        *(
            above(cell(scheme, "confidence", stratum), cell(scheme, order, stratum))
            for order, stratum, scheme in product(SOLVERS, STRATA, THREE)
        ),
        caveat="By the paper's own tables random masking and PAPL are better in solver orders on the hardest 1 %.",
    )
    yield at("propagation-ahead", "Constraint-propagation order is ahead of technique-difficulty order throughout.").by(
        *(
            above(cell(scheme, "propagation", stratum), cell(scheme, "technique", stratum))
            for stratum, scheme in product(STRATA, THREE)
        ),
        caveat="By the paper's own table it is behind in three of nine cells.",
    )
    yield at("puma-leads", "In solver orders too PUMA is ahead of random masking, in every row of the table.").by(
        *(
            above(cell("puma", order, stratum), cell("random", order, stratum))
            for order, stratum in product(SOLVERS, STRATA)
        )
    )
    yield at("puma-leads.tiers", "In solver orders too PUMA is ahead of random masking at every tier above easy.").by(
        *(
            above(in_tier("puma", order, tier), in_tier("random", order, tier))
            for order, tier in product(SOLVERS, tiers)
        ),
        caveat="Judged by the sign: the paper prints figures of the hardest tier alone.",
        reports="PUMA leads",
    )
