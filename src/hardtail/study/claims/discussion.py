"""Claims of the discussion (section 5), put into figures."""

from hardtail.measuring.statistics import Interval
from hardtail.study.claims import addition, countdown, listops, maze
from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.figures import Profiled
from hardtail.study.claims.rules import AtLeast, Gap, Recovery, Unrecovered

ORDERS = {
    "addition": "lsb",
    "maze": "dead_end_filling",
    "listops": "post_order",
    "countdown": "step_sequential",
    "sudoku": "constraint_propagation",
}
"""The logical order of each task that training counts its mask states by."""


def rare(task: str, scheme: str) -> Profiled:
    """Of the hidden cells that decoding in logical order meets, the share that training had rarely in such a place."""
    path, name = ("coverage", "rare_by_rank"), "hidden cells in places that training rarely had"
    return Profiled(task, scheme, path, name, (("result", "instances"),), policy=ORDERS[task])


def agreement(task: str, scheme: str) -> Profiled:
    """Kendall's tau-b between the confidence order and the logical order."""
    path = ("readiness", "agreement", ORDERS[task], "tau_b")
    return Profiled(task, scheme, path, "Kendall's τ with the logical order", between=Interval(-1.0, 1.0))


def claims() -> list[Claim]:
    return [
        Claim(
            "discussion.trajectory-failure",
            "PUMA's failures on addition and mazes are of the trajectory: a better order recovers them.",
            "§5",
            (
                Recovery(addition.tail("puma", "confidence", 28), addition.tail("puma", "lsb", 28)),
                Recovery(maze.over_corridors("puma", "confidence"), maze.over_corridors("puma", "dead-end")),
            ),
        ),
        Claim(
            "discussion.representation-failure",
            "PAPL's failure on addition and PUMA's on deep ListOps are of the representation: no order recovers them.",
            "§5",
            (
                Unrecovered(addition.tail("papl", "confidence", 28), addition.tail("papl", "lsb", 28)),
                Unrecovered(listops.cell("puma", "confidence", 5), listops.cell("puma", "recovery", 5)),
            ),
        ),
        Claim(
            "discussion.coverage-failure",
            "PUMA's failure on Countdown is one of coverage: it completes half-revealed chains that it cannot begin.",
            "§4.3, §5",
            (
                AtLeast(countdown.cell("puma", "reveal", "high"), 0.99),
                Gap((countdown.cell("random", "confidence", "high"),), (countdown.cell("puma", "confidence", "high"),)),
            ),
        ),
        *(
            Claim(
                f"discussion.coverage.{task}",
                f"PUMA trains fewer of the states that logical order passes through than random masking ({task}).",
                "§5",
                (Gap((Cell(rare(task, "puma")),), (Cell(rare(task, "random")),)),),
                "The paper measures no coverage. Ours: the share of hidden cells, along the logical order, at ranks "
                "and counts that training had less than a tenth as often as uniform masking.",
                "no number",
            )
            for task in ORDERS
        ),
        Claim(
            "discussion.readiness.addition",
            "Wrong commits on addition are made before what they wait for is known.",
            "§5",
            tuple(AtLeast(Cell(_premature(scheme)), 0.9, tolerance=0.1) for scheme in ("random", "puma")),
            "The paper prints no share; read as at least nine in ten wrong commits.",
            "no number",
        ),
        Claim(
            "discussion.readiness.maze",
            "Wrong commits on mazes, too, are made before what they wait for is known.",
            "§5",
            tuple(AtLeast(Cell(_unready("maze", scheme)), 0.9, tolerance=0.1) for scheme in ("papl", "puma")),
            "The paper prints no share; read as at least nine in ten first wrong commits, cells waiting as in dead-end "
            "filling.",
            "no number",
        ),
        Claim(
            "discussion.readiness.sudoku",
            "Confidence follows the order of a solver on Sudoku, and less so the order of carries on addition.",
            "§5",
            (Gap((Cell(agreement("sudoku", "puma")),), (Cell(agreement("addition", "puma")),)),),
            "The paper measures no agreement. Ours: Kendall's tau-b of commit steps with the logical order.",
            "no number",
        ),
    ]


def _premature(scheme: str) -> Profiled:
    path = ("profile", "wrong_commits", "lowest_index")
    name, of = "committed before the cell it waits for", ((*path, "failures"),)
    return Profiled("addition", scheme, (*path, "premature"), name, of, usual="last", learned=True)


def _unready(task: str, scheme: str) -> Profiled:
    path = ("first_wrong", "by_stratum", "all")
    name, of = "first wrong commit before what it waits for", ((*path, "failures"),)
    return Profiled(task, scheme, (*path, "unready"), name, of, learned=True)
