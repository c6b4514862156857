"""Everything that a page shows: runs, the study's tables, the ledger, charts and stages."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import asdict

from hardtail.core.records import jsonable
from hardtail.core.types import Trace
from hardtail.core.version import __version__
from hardtail.show.page.curves import charts_as_json, decode_charts, run_charts
from hardtail.show.page.judged import judged
from hardtail.show.page.pack import Pack
from hardtail.show.page.packed_stages import packed
from hardtail.show.sources import all_runs
from hardtail.show.stages import stages
from hardtail.study.runs import Run
from hardtail.study.store import Store

FORMAT = 3


def page_content(store: Store | None, runs: Sequence[Run], traces: Sequence[Trace]) -> tuple[dict[str, Any], str]:
    """A page's JSON, and its arrays as text."""
    everything, found, pack = all_runs(store, runs), stages(traces), Pack()
    charts = run_charts(everything, {run.name for run in runs})
    charts += [chart for stage in found for chart in decode_charts(stage)]
    content = {
        "format": FORMAT,
        "title": "hardtail report",
        "version": __version__,
        "runs": [asdict(run.entry) for run in everything],
        "judged": judged(store) if store else [],
        "charts": charts_as_json(charts),
        "stages": [packed(stage, pack) for stage in found],
        "scenes": list(dict.fromkeys(scene for stage in found if (scene := stage.task.scene()))),
    }
    return jsonable(content), pack.text()
