"""Claims about addition: section 3 of the paper, its Table 1 and the table of random decoding."""

from collections.abc import Iterator

from msgspec import Struct

from hardtail.study.claims.base import Cell, Claim, Section
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.figures import Accuracy, LateLoss, Reached
from hardtail.study.claims.rules import AtLeast, AtMost, Ratio, Recovery, Unrecovered, above, similar

TABLES = SOURCE.about("addition")
CHAINS, cell, tail, row = TABLES.strata, TABLES.cell, TABLES.tail, TABLES.row
THREE = ("random", "papl", "puma")
"""What the paper calls its schemes; PAPL with α = 5 is in its tables alone."""


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


def claims() -> Iterator[Claim]:
    at = Section("addition", "§3.4, Table 1")
    yield at(
        "natural", "All three schemes answer at least 99.9 % of natural instances exactly under confidence.", "§3.4"
    ).by(*(AtLeast(natural(scheme), TEXT.natural, tolerance=0.005) for scheme in THREE))
    yield at("random.confidence", "Random masking stays nearly perfect under confidence at every chain length.").by(
        *(AtLeast(held, 0.98) for held in row("random", "confidence")),
        caveat="“Nearly perfect” is read as at least 0.98.",
        reports="0.984 to 0.998",
    )
    yield at("random.lsb", "Random masking is exactly right LSB-first at every chain length.").by(
        *(AtLeast(held, 1.0, tolerance=0.005) for held in row("random", "lsb"))
    )
    yield at("puma.lower", "PUMA is below random masking under confidence at every chain length.").by(
        *(above(tail("random", "confidence", k), tail("puma", "confidence", k)) for k in CHAINS)
    )
    yield at(
        "puma.amplified", "PUMA fails about ten times as often as random masking on the hard tail.", "abstract; Table 1"
    ).by(
        Ratio((tail("puma", "confidence", "28"),), (tail("random", "confidence", "28"),), 10.0, failures=True),
        caveat="Taken on chains of 28 and more, where its table has 11.5 times.",
        reports="an order of magnitude",
    )
    yield at("puma.recovered", "Decoding LSB-first brings PUMA back to full accuracy at every chain length.").by(
        *(Recovery(tail("puma", "confidence", k), tail("puma", "lsb", k)) for k in CHAINS)
    )
    yield at(
        "papl.collapses",
        "PAPL with α=1 all but fails under confidence on chains of 28 and more, where random masking does not.",
    ).by(above(tail("random", "confidence", "28"), tail("papl", "confidence", "28")))
    yield at(
        "papl.worsens", "PAPL with α=1 gets worse the longer the chain, under confidence and LSB-first.", "Table 1"
    ).by(*(above(tail("papl", order, "4"), tail("papl", order, "28")) for order in ("confidence", "lsb")))
    yield at(
        "papl.unrecovered",
        "Decoding LSB-first does not bring PAPL with α=1 back on chains of 28 and more.",
        "§3.4, §3.5, Table 1",
    ).by(Unrecovered(tail("papl", "confidence", "28"), tail("papl", "lsb", "28")))
    yield at("papl5.zero", "PAPL with α=5 has no accuracy left at any chain length, whatever the order.").by(
        *(AtMost(held, 0.01) for order in ("confidence", "lsb") for held in row("papl5", order)),
        caveat="Read as at most 0.01. A model that has not learned to add keeps to it too, and the paper prints no "
        "natural accuracy for this one: look at natural sums beside it.",
        reports="0 to 0.006",
    )
    at = Section("addition.random-decode", "App. E.1")
    yield at("collapses", "Random order costs every scheme its accuracy: near zero from chains of 12 on.").by(
        *(AtMost(tail(scheme, "random", k), 0.05) for scheme in THREE for k in CHAINS[1:]),
        caveat="“Near zero” is read as at most 0.05.",
        reports="0 to 0.032",
    )
    yield at("random", "Even random masking falls far in random order on chains of 4 and more.").by(
        above(tail("random", "confidence", "4"), tail("random", "random", "4")),
        caveat="The text sets the cell of chain ≥ 28 under confidence (0.992) against chain ≥ 4 in random order.",
    )
    at = Section("addition", "§3.5, figure of training")
    yield at("puma.sooner", "PUMA converges on natural instances about ten times sooner than random masking.").by(
        Ratio((Cell(Reached("addition", "random", learned=True)),), (Cell(Reached("addition", "puma")),), 10.0),
        caveat="Read as the first step with 99 % natural accuracy, or PUMA's last one where it never gets there; "
        "the training log looks every 10,000 steps.",
        reports="an order of magnitude",
    )
    yield at("papl.late-loss", "PAPL's training loss is flat for most of training and rises late.").by(
        similar(loss(0.2, 0.4), loss(0.6, 0.8), margin=0.1),
        above(loss(0.9, 1.0), loss(0.4, 0.6)),
        caveat="Read as mean losses within 0.1 in the second and the fourth fifth, and a higher one in the last "
        "tenth than in the middle fifth; the paper prints no number.",
        reports="flat, then rising",
    )
    yield from TABLES.claims()
