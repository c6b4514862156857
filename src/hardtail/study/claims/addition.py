"""Claims about addition: section 3 of the paper, its Table 1 and the table of random decoding."""

from hardtail.study.claims.addition_commits import wrong_commits
from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.figures import SCHEMES, Accuracy, LateLoss, Reached
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, Ratio, Recovery, Similar, Unrecovered

CHAINS = (4, 12, 20, 24, 28)
THREE = ("random", "papl", "puma")
"""What the paper calls its schemes; PAPL with α = 5 stands beside them in its tables alone."""
ORDERS = {"confidence": "top1", "lsb": "lsb", "random": "random"}
N = 500
TABLE: dict[str, dict[str, tuple[float, ...]]] = {
    "confidence": {
        "random": (0.998, 0.996, 0.984, 0.994, 0.992),
        "papl": (0.914, 0.618, 0.462, 0.254, 0.026),
        "puma": (0.868, 0.864, 0.826, 0.868, 0.908),
        "papl5": (0.0, 0.0, 0.0, 0.0, 0.0),
    },
    "lsb": {
        "random": (1.0, 1.0, 1.0, 1.0, 1.0),
        "papl": (0.942, 0.724, 0.580, 0.308, 0.030),
        "puma": (1.0, 1.0, 1.0, 1.0, 1.0),
        "papl5": (0.0, 0.0, 0.0, 0.0, 0.006),
    },
    "random": {
        "random": (0.424, 0.002, 0.0, 0.002, 0.032),
        "papl": (0.0, 0.0, 0.0, 0.0, 0.0),
        "puma": (0.538, 0.010, 0.0, 0.0, 0.004),
        "papl5": (0.0, 0.0, 0.0, 0.0, 0.0),
    },
}
IN_WORDS = {"confidence": "Under confidence", "lsb": "Decoded LSB-first", "random": "In random order"}
HARD_TAIL, RANDOM_ORDER = "§3.4, Table 1", "App. E.1"


def cell(scheme: str, order: str, chain: int, *, learned: bool = False) -> Cell:
    """A cell of Table 1 or of the table of random decoding."""
    figure = Accuracy("addition", scheme, ORDERS[order], f"chain>={chain}", learned=learned)
    return Cell(figure, TABLE[order][scheme][CHAINS.index(chain)], N)


def tail(scheme: str, order: str, chain: int) -> Cell:
    """The same of models that are right on natural sums: what comparisons on the hard tail are about."""
    return cell(scheme, order, chain, learned=True)


def row(scheme: str, order: str) -> tuple[Cell, ...]:
    return tuple(cell(scheme, order, chain) for chain in CHAINS)


def natural(scheme: str) -> Cell:
    return Cell(Accuracy("addition", scheme, "top1", "natural"), 0.999, 10_000)


def _loss(start: float, end: float) -> Cell:
    return Cell(LateLoss("addition", "papl", start, end))


def claims() -> list[Claim]:
    return [*_statements(), *_cells(), *wrong_commits()]


def _cells() -> list[Claim]:
    """Every cell of Table 1, and the columns of the table of random decoding."""
    return [
        Claim(
            f"addition.{scheme}.{order}.{chain}",
            f"{IN_WORDS[order]}, {SCHEMES[scheme]} has this accuracy on chains of {chain} and more.",
            "Table 1",
            (Level(cell(scheme, order, chain)),),
        )
        for order in ("confidence", "lsb")
        for scheme in TABLE[order]
        for chain in CHAINS
    ] + [
        Claim(
            f"addition.{scheme}.random",
            f"{IN_WORDS['random']}, {SCHEMES[scheme]} has these accuracies on chains of 4, 12, 20, 24, 28 and more.",
            RANDOM_ORDER,
            tuple(Level(held) for held in row(scheme, "random")),
        )
        for scheme in TABLE["random"]
    ]


