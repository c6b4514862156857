"""Figures of recorded runs: the course of training, accuracy against difficulty, readiness at commit."""

import re
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.measuring.statistics import wilson
from hardtail.show.figures.charts import PAPER
from hardtail.show.page.charts import Axis, Chart, Line, Point, SeriesList
from hardtail.show.page.curves import hue
from hardtail.show.page.records import Record, RunRecord, mean_accuracy
from hardtail.study.claims.evidence import number
from hardtail.study.claims.ledger import printed_accuracy

_CONDITION = re.compile(r"(\w+)(>=|=)(\d+)")
STUDIED = ("", "tf32", "paper")
"""Variants that stand for the paper's own runs, so that its figures belong beside them."""
GROUPS = ("free", "ready", "unready")
ACCURACY = Axis("", low=0.0, high=1.0)


def kinds(runs: Sequence[RunRecord]) -> list[str]:
    """The kinds of weights that were measured or explained."""
    records = (record for run in runs for record in (*run.evaluations, *run.diagnoses))
    return list(dict.fromkeys(str(record["checkpoint"]) for record in records if record.get("checkpoint")))


# -- training ---------------------------------------------------------------------------------------------------------


def training(task: str, runs: Sequence[RunRecord]) -> list[Chart]:
    """Loss and accuracy over training by scheme: the paper's second figure, with the hard tail and the probe."""
    confidence, logical = {"natural": "confidence"}, {"hard": "confidence", "hard_logical": "logical order"}
    panels: list[tuple[str, Mapping[str, str], Axis]] = [
        ("Training loss", {"loss": "confidence"}, Axis("", log=True)),
        ("Natural accuracy", confidence, ACCURACY),
        ("Hard-tail accuracy", logical, ACCURACY),
        ("Probe loss", {"probe_nll": "confidence"}, Axis("", log=True)),
        ("Cells guessed", {"probe_guessed": "confidence"}, Axis("", low=0.0)),
    ]
    charts = []
    for title, keys, y in panels:
        found = SeriesList()
        for key, style in keys.items():
            for run in runs:
                found.add(f"{run.arm} {style}", hue(run.arm), style, Line("", _over_steps(run, key)))
        charts.append(Chart(task, "training", title, "", Axis("training step"), y, found.series()))
    return [chart for chart in charts if chart.series]


def _over_steps(run: RunRecord, key: str) -> list[Point]:
    whose = f"{run.name}, log"
    pairs = [(number(line, ("step",), whose), number(line, (key,), whose)) for line in run.log if key in line]
    return [(step, value, None, None) for step, value in pairs if step is not None and value is not None]


# -- accuracy ---------------------------------------------------------------------------------------------------------


def accuracy(task: str, runs: Sequence[RunRecord], kind: str) -> list[Chart]:
    """Accuracy against difficulty, one panel a policy, schemes in their colours; open marks are the paper's."""
    held: dict[str, dict[str, dict[str, list[Record]]]] = {}
    for run in runs:
        for record in run.accuracies:
            if record["checkpoint"] == kind:
                policy, stratum = str(record["policy"]), str(record["stratum"])
                held.setdefault(policy, {}).setdefault(run.arm, {}).setdefault(stratum, []).append(record)
    strata = list(dict.fromkeys(stratum for of in held.values() for by in of.values() for stratum in by))
    x, place = _difficulty(strata)
    charts = []
    for policy, by_arm in held.items():
        found = SeriesList()
        for arm, by_stratum in by_arm.items():
            points = [(place[stratum], *mean_accuracy(records, arm)) for stratum, records in by_stratum.items()]
            found.add(arm, hue(arm), "", Line("", sorted(points)))
            printed = printed_accuracy().get((task, hue(arm), policy), {}) if arm.partition("-")[2] in STUDIED else {}
            told: list[Point] = [
                (place[stratum], printed[stratum], None, None) for stratum in by_stratum if stratum in printed
            ]
            found.add(f"{arm}, {PAPER}", hue(arm), PAPER, Line("", told))
        charts.append(Chart(task, "accuracy", policy, "", x, ACCURACY, found.series(), marks=True))
    return charts


def _difficulty(strata: Sequence[str]) -> tuple[Axis, dict[str, float]]:
    """Where strata stand: at their numbers if all are conditions on one axis (natural ones at 0), else in a row."""
    matches = [_CONDITION.fullmatch(stratum) for stratum in strata if stratum != "natural"]
    heads = {(match[1], match[2]) for match in matches if match}
    if not all(matches) or len(heads) != 1:
        return Axis("stratum", tuple(strata)), {stratum: float(at) for at, stratum in enumerate(strata)}
    ((axis, relation),) = heads
    natural = " (0: natural)" if "natural" in strata else ""
    label = f"{axis} {'≥' if relation == '>=' else '='} …{natural}"
    return Axis(label), {stratum: float(stratum.rpartition("=")[2]) if "=" in stratum else 0.0 for stratum in strata}


# -- readiness --------------------------------------------------------------------------------------------------------


def readiness(task: str, runs: Sequence[RunRecord], kind: str) -> list[Chart]:
    """How many commits were premature, and how many commits were right, by readiness; over seeds."""
    premature, right = SeriesList(), SeriesList()
    records = [(run, record) for run in runs for record in run.explained if record.get("checkpoint") == kind]
    policies = tuple(dict.fromkeys(str(record.get("policy", "?")) for _, record in records))
    for run, record in records:
        whose, policy = f"{run.name}, diagnoses", str(record.get("policy", "?"))
        if (early := _share(record, ("premature", "dependent"), whose)) is not None:
            premature.add(f"{run.arm} {policy}", hue(run.arm), policy, Line("", [(policies.index(policy), *early)]))
        points: list[Point] = []
        for place, group in enumerate(GROUPS):
            found = _share(record, (("accuracy", group, "right"), ("accuracy", group, "commits")), whose)
            if found is not None:
                points.append((place, *found))
        right.add(f"{run.arm} {policy}", hue(run.arm), policy, Line("", points))
    charts = [
        Chart(task, "readiness", "Premature commits", "", Axis("", policies), ACCURACY, premature.series(), marks=True),
        Chart(task, "readiness", "Right commits", "", Axis("", GROUPS), ACCURACY, right.series(), marks=True),
    ]
    return [chart for chart in charts if chart.series]


def _share(record: Record, keys: Sequence[Any], whose: str) -> tuple[float, float, float] | None:
    """A share of the readiness of a diagnosis with Wilson's interval; None where there is nothing to take it of."""
    part, whole = (number(record, ("readiness", *((key,) if isinstance(key, str) else key)), whose) for key in keys)
    if part is None or not whole:
        return None
    if not 0 <= part <= whole < inf:
        raise HardtailError(f"{whose}: {part} of {whole} commits is no share; the record is damaged")
    return part / whole, *wilson(int(part), int(whole))
