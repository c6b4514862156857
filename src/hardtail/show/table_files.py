"""Write tables to files: Markdown to read, LaTeX (booktabs) to print, CSV to compute with."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from hardtail.core.files import atomic
from hardtail.core.tables import Cell, Table
from hardtail.show.study_tables import StudyTable, TableCell, study_tables
from hardtail.study.claims import Results
from hardtail.study.claims.ledger import counts_table, judge, ledger_table

NO_NUMBER = "–"
PAGE = 40
"""Rows that fit on a page."""
_BREAKABLE = re.compile(r"(?<=[a-z0-9])\.(?=[a-z])")
"""Where a line may break inside the id of a claim."""
_MATHS = {"≥": "geq", "≤": "leq", "±": "pm", "×": "times", "·": "cdot", "→": "to", "≈": "approx"}
_GREEK = {"α": "alpha", "τ": "tau"}
_TEXT = {"\\": "textbackslash", "~": "textasciitilde", "^": "textasciicircum", "…": "dots", "§": "S"}
_ESCAPED = str.maketrans(
    {sign: rf"$\{name}$" for sign, name in (_MATHS | _GREEK).items()}
    | {sign: rf"\{name}{{}}" for sign, name in _TEXT.items()}
    | {sign: f"${sign}$" for sign in "<>|"}
    | {sign: f"\\{sign}" for sign in "&%$#_{}"}
    | {"−": "$-$", "–": "--", '"': "''"}
)


def write_tables(folder: Path, results: Results) -> list[Path]:
    """Write every table of the study with our figures, and the ledger of claims, each as .md, .tex and .csv."""
    written = []
    for table in study_tables(results):
        name = f"{table.task}-{table.where}".lower().replace(" ", "-").replace(".", "")
        plain = Table(
            f"{table.title} ({table.where}); ours with its 95 % interval, then the paper's{_limits(table)}",
            (table.stub, *(f"{group}, {scheme}" for group, scheme in table.heads)),
            tuple((row, *map(_together, cells)) for row, cells in table.rows),
        )
        written += _write(folder, name, plain.markdown(), study_latex(table), study_csv(table))
    judged = judge(results)
    for name, held in (("claims", ledger_table(judged, results)), ("claims-counts", counts_table(judged))):
        written += _write(folder, name, held.markdown(), latex(held), _csv([held.columns, *held.rows]))
    return written


def _write(folder: Path, name: str, markdown: str, tex: str, comma: str) -> list[Path]:
    paths = []
    for kind, text in (("md", markdown), ("tex", tex), ("csv", comma)):
        paths.append(folder / f"{name}.{kind}")
        with atomic(paths[-1]) as file:
            file.write(text.encode())
    return paths


# -- the study's tables -----------------------------------------------------------------------------------------------


def _limits(table: StudyTable) -> str:
    return "".join(f"; {limit}" for limit in (*table.limits, *[f"left out: {table.left_out}"] * bool(table.left_out)))


def _together(cell: TableCell) -> str:
    return f"{_number(cell.ours)}{_interval(cell)}" + ("" if cell.paper is None else f" ({_number(cell.paper)})")


def _number(value: float | None) -> str:
    return NO_NUMBER if value is None else f"{value:.3f}"


def _interval(cell: TableCell) -> str:
    return "" if cell.low is None or cell.high is None else f" [{cell.low:.3f}, {cell.high:.3f}]"


def study_csv(table: StudyTable) -> str:
    """Return one line for each cell, with nothing rounded."""
    fields = ("ours", "low", "high", "seeds", "paper", "agreement", "shortened")
    lines = [
        (row, *head, *(getattr(cell, name) for name in fields), "; ".join(cell.caveats))
        for row, cells in table.rows
        for head, cell in zip(table.heads, cells, strict=True)
    ]
    return _csv([(table.stub, "order", "scheme", *fields, "caveats"), *lines])


def study_latex(table: StudyTable) -> str:
    """Return two lines for each stratum, our figures above the paper's, in groups by decoding order. Needs booktabs."""
    wide = len(table.columns)
    starts = [2 + place * wide for place in range(len(table.groups))]
    groups = " & ".join(rf"\multicolumn{{{wide}}}{{c}}{{{escaped(group)}}}" for group in table.groups)
    lines = [
        f"% needs \\usepackage{{booktabs}}{_limits(table)}",
        rf"\begin{{tabular}}{{l{'r' * wide * len(table.groups)}}}",
        r"\toprule",
        f"& {groups} \\\\",
        " ".join(rf"\cmidrule(lr){{{start}-{start + wide - 1}}}" for start in starts),
        _row([table.stub, *table.columns * len(table.groups)]),
        r"\midrule",
    ]
    for row, cells in table.rows:
        ours = [f"{escaped(_number(cell.ours))}{_small(cell)}" for cell in cells]
        paper = [rf"\textit{{{escaped(_number(cell.paper))}}}" for cell in cells]
        lines += [f"{escaped(row)} & {' & '.join(ours)} \\\\", rf"\quad\textit{{paper}} & {' & '.join(paper)} \\"]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _small(cell: TableCell) -> str:
    return rf"\,{{\scriptsize{escaped(_interval(cell))}}}" if _interval(cell) else ""


# -- any table --------------------------------------------------------------------------------------------------------


def latex(table: Table) -> str:
    """Return a table; long columns wrap. Needs booktabs and, if it may not fit on a page, longtable."""
    texts = table.texts()
    longest = [max([len(name), *(len(row[place]) for row in texts)]) for place, name in enumerate(table.columns)]
    wide = sum(min(length, 60) for length in longest)
    kinds = [f"p{{{0.86 * min(length, 60) / wide:.3f}\\linewidth}}" if length > 12 else "l" for length in longest]
    head = (r"\toprule", _row(table.columns), r"\midrule")
    rows = (_BREAKABLE.sub(r".\\allowbreak{}", _row(row)) for row in texts)
    columns, caption = "".join(kinds), rf"\caption{{{escaped(table.title)}}}"
    if len(texts) > PAGE:
        lines = [
            "% needs \\usepackage{booktabs, longtable}",
            rf"\begin{{longtable}}{{{columns}}}",
            rf"{caption} \\",
            *(*head, r"\endfirsthead", *head, r"\endhead"),
            *rows,
            *(r"\bottomrule", r"\end{longtable}", ""),
        ]
    else:
        lines = [
            "% needs \\usepackage{booktabs}",
            *(r"\begin{table}", r"\centering", caption, rf"\begin{{tabular}}{{{columns}}}"),
            *head,
            *rows,
            *(r"\bottomrule", r"\end{tabular}", r"\end{table}", ""),
        ]
    return "\n".join(lines)


def _csv(rows: Iterable[Sequence[Cell]]) -> str:
    held = io.StringIO()
    csv.writer(held, lineterminator="\n").writerows(rows)
    return held.getvalue()


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def escaped(text: str) -> str:
    """Escape text so that LaTeX prints it as it is."""
    return text.replace(">=", "≥").replace("<=", "≤").translate(_ESCAPED)
