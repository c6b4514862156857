"""Claims about checking what was written: repair, detection, the ladder, trying again (docs/remedy.md)."""

from dataclasses import replace

from hardtail.study.claims.base import Cell, Check, Claim
from hardtail.study.claims.evidence import Checkpoint
from hardtail.study.claims.ours import SOURCE
from hardtail.study.claims.ours.figures import ANY_LIMIT, Decoded, Number
from hardtail.study.claims.ours.rules import BetterWhereLow, NotAbove, NotBelow
from hardtail.study.claims.rules import AtLeast, AtMost, above

ADDITION = {
    "addition-random": "addition-random-tf32-s42",
    "addition-puma": "addition-puma-tf32-s42",
    "addition-papl": "addition-papl-tf32-s42",
    "addition-papl5": "addition-papl5-tf32-s42",
    "addition-papl-paper": "addition-papl-paper-s42",
}
"""The models of the zoo that learned to add, and their runs."""
OTHERS = {"maze-random": "maze-random-s42", "listops-random": "listops-random-s42"}
FEW = "heldout=1,m=1-3"
"""Countdown puzzles with one to three solutions."""
HARDEST = {
    "addition": "chain>=28",
    "maze": "corridor>=60",
    "listops": "depth=5",
    "countdown": FEW,
    "sudoku": "tier=hard",
}
DETECTED = HARDEST | {"listops": "depth=3"}
"""Where wrong answers are to be found; at depth 5 this ListOps model gets nearly nothing right."""
SHIPPED: dict[str, Checkpoint] = dict.fromkeys((*ADDITION.values(), "maze-puma-s42"), "last")
"""The weights that are shipped, where they are not those with the best probe."""
WEIGHTS = "the weights that ship, else best_probe"
HALVES, COMB, OWN = "halves energy", "comb energy", "own doubt"
COMB_LADDER = "ladder,hide=comb,parts=3,splits=1"
CALIBRATED = f"ladder,rungs=threshold/top1{ANY_LIMIT}"
COMB_CALIBRATED = COMB_LADDER + ANY_LIMIT
RESTARTS = "ladder,rungs=top1/noisy,again=6"
"""Once without noise, then up to seven times with."""
QUARTERS = {name: f"{name}-quarter-s42" for name in ("sudoku-random", "countdown-random")}
"""Runs of a quarter of the steps: there was no full one when they were measured."""
LATER = {"maze-puma": "maze-puma-s42", "countdown-little": "countdown-random-little-s42"} | QUARTERS
"""Models whose detection and ladder were given a claim when their figures were known: judged after both drafts."""
TINY = "sudoku-puma-tiny-quarter-s42"
"""The run of the Sudoku model that ships, which came after all others were judged."""
RESTARTED = {
    "sudoku-random": (QUARTERS["sudoku-random"], ("natural", "tier=hard")),
    "countdown-random": (QUARTERS["countdown-random"], ("natural", FEW)),
    "listops-random": (OTHERS["listops-random"], ("natural", "depth=3")),
    "sudoku-puma": (TINY, ("natural", "tier=hard")),
}
"""The models that try again: their runs, and on what."""


def _decoded(run: str, policy: str, stratum: str, metric: Number = "exact_match", score: str = "") -> Decoded:
    return Decoded(run, policy, stratum, metric, score, usual=SHIPPED.get(run, "best_probe"))


def _accuracy(run: str, policy: str, stratum: str) -> Cell:
    return Cell(_decoded(run, policy, stratum))


def _passes(run: str, policy: str, stratum: str) -> Cell:
    return Cell(_decoded(run, policy, stratum, "passes"))


def _area(run: str, policy: str, stratum: str, score: str) -> Cell:
    return Cell(_decoded(run, policy, stratum, "auroc", score))


def _repair(run: str) -> list[Check]:
    hard = HARDEST["addition"]
    return [
        NotBelow(_accuracy(run, "check", hard), _accuracy(run, "lsb", hard), times=0.99),
        NotBelow(_accuracy(run, "check", "natural"), _accuracy(run, "top1", "natural"), slack=0.002),
        AtMost(_passes(run, "check", hard), 33.0, tolerance=0.0, by_mean=True),
    ]


def _detect(run: str, policies: tuple[str, ...], stratum: str, score: str, bound: float) -> list[Check]:
    found: list[Check] = []
    for policy in policies:
        asked = _area(run, policy, stratum, score)
        found += [
            AtLeast(asked, bound, tolerance=0.005, by_mean=True),
            BetterWhereLow(asked, _area(run, policy, stratum, OWN)),
        ]
    return found


def _ladder(
    run: str, ladder: str, hardest: str, rungs: tuple[str, ...] = ("threshold", "check", "top1")
) -> list[Check]:
    as_good = [
        NotBelow(_accuracy(run, ladder, stratum), _accuracy(run, rung, stratum))
        for stratum in ("natural", hardest)
        for rung in rungs
    ]
    return [
        *as_good,
        NotAbove(_passes(run, ladder, "natural"), _passes(run, "top1", "natural"), times=0.25),
        NotAbove(_passes(run, ladder, hardest), _passes(run, "top1", hardest), times=1.3),
    ]


def _margin(run: str, stratum: str) -> list[Check]:
    return [
        above(_accuracy(run, "check", stratum), _accuracy(run, "margin", stratum)),
        NotAbove(_passes(run, "check", stratum), _passes(run, "margin", stratum)),
    ]


def _restarts(run: str, strata: tuple[str, ...]) -> list[Check]:
    return [above(_accuracy(run, RESTARTS, stratum), _accuracy(run, "top1", stratum)) for stratum in strata]


def claims() -> list[Claim]:
    checks: dict[str, list[Check]] = {}
    for model, run in ADDITION.items():
        checks[f"remedy.repair.{model}"] = _repair(run)
        checks[f"remedy.detect.{model}"] = _detect(run, ("threshold", "top1"), DETECTED["addition"], COMB, 0.99)
        checks[f"remedy.ladder.{model}"] = _ladder(run, COMB_LADDER, HARDEST["addition"])
        checks[f"remedy.calibrated.{model}"] = _ladder(run, COMB_CALIBRATED, HARDEST["addition"])
    for model, run in (OTHERS | LATER).items():
        task = model.partition("-")[0]
        bound = 0.99 if task == "maze" else 0.9
        drafts = ("threshold", "top1") if model in LATER else ("threshold",)
        checks[f"remedy.detect.{model}"] = _detect(run, drafts, DETECTED[task], HALVES, bound)
        checks[f"remedy.ladder.{model}"] = _ladder(run, "ladder", HARDEST[task])
        if model not in QUARTERS:  # whose weights are not shipped
            checks[f"remedy.calibrated.{model}"] = _ladder(run, CALIBRATED, HARDEST[task], ("threshold", "top1"))
    checks["remedy.detect.sudoku-puma"] = _detect(TINY, ("threshold", "top1"), DETECTED["sudoku"], HALVES, 0.9)
    checks["remedy.margin.sudoku-random"] = _margin(QUARTERS["sudoku-random"], "tier=hard")
    checks["remedy.margin.countdown-random"] = _margin(QUARTERS["countdown-random"], "natural")
    for model, (run, strata) in RESTARTED.items():
        checks[f"remedy.restarts.{model}"] = _restarts(run, strata)
    return [replace(claim, whole=True, weights=WEIGHTS) for claim in SOURCE.stated("remedy", checks)]
