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
        check: "Callable[[list[Task]], None]" = lambda planned: None,
    ) -> "list[Trace]":
        """Decode models, if there are any, on the same problems; `own` is the task of those that do not name theirs.

        `check` gets the task of every model and policy, and may refuse them before anything is decoded.
        """
        if not models:
            return []
        from hardtail.measuring.cost import decode_seconds
        from hardtail.show import sources

        device = common.usable_device(self.device)
        plan = sources.DecodePlan(
            self.policies,
            self.strata,
            self.n,
            self.checkpoint,
            self.data_seed,
            device,
            self.batch,
            self.template,
            self.trust_remote_code,
        )
        subjects = sources.on_the_same_problems(sources.load_models(models, plan, own))
        check(sources.planned(subjects, plan))
        decodes = [sources.to_decode(subject, plan) for subject in subjects]
        total = sum(n for each in decodes for _, n in each)
        common.say_time(
            f"{total:,} decodes of {common.counted(len(subjects), 'model', 'models')}",
            map(decode_seconds, subjects, decodes),
        )
        with common.progress_bar("decoding", total) as advance:
            return list(sources.decoded(subjects, plan, advance))


Decoded = Annotated[ToDecode, OmitArgPrefixes]
USUAL = ToDecode()
