"""Tasks and their data: list, sample, solve, check, build, inspect."""

import json
import sys
from inspect import signature
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from hardtail import task as make_task
from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import (
    USUAL_LIMIT,
    Count,
    Fields,
    Json,
    Limit,
    Preset,
    Prompt,
    Seed,
    TaskName,
    busy,
    chosen_task,
    memory,
)
from hardtail.cli.grid import Address, LauncherName, crew
from hardtail.cli.options import flag_of, option, unread
from hardtail.core.errors import HardtailError
from hardtail.core.registry import TASKS

if TYPE_CHECKING:
    from hardtail.core.types import Instances
    from hardtail.tasks.base import Task


def _any_size(task: str, fields: tuple[str, ...]) -> bool:
    """Whether problems may have sizes of their own; not if a field of the task was set."""
    return not fields and "," not in task


def _show(task: "Task", instances: "Instances", i: int, title: str, as_json: bool) -> None:
    from hardtail.show import instances as show

    if as_json:
        print(json.dumps(show.as_json(task, instances, i), ensure_ascii=False))
    else:
        common.open_console().print(show.instance_panel(task, instances, i, title))


@app.command(name="tasks")
def list_tasks() -> None:
    """List the tasks: shapes, vocabulary, strata, orders."""
    from hardtail.show.instances import task_table

    common.open_console().print(task_table(TASKS.names(), make_task))


@app.command(imports=True)
def sample(
    task: TaskName,
    /,
    stratum: Annotated[
        str, option("natural, or a condition such as 'chain>=28' or 'tier=hard'", "STRATUM")
    ] = "natural",
    n: Count = 1,
    seed: Seed = 0,
    preset: Preset = None,
    fields: Fields = (),
    as_json: Json = False,
) -> None:
    """Draw instances and show them with their strata and logical orders."""
    chosen = chosen_task(task, preset, fields)
    with busy("drawing"):
        stratum = str(chosen.stratum(stratum))
        instances = chosen.sample(n, stratum, seed=seed)
    for i in range(n):
        _show(chosen, instances, i, f"{chosen.name} {stratum} #{i}", as_json)


@app.command(imports=True)
def solve(
    task: TaskName,
    prompt: Prompt,
    /,
    preset: Preset = None,
    fields: Fields = (),
    limit: Limit = USUAL_LIMIT,
    as_json: Json = False,
) -> None:
    """Solve given problems: the gold answer, the strata and the logical orders."""
    from hardtail.tasks import reading

    chosen = chosen_task(task, preset, fields)
    solved = reading.problems(chosen, prompt, _any_size(task, fields), memory(limit))
    with busy("solving"):
        first = next(solved)
    for number, item in enumerate(chain([first], solved), start=1):
        _show(item.task, item.instances, item.i, f"{chosen.name} #{number}", as_json)
        if not as_json:
            print(item.task.answer_text(item.instances, item.i))


@app.command(imports=True)
def check(
    task: TaskName,
    prompt: Prompt,
    answer: Annotated[Positional[str], option("an answer, or a file that contains it", "ANSWER")],
    /,
    preset: Preset = None,
    fields: Fields = (),
    limit: Limit = USUAL_LIMIT,
) -> None:
    """Judge an answer: exit code 0 and "valid", or 1 and the reason why not."""
    from hardtail.tasks import reading

    chosen = chosen_task(task, preset, fields)
    with busy("solving"):
        found = list(islice(reading.problems(chosen, prompt, _any_size(task, fields), memory(limit)), 2))
    if len(found) != 1:
        raise HardtailError(f"{prompt} has more than one problem; check one at a time")
    if not answer.strip():
        raise HardtailError("the answer is empty; give an answer, or the name of a file that contains it")
    item = found[0]
    text = reading.answer_text(item, answer, memory(limit))
    try:
        fault = item.task.fault(item.instances, item.i, item.task.read_answer(item.instances, item.i, text))
    except HardtailError as error:
        fault = str(error)
    if fault is not None:
        print(f"not valid: {fault}")
        sys.exit(1)
    print("valid")


