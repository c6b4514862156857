"""What every claim is judged to be, on results that are made up: near the paper's figures where it prints some."""

import hashlib
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zlib import crc32

from hardtail.core.errors import HardtailError
from hardtail.core.records import jsonable
from hardtail.study.claims.base import Claim
from hardtail.study.claims.evidence import Results
from hardtail.study.claims.figures import Figure, LateLoss, Reached, ShareRight
from hardtail.study.claims.ledger import as_json, evidence_tables, judge, source_named, source_names
from tests.golden_figures import rounded
from tests.planted_results import STEPS, Planted, gate_of

SEEDS = (42, 43, 41)
WITHOUT = "Learns", "Computed"
"""Checks whose figures nobody can plant."""


def judged() -> dict[str, Any]:
    """By claim: the verdict, our figure, and a hash of everything that the ledger and the table of a claim say."""
    claims = [claim for name in source_names() for claim in source_named(name).claims()]
    with TemporaryDirectory() as folder:
        results = _results(Path(folder), claims)
        found: dict[str, Any] = {}
        for claim in claims:
            try:
                (item,) = judge(results, [claim])
            except HardtailError as error:  # two figures of one record that cannot both be so
                found[claim.id] = str(error)
                continue
            tables = [[table.title, table.columns, table.rows] for table in evidence_tables(item, results)]
            said = rounded(jsonable([as_json(item, results, evidence=True), tables]))
            whole = hashlib.sha256(json.dumps(said).encode()).hexdigest()
            found[claim.id] = [item.verdict.value, item.ours, whole[:12]]
        return found


def _results(folder: Path, claims: list[Claim]) -> Results:
    """Figures differ between seeds; the third seed has only some of them."""
    made = Planted(folder)
    figures = {
        cell.figure: cell.paper
        for claim in claims
        for check in claim.checks
        for cell in check.cells
        if type(check).__name__ not in WITHOUT
    }
    for figure, paper in figures.items():
        for seed in SEEDS:
            draw = crc32(f"{figure.label} {seed}".encode()) / 2**32
            if seed != SEEDS[-1] or draw < 0.4:
                made.plant(figure, _value(figure, paper, draw), seed=seed, n=400)
    return Results(made.written())


def _value(figure: Figure, paper: float | None, draw: float) -> float:
    if isinstance(figure, ShareRight) and figure == gate_of(figure.task, figure.scheme):
        return 1.0  # a run that has not learned its task counts for nothing
    if isinstance(figure, Reached):
        return float(1000 + 1000 * int(draw * STEPS / 2000))
    if isinstance(figure, LateLoss):
        return 0.1 + draw
    around = (0.85 + 0.3 * draw) * paper if paper is not None else 0.2 + 0.75 * draw
    return min(max(around, 0.0), 1.0) if figure.share else around
