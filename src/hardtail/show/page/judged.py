"""The study's tables and the ledger of claims in a page, for each choice of weights that it offers."""

from dataclasses import asdict
from typing import Any

from hardtail.core.registry import TASKS
from hardtail.show.study_tables import study_tables
from hardtail.study.claims import Results
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.claims.ledger import as_json, judge
from hardtail.study.store import Store

_RECORD = ("figure", "run", "seed", "checkpoint", "policy", "stratum", "n", "value", "interval", "commit", "device")
_CLAIM = (
    *("id", "claim", "where", "paper", "ours", "seeds", "shortened", "run_caveats", "verdict", "says"),
    *("caveat", "left_out", "parts", "figures"),
)


def judged(store: Store) -> list[dict[str, Any]]:
    """Tables and claims for the weights that the paper used, for the last weights, and for the last weights of runs
    that follow the paper's text, if any are recorded."""
    choices = [("as in the paper", Results(store)), ("last", Results(store, checkpoint="last"))]
    of_text = Results(store, "paper")
    if any(of_text.runs(task, scheme) for task in TASKS.names() for scheme in SCHEMES):
        choices.append(("last, reading paper", of_text))
    return [
        {"weights": name, "tables": [asdict(table) for table in study_tables(held)], "ledger": ledger(held)}
        for name, held in choices
    ]


def ledger(results: Results) -> dict[str, Any]:
    """Every claim with its verdict and the numbers of its records; every record once."""
    numbers: dict[tuple[Any, ...], int] = {}
    claims = []
    for judged in judge(results):
        row = as_json(judged, results, evidence=True)
        for figure in row["figures"]:
            del figure["runs"]  # which the records name
        records = [tuple(_hashable(record[key]) for key in _RECORD) for record in row["records"]]
        found = [numbers.setdefault(record, len(numbers)) for record in records]
        claims.append({key: row[key] for key in _CLAIM} | {"records": found})
    return {"columns": _RECORD, "records": list(numbers), "claims": claims}


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
