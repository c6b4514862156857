"""Claims about addition: section 3 of the paper, its Table 1 and the table of random decoding."""

from dataclasses import replace
from functools import partial

from msgspec import Struct

from hardtail.measuring.statistics import Interval
from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.combined import Pooled
from hardtail.study.claims.confidence_shortcut import SOURCE
from hardtail.study.claims.facts import InTraining, OfShipped
from hardtail.study.claims.figures import LateLoss, Profiled, Reached, ShareRight, failure_rate
from hardtail.study.claims.plain import Learns
from hardtail.study.claims.recovery import Recovery, Unrecovered
from hardtail.study.claims.rules import AtLeast, AtMost, Level, Ratio, above, near_rate, similar
from hardtail.study.claims.source import Checks
from hardtail.study.names import THREE

TABLES = SOURCE.about("addition")
CHAINS, cell, row, mean = TABLES.strata, TABLES.cell, TABLES.row, TABLES.mean


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
PLACES = {
    "inside": "inside a chain",
    "above": "above a chain",
    "other": "elsewhere",
    **{f"waits-{below}": f"above {below} propagating digits" for below in range(4)},
}
LESS = {"inside": "other", "above": "other", **{f"waits-{below}": "waits-0" for below in (1, 2, 3)}}
"""Places that depend on many cells, and those that they are compared with."""


def recovered(scheme: str, chain: str) -> Recovery:
    return Recovery(cell(scheme, "confidence", chain), cell(scheme, "lsb", chain), 1.0)


def weight(model: str, place: str, *, in_training: bool = False) -> Cell:
    """What PAPL gives to the hidden cells of a place, relative to the mean of their sequences."""
    fact = f"{model}.weight.{place}", f"{model}: PAPL's relative weight {PLACES[place]}"
    return Cell((InTraining if in_training else OfShipped)(*fact, model))


def loss(start: float, end: float) -> Cell:
    return Cell(LateLoss("addition", "papl", start, end))


def claims() -> list[Claim]:
    random, papl, puma = (cell(scheme, "confidence", "28") for scheme in THREE)
    natural = [Cell(ShareRight("addition", s, "top1", "natural"), TEXT.natural, TEXT.natural_n) for s in THREE]
    reached = Cell(Reached("addition", "random")), Cell(Reached("addition", "puma"))
    small = partial(weight, "addition-papl-small", in_training=True)
    checks: Checks = {
        "addition.learned": [Learns("addition", scheme) for scheme in THREE],
        "addition.natural": [AtLeast(of, TEXT.natural, tolerance=0.005) for of in natural],
        "addition.random.confidence": [AtLeast(of, 0.98) for of in row("random", "confidence")],
        "addition.random.lsb": [AtLeast(of, 1.0, tolerance=0.005) for of in row("random", "lsb")],
        "addition.random.shortcut": [Recovery(mean("random", "confidence"), mean("random", "lsb"), 1.0)],
        "addition.puma.lower": [above(cell("random", "confidence", k), cell("puma", "confidence", k)) for k in CHAINS],
        "addition.puma.amplified": [Ratio((puma,), (random,), 10.0, failures=True)],
        "addition.puma.recovered": [recovered("puma", k) for k in CHAINS],
        "addition.papl.collapses": [above(random, papl)],
        "addition.papl.worsens": [above(cell("papl", o, "4"), cell("papl", o, "28")) for o in ("confidence", "lsb")],
        "addition.papl.unrecovered": [Unrecovered(papl, cell("papl", "lsb", "28"))],
        "addition.papl.starved": [AtMost(weight("addition-papl", place), 0.8) for place in ("inside", "above")],
        "addition.papl.starved.training": [above(small(other), small(place)) for place, other in LESS.items()],
        "addition.papl5.zero": [AtMost(of, 0.01) for o in ("confidence", "lsb") for of in row("papl5", o)],
        "addition.random-decode.collapses": [
            *(above(mean(s, "confidence", 1), mean(s, "random", 1)) for s in THREE),
            *(AtMost(mean(s, "random", 1), 0.05) for s in THREE),
        ],
        "addition.random-decode.random": [above(cell("random", "confidence", "4"), cell("random", "random", "4"))],
        "addition.puma.sooner": [Ratio(reached[:1], reached[1:], 10.0)],
        "addition.papl.late-loss": [
            similar(loss(0.2, 0.4), loss(0.6, 0.8), margin=0.1),
            above(loss(0.9, 1.0), loss(0.4, 0.6)),
        ],
    }
    return SOURCE.stated("addition", checks) + TABLES.claims() + SOURCE.stated("addition_commits", _commits())


# -- wrong commits ----------------------------------------------------------------------------------------------
#
# On the last weights and the strata of docs/study.md §7.1. The wrong commit of a failure is its most significant wrong
# cell, as in the authors' analysis; the evidence shows the first in time next to it.

ALIKE = (("at_chain_msb",), ("plus_one_at_g", "g"), ("minus_one_at_k", "k"), ("confidence_mean",))
"""What is compared between two profiles: place, direction, probability; each with the cell roles it is limited to."""
P_CELLS = ("p_above_g", "p_above_k", "p_above_p", "p_bottom")
ABOVE_CHAIN = ("g", "k", "carry_out")
SIGNS = {"plus_one": "+1", "minus_one": "-1"}
WRONG = "profile.wrong_commits.lowest_index"
LAST_STEP = 32.0
"""Of 33 answer cells, written one per step; steps count from 0."""
WORDS = {
    "at_chain_msb": "at the chain-MSB cell",
    "plus_one_at_g": "+1, of wrong g cells",
    "minus_one_at_k": "-1, of wrong k cells",
    "confidence_mean": "mean probability of the wrong token",
    "gold_second": "gold token ranked second",
    "inside_chain": "inside the chain",
    "nine_inside_chain": "±9, of wrong cells inside the chain",
    "premature": "committed before the cell it waits for",
    "chain_masked": "part of the chain still masked (median)",
    "step": "step of the wrong commit (median)",
    "long_step": "step of the wrong commit on chains of 28 and more (median)",
}


