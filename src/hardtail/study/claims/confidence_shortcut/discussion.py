"""Claims of the discussion (section 5), put into figures."""

from collections.abc import Iterator

from hardtail.measuring.statistics import Interval
from hardtail.study.claims.base import Cell, Claim, Section
from hardtail.study.claims.confidence_shortcut import addition, addition_commits, countdown, listops, maze
from hardtail.study.claims.figures import Profiled
from hardtail.study.claims.rules import AtLeast, Recovery, Unrecovered, above

ORDERS = {
    "addition": "lsb",
    "maze": "dead_end_filling",
    "listops": "post_order",
    "countdown": "step_sequential",
    "sudoku": "constraint_propagation",
}
"""The logical order of each task that training counts its mask states by."""


def rare(task: str, scheme: str) -> Cell:
    """Of the hidden cells that decoding in logical order meets, the share that training had rarely in such a place."""
    path, name = ("coverage", "rare_by_rank"), "hidden cells in places that training rarely had"
    return Cell(Profiled(task, scheme, path, name, (("result", "instances"),), policy=ORDERS[task]))


def agreement(task: str, scheme: str) -> Cell:
    """Kendall's tau-b between the confidence order and the logical order."""
    path = ("readiness", "agreement", ORDERS[task], "tau_b")
    return Cell(Profiled(task, scheme, path, "Kendall's τ with the logical order", between=Interval(-1.0, 1.0)))


def unready(scheme: str) -> Cell:
    path = ("first_wrong", "by_stratum", "all")
    name, of = "first wrong commit before what it waits for", ((*path, "failures"),)
    return Cell(Profiled("maze", scheme, (*path, "unready"), name, of, learned=True))


def claims() -> Iterator[Claim]:
    at = Section("discussion", "§5")
    yield at(
        "trajectory-failure",
        "PUMA's failures on addition and mazes are of the trajectory: a better order recovers them.",
    ).by(
        Recovery(addition.tail("puma", "confidence", "28"), addition.tail("puma", "lsb", "28")),
        Recovery(maze.mean("puma", "confidence"), maze.mean("puma", "dead-end")),
    )
    yield at(
        "representation-failure",
        "PAPL's failure on addition and PUMA's on deep ListOps are of the representation: no order recovers them.",
    ).by(
        Unrecovered(addition.tail("papl", "confidence", "28"), addition.tail("papl", "lsb", "28")),
        Unrecovered(listops.cell("puma", "confidence", "5"), listops.cell("puma", "recovery", "5")),
    )
    yield at(
        "coverage-failure",
        "PUMA's failure on Countdown is one of coverage: it completes half-revealed chains that it cannot begin.",
        "§4.3, §5",
    ).by(
        AtLeast(countdown.cell("puma", "reveal", "high"), 0.99),
        above(countdown.cell("random", "confidence", "high"), countdown.cell("puma", "confidence", "high")),
    )

    for task in ORDERS:
        yield at(
            f"coverage.{task}",
            f"PUMA trains fewer of the states that logical order passes through than random masking ({task}).",
        ).by(
            above(rare(task, "puma"), rare(task, "random")),
            caveat="The paper measures no coverage. Ours: the share of hidden cells, along the logical order, at ranks "
            "and counts that training had less than a tenth as often as uniform masking.",
            reports="no number",
        )

    premature = [Cell(addition_commits.share(scheme, "premature")) for scheme in ("random", "puma")]
    yield at("readiness.addition", "Wrong commits on addition are made before what they wait for is known.").by(
        *(AtLeast(held, 0.9, tolerance=0.1) for held in premature),
        caveat="The paper prints no share; read as at least nine in ten wrong commits.",
        reports="no number",
    )
    yield at("readiness.maze", "Wrong commits on mazes, too, are made before what they wait for is known.").by(
        *(AtLeast(unready(scheme), 0.9, tolerance=0.1) for scheme in ("papl", "puma")),
        caveat="The paper prints no share; read as at least nine in ten first wrong commits, cells waiting as in "
        "dead-end filling.",
        reports="no number",
    )
    yield at(
        "readiness.sudoku",
        "Confidence follows the order of a solver on Sudoku, and less so the order of carries on addition.",
    ).by(
        above(agreement("sudoku", "puma"), agreement("addition", "puma")),
        caveat="The paper measures no agreement. Ours: Kendall's tau-b of commit steps with the logical order.",
        reports="no number",
    )
