"""The command that turns what other tools recorded into traces: import."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError
from hardtail.core.files import manifest_path

PAGE = "docs/models.md"
"""Where the format is described."""


@app.command(name="import", imports=True)
def import_canvases(
    canvases: Annotated[Positional[Path], option(f"canvases of another tool (.json; {PAGE})", "FILE")],
    /,
    task: Annotated[str, option("the task of the problems: NAME or package.module:Class, with fields", "TASK")],
    out: Annotated[Path | None, option("the trace to write (.npz) [FILE-trace.npz]", "FILE")] = None,
) -> None:
    """Turn a decode that another tool recorded, canvas by canvas, into a trace that all commands read."""
    from hardtail.core.trace_files import save_trace, traced_model
    from hardtail.tasks.named import task_named
    from hardtail.tasks.recorded import read_canvases

    own = task_named(task)
    try:
        trace = read_canvases(canvases, own)
    except HardtailError as error:
        if PAGE in str(error):
            raise
        raise HardtailError(f"{error} ({PAGE} has an example of such a file)") from error
    into = out or canvases.with_name(f"{canvases.stem}-trace.npz")
    common.check_out(into)
    if manifest_path(into).resolve() == canvases.resolve():
        raise HardtailError(f"--out {into}: its manifest would replace {canvases}; give another name")
    if into.exists() and (held := traced_model(into)) != trace.source.model:
        what = f"a trace of {held}" if held else "not a trace"
        raise HardtailError(f"{into} is {what}, and would be replaced; give another name as --out")
    save_trace(into, trace)
    right, steps = int(trace.exact_N.sum()), common.counted(int(trace.steps_N.max(initial=0)), "step", "steps")
    print(f"{into}: {common.counted(len(trace), 'problem', 'problems')}, {right:,} solved, {steps}")
