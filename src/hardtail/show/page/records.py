"""What runs left behind, whether they are recorded under `results/` or lie in a run directory of their own."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.files import read_object, read_records
from hardtail.study.claims.evidence import Estimate, fitting, largest, plainly_decoded, share_of
from hardtail.study.store import INDEX_KEYS, Store, default_results
from hardtail.study.store import recorded as recorded_folder

Record = dict[str, Any]


@dataclass(frozen=True)
class RunRecord:
    """One run: who it is (the keys of the index), and what it measured."""

    facts: Mapping[str, Any]
    log: list[Record]
    evaluations: list[Record]
    diagnoses: list[Record]
    coverage: Mapping[str, Any] | None

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def task(self) -> str:
        return str(self.facts["task"])

    @property
    def accuracies(self) -> list[Record]:
        """What counts of its accuracy records, as in the ledger: plainly decoded, and each thing measured once."""
        kept = [record for record in self.evaluations if record.get("kind") == "accuracy" and plainly_decoded(record)]
        whose = f"{self.name}, evaluations"
        return list(largest(kept, ("checkpoint", "policy", "stratum"), ("n",), whose).values())

    @property
    def explained(self) -> list[Record]:
        """What counts of its diagnoses, as in the ledger: one for each order and kind of weights."""
        return list(fitting(self.diagnoses, ("checkpoint", "policy"), f"{self.name}, diagnoses").values())

    @property
    def arm(self) -> str:
        """The arm without the task's name: what tells the runs of one task apart but for their seeds."""
        return str(self.facts["arm"]).removeprefix(f"{self.task}-")


def by_variant(runs: Sequence[RunRecord]) -> dict[str, list[RunRecord]]:
    """Runs that differ in their scheme and seed alone, by what follows the scheme in their arm: `tf32`, `smoke` …"""
    found: dict[str, list[RunRecord]] = {}
    for run in runs:
        found.setdefault(run.arm.partition("-")[2], []).append(run)
    return found


def recorded(store: Store) -> list[RunRecord]:
    """Every run that a folder of results has."""
    return [_read(store.folder / str(entry["name"]), entry) for entry in store.index()]


def of_folder(folder: Path) -> RunRecord:
    """A run directory that `hardtail train` wrote, finished or not."""
    from hardtail.tasks.named import task_from_json

    try:
        fields = json.loads((folder / "recipe.json").read_bytes())["fields"]
        finished = folder / "finished.json"
        ended = json.loads(finished.read_bytes()) if finished.exists() else {}
        facts = {
            "name": folder.name,
            "arm": fields["name"] or folder.name,
            "task": task_from_json(fields["task"]).name,
            "seed": fields["seed"],
            "steps": ended["step"] if "patience" in ended else fields["steps"],
            **{key: ended.get(key) for key in ("commit", "device", "wall")},
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise HardtailError(f"{folder} is no run directory that can be read ({error})") from error
    return _read(folder, facts)


def mean_accuracy(records: Iterable[Record], arm: str) -> tuple[float, float | None, float | None]:
    """The mean over seeds and its interval, as the ledger takes them."""
    found = Estimate.of([share_of(record, "exact_match", f"{arm}, evaluations") for record in records], share=True)
    return found.mean, found.low, found.high


def _read(folder: Path, facts: Mapping[str, Any]) -> RunRecord:
    log, evaluations, diagnoses = (
        read_records(path) if (path := folder / f"{name}.jsonl").exists() else []
        for name in ("log", "evaluations", "diagnoses")
    )
    return RunRecord(
        {key: facts[key] for key in INDEX_KEYS}, log, evaluations, diagnoses, read_object(folder / "coverage.json")
    )


def open_results(folder: Path | None) -> Store | None:
    """The folder of results that was asked for; by default the usual one, where there is one."""
    if folder is not None:
        return Store(recorded_folder(folder))
    try:
        return Store(default_results())
    except HardtailError:
        return None
