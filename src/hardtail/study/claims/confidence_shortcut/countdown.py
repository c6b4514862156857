"""Claims about Countdown: section 4.3 of the paper, its Table 3 and the appendix's table of step order."""

from collections.abc import Iterator

from hardtail.study.claims.base import Claim, Section
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.rules import AtLeast, Gap, Unrecovered, above, similar

TABLES = SOURCE.about("countdown")
cell = TABLES.cell
THREE = ("random", "papl", "puma")


def _behind(stratum: str, order: str = "confidence") -> tuple[Gap, ...]:
    """PUMA is behind both others."""
    return tuple(above(cell(scheme, order, stratum), cell("puma", order, stratum)) for scheme in ("random", "papl"))


def claims() -> Iterator[Claim]:
    yield from TABLES.claims()
    at = Section("countdown", "§4.3, Table 3")
    yield at("puma.overall", "PUMA is much weaker than random masking and PAPL overall, under confidence.").by(
        *_behind("overall")
    )
    yield at("puma.low", "On puzzles with few solutions PUMA is slightly ahead of random masking.").by(
        above(cell("puma", "confidence", "low"), cell("random", "confidence", "low")),
        caveat="The paper itself warns against making much of this gap.",
    )
    yield at(
        "puma.high", "On puzzles with many solutions, the common and easy ones, PUMA fails where the others do not."
    ).by(*_behind("high"))
    yield at("puma.where", "PUMA's deficit is in the common puzzles, not in the rare and highly constrained ones.").by(
        Gap(
            (cell("random", "confidence", "high"), cell("puma", "confidence", "low")),
            (cell("puma", "confidence", "high"), cell("random", "confidence", "low")),
        )
    )
    yield at(
        "random-decode",
        "Random order does not repair PUMA on puzzles with many solutions; it stays far behind the others.",
    ).by(Unrecovered(cell("puma", "confidence", "high"), cell("puma", "random", "high")), *_behind("high", "random"))
    yield at("reveal", "With half of the chain revealed all three schemes reach 0.99 overall.").by(
        *(AtLeast(cell(scheme, "reveal", "overall"), 0.99) for scheme in THREE), caveat=TABLES.order("reveal").note
    )
    yield at(
        "sequential",
        "Step-sequential order is within a few points of confidence in every bin of multiplicity.",
        "App. E.2",
    ).by(
        *(
            similar(cell(scheme, "confidence", stratum), cell(scheme, "sequential", stratum))
            for stratum in TABLES.strata
            for scheme in THREE
        ),
        caveat="By the paper's own tables two differences are above 0.1 (PUMA: 0.102 at few solutions, 0.151 at many).",
    )
