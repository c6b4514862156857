"""Claims about a fifth of random masking in PUMA: it keeps what PUMA is good at and repairs what it is bad at."""

from dataclasses import replace

from hardtail.study.claims.base import SELECTED, Cell, Check, Claim
from hardtail.study.claims.figures import ShareRight
from hardtail.study.claims.ours import SOURCE
from hardtail.study.claims.ours.rules import NotBelow
from hardtail.study.claims.rules import above

FAILS = {"countdown": "heldout=1,m>=11", "maze": "corridor>=30"}
"""Where PUMA is behind random masking."""
LEADS = ("heldout=1,m=1-3", "heldout=1,m=4-10")
"""Where it is ahead, on Countdown."""


def _confidence(task: str, stratum: str, *schemes: str) -> tuple[Cell, ...]:
    return tuple(Cell(ShareRight(task, scheme, "top1", stratum)) for scheme in schemes)


def claims() -> list[Claim]:
    checks: dict[str, list[Check]] = {}
    for task, stratum in FAILS.items():
        mixture, puma, random = _confidence(task, stratum, "mixture", "puma", "random")
        checks[f"mixture.repairs.{task}"] = [above(mixture, puma), NotBelow(mixture, random, times=0.95)]
    checks["mixture.keeps.countdown"] = [above(*_confidence("countdown", of, "mixture", "random")) for of in LEADS]
    return [replace(claim, whole=True, weights=SELECTED) for claim in SOURCE.stated("mixture", checks)]
