"""Claims about addition's wrong commits (section 3.4), on the last weights and the strata of study §7.1.

The wrong commit of a failure is its most significant wrong cell, as in the authors' analysis; the evidence has the
first in time beside it.
"""

from dataclasses import replace

from hardtail.measuring.statistics import Interval
from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.combined import Pooled
from hardtail.study.claims.figures import SCHEMES, Profiled, failure_rate
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, Similar, near_rate

WHERE = "§3.4, wrong commit profile"
FAILURES = {"random": 39, "puma": 367}
INSTANCES = 2700
"""Nine strata of 300: what the counts of failures fit (study §7.1)."""
ALIKE = (("at_chain_msb",), ("plus_one_at_g", "g"), ("minus_one_at_k", "k"), ("confidence_mean",))
"""What two profiles have in common: place, direction, probability; of cells of which role, where not of all."""
P_CELLS = ("p_above_g", "p_above_k", "p_above_p", "p_bottom")
CELLS = ("g", "k", *P_CELLS, "carry_out")
WRONG = ("profile", "wrong_commits", "lowest_index")
LAST_STEP = 32.0
"""Of 33 answer cells, written one a step; steps count from 0."""
WORDS = {
    "at_chain_msb": "at the chain-MSB cell",
    "plus_one_at_g": "+1, of wrong g cells",
    "minus_one_at_k": "-1, of wrong k cells",
    "confidence_mean": "mean probability of the wrong token",
    "gold_second": "gold token ranked second",
    "inside_chain": "inside the chain",
    "nine_inside_chain": "±9, of wrong cells inside the chain",
    "chain_masked": "part of the chain still masked (median)",
    "step": "step of the wrong commit (median)",
    "long_step": "step of the wrong commit on chains of 28 and more (median)",
}


def share(scheme: str, name: str, *roles: str) -> Profiled:
    """A share of the wrong-commit summary: of all failures, or of those in cells of some roles."""
    of = tuple((*WRONG, "roles", role, "failures") for role in roles) or ((*WRONG, "failures"),)
    return Profiled("addition", scheme, (*WRONG, name), WORDS[name], of, usual="last", learned=True)


def signed(scheme: str, sign: str, role: str) -> Profiled:
    """Of the wrong cells of a role, the share that is off by one in this direction."""
    at, name = (*WRONG, "roles", role), f"{'+1' if sign == 'plus_one' else '-1'}, of wrong {role} cells"
    of = ((*at, "failures"),)
    return Profiled("addition", scheme, (*at, sign), name, of, divided=True, usual="last", learned=True)


def by_one(scheme: str) -> Profiled:
    """The share of failures whose wrong digit is off by one, either way, in whatever cell."""
    first, *more = [(*WRONG, "roles", role, sign) for role in CELLS for sign in ("plus_one", "minus_one")]
    of = ((*WRONG, "failures"),)
    return Profiled(
        "addition", scheme, first, "off by one", of, divided=True, more=tuple(more), usual="last", learned=True
    )


def median(scheme: str, name: str) -> Profiled:
    cases = (*WRONG, "long_failures" if name.startswith("long") else "failures")
    path, between = (*WRONG, f"{name}_median"), Interval(0.0, 1.0 if name == "chain_masked" else LAST_STEP)
    return Profiled("addition", scheme, path, WORDS[name], cases=cases, between=between, usual="last", learned=True)


def both(name: str, *roles: str) -> Pooled:
    """Over the failures of random masking and PUMA together."""
    parts = tuple(share(scheme, name, *roles) for scheme in FAILURES)
    return Pooled(parts, f"random masking and PUMA: {WORDS[name]}")


def wrong_commits() -> list[Claim]:
    return [*_of_random_and_puma(), *_of_papl()]


