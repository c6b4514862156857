"""The study's tables with our figures in them: what the paper prints, what the recorded runs give, how far they agree.

A cell's agreement is the ledger's verdict on the statement "this figure is what the paper prints" (`Level`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from hardtail.study.claims import Results, addition, countdown, listops, maze, sudoku
from hardtail.study.claims.base import Cell, Verdict
from hardtail.study.claims.figures import Accuracy
from hardtail.study.claims.rules import Level

SCHEMES = {"random": "Random", "papl": "PAPL", "puma": "PUMA"}
FOUR = {"random": "Random", "papl": "PAPL α=1", "puma": "PUMA", "papl5": "PAPL α=5"}
HARD_TAILS = ("addition", "maze")
"""The tasks whose tables are about the hard tail of models that have learned the task."""


@dataclass(frozen=True)
class TableCell:
    """Our figure with its 95 % interval and the paper's; None where there is none."""

    ours: float | None
    low: float | None
    high: float | None
    seeds: int
    paper: float | None
    agreement: Verdict | None


@dataclass(frozen=True)
class StudyTable:
    """Rows are strata; columns come in groups, one for each decoding order, one column a scheme."""

    task: str
    title: str
    where: str
    stub: str
    groups: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]
    unlearned: tuple[str, ...]
    """Runs that count in the means though they have not learned the task."""

    @property
    def measured(self) -> int:
        return sum(cell.ours is not None for _, cells in self.rows for cell in cells)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


Printed = Callable[[str, str, Any], Cell]


def study_tables(results: Results) -> list[StudyTable]:
    """All tables of accuracies that the paper prints."""
    chains = {f"chain ≥ {chain}": chain for chain in addition.CHAINS}
    corridors = {f"corridor ≥ {corridor}": corridor for corridor in maze.CORRIDORS}
    depths = {f"depth = {depth}": depth for depth in listops.DEPTHS}
    multiplicities = {"1 to 3 solutions": "low", "11 or more": "high", "overall": "overall"}
    every_m = {"1 to 3 solutions": "low", "4 to 10": "middle", "11 or more": "high", "overall": "overall"}
    boards = {"overall": "overall", "hardest 1 %": "top1", "TL4 ≥ 95 %": "tl4"}
    confidence, random = {"Confidence": "confidence"}, {"Random order": "random"}
    three = confidence | random
    tables = [
        ("addition", "32-digit addition, exact match", "Table 1", "longest carry chain"),
        ("addition", "32-digit addition in random order, exact match", "App. E.1", "longest carry chain"),
        ("maze", "Mazes, exact match", "Table 2", "longest corridor"),
        ("listops", "ListOps, exact match", "Table 3", "nesting"),
        ("countdown", "Countdown, exact match; half revealed: token accuracy", "Table 3", "multiplicity"),
        ("countdown", "Countdown in step order, exact match", "App. E.2", "multiplicity"),
        ("sudoku", "Sudoku, accuracy of blank cells", "Table 3", "puzzles"),
        ("sudoku", "Sudoku in solver orders, accuracy of blank cells", "App. E.3", "puzzles"),
    ]
    contents: list[tuple[Printed, Mapping[str, Any], Mapping[str, str], Mapping[str, str]]] = [
        (addition.cell, chains, confidence | {"LSB first": "lsb"}, FOUR),
        (addition.cell, chains, random, FOUR),
        (maze.cell, corridors, three | {"Dead-end filling": "dead-end"}, SCHEMES),
        (listops.cell, depths, three | {"Post-order": "recovery"}, SCHEMES),
        (countdown.cell, multiplicities, three | {"Half revealed": "reveal"}, SCHEMES),
        (countdown.cell, every_m, {"Step by step": "sequential"}, SCHEMES),
        (sudoku.cell, boards, three, SCHEMES),
        (sudoku.cell, boards, {"Constraint propagation": "propagation", "Technique": "technique"}, SCHEMES),
    ]
    return [_table(results, head, *content) for head, content in zip(tables, contents, strict=True)]


def _table(
    results: Results,
    head: tuple[str, str, str, str],
    printed: Printed,
    strata: Mapping[str, Any],
    orders: Mapping[str, str],
    schemes: Mapping[str, str],
) -> StudyTable:
    cells = {
        name: [printed(scheme, order, at) for order in orders.values() for scheme in schemes]
        for name, at in strata.items()
    }
    rows = tuple((name, tuple(_filled(results, cell) for cell in row)) for name, row in cells.items())
    unlearned = _unlearned(results, [cell for row in cells.values() for cell in row]) if head[0] in HARD_TAILS else ()
    return StudyTable(*head, tuple(orders), tuple(schemes.values()), rows, unlearned)


def _unlearned(results: Results, cells: Sequence[Cell]) -> tuple[str, ...]:
    figures = (replace(cell.figure, learned=True) for cell in cells if isinstance(cell.figure, Accuracy))
    return tuple(dict.fromkeys(name for figure in figures for name in figure.left_out(results)))


def _filled(results: Results, cell: Cell) -> TableCell:
    ours = cell.figure.estimate(results)
    if ours is None:
        return TableCell(None, None, None, 0, cell.paper, None)
    verdict = Level(cell).judge(results).verdict if cell.paper is not None else None
    return TableCell(ours.mean, ours.low, ours.high, ours.seeds, cell.paper, verdict)


# -- the ledger -------------------------------------------------------------------------------------------------------

_RECORD = ("figure", "run", "seed", "checkpoint", "policy", "stratum", "n", "value", "interval", "commit", "device")
_CLAIM = ("id", "claim", "where", "paper", "ours", "seeds", "verdict", "caveat", "left_out", "parts")


def ledger(results: Results) -> dict[str, Any]:
    """Every claim with its verdict; the records behind all of them once, which claims point to by number."""
    from hardtail.study.claims.ledger import as_json, judge

    numbers: dict[tuple[Any, ...], int] = {}
    claims = []
    for judged in judge(results):
        row = as_json(judged, results, evidence=True)
        claims.append({key: row[key] for key in _CLAIM} | {"records": _numbered(row["records"], numbers)})
    return {"columns": _RECORD, "records": list(numbers), "claims": claims}


def _numbered(records: Sequence[Mapping[str, Any]], numbers: dict[tuple[Any, ...], int]) -> list[int]:
    found = []
    for record in records:
        row = tuple(tuple(record[key]) if isinstance(record[key], list) else record[key] for key in _RECORD)
        found.append(numbers.setdefault(row, len(numbers)))
    return found
