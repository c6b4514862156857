"""Claims of the discussion (section 5) and of the abstract, expressed in figures."""

from hardtail.study.claims.base import Cell, Claim
from hardtail.study.claims.confidence_shortcut import SOURCE, addition, maze
from hardtail.study.claims.confidence_shortcut.table_3 import COUNTDOWN, LISTOPS, SUDOKU
from hardtail.study.claims.facts import Unseen
from hardtail.study.claims.figures import Profiled
from hardtail.study.claims.recovery import Recovery, Unrecovered
from hardtail.study.claims.rules import AtLeast, above
from hardtail.study.claims.source import Checks
from hardtail.tasks.named import make_task

ADDITION, MAZE = addition.TABLES, maze.TABLES
HARDEST = ((ADDITION, "28"), (MAZE, "30"), (LISTOPS, "5"), (COUNTDOWN, "high"), (SUDOKU, "top1"))
"""The stratum of each task that alignment is claimed to fail on."""
FIVE = tuple(tables.tables[0].task for tables, _ in HARDEST)


def rare(task: str, scheme: str) -> Cell:
    """Of the hidden cells that decoding in logical order meets, the share that training rarely had in such a place."""
    name, of = "hidden cells in places that training rarely had", ("result.instances",)
    main_order = make_task(task).order_names[0]  # by which training counts its mask states
    return Cell(Profiled(task, scheme, "coverage.rare_by_rank", name, of, policy=main_order))


def ready(task: str) -> Cell:
    """Of PUMA's commits in cells that wait for others, the share made when these were known; of so many answers, whose
    cells depend on each other."""
    path, name, of = "readiness.accuracy.ready.commits", "dependent cells committed when ready", "readiness.dependent"
    return Cell(Profiled(task, "puma", path, name, (of,), divided=True, cases="result.instances"))


def unready(scheme: str) -> Cell:
    name, at = "first wrong commit before what it waits for", "first_wrong.by_stratum.all"
    return Cell(Profiled("maze", scheme, f"{at}.unready", name, (f"{at}.failures",)))


def claims() -> list[Claim]:
    premature = [Cell(first) for s in ("random", "puma") for first in addition.share(s, "premature").beside()]
    checks: Checks = {
        "discussion.trajectory-failure": [
            Recovery(ADDITION.cell("puma", "confidence", "28"), ADDITION.cell("puma", "lsb", "28")),
            Recovery(MAZE.mean("puma", "confidence"), MAZE.mean("puma", "dead-end")),
        ],
        "discussion.representation-failure": [
            Unrecovered(ADDITION.cell("papl", "confidence", "28"), ADDITION.cell("papl", "lsb", "28")),
        ],
        "discussion.coverage-failure": [
            AtLeast(COUNTDOWN.cell("puma", "reveal", "high"), 0.99),
            above(COUNTDOWN.cell("random", "confidence", "high"), COUNTDOWN.cell("puma", "confidence", "high")),
        ],
        **{f"discussion.coverage.{task}": [above(rare(task, "puma"), rare(task, "random"))] for task in FIVE},
        "discussion.readiness.addition": [AtLeast(cell, 0.9, tolerance=0.1) for cell in premature],
        "discussion.readiness.maze": [AtLeast(unready(s), 0.9, tolerance=0.1) for s in ("papl", "puma")],
        "discussion.readiness.sudoku": [above(ready("sudoku"), ready(task)) for task in ("addition", "maze")],
        **{
            f"discussion.random-order.{task}": [AtLeast(Cell(Unseen(task, "puma")), 0.5)]
            for task in ("maze", "addition")
        },
        "abstract.failures": [
            Recovery(ADDITION.mean("random", "confidence"), ADDITION.mean("random", "lsb")),
            Recovery(MAZE.mean("puma", "confidence"), MAZE.mean("puma", "dead-end")),
        ],
        "abstract.alignment": [
            above(tables.cell("random", "confidence", hardest), tables.cell(scheme, "confidence", hardest))
            for tables, hardest in HARDEST
            for scheme in ("papl", "puma")
        ],
    }
    return SOURCE.stated("discussion", checks)
