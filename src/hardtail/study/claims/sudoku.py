"""Claims about Sudoku: section 4.3 of the paper, its Table 3 and the appendix's table of solver orders.

All figures are of single blank cells. *Overall* is over the study's test set: its tiers, weighted as it
draws them.
"""

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.combined import Weighted
from hardtail.study.claims.figures import SCHEMES, Accuracy, Figure
from hardtail.study.claims.rules import Gap, Level

THREE = ("random", "papl", "puma")
TIERS = {"easy": 1000, "medium": 1000, "hard": 500, "very_hard": 200, "extreme": 100, "top1pct": 500}
"""Puzzles of each tier in the test set (study §6)."""
N = {"overall": sum(TIERS.values()), "top1": 500, "tl4": 200}
ORDERS = {
    "confidence": "top1",
    "random": "random",
    "propagation": "constraint_propagation",
    "technique": "technique",
}
TABLE: dict[str, dict[str, tuple[float, ...]]] = {
    "confidence": {"overall": (0.629, 0.630, 0.753), "top1": (0.357, 0.372, 0.609), "tl4": (0.407, 0.404, 0.539)},
    "random": {"overall": (0.565, 0.570, 0.599), "top1": (0.370, 0.365, 0.432), "tl4": (0.382, 0.376, 0.414)},
    "propagation": {"overall": (0.578, 0.581, 0.631), "top1": (0.369, 0.378, 0.452), "tl4": (0.385, 0.388, 0.430)},
    "technique": {"overall": (0.581, 0.584, 0.624), "top1": (0.364, 0.385, 0.425), "tl4": (0.373, 0.380, 0.409)},
}
STRATA = tuple(N)
IN_WORDS = {
    "confidence": "Under confidence",
    "random": "In random order",
    "propagation": "In constraint-propagation order",
    "technique": "In technique-difficulty order",
}
STRATUM_WORDS = {"overall": "overall", "top1": "on the hardest 1 %", "tl4": "where 95 % of cells take search"}
WHERE, APPENDIX = "§4.3, Table 3", "App. E.3"


def cell(scheme: str, order: str, stratum: str) -> Cell:
    return Cell(_figure(scheme, ORDERS[order], stratum), TABLE[order][stratum][THREE.index(scheme)], N[stratum])


def _in_tier(scheme: str, order: str, tier: str) -> Cell:
    return Cell(_accuracy(scheme, ORDERS[order], f"tier={tier}"))


def _figure(scheme: str, policy: str, stratum: str) -> Figure:
    if stratum == "overall":
        tiers = tuple(_accuracy(scheme, policy, f"tier={tier}") for tier in TIERS)
        return Weighted(tiers, tuple(map(float, TIERS.values())), f"{SCHEMES[scheme]}, {policy}, all tiers")
    return _accuracy(scheme, policy, "tier=top1pct" if stratum == "top1" else "tl4>=0.95")


def _accuracy(scheme: str, policy: str, stratum: str) -> Accuracy:
    return Accuracy("sudoku", scheme, policy, stratum, "cell_accuracy")


def claims() -> list[Claim]:
    return [*_tables(), *_statements()]


def _tables() -> list[Claim]:
    return [
        Claim(
            f"sudoku.table.{order}",
            f"{IN_WORDS[order]} the three schemes have the printed cell accuracies, by difficulty.",
            "Table 3" if order in ("confidence", "random") else APPENDIX,
            tuple(Level(cell(scheme, order, stratum)) for stratum in STRATA for scheme in THREE),
        )
        for order in TABLE
    ]


def _statements() -> list[Claim]:
    orders = ("propagation", "technique")
    return [
        *(
            Claim(
                f"sudoku.puma.best.{stratum}",
                f"Under confidence PUMA is the best of the three {STRATUM_WORDS[stratum]}.",
                WHERE,
                tuple(
                    Gap((cell("puma", "confidence", stratum),), (cell(other, "confidence", stratum),))
                    for other in ("random", "papl")
                ),
            )
            for stratum in STRATA
        ),
        *(
            Claim(
                f"sudoku.trajectory.{stratum}",
                f"PUMA's lead over random masking shrinks in random order {STRATUM_WORDS[stratum]}.",
                WHERE,
                (
                    Gap(
                        (cell("puma", "confidence", stratum), cell("random", "random", stratum)),
                        (cell("random", "confidence", stratum), cell("puma", "random", stratum)),
                    ),
                ),
            )
            for stratum in ("top1", "tl4")
        ),
        Claim(
            "sudoku.orders.worse",
            "Both solver orders are worse than confidence for every scheme at every difficulty.",
            APPENDIX,
            tuple(
                Gap((cell(scheme, "confidence", stratum),), (cell(scheme, order, stratum),))
                for order in orders
                for stratum in STRATA
                for scheme in THREE
            ),
            "By the paper's own tables random masking and PAPL are better in solver orders on the hardest 1 %.",
        ),
        Claim(
            "sudoku.orders.propagation-ahead",
            "Constraint-propagation order is ahead of technique-difficulty order throughout.",
            APPENDIX,
            tuple(
                Gap((cell(scheme, "propagation", stratum),), (cell(scheme, "technique", stratum),))
                for stratum in STRATA
                for scheme in THREE
            ),
            "By the paper's own table it is behind in three of nine cells.",
        ),
        Claim(
            "sudoku.orders.puma-leads",
            "In solver orders too PUMA is ahead of random masking, in every row of the table.",
            APPENDIX,
            tuple(
                Gap((cell("puma", order, stratum),), (cell("random", order, stratum),))
                for order in orders
                for stratum in STRATA
            ),
        ),
        Claim(
            "sudoku.orders.puma-leads.tiers",
            "In solver orders too PUMA is ahead of random masking at every tier above easy.",
            APPENDIX,
            tuple(
                Gap((_in_tier("puma", order, tier),), (_in_tier("random", order, tier),))
                for order in orders
                for tier in tuple(TIERS)[1:]
            ),
            "Judged by the sign: the paper prints figures of the hardest tier alone.",
            "PUMA leads",
        ),
    ]
