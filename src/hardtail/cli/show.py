"""The main job, for a first look."""

from hardtail import task as make_task
from hardtail.cli.common import app, busy, open_console
from hardtail.errors import HardtailError
from hardtail.registry import TASKS


@app.command
def demo() -> None:
    """The main job: one easy and one hard instance of every task, as a person would draw them."""
    from rich.text import Text

    from hardtail import Streams, show

    console = open_console(at_least=120)
    for name in TASKS.names():
        try:
            task = make_task(name)
        except HardtailError as error:
            console.print(Text(str(error), "red"))
            continue
        console.rule(f"[bold]{name}[/bold]  {(task.__doc__ or '').splitlines()[0]}", align="left")
        panels = []
        with busy(f"{name}: drawing (the first time also compiling)"):
            for stratum in task.gallery():
                instances = task.sample(1, Streams(0).named(f"demo/{name}/{stratum}"), stratum)
                panels.append(show.instance_panel(task, instances, 0, stratum, widest=console.width // 2 - 1))
        console.print(show.side_by_side(panels, console.width))
