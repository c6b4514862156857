"""The study's tables: what the paper prints, what the recorded runs give, and how far they agree.

A cell's agreement is the ledger's verdict on the statement "this figure is what the paper prints" (`Level`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, cycle, product

from hardtail.study.claims import Results
from hardtail.study.claims.base import Cell, Verdict
from hardtail.study.claims.evidence import LeftOut, caveats_of, is_shortened, kinds_of, why_left_out
from hardtail.study.claims.ledger import the_paper
from hardtail.study.claims.rules import Level
from hardtail.study.claims.source import PrintedTable

UNLIKE = ", not to be compared with the rest"


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


@dataclass(frozen=True)
class _Filled:
    """A cell, what must be said of the steps and problems of its runs, and those that are left out of it."""

    cell: TableCell
    kinds: tuple[str, ...]
    left_out: list[LeftOut]


def _table(results: Results, table: PrintedTable) -> StudyTable:
    rows = {
        stratum.row: [
            _filled(results, table.cell(scheme, order, stratum)) for order in table.orders for scheme in table.schemes
        ]
        for stratum in table.rows
    }
    columns = tuple(table.schemes.values())
    return StudyTable(
        table.task,
        table.title,
        table.where,
        table.stub,
        tuple(order.heading for order in table.orders),
        columns,
        tuple((name, tuple(held.cell for held in row)) for name, row in rows.items()),
        _limits(columns, rows.values()),
        why_left_out(run for held in chain(*rows.values()) for run in held.left_out),
    )


def _filled(results: Results, cell: Cell) -> _Filled:
    rule = Level(cell)
    held = rule.among(results)
    left_out = cell.figure.left_out(held)
    ours = cell.figure.estimate(held)
    if ours is None:
        return _Filled(TableCell(None, None, None, 0, cell.paper, None), (), left_out)
    verdict = rule.judge(held).verdict if cell.paper is not None else None
    runs = cell.figure.runs(held)
    limits = any(map(is_shortened, runs)), caveats_of(runs)
    numbers = ours.mean, ours.low, ours.high, ours.seeds, cell.paper
    return _Filled(TableCell(*numbers, verdict, *limits), kinds_of(runs), left_out)


def _limits(columns: tuple[str, ...], rows: Iterable[Iterable[_Filled]]) -> tuple[str, ...]:
    """Each limit of the runs once, after the columns in which it occurs; one of their kind that not all cells have says
    that these are no comparison."""
    pairs = [pair for row in rows for pair in zip(cycle(columns), row, strict=False)]
    measured = [(column, held) for column, held in pairs if held.cell.seeds]
    found: dict[str, list[str]] = {}
    for column, held in measured:
        for kind in held.kinds:
            alone = not all(kind in other.kinds for _, other in measured)
            found.setdefault(kind + UNLIKE * alone, []).append(column)
        for caveat in held.cell.caveats:
            found.setdefault(caveat, []).append(column)
    return tuple(f"{', '.join(filter(where.__contains__, columns))}: {limit}" for limit, where in found.items())
