"""The documentation's tables, and what the records say.

A table is found by a part of its heading, a row by its label. Its numbers are compared one after another with what the
records say, to as many digits as are printed; None is not compared.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from hardtail.core.records import Accuracy
from hardtail.study.claims import Results
from hardtail.study.store import Store

ROOT = Path(__file__).parents[1]
RESULTS = Results(Store(ROOT / "results"))
RUNS = {run.name: run for name in ("results", "results-small") for run in Store(ROOT / name).runs()}
NUMBER = re.compile(r"(?:(?<![\w.])[-−+])?[0-9,]*\.?[0-9]+(?: %)?")
Figures = Sequence[float | None]


def label_of(cell: str) -> str:
    """The words of a cell without emphasis and notes."""
    return re.sub(r"[*¹²³⁴†‡]", "", cell).strip()


@cache
def table(page: str, heading: str) -> dict[str, list[str]]:
    """The cells of a table by the labels of its rows; a row without any is a label before those that follow."""
    lines = (ROOT / page).read_text().splitlines()
    [first] = [at for at, line in enumerate(lines) if line.startswith("|") and heading in f"{line}\n"]
    rows: dict[str, list[str]] = {}
    group = ""
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        label, *cells = (label_of(cell) for cell in line.strip("|").split("|"))
        if any(cells):
            assert group + label not in rows, f"{page}: two rows {group + label!r} under {heading!r}"
            rows[group + label] = cells
        else:
            group = f"{label}: "
    return rows


def differs(printed: str, value: float) -> bool:
    """Whether a number is not the value to as many digits as are printed."""
    digits = printed.removesuffix(" %").replace(",", "").replace("−", "-")
    value = 100 * value if printed.endswith("%") else value
    return abs(float(digits) - value) > 0.500001 * 10.0 ** -len(digits.partition(".")[2])


def compare(page: str, heading: str, expected: Mapping[str, Figures]) -> None:
    rows, wrong = table(page, heading), []
    for label, values in expected.items():
        assert label in rows, f"{page}: the table with {heading!r} has no row {label!r}, only {', '.join(rows)}"
        printed = [number for cell in rows[label] for number in NUMBER.findall(cell)]
        assert len(printed) == len(values), (label, printed, values)
        pairs = zip(printed, values, strict=True)
        wrong += [(label, number, value) for number, value in pairs if value is not None and differs(number, value)]
    assert not wrong, f"{page}: (row, printed, recorded)"


def right(run: str, policy: str, stratum: str, weights: str = "last") -> float:
    """The share of right answers among the most instances that a run was measured on."""
    found = RUNS[run].measured[Accuracy, policy, stratum, weights]
    assert isinstance(found, Accuracy)
    return found.exact_match
