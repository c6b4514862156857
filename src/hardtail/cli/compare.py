"""The command that puts a user's own models next to each other: compare."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.common import Batch, Checkpoint, DataSeed, Device, OwnTask, Policies, app
from hardtail.cli.options import option


@app.command
def compare(
    models: Annotated[Positional[tuple[str, ...]], option(f"{common.MODEL}; or traces (.npz)", "MODEL")],
    /,
    policies: Policies = (),
    strata: Annotated[
        tuple[str, ...], option("strata to decode models on [an ordinary one and a hard one]", "STRATUM")
    ] = (),
    n: Annotated[int, option("instances of each stratum, for every model and policy", "N", aliases=["-n"])] = 100,
    task: OwnTask = None,
    checkpoint: Checkpoint = None,
    data_seed: DataSeed = None,
    device: Device = None,
    batch: Batch = None,
    out: Annotated[Path | None, option("also draw a figure: .pdf, .png or .svg", "FILE")] = None,
    latex: Annotated[Path | None, option("also write the tables for LaTeX", "FILE")] = None,
) -> None:
    """Compare models, orders or traces on the same problems: accuracy with intervals, and paired tests.

    Everything is compared with the first that is named. Nothing but what you name is shown.
    """
    from hardtail.show import compare as comparing
    from hardtail.show import sources

    common.positive("-n", n)
    for path in (out, latex):
        common.refuse_unwritable_out(path)
    if out is not None:
        from hardtail.show.figures import ensure_matplotlib

        comparing.refuse_format(out)
        ensure_matplotlib()
    own = common.admit_task(task)
    given = sources.sorted_sources(models)
    traces = sources.load_traces(given.traces)
    if given.models:
        plan = sources.DecodePlan(policies, strata, n, checkpoint, data_seed, common.usable_device(device), batch)
        subjects = comparing.on_the_same_problems(sources.load_models(given.models, plan, own))
        common.say_decodes(
            f"{sources.rounds(subjects, plan):,} decodes of {common.counted(len(subjects), 'model', 'models')}",
            [(subject, sources.rounds([subject], plan)) for subject in subjects],
        )
        with common.progress_bar("decoding", sources.rounds(subjects, plan)) as advance:
            traces += sources.decoded(subjects, plan, advance)
    found = comparing.compared(traces)
    common.show_tables(comparing.compare_tables(found))
    if latex is not None:
        comparing.write_latex(latex, found)
        print(f"{latex}: the tables; they need booktabs and longtable")
    if out is not None:
        comparing.write_figure(out, found)
        print(f"{out}: the figure")
