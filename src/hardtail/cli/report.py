"""The command that writes the page and figures: report."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import busy
from hardtail.cli.decoding import USUAL, Decoded
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError


@app.command(imports=True)
def report(
    models: Annotated[Positional[tuple[str, ...]], option(f"{common.MODEL}; or traces (.npz)", "[MODEL ...]")] = (),
    /,
    out: Annotated[Path, option("the page to write", "FILE")] = Path("report.html"),
    decoding: Decoded = USUAL,
    study: Annotated[bool, option("also show the recorded runs: the study's tables, claims and curves")] = False,
    results: Annotated[
        str | None,
        option("recorded runs, as in `study`; implies --study [results/ here, or the checkout's]", "DIR"),
    ] = None,
    figures: Annotated[Path | None, option("also draw figures and write tables for a paper", "DIR")] = None,
) -> None:
    """Write one HTML page about models: their story in a sentence, every decode to step through, and charts.

    All models of a task are decoded on the same instances; traces that `eval --traces` wrote are shown as they are.
    """
    from hardtail.show import sources
    from hardtail.show.page.data import content_line, page_content
    from hardtail.show.page.page import refuse_odd_name, write_page

    common.check_out(out)
    refuse_odd_name(out)
    if figures is not None:
        from hardtail.show.figures import ensure_matplotlib, write_all

        ensure_matplotlib()
        figures.mkdir(parents=True, exist_ok=True)  # what cannot be a folder is refused before the work
    own = common.admit_task(decoding.task)
    given = sources.sorted_sources(models)
    store = sources.recorded_results(results) if study or results else None
    if not models and store is None:
        raise HardtailError("nothing to report on; give a model, a run or a trace, or --study for the recorded runs")
    with busy("reading"):
        traces = sources.load_traces(given.traces)
        sources.all_runs(store, given.runs)  # those that cannot be told apart are refused before the work
        for run in given.runs:
            run.read()
    traces += decoding.traces_of(given.models, own, traces)
    with busy("writing the page"):
        content, arrays = page_content(store, given.runs, traces)
        size = write_page(out, content, arrays)
    print(f"{out} ({size / 1e6:.1f} MB): {content_line(content)}; open it in a browser")
    if figures is not None:
        with busy("drawing"):
            written = write_all(figures, store, given.runs, traces)
        print(f"{figures}: {len(written)} files, figures as PDF, PNG and SVG, tables as Markdown, LaTeX and CSV")
