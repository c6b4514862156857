"""Claims about Sudoku: section 4.3 of the paper, its Table 3 and the appendix's table of solver orders."""

from itertools import product

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE, THREE
from hardtail.study.claims.figures import Accuracy
from hardtail.study.claims.rules import Gap, above
from hardtail.study.claims.source import Checks

TABLES = SOURCE.about("sudoku")
STRATA, cell = TABLES.strata, TABLES.cell
SOLVERS = ("propagation", "technique")


def in_tier(scheme: str, order: str, tier: str) -> Cell:
    return Cell(Accuracy("sudoku", scheme, TABLES.order(order).policy, tier, "cell_accuracy"))


def _shrinking_lead(stratum: str) -> Gap:
    """PUMA's lead over random masking is greater under confidence than in random order."""
    return Gap(
        (cell("puma", "confidence", stratum), cell("random", "random", stratum)),
        (cell("random", "confidence", stratum), cell("puma", "random", stratum)),
    )


def claims() -> list[Claim]:
    _, *tiers = TABLES.tables[0].strata[0].of
    best = {
        f"sudoku.puma.best.{k}": [above(cell("puma", "confidence", k), cell(s, "confidence", k)) for s in THREE[:2]]
        for k in STRATA
    }
    checks: Checks = {
        **best,
        **{f"sudoku.trajectory.{k}": [_shrinking_lead(k)] for k in ("top1", "tl4")},
        "sudoku.orders.worse": [
            above(cell(scheme, "confidence", stratum), cell(scheme, order, stratum))
            for order, stratum, scheme in product(SOLVERS, STRATA, THREE)
        ],
        "sudoku.orders.propagation-ahead": [
            above(cell(scheme, "propagation", stratum), cell(scheme, "technique", stratum))
            for stratum, scheme in product(STRATA, THREE)
        ],
        "sudoku.orders.puma-leads": [
            above(cell("puma", order, stratum), cell("random", order, stratum))
            for order, stratum in product(SOLVERS, STRATA)
        ],
        "sudoku.orders.puma-leads.tiers": [
            above(in_tier("puma", order, tier), in_tier("random", order, tier))
            for order, tier in product(SOLVERS, tiers)
        ],
    }
    return TABLES.claims() + SOURCE.stated("sudoku", checks)