def share(scheme: str, name: str, *roles: str) -> Profiled:
    """A share of the wrong-commit summary: of all failures, or of those in cells of some roles."""
    of = tuple(f"{WRONG}.roles.{role}.failures" for role in roles) or (f"{WRONG}.failures",)
    return Profiled("addition", scheme, f"{WRONG}.{name}", WORDS[name], of, usual="last")


def signed(scheme: str, sign: str, role: str) -> Profiled:
    """Of the wrong cells of a role, the share that is off by one in this direction."""
    at, name = f"{WRONG}.roles.{role}", f"{SIGNS[sign]}, of wrong {role} cells"
    of = (f"{at}.failures",)
    return Profiled("addition", scheme, f"{at}.{sign}", name, of, divided=True, usual="last")


def by_one(scheme: str) -> Profiled:
    """Of the wrong cells that can lie above a chain, the share that is off by one, either way.

    The cell above a chain is never a p cell, which would continue it. Records do not say which of the other wrong cells
    are the chain-MSB cell, so this figure covers a few more.
    """
    first, *more = [f"{WRONG}.roles.{role}.{sign}" for role in ABOVE_CHAIN for sign in SIGNS]
    of = tuple(f"{WRONG}.roles.{role}.failures" for role in ABOVE_CHAIN)
    name = "off by one, of wrong g, k and carry-out cells"
    return Profiled("addition", scheme, first, name, of, divided=True, more=tuple(more), usual="last")


def median(scheme: str, name: str) -> Profiled:
    cases = f"{WRONG}.{'long_failures' if name.startswith('long') else 'failures'}"
    path, bounds = f"{WRONG}.{name}_median", Interval(0.0, 1.0 if name == "chain_masked" else LAST_STEP)
    return Profiled("addition", scheme, path, WORDS[name], cases=cases, bounds=bounds, usual="last")


def both(name: str, *roles: str) -> Cell:
    """A share over the failures of random masking and PUMA together."""
    parts = tuple(share(scheme, name, *roles) for scheme in TEXT.failures)
    return Cell(Pooled(parts, f"random masking and PUMA: {WORDS[name]}"))


def _rate(scheme: str) -> Cell:
    """How often a scheme fails."""
    return Cell(failure_rate("addition", scheme, usual="last"), TEXT.failures[scheme] / TEXT.instances, TEXT.instances)


def _commits() -> Checks:
    pooled = sum(TEXT.failures.values())
    masked = {scheme: Cell(median(scheme, "chain_masked"), paper) for scheme, paper in TEXT.chain_masked.items()}
    step = {scheme: Cell(median(scheme, "long_step"), paper) for scheme, paper in TEXT.long_step.items()}
    rates = list(map(_rate, TEXT.failures))
    off_by_one = Pooled(tuple(map(by_one, TEXT.failures)), "random masking and PUMA: off by one above the chain")
    inside = {scheme: Cell(share(scheme, "inside_chain")) for scheme in ("papl", "puma")}
    return {
        "addition.commits.count": [Level(rate, near_rate(rate.paper or 0.0)) for rate in rates],
        "addition.commits.chain-msb": [Level(replace(both("at_chain_msb"), paper=TEXT.at_chain_msb, n=pooled))],
        "addition.commits.by-one": [AtLeast(Cell(off_by_one), 1.0)],
        "addition.commits.plus-one": [AtLeast(both("plus_one_at_g", "g"), 0.95)],
        "addition.commits.minus-one": [AtLeast(both("minus_one_at_k", "k"), 1.0)],
        "addition.commits.confidence": [
            Level(replace(both("confidence_mean"), paper=TEXT.wrong_probability, n=pooled), 0.02)
        ],
        "addition.commits.gold-second": [AtLeast(both("gold_second"), 0.95)],
        "addition.commits.masked.random": [Level(masked["random"], 0.2)],
        "addition.commits.masked.puma": [Level(masked["puma"], 0.2)],
        "addition.commits.step.random": [Level(step["random"], 4.0)],
        "addition.commits.step.puma": [Level(step["puma"], 2.0)],
        "addition.commits.earlier": [above(step["random"], step["puma"]), above(masked["puma"], masked["random"])],
        "addition.commits.same-profile": [
            *(
                similar(Cell(share("random", name, *roles)), Cell(share("puma", name, *roles)), margin=0.1)
                for name, *roles in ALIKE
            ),
            above(_rate("puma"), _rate("random")),
        ],
        "addition.papl.commits.scattered": [above(inside["papl"], inside["puma"])],
        "addition.papl.commits.no-sign": [AtLeast(Cell(signed("papl", sign, r)), 0.1) for r in "gk" for sign in SIGNS],
        "addition.papl.commits.nine": [AtLeast(Cell(share("papl", "nine_inside_chain", *P_CELLS)), 0.9)],
        "addition.papl.commits.late": [Level(Cell(median("papl", "step"), TEXT.step["papl"]), 4.0)],
        "addition.papl.commits.unresolved": [Level(masked["papl"], 0.2)],
    }
