"""Claims about Countdown: section 4.3 of the paper, its Table 3 and the appendix's table of solver orders."""

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.figures import Accuracy
from hardtail.study.claims.rules import AtLeast, Gap, Level, Similar, Unrecovered

THREE = ("random", "papl", "puma")
STRATA: dict[str, tuple[str, int]] = {
    "low": ("heldout=1,m=1-3", 479),
    "middle": ("heldout=1,m=4-10", 156),
    "high": ("heldout=1,m>=11", 365),
    "overall": ("heldout=1", 1000),
}
"""By bin of solution multiplicity: the stratum, of targets that training never has, and the paper's n (study §5)."""
ORDERS = {
    "confidence": "top1",
    "random": "random",
    "reveal": "one pass, half revealed",
    "sequential": "step_sequential",
}
TABLE: dict[str, dict[str, tuple[float, ...]]] = {
    "confidence": {
        "low": (0.182, 0.173, 0.211),
        "middle": (0.487, 0.538, 0.462),
        "high": (0.973, 0.981, 0.331),
        "overall": (0.518, 0.525, 0.294),
    },
    "random": {
        "low": (0.129, 0.134, 0.092),
        "high": (0.975, 0.970, 0.474),
        "overall": (0.488, 0.494, 0.265),
    },
    "reveal": {
        "low": (0.995, 0.993, 0.985),
        "high": (1.0, 1.0, 0.999),
        "overall": (0.997, 0.998, 0.992),
    },
    "sequential": {
        "low": (0.127, 0.077, 0.109),
        "middle": (0.468, 0.449, 0.397),
        "high": (0.962, 0.956, 0.482),
        "overall": (0.485, 0.456, 0.290),
    },
}
"""The middle bin under confidence is not printed; it follows from the other two and the whole (study §5)."""
PRINTED = {"confidence": ("low", "high", "overall")}
IN_WORDS = {
    "confidence": "Under confidence",
    "random": "In random order",
    "reveal": "With half of the chain revealed",
    "sequential": "In step-sequential order",
}
WHERE, APPENDIX = "§4.3, Table 3", "App. E.2"
TOKENS = "Read as the authors' code: accuracy of single tokens in one pass, which the caption calls exact match."


def cell(scheme: str, order: str, stratum: str) -> Cell:
    name, n = STRATA[stratum]
    figure = Accuracy(
        "countdown", scheme, ORDERS[order], name, "token_accuracy" if order == "reveal" else "exact_match"
    )
    return Cell(figure, TABLE[order][stratum][THREE.index(scheme)], n)


def claims() -> list[Claim]:
    return [*_tables(), *_statements()]


def _tables() -> list[Claim]:
    return [
        Claim(
            f"countdown.table.{order}",
            f"{IN_WORDS[order]} random masking, PAPL and PUMA have the printed accuracies, by multiplicity.",
            APPENDIX if order == "sequential" else "Table 3",
            tuple(
                Level(cell(scheme, order, stratum))
                for stratum in PRINTED.get(order, tuple(TABLE[order]))
                for scheme in THREE
            ),
            TOKENS if order == "reveal" else "",
        )
        for order in TABLE
    ]


def _statements() -> list[Claim]:
    def behind(stratum: str, order: str = "confidence") -> tuple[Gap, ...]:
        return tuple(Gap((cell(s, order, stratum),), (cell("puma", order, stratum),)) for s in ("random", "papl"))

    return [
        Claim(
            "countdown.puma.overall",
            "PUMA is much weaker than random masking and PAPL overall, under confidence.",
            WHERE,
            behind("overall"),
        ),
        Claim(
            "countdown.puma.low",
            "On puzzles with few solutions PUMA is slightly ahead of random masking.",
            WHERE,
            (Gap((cell("puma", "confidence", "low"),), (cell("random", "confidence", "low"),)),),
            "The paper itself warns against making much of this gap.",
        ),
        Claim(
            "countdown.puma.high",
            "On puzzles with many solutions, the common and easy ones, PUMA fails where the others do not.",
            WHERE,
            behind("high"),
        ),
        Claim(
            "countdown.puma.where",
            "PUMA's deficit is in the common puzzles, not in the rare and highly constrained ones.",
            WHERE,
            (
                Gap(
                    (cell("random", "confidence", "high"), cell("puma", "confidence", "low")),
                    (cell("puma", "confidence", "high"), cell("random", "confidence", "low")),
                ),
            ),
        ),
        Claim(
            "countdown.random-decode",
            "Random order does not repair PUMA on puzzles with many solutions; it stays far behind the others.",
            WHERE,
            (
                Unrecovered(cell("puma", "confidence", "high"), cell("puma", "random", "high")),
                *behind("high", "random"),
            ),
        ),
        Claim(
            "countdown.reveal",
            "With half of the chain revealed all three schemes reach 0.99 overall.",
            WHERE,
            tuple(AtLeast(cell(scheme, "reveal", "overall"), 0.99) for scheme in THREE),
            TOKENS,
        ),
        Claim(
            "countdown.sequential",
            "Step-sequential order is within a few points of confidence in every bin of multiplicity.",
            APPENDIX,
            tuple(
                Similar(cell(scheme, "confidence", stratum), cell(scheme, "sequential", stratum))
                for stratum in TABLE["sequential"]
                for scheme in THREE
            ),
            "By the paper's own tables two differences are above 0.1 (PUMA: 0.102 at few solutions, 0.151 at many).",
        ),
    ]
