"""Claims about ListOps: section 4.3 of the paper and its Table 3."""

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.figures import SCHEMES, Accuracy
from hardtail.study.claims.rules import Gap, Level, Ratio, Similar, Unrecovered

DEPTHS = (3, 5)
ORDERS = {"confidence": "top1", "random": "random", "recovery": "post_order"}
THREE = ("random", "papl", "puma")
N = 500
"""Trees of a depth: the text says 1,000, all printed rates are of 500 (study §8)."""
TABLE: dict[str, dict[int, tuple[float, ...]]] = {
    "confidence": {3: (0.426, 0.302, 0.206), 5: (0.042, 0.024, 0.002)},
    "random": {3: (0.354, 0.282, 0.164), 5: (0.034, 0.032, 0.002)},
    "recovery": {3: (0.406, 0.322, 0.174), 5: (0.054, 0.028, 0.004)},
}
IN_WORDS = {"confidence": "Under confidence", "random": "In random order", "recovery": "In layered post-order"}
WHERE = "§4.3, Table 3"


def cell(scheme: str, order: str, depth: int) -> Cell:
    figure = Accuracy("listops", scheme, ORDERS[order], f"depth={depth}")
    return Cell(figure, TABLE[order][depth][THREE.index(scheme)], N)


def claims() -> list[Claim]:
    columns = [
        Claim(
            f"listops.table.{order}",
            f"{IN_WORDS[order]} random masking, PAPL and PUMA have these accuracies at depth 3 and depth 5.",
            "Table 3",
            tuple(Level(cell(scheme, order, depth)) for depth in DEPTHS for scheme in THREE),
        )
        for order in TABLE
    ]
    orderings = [
        Claim(
            f"listops.order.{depth}",
            f"At depth {depth} random masking is ahead of PAPL and PAPL of PUMA, under confidence.",
            WHERE,
            (
                Gap((cell("random", "confidence", depth),), (cell("papl", "confidence", depth),)),
                Gap((cell("papl", "confidence", depth),), (cell("puma", "confidence", depth),)),
            ),
        )
        for depth in DEPTHS
    ]
    deeper = [
        Claim(
            f"listops.deeper.{scheme}",
            f"The deeper the tree, the further {SCHEMES[scheme]} falls behind random masking, in proportion.",
            WHERE,
            (
                Ratio(
                    (cell("random", "confidence", 5), cell(scheme, "confidence", 3)),
                    (cell(scheme, "confidence", 5), cell("random", "confidence", 3)),
                    times,
                ),
            ),
            "Read as the ratio of accuracies, random masking to the other, at depth 5 over that at depth 3.",
        )
        for scheme, times in (("papl", 1.24), ("puma", 10.2))
    ]
    return [
        *columns,
        *orderings,
        *deeper,
        Claim(
            "listops.unrecovered",
            "Layered post-order does not recover any scheme at depth 5.",
            WHERE,
            tuple(Unrecovered(cell(scheme, "confidence", 5), cell(scheme, "recovery", 5)) for scheme in THREE),
        ),
        Claim(
            "listops.random-decode",
            "Random order gives about the same as confidence at depth 5.",
            WHERE,
            tuple(Similar(cell(scheme, "confidence", 5), cell(scheme, "random", 5)) for scheme in THREE),
        ),
    ]
