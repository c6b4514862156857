"""Shared by the commands: arguments and their help, the console, progress, and loading the model that a user named."""

import signal
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

from hardtail.cli.options import flag_of, option, unread
from hardtail.cli.progress import counted_lines, plain_lines
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from hardtail.core.files import MOST_TEXT, read_regular, refuse_special, refuse_torn
from hardtail.core.pretrained import HF
from hardtail.core.registry import TASKS
from hardtail.core.terminal import console
from hardtail.show.words import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn

    from hardtail.core.tables import Table
    from hardtail.measuring.subject import Kind, Subject
    from hardtail.models.precision import Precision
    from hardtail.tasks.base import Task

TaskName = Annotated[
    Positional[str],
    option("a name from `hardtail tasks`, or package.module:Class; fields after commas: addition,digits=8", "TASK"),
]
Prompt = Annotated[Positional[str], option("a problem, a file of problems, or - for standard input", "PROMPT")]
Preset = Annotated[str | None, option("a named configuration of the task, such as paper [the task's first]", "NAME")]
Fields = Annotated[tuple[str, ...], option("change fields of the task, e.g. --set digits=8", "FIELD=VALUE", name="set")]
SEEDS = Bounds(ge=0, lt=1 << 64)
Seed = Annotated[int, option("random seed", "SEED"), SEEDS]
Json = Annotated[bool, option("print one JSON object per line", name="json")]
JsonList = Annotated[bool, option("print one JSON list", name="json")]
SOME = Bounds(ge=1, le=100_000_000)
"""How many instances one command may make."""
Count = Annotated[int, option("number of instances", "N", aliases=["-n"]), SOME]

MODEL = "a run directory, a .safetensors file, zoo:NAME, hf:FOLDER-OR-NAME, or package.module:object"
Run = Annotated[Positional[str], option(MODEL, "MODEL")]
Policies = Annotated[
    tuple[str, ...],
    option("decoding orders (`hardtail policies`) [top1 and the task's logical order]", "POLICY", aliases=["--policy"]),
]
Checkpoint = Annotated[
    Literal["last", "best_probe"] | None, option("which of a run's weights to use [those that its recipe selects]")
]
DataSeed = Annotated[int | None, option("seed of the instances [the first model's]", "SEED"), SEEDS]
Batch = Annotated[
    int | None,
    option("instances decoded at a time; affects memory and, on a GPU, how sums are rounded", "N"),
    Bounds(ge=1),
]
Device = Annotated[str | None, option("cpu, cuda or cuda:1 [a GPU if there is one]", "DEVICE")]
RecordedIn = Annotated[
    str | None,
    option("folder of recorded runs, or s3://BUCKET/PREFIX [results/ here, or the checkout's]", "DIR"),
]
Patience = Annotated[
    int | None, option("end a run whose probe has not improved for this many steps [never]", "STEPS"), Bounds(ge=1)
]

OwnTask = Annotated[
    str | None,
    option(
        "the task of a function, module or hf: model, or one that is not registered: NAME or package.module:Class, "
        "with fields after commas (addition,digits=8)",
        "TASK",
        name="task",
    ),
]

UnregisteredTask = Annotated[
    str | None,
    option(
        "the task of what is given, if it is not registered: package.module:Class, with fields after commas "
        "(mine.tasks:Sums,digits=8)",
        "TASK",
        name="task",
    ),
]

Template = Annotated[
    str | None,
    option("of an hf: model: the text around a problem, e.g. 'Add: {prompt} = {answer}' [the problem alone]", "TEXT"),
]
TrustRemoteCode = Annotated[bool, option("of an hf: model: run the code that comes with it")]

OwnFolder = Annotated[
    Path | None, option("a folder with your own package.module:NAME [the current folder is always one]", "DIR")
]

Limit = Annotated[int, option("the most memory that a text file may take", "MB"), Bounds(ge=1, le=1 << 30)]
USUAL_LIMIT = MOST_TEXT >> 20


def chosen_task(name: str, preset: str | None, fields: tuple[str, ...]) -> "Task":
    """The task that is named, with the fields that follow its name or are set by `--set`."""
    from hardtail.core.fields import read_fields, spelled

    name, *words = spelled(name).split(",")
    kind = TASKS.load(name)
    return kind.preset(preset, **read_fields(kind, (*words, *fields), kind.name))


def usable_device(given: str | None) -> str:
    """Return the device to compute on; raise HardtailError if it cannot be used."""
    from hardtail.measuring import models

    return models.usable_device(given)


def load(
    run: str,
    task: str | None,
    kind: "Kind | None",
    device: str,
    precision: "Precision" = "fp32",
    compiled: bool = False,
    *,
    template: str | None = None,
    trust_remote_code: bool = False,
) -> "Subject":
    """The model that the user named; `task` is its task, if they gave it."""
    from hardtail.measuring.models import Reading, needs_task, subject_of

    own = admit_task(task)
    needed = own if task is not None and (needs_task(run) or "," in task) else None  # files name their fields
    subject = subject_of(
        run,
        needed,
        kind=kind,
        device=device,
        precision=precision,
        compiled=compiled,
        reading=Reading(template, trust_remote_code),
    )
    if own is not None and type(subject.task) is not type(own):
        raise HardtailError(f"{run} is a model of {subject.task.name}, but --task is {task}; leave it out")
    return subject


