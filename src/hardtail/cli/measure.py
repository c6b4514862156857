"""Measuring and explaining trained models: eval, diagnose."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from tyro.conf import Positional, arg

from hardtail.cli import common
from hardtail.cli.common import Checkpoint, Device, OwnTask, Run, app, positive
from hardtail.core.errors import HardtailError

if TYPE_CHECKING:
    from hardtail.measuring.diagnosis import Diagnosis
    from hardtail.measuring.evaluate import Found


@app.command(name="eval")
def evaluate(
    run: Run,
    /,
    policies: Annotated[
        tuple[str, ...], arg(aliases=["--policy"], help="decoding orders, e.g. top1 lsb block,size=4")
    ] = (),
    strata: Annotated[tuple[str, ...], arg(help="strata, e.g. natural 'chain>=28' [all of the study's]")] = (),
    n: Annotated[
        int | None, arg(aliases=["-n"], help="instances of each stratum [500; with --data, all that the file has]")
    ] = None,
    data: Annotated[
        Path | None, arg(help="measure on the problems of this file: an .npz of `hardtail data`, or text")
    ] = None,
    task: OwnTask = None,
    kind: Checkpoint = None,
    each: Annotated[int | None, arg(help="cells to commit per step [1]")] = None,
    steps: Annotated[int | None, arg(help="instead of --each: total steps, each with its share of the cells")] = None,
    restrict: Annotated[bool, arg(help="commit only tokens that can occur in answers")] = False,
    temperature: Annotated[float, arg(help="sampling temperature; 0 takes the most probable token")] = 0.0,
    seed: Annotated[int, arg(help="seed of random orders and tokens")] = 0,
    data_seed: Annotated[int | None, arg(help="seed of the instances [the run's]")] = None,
    device: Device = None,
    precision: Annotated[Literal["fp32", "tf32", "bf16"], arg(help="precision of the forward pass")] = "fp32",
    compiled: Annotated[bool, arg(help="compile the model first: takes half a minute, pays off on a GPU")] = False,
    batch: Annotated[int | None, arg(help="instances decoded at a time; affects memory, not results")] = None,
    traces: Annotated[Path | None, arg(help="also write every trace to this folder")] = None,
    gallery: Annotated[
        int, arg(metavar="[N]", help="draw N failures of every policy and stratum [1 if N is omitted]")
    ] = 0,
    out: Annotated[Path | None, arg(help="a .jsonl to add the records to [evaluations.jsonl in the run]")] = None,
    as_json: Annotated[bool, arg(name="json", help="print the accuracy records as one JSON list")] = False,
) -> None:
    """Measure a model: exact match by decoding order and stratum, with intervals.

    Without --policies: confidence (top1), the task's logical order, random order.
    """
    from hardtail.core.records import json_list
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.evaluate import (
        DEFAULT_N,
        Outcome,
        chosen_policies,
        chosen_strata,
        evaluate_all,
        keep,
        records_of,
    )
    from hardtail.measuring.given import GivenProblems
    from hardtail.policies.base import Commit
    from hardtail.show.scoreboard import eval_tables, show_failures

    positive("-n", n)
    if gallery < 0:
        raise HardtailError(f"--gallery is {gallery}; give a number of at least 0, or no number")
    if each is not None and steps is not None:
        raise HardtailError(f"--each {each} and --steps {steps} exclude each other; give one of them")
    if data is not None and data_seed is not None:
        raise HardtailError("--data-seed applies to drawn instances, and --data gives them; leave one out")
    device = common.usable_device(device)
    subject = common.load(run, task, kind, device, precision, compiled)
    chosen, wanted = chosen_policies(subject.task, policies), chosen_strata(subject.task, strata)
    allowed = subject.task.answer_tokens if restrict else None
    decoding = Decoding(Commit(1 if each is None else each, steps), batch, device, seed, temperature, allowed)
    data_seed = subject.seed if data_seed is None else data_seed
    decodes = len(chosen) + subject.task.reveals
    if data is None:
        given, total = None, len(wanted) * (n or DEFAULT_N) * decodes
    else:
        with common.busy(f"reading {data}"):
            given = GivenProblems.read(subject.task, data)
        wanted = wanted if strata else given.strata(wanted)
        total = given.count(wanted, n) * decodes
    into = out or subject.file("evaluations.jsonl")
    common.refuse_special_out(into)
    found: list[Found] = []
    with common.progress_bar(f"decoding {subject.name}", total) as advance:
        every = evaluate_all(
            subject,
            chosen,
            wanted,
            n,
            decoding,
            data_seed=data_seed,
            given=given,
            traces=traces,
            failures=gallery,
            progress=advance,
        )
        try:
            for item in every:
                found.append(item)
        except BaseException:  # after Ctrl-C, a full disk or a faulty policy, earlier measurements are not lost
            keep(into, records_of(found))
            raise
    records = records_of(found)
    try:
        kept = keep(into, records)  # first: `| head` closes the pipe before everything is printed
    finally:  # shown even if they cannot be written
        if as_json:
            print(json_list(item.record for item in found if isinstance(item, Outcome)), flush=True)
        else:
            console = common.open_console(at_least=120)
            for table in eval_tables(subject, records):
                console.print(table.rich())
            show_failures(console, subject.task, found)
    if kept and not as_json:
        print(f"{len(records)} records added to {kept}")


def numbered_gallery(words: list[str]) -> list[str]:
    """Replace `--gallery` without a number by `--gallery 1`: the parser would take the next word, such as RUN."""
    numbered: list[str] = []
    for word, following in zip(words, [*words[1:], ""], strict=True):
        numbered.append(word)
        if word == "--gallery" and not following.removeprefix("-").isdecimal():
            numbered.append("1")
    return numbered


@app.command
def diagnose(
    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN", help="run directories, weights or traces (.npz)")],
    /,
    policies: Annotated[
        tuple[str, ...], arg(aliases=["--policy"], help="decoding orders [top1 and the task's logical order]")
    ] = (),
    strata: Annotated[tuple[str, ...], arg(help="strata to explain [the study's diagnosis set]")] = (),
    n: Annotated[int | None, arg(aliases=["-n"], help="instances of each stratum [the study's]")] = None,
    task: OwnTask = None,
    kind: Checkpoint = None,
    seed: Annotated[int | None, arg(help="seed of the instances [the run's]")] = None,
    device: Device = None,
    batch: Annotated[int | None, arg(help="instances decoded at a time; affects memory, not results")] = None,
    out: Annotated[Path | None, arg(help="a .jsonl to add the diagnoses to [diagnoses.jsonl in the run]")] = None,
    as_json: Annotated[bool, arg(name="json", help="print the diagnoses as one JSON list")] = False,
) -> None:
    """Explain failures: first wrong commits, readiness, coverage of mask states."""
    from rich.text import Text

    from hardtail.core.records import json_list
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.diagnosis import tables
    from hardtail.measuring.evaluate import keep
    from hardtail.measuring.explain import explain_model, explain_trace

    if not runs:
        raise HardtailError("nothing to diagnose; give at least one run directory, weights file or trace")
    positive("-n", n)
    for_runs: dict[str, object] = {"--policies": policies, "--strata": strata, "-n": n, "--kind": kind}
    for_runs |= {"--seed": seed, "--device": device, "--batch": batch}
    given = [name for name, value in for_runs.items() if value not in ((), None)]
    if given and all(run.endswith(".npz") for run in runs):
        raise HardtailError(f"{given[0]} applies only to runs and weights; leave it out, as traces are already decoded")
    common.refuse_special_out(out)
    found: list[Diagnosis] = []
    for run in runs:
        if run.endswith(".npz"):
            with common.busy(f"explaining {run}"):
                common.admit_task(task)
                diagnoses, kept = [explain_trace(Path(run))], out
        else:
            chosen = common.usable_device(device)
            subject = common.load(run, task, kind, chosen)
            decoding = Decoding(batch=batch, device=chosen)
            with common.progress_bar(f"decoding {subject.name}", None) as advance:
                diagnoses = explain_model(subject, policies, strata, n, decoding, data_seed=seed, progress=advance)
            kept = out or subject.file("diagnoses.jsonl")
        found.extend(diagnoses)
        try:
            keep(kept, diagnoses)  # first, as with `eval`
        finally:
            console = common.open_console(at_least=120)
            for diagnosis in diagnoses if not as_json else ():
                title = ", ".join(filter(None, (diagnosis.task, diagnosis.policy, diagnosis.model)))
                console.rule(Text(title, "bold"), align="left")
                for table in tables(diagnosis):
                    console.print(table.rich())
        if kept and not as_json:
            print(f"{len(diagnoses)} diagnoses added to {kept}")
    if as_json:
        print(json_list(found))
