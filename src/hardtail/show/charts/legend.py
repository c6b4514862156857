"""Arms of recorded runs and decoders as series: their colour and stroke, and which of them the page shows at first."""

from collections.abc import Collection, Sequence

from hardtail.show.charts.chart import Series
from hardtail.show.charts.colours import schemes
from hardtail.show.stages import Decoder, Stage
from hardtail.study.claims.evidence import arm_of
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.runs import Run


def scheme_of(arm: str) -> str:
    """The training scheme of an arm: its first word."""
    return arm.partition("-")[0]


def variant_of(arm: str) -> str:
    """What follows the scheme in an arm: `tf32`, `smoke` …"""
    return arm.partition("-")[2]


def arm_series(
    arm: str, style: str, at_first: Collection[str], *, name: str | None = None, by_variant: bool = False
) -> Series:
    return Series(
        arm if name is None else name,
        scheme_of(arm),
        style,
        variant=variant_of(arm) if by_variant else "",
        shown=arm in at_first,
    )


def arms_at_first(task: str, runs: Sequence[Run], asked: Collection[str]) -> set[str]:
    """The arms of the runs `asked` for by name and those that the ledger reads; all, where there are none."""
    arms = {run.arm: run.entry.arm for run in runs}
    read = {arm_of(task, scheme, "release", arms.values()) for scheme in SCHEMES}
    return {run.arm for run in runs if run.name in asked or arms[run.arm] in read} or set(arms)


def decoder_series(stage: Stage) -> list[tuple[Decoder, Series]]:
    """Every decoder of a stage with its series."""
    scheme = schemes([decoder.model for decoder in stage.decoders])
    return [(decoder, Series(decoder.name, scheme[decoder.model], decoder.policy)) for decoder in stage.decoders]
