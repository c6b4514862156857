"""What the commands share: their words for arguments, the console, progress, and loading what a person named."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro
from tyro.conf import Positional, arg

from hardtail import task as make_task
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS

if TYPE_CHECKING:
    from rich.console import Console

    from hardtail.measuring.subject import Kind, Subject
    from hardtail.models.transformer import Precision
    from hardtail.tasks.base import Task

TaskName = Annotated[Positional[str], arg(metavar="TASK", help="a name from `hardtail tasks`, or package.module:Class")]
Prompt = Annotated[
    Positional[str], arg(metavar="PROMPT", help="a problem, a file of problems, or - for standard input")
]
Preset = Annotated[str, arg(help="reading of the study: release or paper, for addition also paper-carry")]
Fields = Annotated[
    tuple[str, ...], arg(name="set", metavar="FIELD=VALUE", help="change fields of the task, e.g. --set digits=8")
]
Seed = Annotated[int, arg(help="seed of the named streams")]
Json = Annotated[bool, arg(name="json", help="one JSON object a line")]
Count = Annotated[int, arg(aliases=["-n"], help="how many")]

Run = Annotated[Positional[str], arg(metavar="RUN", help="a run directory, a .safetensors file, or zoo:NAME")]
Checkpoint = Annotated[
    Literal["last", "best_probe"] | None, arg(help="which of a run's weights [the one its recipe selects]")
]
Device = Annotated[str | None, arg(help="cpu, cuda or cuda:1 [a GPU where there is one]")]
Patience = Annotated[
    int | None, arg(metavar="STEPS", help="end a run whose probe has not improved for so many steps [never]")
]

OwnTask = Annotated[
    str | None, arg(name="task", metavar="CLASS", help="a run's task, if it is no plug-in: package.module:Class")
]

MOST = 100_000_000
"""Instances that one command makes at most."""

app = tyro.extras.SubcommandApp()


def chosen_task(name: str, preset: str, fields: tuple[str, ...]) -> "Task":
    from hardtail.core.fields import read_fields

    kind = TASKS.load(name)
    return make_task(name, preset, **read_fields(kind, fields, kind.name))


def usable_device(given: str | None) -> str:
    """The device to compute on; a clear word where it is not there."""
    import torch

    chosen = given or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError) as error:
        raise HardtailError(f"--device {chosen} cannot be used here: {str(error).splitlines()[0]}") from error
    return chosen


def load(
    run: str,
    kind: "Kind | None",
    device: str,
    precision: "Precision" = "fp32",
    *,
    task: str | None = None,
    compiled: bool = False,
) -> "Subject":
    """The model that a person named, and the class of its task where they gave that."""
    from hardtail.measuring.subject import load_subject

    own = admit_task(task)
    subject = load_subject(run, kind=kind, device=device, precision=precision, compiled=compiled)
    if own is not None and type(subject.task) is not own:
        raise HardtailError(f"{run} is a run on {subject.task.name}, and --task is {task}; leave it out")
    return subject


def admit_task(path: str | None) -> "type[Task] | None":
    """Let files name the task that a person gave as `--task`, for as long as this command runs."""
    return None if path is None else TASKS.admit(path)


def positive(flag: str, value: int) -> None:
    if not 1 <= value <= MOST:
        raise HardtailError(f"{flag} is {value}; it must be at least 1 and at most {MOST:,}")


def open_console(at_least: int = 0) -> "Console":
    """Standard output; in a pipe or a file, where no terminal limits the width, at least so wide."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, at_least))


@contextmanager
def busy(words: str) -> Iterator[None]:
    """A spinner on standard error while something may take a while; nothing where that is not a terminal."""
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield


def measured(line: dict[str, Any]) -> dict[str, float]:
    """Of a line of a run's log, what it measured, without how far it is."""
    far = "step", "wall", "tokens"
    return {key: value for key, value in line.items() if isinstance(value, int | float) and key not in far}


@contextmanager
def asked_to_stop(begun: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Whether Ctrl-C or SIGTERM has come, for work that then saves what it has.

    One that comes before it has begun, when there is nothing to save, or a second one interrupts at once.
    """
    stopping = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopping
        if stopping or not begun():
            raise KeyboardInterrupt
        stopping = True

    before = [(number, signal.signal(number, stop)) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        yield lambda: stopping
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def progress_bar(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error, where that is a terminal; gives the function that advances it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(words, total=total)
        yield lambda made: progress.advance(task, made)


def print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, ensure_ascii=False))
