"""Sources: papers whose claims are judged.

A source is one TOML file (`source_file.py`), or, for a paper with many tables, a package: printed tables and statements
as TOML files, and the checks of the statements as Python modules. Every cell of a printed table automatically becomes
part of a claim.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import product
from typing import Annotated, Any, TypeVar

from msgspec import Meta, Struct, ValidationError, convert

from hardtail.core.errors import HardtailError
from hardtail.core.parsing import decoded_toml
from hardtail.core.records import Positive, Share
from hardtail.study.claims.base import Cell, Check, Claim
from hardtail.study.claims.combined import Weighted
from hardtail.study.claims.figures import SCHEMES, Figure, Metric, ShareRight
from hardtail.study.claims.rules import Level

T = TypeVar("T")
Checks = Mapping[str, Sequence[Check]]
"""What judges each statement, by its id."""


class Stratum(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a table."""

    key: str
    row: str
    """Its heading."""
    of: Annotated[dict[str, Positive], Meta(min_length=1)]
    """The task's strata behind it, with the number of instances that the source measured in each."""
    name: str = ""
    """What several strata together are called."""


class Order(Struct, frozen=True, forbid_unknown_fields=True):
    """A decoding order of a table: a group of columns."""

    key: str
    policy: str
    heading: str
    words: str
    """How a sentence about it begins."""
    numbers: dict[str, tuple[Share, ...]]
    """For each stratum what is printed, scheme by scheme."""
    metric: Metric | None = None
    note: str = ""


class Template(Struct, frozen=True, forbid_unknown_fields=True):
    """The claims that the cells of a table make: cells with the same id are one claim.

    In braces: the keys `order`, `scheme` and `stratum`, all `strata`, and the `words` of the order and `scheme_words`.
    """

    id: str
    sentence: str


class PrintedTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A printed table of accuracies."""

    where: str
    task: str
    title: str
    stub: str
    schemes: dict[str, str]
    """Training schemes with their headings."""
    strata: tuple[Stratum, ...]
    orders: tuple[Order, ...]
    claim: Template
    metric: Metric = "exact_match"
    unprinted: tuple[str, ...] = ()
    """Strata whose numbers follow from others, and are not in the table."""

    def __post_init__(self) -> None:
        if unknown := self.schemes.keys() - SCHEMES.keys():
            raise ValueError(f"`schemes` has {sorted(unknown)}; known schemes are {', '.join(SCHEMES)}")
        known = {stratum.key for stratum in self.strata}
        for order in self.orders:
            if odd := (order.numbers.keys() - known) | ({held.key for held in self.rows} - order.numbers.keys()):
                raise ValueError(f"the strata of `orders.{order.key}.numbers` and `strata` differ in {sorted(odd)}")
            if misfit := [key for key, numbers in order.numbers.items() if len(numbers) != len(self.schemes)]:
                raise ValueError(f"`orders.{order.key}.numbers.{misfit[0]}` needs {len(self.schemes)} numbers")
        try:
            self.claims()
        except (LookupError, ValueError) as error:
            raise ValueError(f"`claim` cannot be filled in: {error} in braces") from error

    @property
    def rows(self) -> tuple[Stratum, ...]:
        return tuple(stratum for stratum in self.strata if stratum.key not in self.unprinted)

    def cell(self, scheme: str, order: Order, stratum: Stratum) -> Cell:
        paper = order.numbers[stratum.key][list(self.schemes).index(scheme)]
        metric = order.metric or self.metric
        figures = tuple(ShareRight(self.task, scheme, order.policy, name, metric) for name in stratum.of)
        name = f"{SCHEMES[scheme]}, {order.policy}, {stratum.name}"
        weights = tuple(map(float, stratum.of.values()))
        figure: Figure = figures[0] if len(figures) == 1 else Weighted(figures, name, weights)
        return Cell(figure, paper, sum(stratum.of.values()))

    def claims(self) -> list[Claim]:
        """Claims that our figures are those printed: for each order by scheme if each has a claim, else by stratum."""
        made: dict[str, Claim] = {}
        strata, places = ", ".join(row.key for row in self.rows), list(product(self.orders, self.schemes, self.rows))
        if "{scheme}" not in self.claim.id:
            places = [(order, scheme, row) for order, row, scheme in product(self.orders, self.rows, self.schemes)]
        for order, scheme, row in places:
            words = {"order": order.key, "scheme": scheme, "stratum": row.key, "strata": strata, "words": order.words}
            name, sentence = (
                text.format(**words, scheme_words=SCHEMES[scheme]) for text in (self.claim.id, self.claim.sentence)
            )
            claim = made.get(name) or Claim(name, sentence, self.where, caveat=order.note, tabled=True)
            made[name] = replace(claim, checks=(*claim.checks, Level(self.cell(scheme, order, row))))
        return list(made.values())


@dataclass(frozen=True)
class TaskTables:
    """All tables that a source prints about one task."""

    tables: tuple[PrintedTable, ...]

    @property
    def strata(self) -> tuple[str, ...]:
        return tuple(stratum.key for stratum in self.tables[0].strata)

    def order(self, key: str) -> Order:
        return self._of(key)[1]

    def cell(self, scheme: str, order: str, stratum: str) -> Cell:
        """A printed number and its figure."""
        table, held = self._of(order)
        return table.cell(scheme, held, next(row for row in table.strata if row.key == stratum))

    def row(self, scheme: str, order: str) -> tuple[Cell, ...]:
        return tuple(self.cell(scheme, order, stratum) for stratum in self.strata)

    def mean(self, scheme: str, order: str, start: int = 0) -> Cell:
        """The mean over all strata, or those from the given place on; they have the same number of instances."""
        cells, among = self.row(scheme, order)[start:], f" from {self.strata[start]}" if start else ""
        name = f"{SCHEMES[scheme]}, {self.order(order).policy}, mean over {self.tables[0].stub}s{among}"
        figure = Weighted(tuple(cell.figure for cell in cells), name, (1.0,) * len(cells))
        return Cell(figure, sum(cell.paper or 0.0 for cell in cells) / len(cells), sum(cell.n or 0 for cell in cells))

    def claims(self) -> list[Claim]:
        return [claim for table in self.tables for claim in table.claims()]

    def _of(self, key: str) -> tuple[PrintedTable, Order]:
        return next((table, order) for table in self.tables for order in table.orders if order.key == key)


class Statement(Struct, frozen=True, forbid_unknown_fields=True):
    """What a paper says, in our words; with `each` one claim for every entry, its `{key}` and `{each}` filled in."""

    sentence: str
    where: str = ""
    caveat: str = ""
    reports: str = ""
    each: dict[str, str] = {}

    def claims(self, name: str, where: str) -> Iterator[Claim]:
        words = name, self.sentence, self.where or where, self.caveat, self.reports
        for key, each in self.each.items() or [("", "")]:
            yield Claim(*(text.format(key=key, each=each) for text in words))


class Statements(Struct, frozen=True, forbid_unknown_fields=True):
    """The statements of one part of a paper by their ids."""

    where: str
    """Where the paper makes those that name no place of their own."""
    claims: dict[str, Statement]


class Source(ABC):
    """Where claims come from."""

    title: str

    @abstractmethod
    def claims(self) -> list[Claim]: ...


@dataclass(frozen=True)
class Paper(Source):
    """A package. `tables` names files in its folder `tables/`, `statements` its modules."""

    package: str
    tables: tuple[str, ...]
    statements: tuple[str, ...]
    title: str = "the paper"

    def table(self, name: str) -> PrintedTable:
        return _read(self.package, f"tables/{name}", PrintedTable)

    def text(self, name: str, kind: type[T]) -> T:
        """Numbers that the text prints, from the folder `text/`."""
        return _read(self.package, f"text/{name}", kind)

    def stated(self, name: str, checks: Checks) -> list[Claim]:
        """The statements of one file in the folder `statements/`, each with the checks that judge it, by its id."""
        held = _read(self.package, f"statements/{name}", Statements)
        try:
            claims = [claim for key, statement in held.claims.items() for claim in statement.claims(key, held.where)]
        except LookupError as error:
            raise HardtailError(f"{self.package}, statements/{name}.toml has {error} in braces") from error
        if unmatched := {claim.id for claim in claims} ^ checks.keys():
            raise HardtailError(f"{self.package}, statements/{name}.toml and its checks differ in {sorted(unmatched)}")
        return [replace(claim, checks=tuple(checks[claim.id])) for claim in claims]

    def about(self, task: str) -> TaskTables:
        return TaskTables(tuple(table for table in map(self.table, self.tables) if table.task == task))

    def claims(self) -> list[Claim]:
        return [claim for name in self.statements for claim in import_module(f"{self.package}.{name}").claims()]


def _read(package: str, name: str, kind: type[T]) -> T:
    """A TOML file of a package as `kind`; raises HardtailError with file and key if it does not fit."""
    try:
        return convert(_raw(package, name), kind)
    except ValidationError as error:
        raise HardtailError(f"{package}, {name}.toml: {error}") from error


@cache
def _raw(package: str, name: str) -> dict[str, Any]:
    """The content of a TOML file, merged over the file that it extends."""
    where = f"{package}, {name}.toml"
    try:
        held = decoded_toml(files(package).joinpath(f"{name}.toml").read_bytes(), where)
    except OSError as error:
        raise HardtailError(f"{where} cannot be read: {error}") from error
    extended = held.pop("extends", None)
    return held if extended is None else _raw(package, f"{name.rpartition('/')[0]}/{extended}") | held
