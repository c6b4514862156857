"""Claims about addition: section 3 of the paper, its Table 1 and the table of random decoding."""

from msgspec import Struct

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE, THREE
from hardtail.study.claims.figures import Accuracy, LateLoss, Reached
from hardtail.study.claims.rules import AtLeast, AtMost, Ratio, Recovery, Unrecovered, above, similar
from hardtail.study.claims.source import Checks

TABLES = SOURCE.about("addition")
CHAINS, tail, row = TABLES.strata, TABLES.tail, TABLES.row


class Text(Struct, frozen=True, forbid_unknown_fields=True):
    """What the text prints about addition; `text/addition.toml` explains each number."""

    natural: float
    natural_n: int
    instances: int
    failures: dict[str, int]
    at_chain_msb: float
    wrong_probability: float
    chain_masked: dict[str, float]
    step: dict[str, float]
    long_step: dict[str, float]


TEXT = SOURCE.text("addition", Text)


def natural(scheme: str) -> Cell:
    return Cell(Accuracy("addition", scheme, "top1", "natural"), TEXT.natural, TEXT.natural_n)


def loss(start: float, end: float) -> Cell:
    return Cell(LateLoss("addition", "papl", start, end))


def claims() -> list[Claim]:
    random, papl, puma = (tail(scheme, "confidence", "28") for scheme in THREE)
    reached = Cell(Reached("addition", "random", learned=True)), Cell(Reached("addition", "puma"))
    checks: Checks = {
        "addition.natural": [AtLeast(natural(scheme), TEXT.natural, tolerance=0.005) for scheme in THREE],
        "addition.random.confidence": [AtLeast(cell, 0.98) for cell in row("random", "confidence")],
        "addition.random.lsb": [AtLeast(cell, 1.0, tolerance=0.005) for cell in row("random", "lsb")],
        "addition.puma.lower": [above(tail("random", "confidence", k), tail("puma", "confidence", k)) for k in CHAINS],
        "addition.puma.amplified": [Ratio((puma,), (random,), 10.0, failures=True)],
        "addition.puma.recovered": [Recovery(tail("puma", "confidence", k), tail("puma", "lsb", k)) for k in CHAINS],
        "addition.papl.collapses": [above(random, papl)],
        "addition.papl.worsens": [above(tail("papl", o, "4"), tail("papl", o, "28")) for o in ("confidence", "lsb")],
        "addition.papl.unrecovered": [Unrecovered(papl, tail("papl", "lsb", "28"))],
        "addition.papl5.zero": [AtMost(cell, 0.01) for o in ("confidence", "lsb") for cell in row("papl5", o)],
        "addition.random-decode.collapses": [
            AtMost(tail(scheme, "random", k), 0.05) for scheme in THREE for k in CHAINS[1:]
        ],
        "addition.random-decode.random": [above(tail("random", "confidence", "4"), tail("random", "random", "4"))],
        "addition.puma.sooner": [Ratio(reached[:1], reached[1:], 10.0)],
        "addition.papl.late-loss": [
            similar(loss(0.2, 0.4), loss(0.6, 0.8), margin=0.1),
            above(loss(0.9, 1.0), loss(0.4, 0.6)),
        ],
    }
    return SOURCE.stated("addition", checks) + TABLES.claims()
