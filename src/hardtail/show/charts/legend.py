"""The series of arms and decoders: their colour and stroke, and which of them the page shows at first."""

from collections.abc import Collection, Sequence
from itertools import chain

from hardtail.show.charts.chart import Series
from hardtail.show.charts.colours import schemes
from hardtail.show.stages import Decoder, Stage
from hardtail.study.claims.evidence import UNLEARNED, arm_of, endings_of, gate_of
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.names import THREE
from hardtail.study.runs import Run

NOT_MEASURED = "not measured"


def variant_of(arm: str) -> str:
    """What follows the scheme in an arm: `tf32`, `smoke` …"""
    return arm.partition("-")[2]


def by_variant(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Group runs that differ only in their scheme and seed, by their variant."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(variant_of(run.arm), []).append(run)
    return found


def arm_of_run(run: Run, kind: str | None = None) -> str:
    """The arm of a run, judged by one kind of weights or by all that were measured.

    A run that never learned its task, or of which no record says whether it did, is an arm of its own, so that no mean
    includes it, as in the ledger.
    """
    kinds = [kind] if kind else kinds_of_weights([run])
    barred = {gate_of(run.task).bars(run, of) for of in kinds}
    if "" in barred:
        return run.arm
    return f"{run.arm}, seed {run.seed} ({'never learned' if UNLEARNED in barred else NOT_MEASURED})"


def kinds_of_weights(runs: Sequence[Run]) -> list[str]:
    """The kinds of weights that were measured or explained."""
    measured = (record for run in runs for record in (*run.evaluations, *run.diagnoses))
    return list(dict.fromkeys(record.checkpoint for record in measured if record.checkpoint))


def arm_series(
    run: Run, style: str, at_first: Collection[str], *, kind: str | None = None, ending: str = "", variant: str = ""
) -> Series:
    """The series of a run's arm, with an `ending` to its name; a run that is not measured yet is shown with its arm."""
    arm = arm_of_run(run, kind)
    shown = (arm.partition(",")[0] if arm.endswith(f"({NOT_MEASURED})") else arm) in at_first
    return Series(arm + ending, run.scheme, style, variant=variant, shown=shown, group=arm)


def arms_at_first(task: str, runs: Sequence[Run], asked: Collection[str]) -> set[str]:
    """The arms of the runs `asked` for by name, and one of each scheme: of the three the best that can be compared with
    each other, else its own best. If there are none, all arms."""
    arms = {run.arm: run.entry.arm for run in runs}
    together = endings_of(task, THREE, "release", arms.values())[:1]
    read = set()
    for scheme in SCHEMES:
        own = endings_of(task, [scheme], "release", arms.values())
        read.add(arm_of(task, scheme, chain(*together, *own), arms.values()))
    return {run.arm for run in runs if run.name in asked or arms[run.arm] in read} or set(arms)


def decoder_series(stage: Stage) -> list[tuple[Decoder, Series]]:
    """Every decoder of a stage with its series."""
    scheme = schemes([decoder.model for decoder in stage.decoders])
    return [
        (decoder, Series(decoder.name, scheme[decoder.model], decoder.policy, group=decoder.model))
        for decoder in stage.decoders
    ]
