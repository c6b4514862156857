"""The command that puts a user's own models next to each other: compare."""

from functools import partial
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.decoding import USUAL, Decoded
from hardtail.cli.options import option


@app.command(imports=True)
def compare(
    models: Annotated[Positional[tuple[str, ...]], option(f"{common.MODEL}; or traces (.npz)", "MODEL ...")],
    /,
    decoding: Decoded = USUAL,
    out: Annotated[Path | None, option("also draw a figure: .pdf, .png or .svg", "FILE")] = None,
    latex: Annotated[Path | None, option("also write the tables for LaTeX", "FILE")] = None,
) -> None:
    """Compare models, orders or traces on the same problems: accuracy with intervals, and paired tests.

    Everything is compared with the first that is named. Nothing but what you name is shown.
    """
    from hardtail.show import compare as comparing
    from hardtail.show import sources

    for path in (out, latex):
        common.check_out(path)
    if out is not None:
        from hardtail.show.figures import ensure_matplotlib

        comparing.refuse_format(out)
        ensure_matplotlib()
    own = common.admit_task(decoding.task)
    given = sources.sorted_sources(models)
    traces = sources.load_traces(given.traces)
    traces += decoding.traces_of(given.models, own, traces, partial(comparing.refuse_alone, traces))
    found = comparing.compared(traces)
    common.show_tables(comparing.compare_tables(found))
    if latex is not None:
        comparing.write_latex(latex, found)
        print(f"{latex}: the tables; they need booktabs, and longtable if there are many rows")
    if out is not None:
        comparing.write_figure(out, found)
        print(f"{out}: the figure")
