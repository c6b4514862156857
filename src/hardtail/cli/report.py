"""The command that writes the page and figures: report."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from hardtail.cli import common
from hardtail.cli.common import Checkpoint, Device, OwnTask, app, busy


@app.command
def report(
    runs: Annotated[
        Positional[tuple[str, ...]],
        arg(metavar="RUN", help="run directories, .safetensors files, zoo:NAME, traces (.npz) [recorded results only]"),
    ] = (),
    /,
    out: Annotated[Path, arg(help="the page to write")] = Path("report.html"),
    policies: Annotated[tuple[str, ...], arg(help="decoding orders [top1 and the task's logical order]")] = (),
    strata: Annotated[tuple[str, ...], arg(help="strata to decode models on [an easy one and a hard one]")] = (),
    n: Annotated[int, arg(aliases=["-n"], help="instances of each stratum")] = 100,
    task: OwnTask = None,
    kind: Checkpoint = None,
    seed: Annotated[int | None, arg(help="seed of the instances [the first model's]")] = None,
    device: Device = None,
    batch: Annotated[int | None, arg(help="instances decoded at a time; affects memory, not results")] = None,
    results: Annotated[Path | None, arg(help="recorded runs [results/ if it exists]")] = None,
    figures: Annotated[Path | None, arg(metavar="DIR", help="also draw figures and write tables for a paper")] = None,
) -> None:
    """Write one HTML page: tables next to the paper's, the claims, charts, and every decode to step through.

    All models are decoded on the same instances; traces that `eval --traces` wrote are shown as they are.
    """
    from hardtail.show import sources
    from hardtail.show.page.data import page_content
    from hardtail.show.page.page import write_page

    common.positive("-n", n)
    common.refuse_special_out(out)
    if figures is not None:
        from hardtail.show.figures import ensure_matplotlib, write_all

        ensure_matplotlib()
        figures.mkdir(parents=True, exist_ok=True)  # what cannot be a folder is refused before the work
    common.admit_task(task)
    given = sources.sorted_sources(runs)
    store = sources.open_results(results)
    with busy("reading"):
        traces = sources.load_traces(given.traces)
    if given.models:
        plan = sources.DecodePlan(policies, strata, n, kind, seed, common.usable_device(device), batch)
        subjects = sources.load_models(given.models, plan)
        with common.progress_bar("decoding", sources.rounds(subjects, plan)) as advance:
            traces += sources.decoded(subjects, plan, advance)
    with busy("writing the page"):
        content, arrays = page_content(store, given.runs, traces)
        size = write_page(out, content, arrays)
    decoders = sum(len(stage["decoders"]) for stage in content["stages"])
    print(
        f"{out} ({size / 1e6:.1f} MB): runs {len(content['runs'])}, decoders to watch {decoders}; open it in a browser"
    )
    if figures is not None:
        with busy("drawing"):
            written = write_all(figures, store, given.runs, traces)
        print(f"{figures}: {len(written)} files, figures as PDF, PNG and SVG, tables as Markdown, LaTeX and CSV")
