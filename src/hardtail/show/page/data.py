"""Everything that a page shows, gathered: runs, the study's tables, the ledger, plots and stages."""

from collections.abc import Sequence
from typing import Any

from hardtail.core.types import Trace
from hardtail.core.version import __version__
from hardtail.measuring.diagnosis.front import jsonable
from hardtail.show.page.curves import run_charts
from hardtail.show.page.decoded import decode_charts
from hardtail.show.page.pack import Pack
from hardtail.show.page.records import RunRecord, recorded
from hardtail.show.page.stages import packed, stages
from hardtail.show.page.study_tables import ledger, study_tables
from hardtail.study.claims import Results
from hardtail.study.claims.evidence import DIAGNOSED
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.store import Store

FORMAT = 2


def page_content(store: Store | None, runs: Sequence[RunRecord], traces: Sequence[Trace]) -> tuple[dict[str, Any], str]:
    """What JSON holds of a page, and its arrays as text."""
    everything = _together(recorded(store) if store else [], runs)
    found, pack = stages(traces), Pack()
    asked = {run.name for run in runs}
    charts = [*run_charts(everything, asked), *(chart for stage in found for chart in decode_charts(stage))]
    content = {
        "format": FORMAT,
        "title": "hardtail report",
        "version": __version__,
        "runs": [dict(run.facts) for run in everything],
        "judged": [_judged(words, results) for words, results in _by_weights(store)],
        "charts": [chart.as_json() for chart in charts],
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


def _together(held: Sequence[RunRecord], given: Sequence[RunRecord]) -> list[RunRecord]:
    """Recorded runs, then run directories that are not recorded yet."""
    names = {run.name for run in held}
    return [*held, *(run for run in given if run.name not in names)]
