"""The record of what was run: one folder a run under `results/`, small text only, and an index. Nothing is rewritten.

`index.jsonl`              one line a run: name, arm, seed, task, steps, commit, device, wall seconds; and its patience,
                           where that ran out before the last step
`NAME/recipe.json`         what was trained
`NAME/log.jsonl`           what it measured of itself, thinned
`NAME/coverage.json`       the mask states it was trained on
`NAME/evaluations.jsonl`   accuracy records (`hardtail eval`)
`NAME/diagnoses.jsonl`     wrong commits, readiness, coverage (`hardtail diagnose`)
"""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.files import append_records, atomic, read_object, read_records, sole_writer

Record = Mapping[str, Any]
COPIED = ("recipe.json", "coverage.json", "evaluations.jsonl", "diagnoses.jsonl")
INDEX_KEYS = ("name", "arm", "task", "seed", "steps", "commit", "device", "wall")
LOG_LINES = 150
"""A thinned log has about so many lines."""
ANEW = "move finished.json away, and the same command writes the files anew from the run's saved state"


@dataclass(frozen=True)
class Store:
    """A folder of results."""

    folder: Path

    def index(self) -> list[dict[str, Any]]:
        """One entry a run, in the order in which they were recorded."""
        path = self.folder / "index.jsonl"
        entries = read_records(path) if path.exists() else []
        names: set[str] = set()
        for number, entry in enumerate(entries, start=1):
            if fault := _fault(entry):
                raise HardtailError(f"{path}, line {number}: {fault}")
            if entry["name"] in names:
                raise HardtailError(f"{path}, line {number}: there is a run {entry['name']!r} above already")
            names.add(entry["name"])
        return entries

    def names(self) -> set[str]:
        return {entry["name"] for entry in self.index()}

    def records(self, file: str) -> Iterator[dict[str, Any]]:
        """All records of one kind of file over all runs, each with its run's `arm`, `task` and `seed`."""
        for entry in self.index():
            path = self.folder / entry["name"] / file
            for record in read_records(path) if path.exists() else []:
                yield record | {"run": entry["name"]} | {key: entry[key] for key in ("arm", "task", "seed")}

    def evaluations(self) -> list[dict[str, Any]]:
        return list(self.records("evaluations.jsonl"))

    def diagnoses(self) -> list[dict[str, Any]]:
        return list(self.records("diagnoses.jsonl"))

    def log(self, name: str) -> list[dict[str, Any]]:
        """What a run measured of itself."""
        return read_records(self.folder / name / "log.jsonl")

    def coverage(self, name: str) -> dict[str, Any] | None:
        """The mask states that a run was trained on."""
        return read_object(self.folder / name / "coverage.json")

    def refuse_unwritable(self) -> None:
        """Asked before the hours of work that are to be recorded here."""
        with self._writing():
            pass

    def _writing(self) -> AbstractContextManager[None]:
        return sole_writer(self.folder / "index.jsonl", wait=30)

    def add(self, name: str, arm: str, run: Path) -> None:
        """Record a finished run: copy what is small, thin the log, add a line to the index."""
        with self._writing():
            if name in self.names():
                raise HardtailError(f"{self.folder} has a run {name!r} already; results are never rewritten")
            entry, files = _entry(name, arm, run), _files(run)  # all is read before anything is written
            try:
                for file, content in files.items():
                    with atomic(self.folder / name / file) as copy:
                        copy.write(content)
                append_records(self.folder / "index.jsonl", [entry])
            except OSError as error:  # most often a full disk
                raise HardtailError(
                    f"{self.folder} cannot be written: {error.strerror or error}; {name} is not recorded yet, and "
                    "nothing of it is lost"
                ) from error


def recorded(folder: Path) -> Path:
    """A folder that holds results, or a clear word."""
    if not (folder / "index.jsonl").is_file():
        raise HardtailError(f"{folder} holds no recorded runs: it has no index.jsonl; `hardtail study` records them")
    return folder


def default_results() -> Path:
    """The results folder here, or else the one of the checkout that this package runs from."""
    here, checkout = Path("results"), Path(__file__).resolve().parents[3] / "results"
    for folder in (here, checkout):
        if (folder / "index.jsonl").is_file():
            return folder
    looked = " and ".join(dict.fromkeys(str(folder.resolve()) for folder in (here, checkout)))
    raise HardtailError(f"there are no recorded runs (looked for an index.jsonl in {looked}); name a folder of results")


def _fault(entry: Record) -> str | None:
    """What keeps a line of the index from naming a run; None for a good one."""
    if missing := [key for key in INDEX_KEYS if key not in entry]:
        return f"the key {missing[0]!r} is missing"
    for key in INDEX_KEYS:
        kinds = {"seed": int, "steps": int, "wall": int | float}.get(key, str)
        if not isinstance(entry[key], kinds) or isinstance(entry[key], bool):
            return f"{key} is {entry[key]!r}; the line is damaged"
    if Path(entry["name"]).name != entry["name"] or entry["name"] == "..":
        return f"{entry['name']!r} is not the name of a folder beside the index"
    for key in ("steps", "patience"):
        if not isinstance(number := entry.get(key, 1), int) or isinstance(number, bool) or number < 1:
            return f"{key} is {number!r}; the line is damaged"
    return None


def _json(path: Path) -> dict[str, Any]:
    held = read_object(path)
    if held is None:
        raise HardtailError(f"{path} is missing; only a finished run is recorded")
    return held


def _entry(name: str, arm: str, run: Path) -> dict[str, Any]:
    """The line of the index about a finished run."""
    from hardtail.tasks.named import task_from_json

    finished, recipe = (_json(run / file) for file in ("finished.json", "recipe.json"))
    fields = recipe["fields"]
    entry = {
        "name": name,
        "arm": arm,
        "task": task_from_json(fields["task"]).name,
        "seed": fields["seed"],
        "steps": finished.get("step"),
        "commit": finished.get("commit"),
        "device": finished.get("device"),
        "wall": finished.get("wall"),
        "how": finished.get("how"),
        **{key: finished[key] for key in ("patience",) if key in finished},
    }
    if fault := _fault(entry):
        raise HardtailError(f"{run / 'finished.json'} is damaged ({fault}); {ANEW}")
    log = read_records(run / "log.jsonl")
    if not log or log[-1].get("step") != entry["steps"]:
        raise HardtailError(f"{run / 'log.jsonl'} does not end at step {entry['steps']:,}, as the run does; {ANEW}")
    return entry


def _files(run: Path) -> dict[str, bytes]:
    """What is recorded of a run, by name of file."""
    if not (run / "coverage.json").exists():
        raise HardtailError(f"{run / 'coverage.json'} is missing; {ANEW}")
    held = {file: (run / file).read_bytes() for file in COPIED if (run / file).exists()}
    thinned = _thinned(read_records(run / "log.jsonl"))
    return held | {"log.jsonl": b"".join(json.dumps(entry).encode() + b"\n" for entry in thinned)}


def _thinned(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every entry with a decode, the first, the last and the best, where a session began and on which code and machine,
    and of the others what makes a readable curve."""
    every = max(len(entries) // LOG_LINES, 1)
    best = min(range(len(entries)), key=lambda place: entries[place].get("probe_nll", math.inf), default=0)
    always = {0, best, len(entries) - 1}
    always |= {place for place, entry in enumerate(entries) if "hard" in entry or "commit" in entry}
    return [entry for place, entry in enumerate(entries) if place in always or place % every == 0]
