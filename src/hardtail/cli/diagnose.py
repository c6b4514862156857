"""Explaining failures of models and in traces: diagnose."""

import gc
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    Template,
    TrustRemoteCode,
)
from hardtail.cli.options import option
from hardtail.core.errors import HardtailError
from hardtail.show.words import duration

if TYPE_CHECKING:
    from hardtail.measuring.diagnosis import Diagnosis
    from hardtail.measuring.explain import Explained
    from hardtail.measuring.subject import Subject


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
    from hardtail.measuring.evaluate import keep
    from hardtail.measuring.explain import explain_traces
    from hardtail.show.sources import load_traces, refuse_repeated

    if not models:
        raise HardtailError("nothing to diagnose; give at least one run directory, weights file or trace")
    traces = [name for name in models if name.endswith(".npz")]
    if len(traces) == len(models):
        common.refuse_without_model(diagnose, locals(), ("task", "full", "out", "as_json"))
    refuse_repeated(models)
    common.refuse_other_records(out, named=out is not None)

    @lru_cache(maxsize=1)  # one model is read once; of several, few are held at a time
    def load(name: str) -> tuple["Subject", Path | None]:
        gc.collect()  # a step that a GPU has captured refers to itself and its model, and holds their memory until then
        where = common.usable_device(device)
        subject = common.load(name, task, checkpoint, where, template=template, trust_remote_code=trust_remote_code)
        into = out or subject.record_file("diagnoses.jsonl")
        if out is None:
            common.refuse_other_records(into, named=False)
        return subject, into

    # All that is named is read before anything is decoded; several models are then read again, one after another.
    named = [name for name in models if name not in traces]
    common.say_unfinished(load(name)[0] for name in named)
    held = load_traces([Path(name) for name in traces], common.admit_task(task))
    found: list[Diagnosis] = []

    def show(explained: "Explained", kept: Path | None) -> None:
        found.extend(explained.diagnoses)
        try:
            keep(kept, explained.diagnoses)  # first, as with `eval`
        finally:
            if not as_json:
                _show(explained, full=full)
        if kept and not as_json:
            print(f"{common.counted(len(explained.diagnoses), 'diagnosis', 'diagnoses')} added to {kept}")

    for name in named:
        subject, into = load(name)
        show(_explained(subject, policies, strata, n, batch, data_seed), into)
    if held:
        with common.busy("explaining"):
            every = explain_traces(zip(traces, held, strict=True))
        for explained in every:
            show(explained, out)
    if as_json:
        print(json_list(found))
    elif not full:
        print("`--full` shows every figure behind this")


def _explained(
    subject: "Subject",
    policies: Sequence[str],
    strata: Sequence[str],
    n: int | None,
    batch: int | None,
    data_seed: int | None,
) -> "Explained":
    """Decode a model and explain it, having said about how long that takes."""
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.explain import Explained, diagnosed, explain_model, explain_seconds, to_decode

    if not strata and n is None:
        strata, n = _affordable(subject, policies)
    total = to_decode(subject.task, policies, strata, n)
    drawn = sum(part.n for part in diagnosed(subject.task, strata, n))
    decodes, instances = common.counted(total, "decode", "decodes"), common.counted(drawn, "instance", "instances")
    orders = common.counted(total // drawn, "policy", "policies")
    seconds = explain_seconds(subject, policies, strata, n)
    common.say_time(f"{subject.name}: {decodes} = {instances} × {orders}", [seconds])
    decoding = Decoding(batch=batch, device=subject.device)
    with common.progress_bar(f"decoding {subject.name}", total) as advance:
        diagnoses = explain_model(subject, policies, strata, n, decoding, data_seed=data_seed, progress=advance)
    return Explained(subject.task, diagnoses)


def _affordable(subject: "Subject", policies: Sequence[str]) -> tuple[Sequence[str], int | None]:
    """The strata and the number of instances if a user chose neither; say what is left out, if anything is."""
    from hardtail.measuring.explain import affordable, explain_seconds

    if (part := affordable(subject, policies)) is None:
        return (), None
    whole = duration(explain_seconds(subject, policies, (), None) or 0.0)
    common.say(f"{subject.name}: only {part.stratum}; the whole diagnosis takes about {whole} (-n 300)")
    return (part.stratum,), part.n


def _show(explained: "Explained", *, full: bool) -> None:
    """Print the verdict and, for a `full` diagnosis, all tables."""
    from hardtail.measuring.diagnosis import tables, verdict

    print(verdict(explained.diagnoses, explained.task.words).text(common.open_console().width))
    for diagnosis in explained.diagnoses if full else ():
        print(f"\n--- {diagnosis.policy or 'the trace'}; here steps count from 0\n")
        common.show_tables(tables(diagnosis))
