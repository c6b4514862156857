"""Everything that a page shows: stories, stages and charts; and, if asked for, the study's tables and the ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict as fields_of
from typing import Any

from msgspec.structs import asdict

from hardtail.core.records import jsonable
from hardtail.core.types import Trace
from hardtail.core.version import __version__
from hardtail.show.page.curves import charts_as_json, decode_charts, run_charts
from hardtail.show.page.judged import judged
from hardtail.show.page.pack import PackedArrays
from hardtail.show.page.packed_stages import packed
from hardtail.show.sources import all_runs
from hardtail.show.stages import Stage, stages, title_of
from hardtail.show.story import story
from hardtail.study.runs import Run
from hardtail.study.store import Store

FORMAT = 4


def page_content(store: Store | None, runs: Sequence[Run], traces: Sequence[Trace]) -> tuple[dict[str, Any], str]:
    """A page's JSON, and its arrays as text. With a store of recorded runs the page has the study's view as well."""
    everything, found, pack = all_runs(store, runs), stages(traces), PackedArrays()
    charts = [chart for stage in found for chart in charts_as_json(decode_charts(stage), title_of(stage, found))]
    for task in dict.fromkeys(run.task for run in everything):
        held = run_charts([run for run in everything if run.task == task], {run.name for run in runs})
        charts += charts_as_json(held, f"{task}, runs")
    content = {
        "format": FORMAT,
        "title": "hardtail report",
        "version": __version__,
        "stories": _stories(found),
        "runs": [asdict(run.entry) for run in runs],
        "study": _study(store) if store else None,
        "charts": charts,
        "stages": [packed(stage, pack) for stage in found],
        "scenes": list(dict.fromkeys(scene for stage in found if (scene := stage.task.scene()))),
    }
    return jsonable(content), pack.text()


def content_line(content: Mapping[str, Any]) -> str:
    """What a page contains, in a line."""
    decoders = sum(len(stage["decoders"]) for stage in content["stages"])
    recorded = len(content["study"]["runs"]) if content["study"] else 0
    counts = {"decoder to watch": decoders, "run": len(content["runs"]), "recorded run": recorded}
    return ", ".join(_counted(n, words) for words, n in counts.items() if n)


def _counted(n: int, words: str) -> str:
    first, _, rest = words.partition(" to ")
    return f"{n} {first}{'' if n == 1 else 's'}{' to ' + rest if rest else ''}"


def _stories(found: Sequence[Stage]) -> list[dict[str, Any]]:
    """The story of every stage, the most telling one first."""
    told = [(place, story(stage)) for place, stage in enumerate(found)]
    told.sort(key=lambda held: -abs(held[1].gain))
    return [fields_of(one) | {"stage": place, "title": title_of(found[place], found)} for place, one in told]


def _study(store: Store) -> dict[str, Any]:
    return {"runs": [asdict(run.entry) for run in store.runs()], "judged": judged(store)}
