"""Measuring trained models: eval."""

import math
from functools import partial
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING, Annotated, Literal

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import (
    SOME,
    Batch,
    Checkpoint,
    DataSeed,
    Device,
    JsonList,
    OwnTask,
    Run,
    Template,
    TrustRemoteCode,
)
from hardtail.cli.grid import Address, LauncherName, passes
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hardtail.measuring.evaluate import Found
    from hardtail.measuring.plan import Plan


@app.command(name="eval", imports=True)
def evaluate(
    model: Run,
    /,
    policies: Annotated[
        tuple[str, ...],
        option(
            "decoding orders (`hardtail policies`) [top1, the task's logical order, random]",
            "POLICY",
            aliases=["--policy"],
        ),
    ] = (),
    strata: Annotated[tuple[str, ...], option("strata, e.g. natural 'chain>=28' [all of the study's]", "STRATUM")] = (),
    n: Annotated[
        int | None,
        option("instances of each stratum, for every policy [500; with --data, all there are]", "N", aliases=["-n"]),
        SOME,
    ] = None,
    data: Annotated[
        Path | None, option("measure on the problems of this file: an .npz of `hardtail data`, or text", "FILE")
    ] = None,
    task: OwnTask = None,
    template: Template = None,
    trust_remote_code: TrustRemoteCode = False,
    checkpoint: Checkpoint = None,
    each: Annotated[int | None, option("cells to commit per step [1]", "N"), SOME] = None,
    steps: Annotated[
        int | None, option("instead of --each: total steps, each with its share of the cells", "N"), SOME
    ] = None,
    schedule: Annotated[
        Literal["even", "dream"], option("how --steps are divided: evenly, or as Dream's sampler does it")
    ] = "even",
    restrict: Annotated[bool, option("commit only tokens that can occur in answers")] = False,
    temperature: Annotated[
        float, option("sampling temperature; 0 takes the most probable token", "T"), Bounds(ge=0, lt=math.inf)
    ] = 0.0,
    seed: Annotated[int, option("seed of random orders and tokens", "SEED"), Bounds(ge=0, lt=1 << 63)] = 0,
    data_seed: DataSeed = None,
    device: Device = None,
    precision: Annotated[Literal["fp32", "tf32", "bf16"], option("precision of the forward pass")] = "fp32",
    compiled: Annotated[
        bool,
        option("compile the model first: half a minute that pays off on a GPU; in bf16 on Hopper it is not needed"),
    ] = False,
    batch: Batch = None,
    traces: Annotated[Path | None, option("also write every trace to this folder", "DIR")] = None,
    gallery: Annotated[
        int, option("draw N failures of every policy and stratum [1 if N is omitted]", "[N]"), Bounds(ge=0)
    ] = 0,
    trust: Annotated[bool, option("also ask which answers to distrust: a few more passes for each")] = False,
    calibrate: Annotated[
        int | None, option("first set the limit of each ladder that has none by N natural problems", "N"), SOME
    ] = None,
    out: Annotated[Path | None, option("a .jsonl to add the records to [evaluations.jsonl in the run]", "FILE")] = None,
    launcher: LauncherName = "inline",
    address: Address = None,
    as_json: JsonList = False,
) -> None:
    """Measure a model: exact match by decoding order and stratum, with intervals."""
    from hardtail.core.records import json_list
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.evaluate import Evaluating, keep, records_of
    from hardtail.measuring.given import GivenProblems
    from hardtail.measuring.plan import Plan
    from hardtail.policies.base import Commit
    from hardtail.show.scoreboard import eval_tables, measured_how, show_failures

    if each is not None and steps is not None:
        raise HardtailError(f"--each {each} and --steps {steps} exclude each other; give one of them")
    if schedule != "even" and steps is None:
        raise HardtailError(f"--schedule {schedule} divides a total of steps; give that as --steps")
    if data is not None and data_seed is not None:
        raise HardtailError("--data-seed applies to drawn instances, and --data gives them; leave one out")
    load = partial(
        common.load,
        common.from_anywhere(model) if launcher == "ray" else model,
        task,
        checkpoint,
        precision=precision,
        template=template,
        trust_remote_code=trust_remote_code,
    )
    # On a cluster each worker loads the model; here it is loaded only to know what it is.
    subject = load("cpu") if launcher == "ray" else load(common.usable_device(device), compiled=compiled)
    common.say_unfinished([subject])
    plan = partial(Plan.of, subject, policies, strata, n, calibrating=calibrate, data_seed=data_seed)
    planned = plan()  # names that are not known are refused before a file is read
    if data is not None:
        with common.busy(f"reading {data}"):
            planned = plan(GivenProblems.read(subject.task, data))
    commit = Commit(1 if each is None else each, steps, schedule)
    allowed = subject.task.answer_tokens if restrict else None
    into = out or subject.record_file("evaluations.jsonl")
    common.check_out(traces and traces / "trace.npz")
    common.refuse_other_records(into, named=out is not None)
    seconds = planned.seconds(commit, trust=trust)
    common.say_time(f"{subject.name}: {_decodes(planned)}", [seconds])
    with (
        passes(launcher, address, device, subject, partial(load, compiled=compiled)) as (makers, where),
        common.progress_bar(f"decoding {subject.name}", planned.total) as advance,
    ):
        every = planned.measure(
            Decoding(commit, batch, where, seed, temperature, allowed),
            Evaluating(makers, advance, gallery, trust),
            traces=traces,
            say=common.say,
        )
        found = _collected(every, planned.strata, into)
    records = records_of(found)
    try:
        kept = keep(into, records)  # first: `| head` closes the pipe before everything is printed
    finally:  # shown even if they cannot be written
        if as_json:
            print(json_list(records), flush=True)
        else:
            common.show_tables(eval_tables(subject, records))
            show_failures(common.open_console(), subject.task, found)
            print(measured_how(records[0], common.open_console().width))
    if kept and not as_json:
        print(f"{common.counted(len(records), 'record', 'records')} added to {kept}")


