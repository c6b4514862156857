"""Measuring and explaining trained models: eval, diagnose."""

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional

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
    Policies,
    Run,
    Template,
    TrustRemoteCode,
)
from hardtail.cli.grid import Address, LauncherName, passes
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Bounds
from hardtail.show.words import duration

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hardtail.measuring.diagnosis import Diagnosis
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
    compiled: Annotated[bool, option("compile the model first: takes half a minute, pays off on a GPU")] = False,
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
    plan = partial(Plan.of, subject, policies, strata, n, calibrating=calibrate)
    planned = plan()  # names that are not known are refused before a file is read
    if data is not None:
        with common.busy(f"reading {data}"):
            planned = plan(GivenProblems.read(subject.task, data))
    commit = Commit(1 if each is None else each, steps, schedule)
    allowed = subject.task.answer_tokens if restrict else None
    into = out or subject.record_file("evaluations.jsonl")
    common.check_out(traces and traces / "trace.npz")
    common.refuse_other_records(into)
    seconds = planned.seconds(commit, trust=trust)
    common.say_time(f"{subject.name}: {_decodes(planned)}", [seconds])
    with (
        passes(launcher, address, device, subject, partial(load, compiled=compiled)) as (makers, where),
        common.progress_bar(f"decoding {subject.name}", planned.total) as advance,
    ):
        every = planned.measure(
            Decoding(commit, batch, where, seed, temperature, allowed),
            Evaluating(makers, advance, gallery, trust),
            data_seed=data_seed,
            traces=traces,
            say=common.say,
        )
        found = _collected(every, into)
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


def _collected(every: "Iterable[Found]", into: Path | None) -> "list[Found]":
    """All measurements; after Ctrl-C, a full disk or a faulty policy, those that were made are kept."""
    from hardtail.measuring.evaluate import keep, records_of

    found: list[Found] = []
    try:
        for item in every:
            found.append(item)
    except BaseException:
        keep(into, records_of(found))
        raise
    return found


def _decodes(plan: "Plan") -> str:
    """`3,000 decodes = 500 instances × 2 strata × 3 policies`: where the number of decodes comes from."""
    decodes = common.counted(plan.total, "decode", "decodes")
    asked = len(plan.policies) + (plan.subject.task.reveals if plan.given is None else 0)
    policies = common.counted(asked, "policy", "policies")
    if plan.given is None:
        each = common.counted(plan.each, "instance", "instances")
        words = f"{each} × {common.counted(len(plan.strata), 'stratum', 'strata')} × {policies}"
    else:
        words = f"{common.counted(plan.instances, 'problem', 'problems')} × {policies}"
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


@app.command(imports=True)
def diagnose(
    models: Annotated[Positional[tuple[str, ...]], option(f"{common.MODEL}; or traces (.npz)", "MODEL ...")],
    /,
    policies: Policies = (),
    strata: Annotated[tuple[str, ...], option("strata to explain [the study's diagnosis set]", "STRATUM")] = (),
    n: Annotated[
        int | None,
        option(
            "instances of each stratum, for every policy [the study's; on a CPU what six minutes allow]",
            "N",
            aliases=["-n"],
        ),
        SOME,
    ] = None,
    task: OwnTask = None,
    template: Template = None,
    trust_remote_code: TrustRemoteCode = False,
    checkpoint: Checkpoint = None,
    data_seed: DataSeed = None,
    device: Device = None,
    batch: Batch = None,
    full: Annotated[bool, option("also print all tables: first wrong commits, readiness, coverage, profile")] = False,
    out: Annotated[Path | None, option("a .jsonl to add the diagnoses to [diagnoses.jsonl in the run]", "FILE")] = None,
    as_json: JsonList = False,
) -> None:
    """Explain failures in five lines: how often, where, and whether cells were written before what they wait for."""
    from hardtail.core.records import json_list
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.diagnosis import tables, verdict
    from hardtail.measuring.evaluate import keep
    from hardtail.measuring.explain import (
        Explained,
        affordable,
        diagnosed,
        explain_model,
        explain_seconds,
        explain_traces,
        to_decode,
    )
    from hardtail.show.sources import load_traces

    if not models:
        raise HardtailError("nothing to diagnose; give at least one run directory, weights file or trace")
    traces = [name for name in models if name.endswith(".npz")]
    if len(traces) == len(models):
        common.refuse_without_model(diagnose, locals(), ("task", "full", "out", "as_json"))
    common.refuse_other_records(out)
    found: list[Diagnosis] = []

    def show(explained: Explained, kept: Path | None) -> None:
        found.extend(explained.diagnoses)
        try:
            keep(kept, explained.diagnoses)  # first, as with `eval`
        finally:
            if not as_json:
                print(verdict(explained.diagnoses, explained.task.words).text(common.open_console().width))
            for diagnosis in explained.diagnoses if full and not as_json else ():
                print(f"\n--- {diagnosis.policy or 'the trace'}; here steps count from 0\n")
                common.show_tables(tables(diagnosis))
        if kept and not as_json:
            print(f"{common.counted(len(explained.diagnoses), 'diagnosis', 'diagnoses')} added to {kept}")

    for name in models:
        if name in traces:
            continue
        where = common.usable_device(device)
        subject = common.load(name, task, checkpoint, where, template=template, trust_remote_code=trust_remote_code)
        into = out or subject.record_file("diagnoses.jsonl")
        if out is None:
            common.refuse_other_records(into)
        wanted, number = strata, n
        if not strata and n is None and (part := affordable(subject, policies)) is not None:
            wanted, number = (part.stratum,), part.n
            whole = explain_seconds(subject, policies, (), None) or 0.0
            otherwise = f"the whole diagnosis takes about {duration(whole)} (-n 300)"
            common.say(f"{subject.name}: only {part.stratum}; {otherwise}")
        total = to_decode(subject.task, policies, wanted, number)
        drawn = sum(part.n for part in diagnosed(subject.task, wanted, number))
        decodes, instances = common.counted(total, "decode", "decodes"), common.counted(drawn, "instance", "instances")
        orders = common.counted(total // drawn, "policy", "policies")
        seconds = explain_seconds(subject, policies, wanted, number)
        common.say_time(f"{subject.name}: {decodes} = {instances} × {orders}", [seconds])
        decoding = Decoding(batch=batch, device=subject.device)
        with common.progress_bar(f"decoding {subject.name}", total) as advance:
            diagnoses = explain_model(
                subject, policies, wanted, number, decoding, data_seed=data_seed, progress=advance
            )
        show(Explained(subject.task, diagnoses), into)
    if traces:
        with common.busy("explaining"):
            held = load_traces([Path(name) for name in traces], common.admit_task(task))
            every = explain_traces(zip(traces, held, strict=True))
        for explained in every:
            show(explained, out)
    if as_json:
        print(json_list(found))
    elif not full:
        print("`--full` shows every figure behind this")