def say_unfinished(subjects: "Iterable[Subject]") -> None:
    """Say which models are of runs that are still to be trained further."""
    for subject in subjects:
        if subject.unfinished is not None and subject.origin.step is not None:
            step, steps = subject.origin.step, subject.unfinished
            say(f"{subject.name} has not finished training; its weights are of step {step:,} of {steps:,}")


def refuse_without_model(command: Callable[..., object], given: Mapping[str, object], read: Collection[str]) -> None:
    """Refuse the options of models if none is given, so that only those that are `read` apply."""
    if name := unread(command, given, read):
        raise HardtailError(f"{flag_of(name)} applies only to models, and none is given; leave it out")


def from_anywhere(model: str) -> str:
    """The same model, for a process in another folder or on another machine."""
    from hardtail.core.hub import pinned_model

    prefix = HF if model.startswith(HF) else ""
    path = Path(model.removeprefix(prefix))
    return f"{prefix}{path.absolute()}" if path.exists() else pinned_model(model)


def admit_task(text: str | None) -> "Task | None":
    """Register the task that the user gave as `--task`, so that files may name it while this command runs."""
    if text is None:
        return None
    from hardtail.tasks.named import task_named

    return task_named(text)


def refuse_other_records(path: "Path | None", named: bool) -> None:
    """Refuse, before the work is done, to add records to what cannot be written or is meant for something else. Unless
    the user has `named` it, it is in the run."""
    check_out(path, "give another place" if named else "give another place with --out FILE")
    if path is not None and path.suffix != ".jsonl":
        raise HardtailError(f"--out {path}: records are added to a file whose name ends in .jsonl; give such a name")
    if path is not None:
        refuse_torn(path)
        lines = [line for line in (read_regular(path) if path.exists() else b"").splitlines() if line.strip()]
        if lines and b'"policy"' not in lines[-1]:
            raise HardtailError(f"{path}: its lines are not evaluations or diagnoses; give another file with --out")


def check_out(path: "Path | None", remedy: str = "give another place") -> None:
    """Refuse, before the work is done, what its result could not be written to, and name a folder that will be made for
    it. Creates nothing."""
    if path is None:
        return
    refuse_special(path)
    there = next(parent for parent in path.absolute().parents if parent.exists())
    try:
        with TemporaryFile(dir=there):
            pass
    except OSError as error:
        sentence = f"{path} cannot be written: {error.strerror or error}; {remedy}"
        raise HardtailError(sentence) from error
    if there != path.absolute().parent:
        say(f"{path.parent} is a new folder, and will be made")


def memory(limit: int) -> int:
    """Return the bytes of memory that a user allows for a text file."""
    return limit << 20


def open_console() -> "Console":
    """Return a console for standard output; in a pipe or a file it has 80 columns, or as many as COLUMNS says."""
    return console()


def show_tables(tables: "Iterable[Table]") -> None:
    """Print tables one below the other, each in parts that fit the screen."""
    screen = open_console()
    for place, part in enumerate(part for table in tables for part in table.parts(screen.width)):
        if place:
            screen.print()
        screen.print(part.rich(screen.width))


def counted(n: int, one: str, many: str) -> str:
    """Say a number of things: `1 policy`, `2 policies`."""
    return f"{n:,} {one if n == 1 else many}"


def say(words: str) -> None:
    """Say what a command is about to do, on standard error, so that a pipe carries results only; on a screen in lines
    that fit it."""
    screen = console(stderr=True)
    if screen.is_terminal:
        words = fill(words, screen.width, break_on_hyphens=False, break_long_words=False)
    print(words, file=sys.stderr, flush=True)


def say_time(words: str, times: Iterable[float | None]) -> None:
    """Say what a command is about to do and, if all of its times are known, about how long it takes."""
    seconds = list(times)
    known = [each for each in seconds if each is not None]
    say(f"{words}, about {duration(sum(known))}" if len(known) == len(seconds) else words)


@contextmanager
def busy(words: str) -> Iterator[None]:
    """Show on standard error that work goes on: a spinner on a terminal, plain lines elsewhere."""
    from rich.text import Text

    screen = console(stderr=True)
    with screen.status(Text(words)) if screen.is_terminal else plain_lines(lambda: words):
        yield


@contextmanager
def asked_to_stop(begun: Callable[[], bool]) -> Iterator[Callable[[], bool]]:
    """Give a function that returns whether Ctrl-C or SIGTERM was received, for work that then saves and stops.

    Before the work has `begun`, when there is nothing to save, the first signal interrupts at once; later the second.
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


def new_bar(*more: "ProgressColumn") -> "Progress":
    """Return a progress bar on standard error; it is disabled if that is not a terminal."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

    bar = (BarColumn(bar_width=None), MofNCompleteColumn(), TimeRemainingColumn())
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar, *more)
    screen = console(stderr=True)
    return Progress(*columns, console=screen, disable=not screen.is_terminal)


@contextmanager
def progress_bar(words: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show progress, as a bar on a terminal and as plain lines elsewhere, and give the function that advances it."""
    with new_bar() as progress:
        if progress.disable:
            with counted_lines(words, total) as advance:
                yield advance
            return
        task = progress.add_task(words, total=total)
        yield lambda made: progress.advance(task, made)
