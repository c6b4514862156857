"""Recorded results made by code: stores in which the figures of claims have given values, and such values."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import inspect

from hardtail.core.records import HALF_REVEALED, as_json
from hardtail.core.registry import TASKS
from hardtail.measuring.diagnosis import Diagnosis
from hardtail.measuring.diagnosis.readiness import Readiness, Right
from hardtail.measuring.diagnosis.record import Result
from hardtail.measuring.statistics import wilson
from hardtail.study.claims import Claim, Results, evidence
from hardtail.study.claims.base import Cell, Check
from hardtail.study.claims.combined import Pooled, Weighted
from hardtail.study.claims.facts import InTraining, Known, OfShipped, Unseen
from hardtail.study.claims.figures import Figure, LateLoss, Profiled, Reached, ShareRight
from hardtail.study.claims.ours.figures import ANY_LIMIT, DATA_SEEDS, Decoded
from hardtail.study.claims.plain import Computed, Learns
from hardtail.study.claims.recovery import Recovery, Unrecovered
from hardtail.study.claims.rules import AtLeast, AtMost, Gap, Level, Ratio, Similar
from hardtail.study.runs import diagnosed_strata
from hardtail.study.store import Store

MANY = 1_000_000
"""So many instances that an interval is next to nothing."""
STEPS = 300_000
Planting = Mapping[Figure, float]

# -- results made by code -----------------------------------------------------------------------------------------


class Planted:
    """A store in which figures have given values. Every run has learned its task, unless its gate is planted too.

    `ending` is that of the arms which are planted from now on.
    """

    def __init__(self, folder: Path, *, reading: str = "release") -> None:
        self.folder, self.ending = folder, "-paper" if reading == "paper" else ""
        self.facts: list[dict[str, Any]] = []
        self.coverage: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}
        self.evaluations: dict[str, list[dict[str, Any]]] = {}
        self.diagnoses: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.logs: dict[str, list[dict[str, Any]]] = {}

    def plant(
        self,
        figure: Figure,
        value: float,
        *,
        seed: int = 42,
        n: int = MANY,
        kinds: Iterable[str] = ("last", "best_probe"),
    ) -> None:
        if isinstance(figure, Weighted | Pooled):
            for part in figure.parts:
                self.plant(part, value, seed=seed, n=n, kinds=kinds)
            return
        if isinstance(figure, Known):
            made = {"commit": "c0ffee", "device": "H200"}
            facts = {figure.fact: value} | ({f"{figure.model}.natural": 1.0} if isinstance(figure, InTraining) else {})
            for fact, number in facts.items():
                self.facts.append({"fact": fact, "about": "planted", "seed": seed, "value": number, "n": n} | made)
            if isinstance(figure, OfShipped):
                task, scheme = figure.listed.run.split("-")[:2]
                self._run(task, scheme, 42, figure.listed.run)
            return
        if isinstance(figure, Decoded):
            self._decoded(figure, value, n)
            return
        assert isinstance(figure, ShareRight | Profiled | Reached | LateLoss | Unseen)
        run = self._run(figure.task, figure.scheme, seed)
        if isinstance(figure, Unseen):  # PUMA trains this share of what uniform masking has as often as it does
            even = self._run(figure.task, "random", seed)
            rare, often = round(1000 * value), 1000 - round(1000 * value)
            self.coverage[even] = {"by_count": [0, 1000], "by_count_and_rank": [[0, 0], [rare, often]]}
            self.coverage[run] = {"by_count": [0, 1000], "by_count_and_rank": [[0, 0], [0, 1000]]}
            return
        if isinstance(figure, ShareRight):
            self._measured(run, figure, value, n, kinds)
        elif isinstance(figure, Profiled):
            for checkpoint in kinds:
                blank = as_json(diagnosis_of(figure.task, diagnosed_strata(figure.task), 1))
                diagnosis = self.diagnoses.setdefault((run, figure.policy, checkpoint), blank)
                _put(diagnosis, figure.path, round(value * n) if figure.divided else value)
                for place, path in enumerate(figure.of):
                    _put(diagnosis, path, 0 if place else n)
                if figure.cases:
                    _put(diagnosis, figure.cases, n)
        elif isinstance(figure, Reached):
            lines = [{"step": step, "natural": float(step >= value)} for step in range(1000, STEPS + 1, 1000)]
            self.logs.setdefault(run, []).extend(lines)
        else:
            step = round(STEPS * (figure.start + figure.end) / 2)
            self.logs.setdefault(run, []).append({"step": step, "loss": value})

    def _decoded(self, figure: Decoded, value: float, n: int) -> None:
        """A number on every set of instances; numbers of the same decode are one record."""
        task, scheme = figure.run.split("-")[:2]
        run = self._run(task, scheme, 42, figure.run)
        for data_seed in DATA_SEEDS:
            head = {"task": task, "policy": figure.policy, "stratum": figure.stratum, "n": n, "seed": 42}
            head |= {"data_seed": data_seed, "checkpoint": figure.usual}
            head |= {"calibrated": 500} if figure.policy.endswith(ANY_LIMIT) else {}
            blank: dict[str, Any] = {"kind": "accuracy", "exact_match": 0.0}
            if figure.score:
                blank = {"kind": "trust", "score": figure.score, "passes": 3, "wrong": n // 2}
            held = (of for of in self.evaluations[run] if of.items() >= (head | {"kind": blank["kind"]}).items())
            record = next((of for of in held if of.get("score", "") == figure.score), None)
            if record is None:
                self.evaluations[run].append(record := head | blank)
            record[figure.metric] = value

    def _run(self, task: str, scheme: str, seed: int, name: str = "") -> str:
        arm = f"{task}-{scheme}{self.ending}"
        arm, name = (name.removesuffix(f"-s{seed}"), name) if name else (arm, f"{arm}-s{seed}")
        if name not in self.runs:
            entry = {"name": name, "arm": arm, "task": task, "seed": seed, "steps": STEPS}
            self.runs[name] = entry | {"commit": "c0ffee", "device": "H200", "wall": 1.0}
            self._measured(name, gate_of(task, scheme), 1.0, 1, ("last", "best_probe"))
        return name

    def _measured(self, run: str, figure: ShareRight, value: float, n: int, kinds: Iterable[str]) -> None:
        kind = "reveal" if figure.policy == HALF_REVEALED else "accuracy"
        head = {"kind": kind, "task": figure.task, "policy": figure.policy, "stratum": figure.stratum}
        said = {"n": n, figure.metric: value, "commit": "c0ffee", "device": "H200"}
        said |= {"token_accuracy": value} if kind == "reveal" else {}
        held = self.evaluations.setdefault(run, [])
        for checkpoint in kinds:  # what was planted of the same decode by another metric stays
            at = head | {"checkpoint": checkpoint}
            own = (of for of in reversed(held) if of.items() >= at.items() and "data_seed" not in of)
            held.append(next(own, {"exact_match": 0.0}) | at | said)

    def gate(self, run: str, value: float) -> None:
        """Whether a run by its name has learned its task."""
        task, scheme = run.split("-")[:2]
        self._measured(run, gate_of(task, scheme), value, 2 * MANY, ("last", "best_probe"))

    def written(self) -> Store:
        self.folder.mkdir(parents=True, exist_ok=True)
        _write(self.folder / "index.jsonl", self.runs.values())
        for run in self.runs:
            folder = self.folder / run
            folder.mkdir(exist_ok=True)
            _write(folder / "evaluations.jsonl", self.evaluations.get(run, []))
            held = [
                whole(diagnosis) | {"policy": policy, "checkpoint": checkpoint, "commit": "c0ffee", "device": "H200"}
                for (name, policy, checkpoint), diagnosis in self.diagnoses.items()
                if name == run
            ]
            _write(folder / "diagnoses.jsonl", held)
            _write(folder / "log.jsonl", self.logs.get(run, []))
            if run in self.coverage:
                (folder / "coverage.json").write_text(json.dumps(self.coverage[run]))
        _write(self.folder / "facts.jsonl", self.facts)
        return Store(self.folder)


def gate_of(task: str, scheme: str) -> ShareRight:
    """The figure that says whether a run has learned its task."""
    gate = evidence.gate_of(task)
    return ShareRight(task, scheme, "top1", gate.stratum, gate.metric)


def diagnosis_of(task: str, strata: Iterable[str], instances: int, **said: Any) -> Diagnosis:
    """A diagnosis of a decode in which nothing was committed."""
    nothing = {group: Right(0, 0, None) for group in ("free", "ready", "unready")}
    readiness = Readiness(0, 0, 0, None, None, nothing, {}, {}, {})
    head = {"task": task, "policy": "top1"} | said
    return Diagnosis(**head, strata=tuple(strata), result=Result(instances), readiness=readiness)


def whole(diagnosis: Mapping[str, Any]) -> dict[str, Any]:
    """A diagnosis with every field that is required, blank where nobody planted it."""
    found: dict[str, Any] = filled(inspect.type_info(Diagnosis), dict(diagnosis))
    kind = TASKS.load(diagnosis["task"]).profile_type()
    planted = {"profile": filled(inspect.type_info(kind), found["profile"])} if "profile" in found else {}
    return found | planted


def filled(info: inspect.Type, held: Any = ...) -> Any:
    """JSON with every field that a type requires, blank where nobody planted it."""
    if isinstance(info, inspect.UnionType):
        kinds = [kind for kind in info.types if not isinstance(kind, inspect.NoneType)]
        return None if held is ... or held is None else filled(kinds[0], held)
    if isinstance(info, inspect.StructType | inspect.DataclassType):
        given = {} if held is ... else held
        names = {field.encode_name: field.type for field in info.fields if field.required or field.encode_name in given}
        return given | {name: filled(kind, given.get(name, ...)) for name, kind in names.items()}
    if isinstance(info, inspect.DictType):
        return {} if held is ... else {name: filled(info.value_type, inner) for name, inner in held.items()}
    blank: Any = [] if isinstance(info, inspect.VarTupleType) else 0
    return blank if held is ... else held


def _put(record: dict[str, Any], path: str, value: float) -> None:
    *steps, last = path.split(".")
    for step in steps:
        record = record.setdefault(step, {})
    record[last] = value


def _write(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def planted(folder: Path, values: Planting) -> Results:
    """Results with these figures for two seeds alike. Of a mean the parts that are not given make up for the others."""
    made = Planted(folder)

    def plant(figure: Figure, value: float) -> None:
        for seed in (42, 43):
            made.plant(figure, value, seed=seed)

    for figure, value in values.items():
        if isinstance(figure, Weighted):
            weight = dict(zip(figure.parts, figure.weights, strict=True))
            rest = [part for part in figure.parts if part not in values]
            given = sum(weight[part] * values[part] for part in figure.parts if part in values)
            for part in rest:
                plant(part, (value * sum(figure.weights) - given) / sum(weight[part] for part in rest))
        else:
            plant(figure, value)
    return Results(made.written())


# -- the values that make a rule give a verdict ---------------------------------------------------------------------


def as_printed(check: Check) -> dict[Figure, float]:
    """What the paper has; where it prints no number, something that its sentence says."""
    told = {cell.figure: cell.paper for cell in check.cells if cell.paper is not None}
    if isinstance(check, Learns):
        return {gate_of(check.task, check.scheme): 1.0}
    if isinstance(check, Computed):
        return {}
    if isinstance(check, AtLeast | AtMost):
        return told or {check.cell.figure: check.bound}
    if isinstance(check, Gap) and not told:
        return _each(check.plus, 0.6) | _each(check.minus, 0.3)
    if isinstance(check, Ratio) and not told:
        return _each(check.plus, check.times * 10_000) | _each(check.minus, 10_000)
    return told or _each(check.cells, 0.95)


def opposite(check: Check) -> dict[Figure, float]:
    if isinstance(check, Learns):
        return {gate_of(check.task, check.scheme): 0.0}
    if isinstance(check, Computed):
        return {}
    if isinstance(check, Level):
        away = 2 * check.tolerance
        return {check.cell.figure: check.target + (away if check.target < 0.5 else -away)}
    if isinstance(check, AtLeast):
        return {check.cell.figure: check.bound - 5 * check.tolerance}
    if isinstance(check, AtMost):
        return {check.cell.figure: check.bound + 5 * check.tolerance}
    if isinstance(check, Ratio) and isinstance(check.plus[0].figure, Reached):
        return _each(check.plus, 10_000) | _each(check.minus, 100_000)
    if isinstance(check, Ratio):
        less, more = (0.9, 0.1) if check.failures else (0.1, 0.9)
        return _each(check.plus, less) | _each(check.minus, more)
    if isinstance(check, Gap):
        return _each(check.plus, 0.3) | _each(check.minus, 0.6)
    if isinstance(check, Recovery):
        return _each(check.cells, 0.5)
    if isinstance(check, Unrecovered):
        return {check.before.figure: 0.3, check.after.figure: 1.0}
    assert isinstance(check, Similar)
    return _each(check.plus, 0.9) | _each(check.minus, 0.1)


def weaker(check: Check) -> dict[Figure, float] | None:
    """Values with which it holds weaker; None where nothing but an interval could make it so."""
    if isinstance(check, Learns | Computed):
        return None
    if isinstance(check, Level):
        away = 0.97 * check.tolerance * (1 if check.target < 0.5 else -1)
        low, high = wilson(round(check.target * (check.cell.n or 0)), check.cell.n or 0)
        hidden = check.cell.n and low <= check.target + away <= high  # the paper's own figure is no surer than that
        return None if hidden else {check.cell.figure: check.target + away}
    if isinstance(check, AtLeast):
        return {check.cell.figure: check.bound - 0.5 * check.tolerance}
    if isinstance(check, AtMost):
        return {check.cell.figure: check.bound + 0.5 * check.tolerance}
    if isinstance(check, Ratio):
        times = check.times**0.3
        if isinstance(check.plus[0].figure, Reached):
            return _each(check.plus, 1000 * round(10 * times)) | _each(check.minus, 10_000)
        more = {check.plus[0].figure: 1 - 0.1 * times if check.failures else 0.1 * times}
        return _each(check.cells, 0.9 if check.failures else 0.1) | more
    if isinstance(check, Gap):
        if check.paper_number is None or check.paper_number <= 0:
            return None
        return {cell.figure: 0.5 + 0.3 * ((cell.paper or 0.0) - 0.5) for cell in check.cells}
    if isinstance(check, Recovery):
        before = check.before.paper or 0.0
        return {check.before.figure: before, check.after.figure: before + 0.6 * check.repaired_in_paper * (1 - before)}
    if isinstance(check, Unrecovered):
        return {check.before.figure: 0.5, check.after.figure: 0.7}
    assert isinstance(check, Similar)
    return _each(check.plus, 0.5) | _each(check.minus, 0.5 + 1.5 * check.margin)


def _each(cells: Iterable[Cell], value: float) -> dict[Figure, float]:
    return {cell.figure: value for cell in cells}


def together(claim: Claim, values: Callable[[Check], Mapping[Figure, float] | None]) -> dict[Figure, float]:
    return {figure: value for check in claim.checks for figure, value in (values(check) or {}).items()}
