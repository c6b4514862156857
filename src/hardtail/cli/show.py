"""Commands for a first look: demo and gallery."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from hardtail import task as make_task
from hardtail.cli.common import app, busy, open_console, progress_bar, refuse_special_out
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS


@app.command
def demo(out: Annotated[Path, arg(help="the page to write")] = Path("report.html")) -> None:
    """Run a small version of the study with the shipped models and write a page to explore: two minutes on a CPU."""
    from hardtail.show import demo as small
    from hardtail.show.page.data import page_content
    from hardtail.show.page.page import write_page
    from hardtail.show.sources import open_results

    refuse_special_out(out)
    console = open_console(at_least=120)
    with progress_bar("decoding with the shipped models", small.decodes()) as advance:
        shown = small.decode_all(advance)
    console.print(small.table(shown).rich())
    console.print(small.compared_with_records(shown))
    if failure := small.typical_failure(shown):
        sentence, picture = failure
        console.print(f"\n{sentence}\n")
        console.print(picture)
    with busy("writing the page"):
        content, arrays = page_content(open_results(None), (), [item.trace for item in shown])
        write_page(out, content, arrays)
    print(
        f"\n{out}: every decode above to step through, the recorded runs and the claims; open it in a browser\n\n"
        "What next:\n"
        "  hardtail claims --checkpoint last                      which of the paper's claims hold here\n"
        "  hardtail eval zoo:addition-papl-paper --gallery 2      another look at a shipped model\n"
        "  hardtail diagnose zoo:addition-papl-paper              why it fails\n"
        "  hardtail train addition-puma-smoke --out runs/try      train one, in seconds; then eval runs/try\n"
        "  hardtail gallery                                       the five tasks, easy and hard"
    )


@app.command
def gallery() -> None:
    """Draw an easy and a hard instance of every task."""
    from rich.text import Text

    from hardtail import Streams
    from hardtail.show import instances as show

    console = open_console(at_least=120)
    for name in TASKS.names():
        try:
            task = make_task(name)
        except HardtailError as error:
            console.print(Text(str(error), "red"))
            continue
        console.rule(Text.assemble((name, "bold"), f"  {(task.__doc__ or name).splitlines()[0]}"), align="left")
        panels = []
        with busy(f"{name}: drawing (the first time also compiling)"):
            for stratum in task.gallery():
                instances = task.sample(1, Streams(0).named(f"demo/{name}/{stratum}"), stratum)
                panels.append(show.instance_panel(task, instances, 0, stratum, widest=console.width // 2 - 1))
        console.print(show.side_by_side(panels, console.width))
