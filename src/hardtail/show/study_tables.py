"""The study's tables: what the paper prints, what the recorded runs give, and how far they agree.

A cell's agreement is the ledger's verdict on the statement "this figure is what the paper prints" (`Level`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, cycle, product

from hardtail.study.claims import Results
from hardtail.study.claims.base import Cell, Verdict
from hardtail.study.claims.evidence import OF_A_QUARTER, caveats_of, is_shortened, why_left_out
from hardtail.study.claims.ledger import the_paper
from hardtail.study.claims.rules import Level
from hardtail.study.claims.source import PrintedTable


@dataclass(frozen=True)
class TableCell:
    """Our figure with its 95 % interval, and the paper's; each is None if there is none."""

    ours: float | None
    low: float | None
    high: float | None
    seeds: int
    paper: float | None
    agreement: Verdict | None
    shortened: bool = False
    """Whether ours is of runs of a quarter of the paper's steps."""
    caveats: tuple[str, ...] = ()
    """What must be known of the runs behind ours."""


@dataclass(frozen=True)
class StudyTable:
    """Rows are strata; columns are grouped by decoding order, with one column for each scheme."""

    task: str
    title: str
    where: str
    stub: str
    groups: tuple[str, ...]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[TableCell, ...]], ...]
    limits: tuple[str, ...]
    """What must be known of the runs behind ours, after the columns that it is about."""
    left_out: str
    """Runs that are left out of the means because they have not shown that they learned the task, each with why."""

    @property
    def heads(self) -> list[tuple[str, str]]:
        """The group and the column that each cell of a row belongs to."""
        return list(product(self.groups, self.columns))


def study_tables(results: Results) -> list[StudyTable]:
    """All tables of accuracies that the paper prints."""
    return [_table(results, the_paper().table(name)) for name in the_paper().tables]


def _table(results: Results, table: PrintedTable) -> StudyTable:
    cells = {
        stratum.row: [table.cell(scheme, order, stratum) for order in table.orders for scheme in table.schemes]
        for stratum in table.rows
    }
    columns = tuple(table.schemes.values())
    rows = tuple((name, tuple(_filled(results, cell) for cell in row)) for name, row in cells.items())
    return StudyTable(
        table.task,
        table.title,
        table.where,
        table.stub,
        tuple(order.heading for order in table.orders),
        columns,
        rows,
        _limits(columns, [zip(cycle(columns), row, strict=False) for _, row in rows]),
        why_left_out(run for row in cells.values() for cell in row for run in cell.figure.left_out(results)),
    )


def _filled(results: Results, cell: Cell) -> TableCell:
    rule = Level(cell)
    held = rule.among(results)
    ours = cell.figure.estimate(held)
    if ours is None:
        return TableCell(None, None, None, 0, cell.paper, None)
    verdict = rule.judge(results).verdict if cell.paper is not None else None
    runs = cell.figure.runs(held)
    limits = any(map(is_shortened, runs)), caveats_of(runs)
    return TableCell(ours.mean, ours.low, ours.high, ours.seeds, cell.paper, verdict, *limits)


def _limits(columns: tuple[str, ...], rows: Iterable[Iterable[tuple[str, TableCell]]]) -> tuple[str, ...]:
    """Each limit of the runs once, after the columns in which it occurs."""
    found: dict[str, set[str]] = {}
    for column, cell in chain(*rows):
        for limit in (*[OF_A_QUARTER] * cell.shortened, *cell.caveats):
            found.setdefault(limit, set()).add(column)
    return tuple(f"{', '.join(filter(held.__contains__, columns))}: {limit}" for limit, held in found.items())
