"""Claims about ListOps: section 4.3 of the paper and its Table 3."""

from hardtail.study.claims.base import Claim, Section
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.claims.rules import Ratio, Unrecovered, above, similar

TABLES = SOURCE.about("listops")
cell = TABLES.cell
THREE = ("random", "papl", "puma")


def claims() -> list[Claim]:
    at = Section("listops", "§4.3, Table 3")
    return [
        *TABLES.claims(),
        *(
            at.claim(
                f"order.{depth}",
                f"At depth {depth} random masking is ahead of PAPL and PAPL of PUMA, under confidence.",
                above(cell("random", "confidence", depth), cell("papl", "confidence", depth)),
                above(cell("papl", "confidence", depth), cell("puma", "confidence", depth)),
            )
            for depth in TABLES.strata
        ),
        *(
            at.claim(
                f"deeper.{scheme}",
                f"The deeper the tree, the further {SCHEMES[scheme]} falls behind random masking, in proportion.",
                Ratio(
                    (cell("random", "confidence", "5"), cell(scheme, "confidence", "3")),
                    (cell(scheme, "confidence", "5"), cell("random", "confidence", "3")),
                    times,
                ),
                caveat="Read as the ratio of accuracies, random masking to the other, at depth 5 over that at depth 3.",
            )
            for scheme, times in (("papl", 1.24), ("puma", 10.2))
        ),
        at.claim(
            "unrecovered",
            "Layered post-order does not recover any scheme at depth 5.",
            *(Unrecovered(cell(scheme, "confidence", "5"), cell(scheme, "recovery", "5")) for scheme in THREE),
        ),
        at.claim(
            "random-decode",
            "Random order gives about the same as confidence at depth 5.",
            *(similar(cell(scheme, "confidence", "5"), cell(scheme, "random", "5")) for scheme in THREE),
        ),
    ]
