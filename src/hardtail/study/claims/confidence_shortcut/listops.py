"""Claims about ListOps: section 4.3 of the paper and its Table 3."""

from hardtail.study.claims.base import Check, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE, THREE
from hardtail.study.claims.rules import Ratio, Unrecovered, above, similar

TABLES = SOURCE.about("listops")
cell = TABLES.cell


def claims() -> list[Claim]:
    checks: dict[str, list[Check]] = {
        "listops.unrecovered": [Unrecovered(cell(s, "confidence", "5"), cell(s, "recovery", "5")) for s in THREE],
        "listops.random-decode": [similar(cell(s, "confidence", "5"), cell(s, "random", "5")) for s in THREE],
    }
    for depth in TABLES.strata:
        random, papl, puma = (cell(scheme, "confidence", depth) for scheme in THREE)
        checks[f"listops.order.{depth}"] = [above(random, papl), above(papl, puma)]
    for scheme, times in (("papl", 1.24), ("puma", 10.2)):
        shallow, deep = ({s: cell(s, "confidence", depth) for s in THREE} for depth in ("3", "5"))
        over, under = (deep["random"], shallow[scheme]), (deep[scheme], shallow["random"])
        checks[f"listops.deeper.{scheme}"] = [Ratio(over, under, times)]
    return TABLES.claims() + SOURCE.stated("listops", checks)