def _of_random_and_puma() -> list[Claim]:
    pooled = sum(FAILURES.values())
    failed = {scheme: failure_rate("addition", scheme, usual="last") for scheme in FAILURES}
    more = {scheme: replace(figure, learned=True) for scheme, figure in failed.items()}
    rates = {scheme: failures / INSTANCES for scheme, failures in FAILURES.items()}
    confidence = both("confidence_mean")
    masked, step = ({scheme: median(scheme, name) for scheme in FAILURES} for name in ("chain_masked", "long_step"))
    return [
        Claim(
            "addition.commits.count",
            "Confidence fails on 39 (random masking) and 367 (PUMA) of the diagnosed sums.",
            WHERE,
            tuple(Level(Cell(failed[s], rate, INSTANCES), near_rate(rate)) for s, rate in rates.items()),
            "The paper does not say of how many; judged as shares of 2,700, which fits its counts (study §7.1).",
            "39; 367",
        ),
        Claim(
            "addition.commits.chain-msb",
            "Nearly all failures of random masking and PUMA are at the cell directly above the carry chain.",
            WHERE,
            (Level(Cell(both("at_chain_msb"), 0.998, pooled)),),
        ),
        Claim(
            "addition.commits.by-one",
            "The wrong digit of random masking and PUMA is off by exactly one.",
            WHERE,
            (AtLeast(Cell(Pooled(tuple(map(by_one, FAILURES)), "random masking and PUMA: off by one")), 1.0),),
        ),
        Claim(
            "addition.commits.plus-one",
            "At g cells the wrong digit is one too large nearly always: a carry was assumed.",
            WHERE,
            (AtLeast(Cell(both("plus_one_at_g", "g")), 0.95),),
            "“Nearly every” is read as at least 0.95.",
            "nearly every g cell",
        ),
        Claim(
            "addition.commits.minus-one",
            "At k cells the wrong digit is one too small always: no carry was assumed.",
            WHERE,
            (AtLeast(Cell(both("minus_one_at_k", "k")), 1.0),),
        ),
        Claim(
            "addition.commits.confidence",
            "The wrong token has a mean probability of 0.997.",
            WHERE,
            (Level(Cell(confidence, 0.997, pooled), tolerance=0.02),),
        ),
        Claim(
            "addition.commits.gold-second",
            "The right token is consistently the second most probable.",
            WHERE,
            (AtLeast(Cell(both("gold_second")), 0.95),),
            "“Consistently” is read as at least 0.95.",
            "consistently second",
        ),
        *(
            Claim(
                f"addition.commits.masked.{scheme}",
                f"When {SCHEMES[scheme]} commits the wrong cell, this part of the chain is still masked (median).",
                WHERE,
                (Level(Cell(masked[scheme], paper), tolerance=0.2),),
            )
            for scheme, paper in (("random", 0.68), ("puma", 1.0))
        ),
        *(
            Claim(
                f"addition.commits.step.{scheme}",
                f"On chains of 28 and more {SCHEMES[scheme]} commits the wrong cell at this step of 33 (median).",
                WHERE,
                (Level(Cell(step[scheme], paper), tolerance=tolerance),),
                "The text says “as early as”, read as the median (study §7.1). Our steps count from 0; whether the "
                "paper's do is not said.",
            )
            for scheme, paper, tolerance in (("random", 12.0, 4.0), ("puma", 3.0, 2.0))
        ),
        Claim(
            "addition.commits.earlier",
            "PUMA commits the wrong cell earlier than random masking, with more of the chain masked.",
            WHERE,
            (
                Gap((Cell(step["random"], 12.0),), (Cell(step["puma"], 3.0),)),
                Gap((Cell(masked["puma"], 1.0),), (Cell(masked["random"], 0.68),)),
            ),
        ),
        Claim(
            "addition.commits.same-profile",
            "Random masking and PUMA fail in the same place, in the same direction and as surely; PUMA more often.",
            "§3.5",
            (
                *(
                    Similar(Cell(share("random", name, *roles)), Cell(share("puma", name, *roles)), margin=0.1)
                    for name, *roles in ALIKE
                ),
                Gap((Cell(more["puma"], rates["puma"]),), (Cell(more["random"], rates["random"]),)),
            ),
            "Read as shares at the chain-MSB cell, of +1 at g and of -1 at k, and mean probabilities within 0.1.",
            "the same profile; 39 and 367 failures",
        ),
    ]


def _of_papl() -> list[Claim]:
    return [
        Claim(
            "addition.papl.commits.scattered",
            "PAPL also fails inside the chain, at p cells, which PUMA does not.",
            WHERE,
            (Gap((Cell(share("papl", "inside_chain")),), (Cell(share("puma", "inside_chain")),)),),
            "The paper prints no share.",
            "at g, k and p cells",
        ),
        Claim(
            "addition.papl.commits.no-sign",
            "At g and k cells PAPL errs both ways, without a consistent sign.",
            WHERE,
            tuple(
                AtMost(Cell(signed("papl", sign, role)), 0.9)
                for role in ("g", "k")
                for sign in ("plus_one", "minus_one")
            ),
            "The paper prints no share; read as at most nine in ten of either sign.",
            "no consistent sign",
        ),
        Claim(
            "addition.papl.commits.nine",
            "At p cells PAPL is off by nine: a carry that flipped.",
            WHERE,
            (AtLeast(Cell(share("papl", "nine_inside_chain", *P_CELLS)), 0.9),),
            "The paper prints no share; read as at least nine in ten.",
            "±9",
        ),
        Claim(
            "addition.papl.commits.late",
            "PAPL's wrong commits come late: at step 28 of 33 in the median.",
            WHERE,
            (Level(Cell(median("papl", "step"), 28.0), tolerance=4.0),),
        ),
        Claim(
            "addition.papl.commits.unresolved",
            "At PAPL's wrong commits only 28 % of the chain is unresolved.",
            WHERE,
            (Level(Cell(median("papl", "chain_masked"), 0.28), tolerance=0.2),),
        ),
    ]