def _statements() -> list[Claim]:
    return [
        Claim(
            "addition.natural",
            "All three schemes answer at least 99.9 % of natural instances exactly under confidence.",
            "§3.4",
            tuple(AtLeast(natural(scheme), 0.999, tolerance=0.005) for scheme in THREE),
        ),
        Claim(
            "addition.random.confidence",
            "Random masking stays nearly perfect under confidence at every chain length.",
            HARD_TAIL,
            tuple(AtLeast(held, 0.98) for held in row("random", "confidence")),
            "“Nearly perfect” is read as at least 0.98.",
            "0.984 to 0.998",
        ),
        Claim(
            "addition.random.lsb",
            "Random masking is exactly right LSB-first at every chain length.",
            HARD_TAIL,
            tuple(AtLeast(held, 1.0, tolerance=0.005) for held in row("random", "lsb")),
        ),
        Claim(
            "addition.puma.lower",
            "PUMA is below random masking under confidence at every chain length.",
            HARD_TAIL,
            tuple(Gap((tail("random", "confidence", k),), (tail("puma", "confidence", k),)) for k in CHAINS),
        ),
        Claim(
            "addition.puma.amplified",
            "PUMA fails about ten times as often as random masking on the hard tail.",
            "abstract; Table 1",
            (Ratio((tail("puma", "confidence", 28),), (tail("random", "confidence", 28),), 10.0, failures=True),),
            "Taken on chains of 28 and more, where its table has 11.5 times.",
            "an order of magnitude",
        ),
        Claim(
            "addition.puma.recovered",
            "Decoding LSB-first brings PUMA back to full accuracy at every chain length.",
            HARD_TAIL,
            tuple(Recovery(tail("puma", "confidence", k), tail("puma", "lsb", k)) for k in CHAINS),
        ),
        Claim(
            "addition.papl.collapses",
            "PAPL with α=1 all but fails under confidence on chains of 28 and more, where random masking does not.",
            HARD_TAIL,
            (Gap((tail("random", "confidence", 28),), (tail("papl", "confidence", 28),)),),
        ),
        Claim(
            "addition.papl.worsens",
            "PAPL with α=1 gets worse the longer the chain, under confidence and LSB-first.",
            "Table 1",
            tuple(Gap((tail("papl", order, 4),), (tail("papl", order, 28),)) for order in ("confidence", "lsb")),
        ),
        Claim(
            "addition.papl.unrecovered",
            "Decoding LSB-first does not bring PAPL with α=1 back on chains of 28 and more.",
            "§3.4, §3.5, Table 1",
            (Unrecovered(tail("papl", "confidence", 28), tail("papl", "lsb", 28)),),
        ),
        Claim(
            "addition.papl5.zero",
            "PAPL with α=5 has no accuracy left at any chain length, whatever the order.",
            HARD_TAIL,
            tuple(AtMost(held, 0.01) for order in ("confidence", "lsb") for held in row("papl5", order)),
            "Read as at most 0.01. A model that has not learned to add keeps to it too, and the paper prints no "
            "natural accuracy for this one: look at natural sums beside it.",
            "0 to 0.006",
        ),
        Claim(
            "addition.random-decode.collapses",
            "Random order costs every scheme its accuracy: near zero from chains of 12 on.",
            RANDOM_ORDER,
            tuple(AtMost(tail(scheme, "random", k), 0.05) for scheme in THREE for k in CHAINS[1:]),
            "“Near zero” is read as at most 0.05.",
            "0 to 0.032",
        ),
        Claim(
            "addition.random-decode.random",
            "Even random masking falls far in random order on chains of 4 and more.",
            RANDOM_ORDER,
            (Gap((tail("random", "confidence", 4),), (tail("random", "random", 4),)),),
            "The text sets the cell of chain ≥ 28 under confidence (0.992) against chain ≥ 4 in random order.",
        ),
        Claim(
            "addition.puma.sooner",
            "PUMA converges on natural instances about ten times sooner than random masking.",
            "§3.5, figure of training",
            (Ratio((Cell(Reached("addition", "random", learned=True)),), (Cell(Reached("addition", "puma")),), 10.0),),
            "Read as the first step with 99 % natural accuracy, or PUMA's last one where it never gets there; the "
            "training log looks every 10,000 steps.",
            "an order of magnitude",
        ),
        Claim(
            "addition.papl.late-loss",
            "PAPL's training loss is flat for most of training and rises late.",
            "§3.5, figure of training",
            (
                Similar(_loss(0.2, 0.4), _loss(0.6, 0.8), margin=0.1),
                Gap((_loss(0.9, 1.0),), (_loss(0.4, 0.6),)),
            ),
            "Read as mean losses within 0.1 in the second and the fourth fifth, and a higher one in the last tenth "
            "than in the middle fifth; the paper prints no number.",
            "flat, then rising",
        ),
    ]
