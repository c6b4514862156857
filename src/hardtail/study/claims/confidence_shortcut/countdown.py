"""Claims about Countdown: section 4.3 of the paper, its Table 3 and the appendix's table of step order."""

from hardtail.study.claims.base import Claim
from hardtail.study.claims.confidence_shortcut import SOURCE, THREE
from hardtail.study.claims.rules import AtLeast, Gap, Unrecovered, above, similar
from hardtail.study.claims.source import Checks

TABLES = SOURCE.about("countdown")
cell = TABLES.cell


def _puma_behind(stratum: str, order: str = "confidence") -> list[Gap]:
    """PUMA is behind both others."""
    return [above(cell(scheme, order, stratum), cell("puma", order, stratum)) for scheme in ("random", "papl")]


def claims() -> list[Claim]:
    (random_low, puma_low), (random_high, puma_high) = (
        [cell(scheme, "confidence", stratum) for scheme in ("random", "puma")] for stratum in ("low", "high")
    )
    checks: Checks = {
        "countdown.puma.overall": _puma_behind("overall"),
        "countdown.puma.low": [above(puma_low, random_low)],
        "countdown.puma.high": _puma_behind("high"),
        "countdown.puma.where": [Gap((random_high, puma_low), (puma_high, random_low))],
        "countdown.random-decode": [
            Unrecovered(puma_high, cell("puma", "random", "high")),
            *_puma_behind("high", "random"),
        ],
        "countdown.reveal": [AtLeast(cell(scheme, "reveal", "overall"), 0.99) for scheme in THREE],
        "countdown.sequential": [
            similar(cell(scheme, "confidence", stratum), cell(scheme, "sequential", stratum))
            for stratum in TABLES.strata
            for scheme in THREE
        ],
    }
    return TABLES.claims() + SOURCE.stated("countdown", checks)