def _collected(every: "Iterable[Found]", strata: list[str], into: Path | None) -> "list[Found]":
    """All measurements; after Ctrl-C, a full disk or a faulty policy, those that were made are kept, and it is said how
    the strata that may lack some are measured."""
    from hardtail.measuring.evaluate import keep, records_of

    found: list[Found] = []
    try:
        for item in every:
            found.append(item)
    except BaseException:
        if kept := keep(into, records := records_of(found)):
            left = join(strata[strata.index(records[-1].stratum) :])
            common.say(
                f"{common.counted(len(records), 'record', 'records')} of what was measured so far added to {kept}; the "
                f"same command measures all again, and with --strata {left} what may be incomplete or is missing"
            )
        raise
    return found


def _decodes(plan: "Plan") -> str:
    """`3,000 decodes = 500 instances × 2 strata × 3 policies`: where the number of decodes comes from."""
    decodes = common.counted(plan.total, "decode", "decodes")
    policies = common.counted(len(plan.policies), "policy", "policies")
    words = common.counted(plan.instances, "problem", "problems")
    if plan.given is None:
        each, strata = plan.instances // len(plan.strata), common.counted(len(plan.strata), "stratum", "strata")
        words = f"{common.counted(each, 'instance', 'instances')} × {strata}"
    words += f" × {policies}"
    words += f" + {plan.half_revealed:,} half revealed" * bool(plan.half_revealed)
    if plan.ladders:
        words += f" + {plan.calibrating:,} natural problems × {common.counted(len(plan.ladders), 'ladder', 'ladders')}"
    return f"{decodes} = {words}"


def numbered_gallery(words: list[str]) -> list[str]:
    """Replace `--gallery` without a number by `--gallery 1`: the parser would take the next word, such as RUN."""
    numbered: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        numbered.append(word)
        if word == "--gallery" and not following.removeprefix("-").isdecimal():
            numbered.append("1")
    return numbered
