"""The command that replays a decode in the terminal: view."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional

from hardtail.cli import common
from hardtail.cli.commands import app
from hardtail.cli.common import Checkpoint, DataSeed, Device, OwnTask, Template, TrustRemoteCode
from hardtail.cli.options import option
from hardtail.core.fields import Bounds

if TYPE_CHECKING:
    from hardtail.core.types import Trace
    from hardtail.measuring.subject import Subject


@app.command(imports=True)
def view(
    trace: Annotated[
        Positional[str], option(f"a trace (.npz) that `eval --traces` wrote; or {common.MODEL}", "TRACE|MODEL")
    ],
    /,
    instance: Annotated[int | None, option("the instance to begin with, counted from 0", "I"), Bounds(ge=0)] = None,
    failures: Annotated[bool, option("leave out solved instances")] = False,
    policy: Annotated[str | None, option("of a model: the decoding order [top1]", "POLICY")] = None,
    stratum: Annotated[str | None, option("of a model: the stratum to decode [a hard one]", "STRATUM")] = None,
    n: Annotated[int | None, option("of a model: instances to decode [20]", "N", aliases=["-n"]), common.SOME] = None,
    task: OwnTask = None,
    template: Template = None,
    trust_remote_code: TrustRemoteCode = False,
    checkpoint: Checkpoint = None,
    data_seed: DataSeed = None,
    device: Device = None,
) -> None:
    """Watch a decode in the terminal, commit by commit; in a pipe, print one line for each commit of one instance.

    Keys: arrows step, f goes to the next failure, n and p to other instances, space plays, q quits.
    """
    from hardtail.show.sources import load_traces
    from hardtail.show.theatre import open_theatre, print_commits, watch

    if trace.endswith(".npz"):
        common.refuse_without_model(view, locals(), ("instance", "failures", "task"))
        (shown,) = load_traces([Path(trace)], common.admit_task(task))
    else:
        where = common.usable_device(device)
        subject = common.load(trace, task, checkpoint, where, template=template, trust_remote_code=trust_remote_code)
        common.say_unfinished([subject])
        shown = _decoded(subject, policy, stratum, n, data_seed)
    theatre = open_theatre(shown, trace, instance, failures=failures)
    console = common.open_console()
    if sys.stdin.isatty() and sys.stdout.isatty() and not console.is_dumb_terminal:
        watch(theatre)
    else:
        print_commits(theatre, console)


def _decoded(subject: "Subject", policy: str | None, stratum: str | None, n: int | None, seed: int | None) -> "Trace":
    """A model's decode of some instances, to be watched."""
    from hardtail.core.types import Trace
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.choices import chosen_policies, chosen_strata, measured_instances
    from hardtail.measuring.cost import decode_seconds
    from hardtail.measuring.evaluate import traced

    ((name, chosen),) = chosen_policies(subject.task, [policy or "top1"]).items()
    (label,) = chosen_strata(subject.task, [stratum or subject.task.gallery()[1]])
    instances = measured_instances(subject.task, label, n or 20, subject.seed if seed is None else seed)
    seconds = decode_seconds(subject, [(chosen, len(instances))])
    decodes = common.counted(len(instances), "decode", "decodes")
    common.say_time(f"{subject.name}: {decodes}, to show one at a time", [seconds])
    with common.progress_bar(f"decoding {subject.name}", len(instances)) as advance:
        parts = list(traced(subject, name, chosen, instances, label, Decoding(device=subject.device), advance))
    return Trace.concat(parts)