@app.command(imports=True)
def data(
    task: TaskName,
    /,
    out: Annotated[
        Path, option("where to write: an .npz with its manifest as .json next to it, or a .parquet", "FILE")
    ],
    split: Annotated[
        str, option("train, test, … as listed by `hardtail tasks`; with --from, also all [train]", "SPLIT")
    ] = "",
    n: Annotated[
        int | None,
        option("instances in all, in the split's proportions [the study's]", "N", aliases=["-n"]),
        common.SOME,
    ] = None,
    seed: Seed = 0,
    source: Annotated[
        str | None,
        option(
            "read problems from a file instead; with --split, only those that the study would use for it",
            "FILE",
            name="from",
        ),
    ] = None,
    preset: Preset = None,
    fields: Fields = (),
    bare: Annotated[bool, option("tokens and masks only, without orders, parents and strata")] = False,
    keep_overlap: Annotated[bool, option("keep training problems that other splits also contain")] = False,
    force: Annotated[bool, option("replace an existing file")] = False,
    limit: Limit = USUAL_LIMIT,
    launcher: LauncherName = "inline",
    address: Address = None,
) -> None:
    """Build a data set on all cores and save it. The result is the same wherever it is built."""
    from hardtail.core.files import manifest_path, sole_writer
    from hardtail.core.parquet import pyarrow_or_error
    from hardtail.tasks import datasets as building
    from hardtail.tasks.stored import store

    chosen = chosen_task(task, preset, fields)
    if out.suffix not in (".npz", ".parquet"):
        raise HardtailError(f"--out {out} must end in .npz, whose manifest is written next to it as .json, or .parquet")
    if out.suffix == ".parquet":
        pyarrow_or_error()
    ignored = {"limit"} if source is None else {"keep_overlap", "launcher", "address"}
    if unused := unread(data, locals(), signature(data).parameters.keys() - ignored):
        where = "without --from, as problems are drawn" if source is None else "with --from, as problems are given"
        raise HardtailError(f"{flag_of(unused)} has no use {where}; leave it out")
    common.check_out(out)
    with sole_writer(out):
        written = (out, manifest_path(out)) if out.suffix == ".npz" else (out,)
        if not force and (taken := next((path for path in written if path.exists()), None)):
            raise HardtailError(f"{taken} already exists; give another name, or --force to replace it")
        if source is None:
            split = split or building.TRAIN
            total = sum(part.n for part in building.parts_of(chosen, split, n))
            with (
                crew(launcher, address) as workers,
                common.progress_bar(f"{chosen.name} {split}", total) as progress,
            ):
                built = building.build(
                    chosen, split, seed, n, keep_overlap=keep_overlap, pool=workers, progress=progress
                )
        else:
            with busy("reading and solving"):
                built = building.load(chosen, source, split if split != "all" else "", seed, n, limit=memory(limit))
        with busy("writing"):
            store(out, chosen, built.instances.bare() if bare else built.instances, built.manifest)
    size, count = out.stat().st_size / 1e6, common.counted(len(built.instances), "instance", "instances")
    print(f"{out}: {count}, {built.manifest.distinct:,} distinct, {size:.1f} MB")
    how = built.manifest.train_and_test
    if source is not None:
        print(f"the file's problems were {how}")
    else:
        print(f"train and test are {how}" if keep_overlap else f"train and test are kept apart {how}")


@app.command(imports=True)
def inspect(
    file: Annotated[Positional[Path], option("an .npz or .parquet written by `hardtail data`", "FILE")],
    /,
    n: Count = 1,
    task: common.UnregisteredTask = None,
    as_json: Json = False,
) -> None:
    """Check a saved data set against its manifest and show its contents."""
    from hardtail.core.manifest import as_json as manifest_as_json
    from hardtail.tasks.stored import stored_instances

    common.admit_task(task)
    with busy("loading"):
        held, instances, manifest = stored_instances(file, shown=n)
    if not as_json:
        common.open_console().print_json(data=manifest_as_json(manifest))
    for i in range(min(n, len(instances))):
        _show(held, instances, i, f"{held.name} #{i}", as_json)
