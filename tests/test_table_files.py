"""Tables for a paper, as Markdown, LaTeX and CSV: our figures beside the printed ones, and rows that LaTeX accepts."""

import csv
import io
from pathlib import Path

import pytest

from hardtail.core.tables import Table
from hardtail.show.study_tables import study_tables
from hardtail.show.table_files import PAGE, escaped, latex, study_csv, study_latex, write_tables
from hardtail.study.claims import Results
from hardtail.study.store import Store
from tests.report_toys import results


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    return Store(results(tmp_path_factory.mktemp("results")))


def test_tables_hold_ours_and_the_papers(store: Store, tmp_path: Path) -> None:
    written = write_tables(tmp_path, Results(store))
    assert len(written) == 3 * (8 + 2)
    table = study_tables(Results(store))[0]
    rows = list(csv.DictReader(io.StringIO(study_csv(table))))
    first = rows[0]
    cell = table.rows[0][1][0]
    assert (first["longest carry chain"], first["order"], first["scheme"]) == ("chain ≥ 4", "Confidence", "Random")
    assert (float(first["ours"]), float(first["paper"])) == (cell.ours, 0.998)
    assert len(rows) == sum(len(cells) for _, cells in table.rows)
    assert (
        f"{cell.ours:.3f} [{cell.low:.3f}, {cell.high:.3f}] (0.998)" in (tmp_path / "addition-table-1.md").read_text()
    )


def test_latex_rows_are_whole_and_escaped(store: Store, tmp_path: Path) -> None:
    table = study_tables(Results(store))[0]
    tex = study_latex(table)
    columns = 1 + len(table.groups) * len(table.columns)
    body = tex[tex.index(r"\midrule") : tex.index(r"\bottomrule")].splitlines()[1:]
    assert len(body) == 2 * len(table.rows)
    assert all(line.count("&") == columns - 1 and line.endswith(r"\\") for line in body)
    write_tables(tmp_path, Results(store))
    for path in tmp_path.glob("*.tex"):
        text = path.read_text()
        assert text.isascii(), "any LaTeX prints it"
        assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}"), path.name
    assert escaped("50 % of a_b & $x^2 {≥ \\}") == (
        r"50 \% of a\_b \& \$x\textasciicircum{}2 \{$\geq$ \textbackslash{}\}"
    )


def test_only_a_table_that_may_not_fit_on_a_page_is_broken() -> None:
    """LaTeX refuses a longtable in two columns."""
    for rows, kind in ((PAGE, "tabular"), (PAGE + 1, "longtable")):
        tex = latex(Table("right", ("stratum", "share"), tuple((f"chain>={row}", 0.5) for row in range(rows))))
        assert (tex.count(rf"\begin{{{kind}}}"), tex.count(r"\begin{")) == (1, 2 if kind == "tabular" else 1)
        assert tex.count(r"chain$\geq$") == rows
