"""Claims about ListOps: section 4.3 of the paper and its Table 3."""

from collections.abc import Iterator

from hardtail.study.claims.base import Claim, Section
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.claims.rules import Ratio, Unrecovered, above, similar

TABLES = SOURCE.about("listops")
cell = TABLES.cell
THREE = ("random", "papl", "puma")


def claims() -> Iterator[Claim]:
    at = Section("listops", "§4.3, Table 3")
    yield from TABLES.claims()
    for depth in TABLES.strata:
        yield at(
            f"order.{depth}", f"At depth {depth} random masking is ahead of PAPL and PAPL of PUMA, under confidence."
        ).by(
            above(cell("random", "confidence", depth), cell("papl", "confidence", depth)),
            above(cell("papl", "confidence", depth), cell("puma", "confidence", depth)),
        )
    for scheme, times in (("papl", 1.24), ("puma", 10.2)):
        yield at(
            f"deeper.{scheme}",
            f"The deeper the tree, the further {SCHEMES[scheme]} falls behind random masking, in proportion.",
        ).by(
            Ratio(
                (cell("random", "confidence", "5"), cell(scheme, "confidence", "3")),
                (cell(scheme, "confidence", "5"), cell("random", "confidence", "3")),
                times,
            ),
            caveat="Read as the ratio of accuracies, random masking to the other, at depth 5 over that at depth 3.",
        )
    yield at("unrecovered", "Layered post-order does not recover any scheme at depth 5.").by(
        *(Unrecovered(cell(scheme, "confidence", "5"), cell(scheme, "recovery", "5")) for scheme in THREE)
    )
    yield at("random-decode", "Random order gives about the same as confidence at depth 5.").by(
        *(similar(cell(scheme, "confidence", "5"), cell(scheme, "random", "5")) for scheme in THREE)
    )
