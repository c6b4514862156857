"""Commands for a first look: demo and gallery."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional

from hardtail import task as make_task
from hardtail.cli.commands import app
from hardtail.cli.common import busy, check_out, open_console, progress_bar, say, show_tables
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS

NARROWEST = 80
"""The columns that the widest picture needs."""


@app.command
def demo(out: Annotated[Path, option("the page to write", "FILE")] = Path("report.html")) -> None:
    """Decode ordinary and hard problems with the shipped models and write a page to explore: a minute on two cores."""
    from hardtail import zoo
    from hardtail.show import demo as small
    from hardtail.show.page.data import page_content
    from hardtail.show.page.page import refuse_odd_name, write_page
    from hardtail.show.sources import results_if_any

    check_out(out)
    refuse_odd_name(out)
    console = open_console()
    task = small.shown_task().name
    say(f"{small.decodes():,} decodes with the shipped models of {task}, about a minute on two cores")
    with progress_bar("decoding with the shipped models", small.decodes()) as advance:
        shown = small.decode_all(advance)
    show_tables([small.table(shown)])
    console.print(small.compared_with_records(shown))
    looks = zoo.looks()
    with busy("writing the page"):
        content, arrays = page_content(results_if_any(), (), [*(item.trace for item in shown), *looks])
        write_page(out, content, arrays)
    show_tables([small.look_table(looks)])
    story, stage = small.told(shown)
    found = small.failure(story, stage)
    if found:
        console.print("\nOne of the failures, decoded by confidence:\n", found[1], sep="\n")
    console.print("\nWhat you have seen", style="bold")
    console.print(story.text, markup=False)
    if found:
        console.print(f"The failure above: {found[0][:1].lower()}{found[0][1:]}", markup=False)
    print(
        f"\n{out} replays every decode step by step.\n"
        "It also has the study's tables and claims. Open it in a browser.\n\n"
        "To go on:  hardtail diagnose zoo:addition-papl-paper   says why it fails\n"
        "           hardtail gallery                            draws the five tasks"
    )


@app.command
def gallery() -> None:
    """Draw an easy and a hard instance of every task."""
    from rich.text import Text

    from hardtail import Streams
    from hardtail.show import instances as show

    console = open_console()
    if console.width < NARROWEST:
        say(f"the gallery needs {NARROWEST} columns; this screen has {console.width}, so pictures wrap")
    for name in TASKS.names():
        try:
            task = make_task(name)
        except HardtailError as error:
            console.print(Text(str(error), "red"))
            continue
        console.print(Text.assemble((f"{name}: ", "bold"), (task.__doc__ or name).splitlines()[0]))
        panels = []
        with busy(f"{name}: drawing (the first time also compiling)"):
            for stratum in task.gallery():
                instances = task.sample(1, Streams(0).named(f"demo/{name}/{stratum}"), stratum)
                panels.append(show.instance_panel(task, instances, 0, stratum, widest=console.width))
        console.print(show.side_by_side(panels, console.width))


@app.command(imports=True)
def policies(
    names: Annotated[
        Positional[tuple[str, ...]], option("policies to describe in full [a table of all]", "[NAME ...]")
    ] = (),
    /,
) -> None:
    """List the decoding orders, each with a sentence, or describe some in full: what `--policies` accepts."""
    from hardtail.show.policies import policy_card, policy_tables

    cards = [policy_card(name, open_console().width) for name in names]
    for text, table in cards:
        print(text, end="\n\n")
        show_tables(table)
    if not names:
        show_tables(policy_tables())
    if not names or any(table for _, table in cards):
        print("fields follow after commas: --policies top1 block,size=4 my_module:MyPolicy")
    if not names:
        print("`hardtail policies NAME` says what a policy does and what its fields accept")
