"""The command line: words for people, no logic."""

import json as json_module
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import tyro
from tyro.conf import FlagCreatePairsOff, Positional, arg

from hardtail import task as make_task
from hardtail.errors import HardtailError
from hardtail.registry import TASKS

if TYPE_CHECKING:
    from rich.console import Console

    from hardtail.tasks.base import Task

TaskName = Annotated[Positional[str], arg(metavar="TASK", help="a name from `hardtail tasks`, or package.module:Class")]
Prompt = Annotated[
    Positional[str], arg(metavar="PROMPT", help="a problem, a file of problems, or - for standard input")
]
Preset = Annotated[str, arg(help="reading of the study: release or paper")]
Fields = Annotated[
    tuple[str, ...], arg(name="set", metavar="FIELD=VALUE", help="change fields of the task, e.g. --set digits=8")
]
Seed = Annotated[int, arg(help="seed of the named streams")]
Json = Annotated[bool, arg(name="json", help="one JSON object a line")]
Count = Annotated[int, arg(aliases=["-n"], help="how many")]

MOST = 100_000_000
"""Instances that one command makes at most."""

app = tyro.extras.SubcommandApp()


@app.command(name="tasks")
def list_tasks() -> None:
    """List the tasks: shapes, vocabulary, strata, orders."""
    from hardtail import show

    _console().print(show.task_table(TASKS.names(), make_task))


@app.command
def sample(
    task: TaskName,
    /,
    stratum: Annotated[str, arg(help="natural, or a condition such as 'chain>=28' or 'tier=hard'")] = "natural",
    n: Count = 1,
    seed: Seed = 0,
    preset: Preset = "release",
    fields: Fields = (),
    as_json: Json = False,
) -> None:
    """Draw instances and show them with their strata and logical orders."""
    from hardtail import Streams, show

    chosen = _task(task, preset, fields)
    _positive("-n", n)
    with _busy("drawing"):
        stratum = str(chosen.stratum(stratum))
        instances = chosen.sample(n, Streams(seed).named(f"{chosen.name}/sample/{stratum}"), stratum)
    console = _console()
    for i in range(n):
        if as_json:
            _print_json(show.as_json(chosen, instances, i))
        else:
            console.print(show.instance_panel(chosen, instances, i, f"{chosen.name} {stratum} #{i}"))


@app.command
def solve(
    task: TaskName,
    prompt: Prompt,
    /,
    preset: Preset = "release",
    fields: Fields = (),
    as_json: Json = False,
) -> None:
    """Solve given problems: the gold answer, the strata and the logical orders."""
    from hardtail import show
    from hardtail.tasks import reading

    chosen = _task(task, preset, fields)
    with _busy("solving"):
        solved = reading.problems(chosen, prompt, fit=not fields)
    console = _console()
    for number, item in enumerate(solved, start=1):
        if as_json:
            _print_json(show.as_json(item.task, item.instances, item.i))
        else:
            console.print(show.instance_panel(item.task, item.instances, item.i, f"{chosen.name} #{number}"))
            print(item.task.answer_text(item.instances, item.i))


@app.command
def check(
    task: TaskName,
    prompt: Prompt,
    answer: Annotated[Positional[str], arg(metavar="ANSWER", help="an answer, or a file that holds it")],
    /,
    preset: Preset = "release",
    fields: Fields = (),
) -> None:
    """Judge an answer: exit code 0 and "valid", or 1 and the reason why not."""
    from hardtail.tasks import reading

    chosen = _task(task, preset, fields)
    with _busy("solving"):
        found = reading.problems(chosen, prompt, fit=not fields)
    if len(found) != 1:
        raise HardtailError(f"check takes one problem at a time; {prompt} holds {len(found)}")
    item = found[0]
    text = reading.answer_text(item, answer)
    try:
        fault = item.task.fault(item.instances, item.i, item.task.read_answer(item.instances, item.i, text))
    except HardtailError as error:
        fault = str(error)
    if fault is not None:
        print(f"not valid: {fault}")
        sys.exit(1)
    print("valid")


@app.command
def data(
    task: TaskName,
    /,
    out: Annotated[Path, arg(help="where to write: an .npz; its manifest goes beside it as .json")],
    split: Annotated[str, arg(help="train, test, … as `hardtail tasks` lists them; with --from also all")] = "",
    n: Annotated[int | None, arg(aliases=["-n"], help="how many in total, in the split's proportions")] = None,
    seed: Seed = 0,
    source: Annotated[
        str | None, arg(name="from", help="take problems from a file instead; with --split, what the study keeps of it")
    ] = None,
    preset: Preset = "release",
    fields: Fields = (),
    bare: Annotated[bool, arg(help="tokens and masks only, without orders, parents and strata")] = False,
    keep_overlap: Annotated[bool, arg(help="leave training problems in that other splits hold too")] = False,
    force: Annotated[bool, arg(help="replace an existing file")] = False,
) -> None:
    """Build a data set on all cores and save it."""
    from hardtail import data as building
    from hardtail.files import manifest_path, save_instances, sole_writer

    chosen = _task(task, preset, fields)
    if out.suffix != ".npz":
        raise HardtailError(f"--out {out} must end in .npz; the manifest is written beside it as .json")
    if n is not None:
        _positive("-n", n)
    with sole_writer(out):
        if not force and (taken := next((path for path in (out, manifest_path(out)) if path.exists()), None)):
            raise HardtailError(f"{taken} exists already; give another name, or --force to replace it")
        if source is None:
            total = sum(part.n for part in building.parts_of(chosen, split or building.TRAIN, n))
            with _progress(f"{chosen.name} {split or building.TRAIN}", total) as progress:
                built = building.build(
                    chosen, split or building.TRAIN, seed, n, keep_overlap=keep_overlap, progress=progress
                )
        else:
            with _busy("reading and solving"):
                built = building.load(chosen, source, split if split != "all" else "", seed, n)
        with _busy("writing"):
            save_instances(out, built.instances.bare() if bare else built.instances, built.manifest)
    size = out.stat().st_size / 1e6
    print(f"{out}: {len(built.instances):,} instances, {built.manifest['distinct']:,} distinct, {size:.1f} MB")
    print(f"train and test are kept apart: {built.manifest['train_and_test']}")


