"""The series of arms and decoders: their colour and stroke, and which of them the page shows at first."""

from collections.abc import Collection, Sequence

from hardtail.show.charts.chart import Series
from hardtail.show.charts.colours import schemes
from hardtail.show.stages import Decoder, Stage
from hardtail.study.claims.evidence import UNLEARNED, arm_of, gate_of
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.runs import Run


def scheme_of(arm: str) -> str:
    """The training scheme of an arm: its first word."""
    return arm.partition("-")[0]


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
    """The arm of a run; a run that never learned its task is an arm of its own, so that no mean includes it.

    It is judged by one kind of weights, or by all kinds that were measured; where none was, it counts as learned.
    """
    kinds = [kind] if kind else kinds_of_weights([run])
    barred = {gate_of(run.task).bars(run, of) for of in kinds}
    never = UNLEARNED in barred and "" not in barred
    return f"{run.arm}, seed {run.seed} (never learned)" if never else run.arm


def kinds_of_weights(runs: Sequence[Run]) -> list[str]:
    """The kinds of weights that were measured or explained."""
    measured = (record for run in runs for record in (*run.evaluations, *run.diagnoses))
    return list(dict.fromkeys(record.checkpoint for record in measured if record.checkpoint))


def arm_series(arm: str, style: str, at_first: Collection[str], *, name: str = "", variant: str = "") -> Series:
    return Series(name or arm, scheme_of(arm), style, variant=variant, shown=arm in at_first, group=arm)


def arms_at_first(task: str, runs: Sequence[Run], asked: Collection[str]) -> set[str]:
    """The arms of the runs `asked` for by name and those that the ledger reads; if there are none, all arms."""
    arms = {run.arm: run.entry.arm for run in runs}
    read = {arm_of(task, scheme, "release", arms.values()) for scheme in SCHEMES}
    return {run.arm for run in runs if run.name in asked or arms[run.arm] in read} or set(arms)


def decoder_series(stage: Stage) -> list[tuple[Decoder, Series]]:
    """Every decoder of a stage with its series."""
    scheme = schemes([decoder.model for decoder in stage.decoders])
    return [
        (decoder, Series(decoder.name, scheme[decoder.model], decoder.policy, group=decoder.model))
        for decoder in stage.decoders
    ]
