"""Tasks and their data: list, sample, solve, check, build, inspect."""

import sys
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from hardtail import task as make_task
from hardtail.cli.common import (
    Count,
    Fields,
    Json,
    Preset,
    Prompt,
    Seed,
    TaskName,
    app,
    busy,
    chosen_task,
    open_console,
    positive,
    print_json,
    progress_bar,
)
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS


@app.command(name="tasks")
def list_tasks() -> None:
    """List the tasks: shapes, vocabulary, strata, orders."""
    from hardtail.show import instances as show

    open_console().print(show.task_table(TASKS.names(), make_task))


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
    from hardtail import Streams
    from hardtail.show import instances as show

    chosen = chosen_task(task, preset, fields)
    positive("-n", n)
    with busy("drawing"):
        stratum = str(chosen.stratum(stratum))
        instances = chosen.sample(n, Streams(seed).named(f"{chosen.name}/sample/{stratum}"), stratum)
    console = open_console()
    for i in range(n):
        if as_json:
            print_json(show.as_json(chosen, instances, i))
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
    from hardtail.show import instances as show
    from hardtail.tasks import reading

    chosen = chosen_task(task, preset, fields)
    with busy("solving"):
        solved = reading.problems(chosen, prompt, fit=not fields)
    console = open_console()
    for number, item in enumerate(solved, start=1):
        if as_json:
            print_json(show.as_json(item.task, item.instances, item.i))
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

    chosen = chosen_task(task, preset, fields)
    with busy("solving"):
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
    from hardtail.core.files import manifest_path, save_instances, sole_writer
    from hardtail.tasks import datasets as building

    chosen = chosen_task(task, preset, fields)
    if out.suffix != ".npz":
        raise HardtailError(f"--out {out} must end in .npz; the manifest is written beside it as .json")
    if n is not None:
        positive("-n", n)
    with sole_writer(out):
        if not force and (taken := next((path for path in (out, manifest_path(out)) if path.exists()), None)):
            raise HardtailError(f"{taken} exists already; give another name, or --force to replace it")
        if source is None:
            total = sum(part.n for part in building.parts_of(chosen, split or building.TRAIN, n))
            with progress_bar(f"{chosen.name} {split or building.TRAIN}", total) as progress:
                built = building.build(
                    chosen, split or building.TRAIN, seed, n, keep_overlap=keep_overlap, progress=progress
                )
        else:
            with busy("reading and solving"):
                built = building.load(chosen, source, split if split != "all" else "", seed, n)
        with busy("writing"):
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
    from hardtail.core.files import load_instances
    from hardtail.show import instances as show
    from hardtail.tasks.named import task_of

    with busy("loading"):
        instances, manifest = load_instances(file)
    task = task_of(manifest, str(file))
    shown = range(min(n, len(instances)))
    if as_json:
        for i in shown:
            print_json(show.as_json(task, instances, i))
        return
    console = open_console()
    console.print_json(data=manifest)
    for i in shown:
        console.print(show.instance_panel(task, instances, i, f"{task.name} #{i}"))
