"""Claims of the discussion (section 5), expressed in figures."""

from hardtail.measuring.statistics import Interval
from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE, addition, maze
from hardtail.study.claims.confidence_shortcut.table_3 import COUNTDOWN, LISTOPS
from hardtail.study.claims.figures import Profiled
from hardtail.study.claims.rules import AtLeast, Recovery, Unrecovered, above
from hardtail.study.claims.source import Checks

ORDERS = {
    "addition": "lsb",
    "maze": "dead_end_filling",
    "listops": "post_order",
    "countdown": "step_sequential",
    "sudoku": "constraint_propagation",
}
"""The logical order of each task that training counts its mask states by."""


def rare(task: str, scheme: str) -> Cell:
    """Of the hidden cells that decoding in logical order meets, the share that training rarely had in such a place."""
    name, of = "hidden cells in places that training rarely had", ("result.instances",)
    return Cell(Profiled(task, scheme, "coverage.rare_by_rank", name, of, policy=ORDERS[task]))


def agreement(task: str, scheme: str) -> Cell:
    """Kendall's tau-b between the confidence order and the logical order."""
    path, name = f"readiness.agreement.{ORDERS[task]}.tau_b", "Kendall's τ with the logical order"
    return Cell(Profiled(task, scheme, path, name, bounds=Interval(-1.0, 1.0)))


def unready(scheme: str) -> Cell:
    name, at = "first wrong commit before what it waits for", "first_wrong.by_stratum.all"
    return Cell(Profiled("maze", scheme, f"{at}.unready", name, (f"{at}.failures",), learned=True))


def claims() -> list[Claim]:
    premature = [Cell(addition.share(scheme, "premature")) for scheme in ("random", "puma")]
    checks: Checks = {
        "discussion.trajectory-failure": [
            Recovery(addition.tail("puma", "confidence", "28"), addition.tail("puma", "lsb", "28")),
            Recovery(maze.mean("puma", "confidence"), maze.mean("puma", "dead-end")),
        ],
        "discussion.representation-failure": [
            Unrecovered(addition.tail("papl", "confidence", "28"), addition.tail("papl", "lsb", "28")),
            Unrecovered(LISTOPS.cell("puma", "confidence", "5"), LISTOPS.cell("puma", "recovery", "5")),
        ],
        "discussion.coverage-failure": [
            AtLeast(COUNTDOWN.cell("puma", "reveal", "high"), 0.99),
            above(COUNTDOWN.cell("random", "confidence", "high"), COUNTDOWN.cell("puma", "confidence", "high")),
        ],
        **{f"discussion.coverage.{task}": [above(rare(task, "puma"), rare(task, "random"))] for task in ORDERS},
        "discussion.readiness.addition": [AtLeast(cell, 0.9, tolerance=0.1) for cell in premature],
        "discussion.readiness.maze": [AtLeast(unready(s), 0.9, tolerance=0.1) for s in ("papl", "puma")],
        "discussion.readiness.sudoku": [above(agreement("sudoku", "puma"), agreement("addition", "puma"))],
    }
    return SOURCE.stated("discussion", checks)