@app.command
def inspect(
    file: Annotated[Positional[Path], arg(metavar="FILE", help="an .npz written by `hardtail data`")],
    /,
    n: Count = 1,
    as_json: Json = False,
) -> None:
    """Check a saved data set against its manifest and show what it holds."""
    from hardtail import show
    from hardtail.files import load_instances

    with _busy("loading"):
        instances, manifest = load_instances(file)
    task = make_task(manifest["task"], **manifest["config"])
    for i in range(min(n, len(instances))) if as_json else ():
        _print_json(show.as_json(task, instances, i))
    if as_json:
        return
    console = _console()
    console.print_json(data=manifest)
    for i in range(min(n, len(instances))):
        console.print(show.instance_panel(task, instances, i, f"{task.name} #{i}"))


@app.command
def train() -> None:
    """Train a recipe: `hardtail train RECIPE [any field as a flag]`; alone it lists the recipes."""
    from hardtail.cli_train import main as train_main

    train_main(sys.argv[2:])


@app.command
def demo() -> None:
    """The main job: one easy and one hard instance of every task, as a person would draw them."""
    from rich.text import Text

    from hardtail import Streams, show

    console = _console(at_least=120)
    for name in TASKS.names():
        try:
            task = make_task(name)
        except HardtailError as error:
            console.print(Text(str(error), "red"))
            continue
        console.rule(f"[bold]{name}[/bold]  {(task.__doc__ or '').splitlines()[0]}", align="left")
        panels = []
        with _busy(f"{name}: drawing (the first time also compiling)"):
            for stratum in task.gallery():
                instances = task.sample(1, Streams(0).named(f"demo/{name}/{stratum}"), stratum)
                panels.append(show.instance_panel(task, instances, 0, stratum, widest=console.width // 2 - 1))
        console.print(show.side_by_side(panels, console.width))


# -- helpers ----------------------------------------------------------------------------------------------------


def _task(name: str, preset: str, fields: tuple[str, ...]) -> "Task":
    from hardtail.tasks.fields import read_fields

    return make_task(name, preset, **read_fields(TASKS.load(name), fields))


def _positive(flag: str, value: int) -> None:
    if not 1 <= value <= MOST:
        raise HardtailError(f"{flag} is {value}; it must be at least 1 and at most {MOST:,}")


def _console(at_least: int = 0) -> "Console":
    """Standard output; in a pipe or a file, where no terminal limits the width, at least so wide."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=max(console.width, at_least))


@contextmanager
def _busy(words: str) -> Iterator[None]:
    """A spinner on standard error while something may take a while; nothing where that is not a terminal."""
    from rich.console import Console

    with Console(stderr=True).status(words):
        yield


@contextmanager
def _progress(words: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on standard error; gives the function that advances it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(words, total=total)
        yield lambda made: progress.advance(task, made)


def _print_json(value: dict[str, Any]) -> None:
    print(json_module.dumps(value, ensure_ascii=False))


def _own_words(words: list[str]) -> list[str]:
    """The words that the commands here read: `train` reads its own, as its flags depend on the recipe."""
    if words and words[0] == "train":
        return words[:1]
    return words or ["--help"]


def _quit(sentence: str, code: int) -> NoReturn:
    print(f"hardtail: {sentence}", file=sys.stderr)
    sys.exit(code)


def main() -> None:
    """Entry point: a person's mistake is one sentence and exit code 2."""
    from hardtail import __version__

    if sys.argv[1:] == ["--version"]:
        print(f"hardtail {__version__}")
        return
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))  # an exit cleans up; plain death does not
    try:
        app.cli(
            prog="hardtail",
            description="Reasoning tasks for masked diffusion models, with their logical order computed exactly.",
            args=_own_words(sys.argv[1:]),
            config=(FlagCreatePairsOff,),
        )
        sys.stdout.flush()
    except HardtailError as error:
        _quit(str(error), 2)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
    except KeyboardInterrupt:
        _quit("stopped; no file was left half-written", 130)
    except MemoryError:
        _quit("there is not enough memory for that; ask for less at a time", 2)
    except OSError as error:
        _quit(f"{error.filename or 'the file system'}: {error.strerror or error}", 2)
