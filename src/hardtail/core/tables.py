"""Tables for people, which a terminal and a document can print, and the tables of any nested result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import floor
from typing import TYPE_CHECKING, Any, Literal

from hardtail.core.terminal import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

Cell = str | int | float | None
MOST_DECIMALS = 8
"""A number that still looks like 0 or 1 then is printed as that."""
SCREEN = 80
"""The columns of a screen that every table is readable on."""
WIDE = 10
"""The most fields of a record that go next to each other; more go below each other."""
LINES, COMFORTABLE = 3, 24
"""A cell takes about this many lines at most, or its column has at least this many characters."""
SURE, UNSURE = 0.9999, 0.0001
"""A probability beyond these is printed as that."""
_GAP = 2


@dataclass(frozen=True)
class Table:
    """A title, column names, and rows of text and numbers; None is a missing value."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    decimals: int | None = None
    """Digits after the point of every number that is not whole by type; by default each is printed to four digits.
    A number between 0 and 1 has more where it would look like 0 or 1."""

    def texts(self) -> list[list[str]]:
        """The rows as they are printed."""
        return [[text(cell, self.decimals) for cell in row] for row in self.rows]

    def markdown(self) -> str:
        numeric = [self._numeric(column) for column in range(len(self.columns))]
        lines = [f"**{self.title}**", "", _line(self.columns), _line(["--:" if right else ":--" for right in numeric])]
        return "\n".join(lines + [_line(row) for row in self.texts()]) + "\n"

    def rich(self, width: int = SCREEN) -> "RenderableType":
        """The title and the table below it, for a console of this width."""
        from rich import box
        from rich.console import Group
        from rich.table import Table as RichTable
        from rich.text import Text

        # As texts, not as markup: names of runs and policies may have brackets.
        table = RichTable(
            box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), show_header=any(self.columns)
        )
        for place, (column, wide) in enumerate(zip(self.columns, self._fitted(width), strict=True)):
            justify: Literal["left", "right"] = "right" if self._numeric(place) else "left"
            table.add_column(Text(column), justify=justify, overflow="fold", width=wide)
        for row in self.texts():
            table.add_row(*map(Text, row))
        return Group(Text(self.title, "bold"), table) if self.title else table

    def plain(self, width: int = SCREEN) -> str:
        """The table as text without colour, for a notebook, a log or a pipe."""
        return "\n\n".join(plain(part.rich(width), width) for part in self.parts(width))

    @property
    def width(self) -> int:
        """The columns of the screen that it takes if no cell wraps."""
        return _total(self._widths(whole_cells=True))

    def parts(self, width: int = SCREEN) -> "list[Table]":
        """The table in parts that fit a screen without breaking a word, each with what the first column says."""
        widths = self._widths(whole_cells=False)
        chosen: list[list[int]] = [[0]]
        for place in range(1, len(widths)):
            if len(chosen[-1]) > 1 and _total([widths[held] for held in (*chosen[-1], place)]) > width:
                chosen.append([0])
            chosen[-1].append(place)
        return [
            self._with(places, f"{self.title}, continued" if part else self.title) for part, places in enumerate(chosen)
        ]

    def without_empty_columns(self) -> "Table":
        """The same without columns that have nothing in any row."""
        places = range(len(self.columns))
        told = [place for place in places if any(row[place] not in (None, "") for row in self.rows)]
        return self._with(told, self.title)

    def _with(self, places: Sequence[int], title: str) -> "Table":
        rows = tuple(tuple(row[place] for place in places) for row in self.rows)
        return Table(title, tuple(self.columns[place] for place in places), rows, self.decimals)

    def _fitted(self, width: int) -> list[int]:
        """The width of each column on a screen: the widest that can wrap give way first, and no word is broken."""
        widths, least = self._widths(whole_cells=True), self._widths(whole_cells=False)
        while _total(widths) > width and (
            loose := [place for place in range(len(widths)) if widths[place] > least[place]]
        ):
            widths[max(loose, key=lambda place: widths[place])] -= 1
        return widths

    def _widths(self, *, whole_cells: bool) -> list[int]:
        """The width of each column, or the least that is readable: no word is broken, a cell takes about
        `LINES` lines unless it is very long, and names in the first column are whole."""
        columns = list(zip(list(self.columns), *self.texts(), strict=True))
        whole = [max(len(line) for cell in cells for line in cell.split("\n")) for cells in columns]
        if whole_cells:
            return whole
        words = [max(len(word) for cell in cells for word in [*cell.split(), ""]) for cells in columns]
        least = [max(word, min(-(-all_ // LINES), COMFORTABLE)) for word, all_ in zip(words, whole, strict=True)]
        return [whole[0] if whole[0] <= SCREEN // 2 else least[0], *least[1:]]

    def _numeric(self, column: int) -> bool:
        values = [row[column] for row in self.rows]
        return not any(isinstance(value, str) for value in values) and any(value is not None for value in values)


def plain(shown: "RenderableType", width: int = SCREEN) -> str:
    """Anything that rich prints, as lines without colour or trailing blanks."""
    from rich.console import Console

    # In a notebook, rich would show it a second time, below the cell.
    console = Console(file=StringIO(), width=width, color_system=None, highlight=False, force_jupyter=False)
    with console.capture() as captured:
        console.print(shown)
    return visible("\n".join(line.rstrip() for line in captured.get().rstrip().split("\n")))


def percent(share: float | None) -> str:
    """A share in words: whole percent, halves up as on the page, but 0 and 100 only if it is exactly that."""
    if share is None:
        return "–"
    if 0 < share < 0.01:
        return "under 1 %"
    return "over 99 %" if 0.99 < share < 1 else f"{floor(100 * share + 0.5)} %"


def probability(value: float, equals: str = "") -> str:
    """A probability without false zeros and ones: `> 0.9999`, not `1.000`; `equals` precedes one in between."""
    if value > SURE:
        return f">\N{NO-BREAK SPACE}{SURE}"
    if value < UNSURE:
        return f"<\N{NO-BREAK SPACE}{UNSURE}"
    return f"{equals}{value:.{3 if 0.001 <= value < 0.9995 else 4}f}"


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def text(cell: Cell, decimals: int | None = None) -> str:
    """A cell as it is printed: numbers to four digits or with these decimals, whole ones in groups of three."""
    if cell is None:
        return "–"
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    if isinstance(cell, int):
        return f"{cell:,}"
    if not isinstance(cell, float):
        return cell
    if decimals is not None:
        while 0 < cell < 1 and round(cell, decimals) in (0, 1) and decimals < MOST_DECIMALS:
            decimals += 1  # what is nearly right is not right
        return f"{cell:,.{decimals}f}"
    return f"{cell:,.0f}" if 9999.5 <= abs(cell) < 1e12 else f"{cell:.4g}"  # 9999.5 would be 1e+04


def share_text(share: float, low: float | None, high: float | None) -> str:
    """A share and, if it is known, its interval: `0.800 [0.376, 0.964]`."""
    return text(share, 3) + ("" if low is None or high is None else f" [{low:.3f}, {high:.3f}]")


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def tabulate(title: str, value: Mapping[str, Any]) -> list[Table]:
    """A nested result as tables: its plain values first, then one table for every group of similar records below it.

    A list of records is a table with a column for each key; a mapping of records too, its keys in the first column.
    """
    plain = {name: inner for name, inner in value.items() if _plain(inner)}
    tables = (
        [Table(title, ("", "value"), tuple((_words(name), inner) for name, inner in plain.items()))] if plain else []
    )
    for name, inner in value.items():
        below = f"{title}: {_words(name)}"
        if isinstance(inner, Mapping) and _records(list(inner.values())):
            tables.append(_of_records(below, [{"": key, **record} for key, record in inner.items()]))
            tables += [table for key, record in inner.items() for table in _rest(f"{below}, {_words(key)}", record)]
        elif isinstance(inner, Mapping) and inner:
            tables += tabulate(below, inner)
        elif isinstance(inner, Sequence) and not isinstance(inner, str) and _records(inner):
            tables.append(_of_records(below, inner))
    return tables


def _rest(title: str, record: Mapping[str, Any]) -> list[Table]:
    """Tables of the parts of a record that do not fit in its row."""
    return tabulate(title, {name: inner for name, inner in record.items() if not _plain(inner)})


def _of_records(title: str, records: Sequence[Mapping[str, Any]]) -> Table:
    columns = [name for name, inner in records[0].items() if _plain(inner)]
    rows = tuple(tuple(record[name] for name in columns) for record in records)
    headings = tuple(_words(name) for name in columns)
    if columns[0] == "" and len(columns) > WIDE > len(records):  # few records of many fields: a column for each record
        turned = tuple(zip(headings, *rows, strict=True))
        return Table(title, tuple(map(str, turned[0])), turned[1:])
    return Table(title, headings, rows)


def _records(values: Sequence[Any]) -> bool:
    """Whether these are mappings with the same keys, plain values among them."""
    if not values or not all(isinstance(value, Mapping) for value in values):
        return False
    return all(list(value) == list(values[0]) for value in values) and any(map(_plain, values[0].values()))


def _plain(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float)


def _words(name: str) -> str:
    return name.replace("_", " ")
