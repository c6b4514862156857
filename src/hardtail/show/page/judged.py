"""The study's tables and the ledger of claims inside a page, for each choice of weights that it offers."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hardtail.core.registry import TASKS
from hardtail.show.study_tables import study_tables
from hardtail.study.claims import Results
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.claims.ledger import as_json, judge
from hardtail.study.store import Store

_RECORD = ("figure", "run", "seed", "checkpoint", "policy", "stratum", "n", "value", "interval", "commit", "device")
_CLAIM = ("id", "claim", "where", "paper", "ours", "seeds", "verdict", "caveat", "left_out", "parts")


def judged(store: Store) -> list[dict[str, Any]]:
    """Tables and claims of the weights that the paper took, of the last weights, and in the reading of the paper's text
    if runs of it are recorded."""
    choices = [("as in the paper", Results(store)), ("last", Results(store, checkpoint="last"))]
    of_text = Results(store, "paper")
    if any(of_text.runs(task, scheme) for task in TASKS.names() for scheme in SCHEMES):
        choices.append(("last, reading paper", of_text))
    return [
        {"weights": words, "tables": [asdict(table) for table in study_tables(held)], "ledger": ledger(held)}
        for words, held in choices
    ]


def ledger(results: Results) -> dict[str, Any]:
    """Every claim with its verdict; the records behind all of them once, which claims point to by number."""
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
