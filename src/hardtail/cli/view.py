"""The command that replays a decode in the terminal: view."""

import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from hardtail.cli.common import OwnTask, admit_task, app, open_console


@app.command
def view(
    trace: Annotated[Positional[Path], arg(metavar="TRACE", help="a trace (.npz) that `eval --traces` wrote")],
    /,
    instance: Annotated[int | None, arg(help="the instance to begin with, counted from 0")] = None,
    failures: Annotated[bool, arg(help="leave out solved instances")] = False,
    task: OwnTask = None,
) -> None:
    """Watch a decode in the terminal, commit by commit; in a pipe, print one line for each commit of one instance.

    Keys: arrows step, f goes to the next failure, n and p to other instances, space plays, q quits.
    """
    from hardtail.show.theatre import open_theatre, print_commits, watch

    admit_task(task)
    theatre = open_theatre(trace, instance, failures=failures)
    console = open_console(at_least=120)
    if sys.stdin.isatty() and sys.stdout.isatty() and not console.is_dumb_terminal:
        watch(theatre)
    else:
        print_commits(theatre, console)
