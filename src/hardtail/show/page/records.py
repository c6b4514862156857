"""What pages and figures ask of recorded runs."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from hardtail.core.errors import HardtailError
from hardtail.core.records import Accuracy
from hardtail.study.claims.evidence import Estimate, Value
from hardtail.study.runs import Run
from hardtail.study.store import Store, default_results
from hardtail.study.store import recorded as recorded_folder


def by_variant(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Runs that differ in their scheme and seed alone, by what follows the scheme in their arm: `tf32`, `smoke` …"""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(run.arm.partition("-")[2], []).append(run)
    return found


def mean_accuracy(records: Iterable[Accuracy]) -> tuple[float, float | None, float | None]:
    """The mean over seeds and its interval, as the ledger takes them."""
    found = Estimate.of([Value(record.exact_match, record.n) for record in records], share=True)
    return found.mean, found.low, found.high


def open_results(folder: Path | None) -> Store | None:
    """The folder of results that was asked for; by default the usual one, where there is one."""
    if folder is not None:
        return Store(recorded_folder(folder))
    try:
        return Store(default_results())
    except HardtailError:
        return None
