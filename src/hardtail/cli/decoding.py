"""Decoding models to show them together: what `compare` and `report` share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from tyro.conf import OmitArgPrefixes

from hardtail.cli import common
from hardtail.cli.common import Batch, Checkpoint, DataSeed, Device, OwnTask, Policies, Template, TrustRemoteCode
from hardtail.cli.options import option

if TYPE_CHECKING:
    from hardtail.core.types import Trace
    from hardtail.tasks.base import Task


@dataclass(frozen=True)
class ToDecode:
    """How the named models are decoded."""

    policies: Policies = ()
    strata: Annotated[
        tuple[str, ...], option("strata to decode models on [an ordinary one and a hard one]", "STRATUM")
    ] = ()
    n: Annotated[
        int, option("instances of each stratum, for every model and policy", "N", aliases=["-n"]), common.SOME
    ] = 100
    task: OwnTask = None
    template: Template = None
    trust_remote_code: TrustRemoteCode = False
    checkpoint: Checkpoint = None
    data_seed: DataSeed = None
    device: Device = None
    batch: Batch = None

    def traces_of(
        self,
        models: Sequence[str],
        own: "Task | None",
        beside: "Sequence[Trace]",
        check: "Callable[[list[Task]], None]" = lambda tasks: None,
    ) -> "list[Trace]":
        """Decode models, if there are any, on the same problems; `own` is the task of those that do not name theirs,
        which one of them, or of the traces `beside` them, must have.

        `check` gets the task of every model and policy, and may refuse them before anything is decoded.
        """
        from hardtail.show import sources
        from hardtail.tasks.named import task_of

        given = [(task_of(trace.about, "a trace"), "the first trace") for trace in beside]
        if not models:
            common.refuse_without_model(ToDecode, vars(self), ("task",))
            sources.refuse_other_task(own, given)
            return []
        from hardtail.measuring.cost import decode_seconds
        from hardtail.measuring.models import Reading

        device, reading = common.usable_device(self.device), Reading(self.template, self.trust_remote_code)
        loaded = sources.load_models(models, own, kind=self.checkpoint, device=device, reading=reading)
        common.say_unfinished(loaded)
        sources.refuse_other_task(own, [*((subject.task, subject.name) for subject in loaded), *given])
        subjects, chosen = sources.on_the_same_problems(loaded), (self.n, self.policies, self.strata)
        decodes = [sources.to_decode(subject, *chosen) for subject in subjects]
        check([subject.task for subject, each in zip(subjects, decodes, strict=True) for _ in each])
        total = sum(n for each in decodes for _, n in each)
        common.say_time(
            f"{common.counted(total, 'decode', 'decodes')} of {common.counted(len(subjects), 'model', 'models')}",
            map(decode_seconds, subjects, decodes),
        )
        seed = subjects[0].seed if self.data_seed is None else self.data_seed
        found: list[Trace] = []
        for subject, each in zip(subjects, decodes, strict=True):  # a bar each: a problem of another takes another time
            with common.progress_bar(f"decoding {subject.name}", sum(n for _, n in each)) as advance:
                found += sources.decoded([subject], *chosen, seed=seed, batch=self.batch, progress=advance)
        return found


Decoded = Annotated[ToDecode, OmitArgPrefixes]
USUAL = ToDecode()
