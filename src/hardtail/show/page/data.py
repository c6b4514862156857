"""Everything that a page shows, gathered: runs, the study's tables, the ledger, charts and stages."""

from collections.abc import Sequence
from typing import Any

from hardtail.core.types import Trace
from hardtail.core.version import __version__
from hardtail.measuring.diagnosis.front import jsonable
from hardtail.show.page.curves import charts_as_json, decode_charts, run_charts
from hardtail.show.page.pack import Pack
from hardtail.show.page.packed_stages import packed
from hardtail.show.page.records import RunRecord
from hardtail.show.sources import all_runs
from hardtail.show.stages import stages
from hardtail.show.study_tables import ledger, study_tables
from hardtail.study.claims import Results
from hardtail.study.claims.evidence import DIAGNOSED
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.store import Store

FORMAT = 3


def page_content(store: Store | None, runs: Sequence[RunRecord], traces: Sequence[Trace]) -> tuple[dict[str, Any], str]:
    """What JSON holds of a page, and its arrays as text."""
    everything = all_runs(store, runs)
    found, pack = stages(traces), Pack()
    asked = {run.name for run in runs}
    charts = [*run_charts(everything, asked), *(chart for stage in found for chart in decode_charts(stage))]
    content = {
        "format": FORMAT,
        "title": "hardtail report",
        "version": __version__,
        "runs": [dict(run.facts) for run in everything],
        "judged": [_judged(words, results) for words, results in _by_weights(store)],
        "charts": charts_as_json(charts),
        "stages": [packed(stage, pack) for stage in found],
        "scenes": list(dict.fromkeys(scene for stage in found if (scene := stage.task.scene()))),
    }
    return jsonable(content), pack.text()


def _by_weights(store: Store | None) -> list[tuple[str, Results]]:
    """The results as one may look at them: of the weights that the paper took, of the last ones throughout, and in the
    reading of the text where such runs are recorded."""
    if store is None:
        return []
    found = [("as in the paper", Results(store)), ("last", Results(store, checkpoint="last"))]
    written = Results(store, "paper")
    if any(written.runs(task, scheme) for task in DIAGNOSED for scheme in SCHEMES):
        found.append(("last, reading paper", written))
    return found


def _judged(weights: str, results: Results) -> dict[str, Any]:
    """The study's tables and the ledger, of some choice of weights."""
    tables = [table.as_json() for table in study_tables(results)]
    return {"weights": weights, "tables": tables, "ledger": ledger(results)}
