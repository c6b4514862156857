"""Figures of recorded runs: the course of training, accuracy against difficulty, readiness at commit."""

import re
from collections.abc import Mapping, Sequence
from functools import cache

from hardtail.core import records
from hardtail.measuring.statistics import wilson
from hardtail.show.figures.charts import PAPER
from hardtail.show.page.charts import Axis, Chart, Line, Point, SeriesList
from hardtail.show.page.curves import hue
from hardtail.show.page.records import mean_accuracy
from hardtail.study.claims import all_claims
from hardtail.study.claims.figures import Accuracy
from hardtail.study.runs import Run

_CONDITION = re.compile(r"(\w+)(>=|=)(\d+)")
STUDIED = ("", "tf32", "paper")
"""Variants that stand for the paper's own runs, so that its figures belong beside them."""
GROUPS = ("free", "ready", "unready")
ACCURACY = Axis("", low=0.0, high=1.0)


def kinds(runs: Sequence[Run]) -> list[str]:
    """The kinds of weights that were measured or explained."""
    measured = (record for run in runs for record in (*run.evaluations, *run.diagnoses))
    return list(dict.fromkeys(record.checkpoint for record in measured if record.checkpoint))


# -- training ---------------------------------------------------------------------------------------------------------


def training(task: str, runs: Sequence[Run]) -> list[Chart]:
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


def _over_steps(run: Run, key: str) -> list[Point]:
    pairs = [(line.step, getattr(line, key)) for line in run.log]
    return [(step, value, None, None) for step, value in pairs if value is not None]


# -- accuracy ---------------------------------------------------------------------------------------------------------


def accuracy(task: str, runs: Sequence[Run], kind: str) -> list[Chart]:
    """Accuracy against difficulty, one panel a policy, schemes in their colours; open marks are the paper's."""
    held: dict[str, dict[str, dict[str, list[records.Accuracy]]]] = {}
    for run in runs:
        for record in run.accuracies:
            if record.checkpoint == kind:
                by_arm = held.setdefault(record.policy, {})
                by_arm.setdefault(run.arm, {}).setdefault(record.stratum, []).append(record)
    strata = list(dict.fromkeys(stratum for of in held.values() for by in of.values() for stratum in by))
    x, place = _difficulty(strata)
    charts = []
    for policy, by_arm in held.items():
        found = SeriesList()
        for arm, by_stratum in by_arm.items():
            points = [(place[stratum], *mean_accuracy(found_of)) for stratum, found_of in by_stratum.items()]
            found.add(arm, hue(arm), "", Line("", sorted(points)))
            printed = _paper().get((task, hue(arm), policy), {}) if arm.partition("-")[2] in STUDIED else {}
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


@cache
def _paper() -> dict[tuple[str, str, str], dict[str, float]]:
    """What the paper prints: accuracy by task, scheme and policy, then by stratum."""
    printed: dict[tuple[str, str, str], dict[str, float]] = {}
    for claim in all_claims().values():
        for cell in (cell for check in claim.checks for cell in check.cells):
            figure = cell.figure
            if isinstance(figure, Accuracy) and figure.metric == "exact_match" and cell.paper is not None:
                of = printed.setdefault((figure.task, figure.scheme, figure.policy), {})
                of[figure.stratum] = cell.paper
    return printed


# -- readiness --------------------------------------------------------------------------------------------------------


def readiness(task: str, runs: Sequence[Run], kind: str) -> list[Chart]:
    """How many commits were premature, and how many commits were right, by readiness; over seeds."""
    premature, right = SeriesList(), SeriesList()
    explained = [
        (run, record.policy, record.readiness)
        for run in runs
        for record in run.explained.values()
        if record.checkpoint == kind
    ]
    policies = tuple(dict.fromkeys(policy for _, policy, _ in explained))
    for run, policy, ready in explained:
        if (early := _share(ready.premature, ready.dependent)) is not None:
            premature.add(f"{run.arm} {policy}", hue(run.arm), policy, Line("", [(policies.index(policy), *early)]))
        points: list[Point] = []
        for place, group in enumerate(GROUPS):
            of_group = ready.accuracy[group]
            if (found := _share(of_group.right, of_group.commits)) is not None:
                points.append((place, *found))
        right.add(f"{run.arm} {policy}", hue(run.arm), policy, Line("", points))
    charts = [
        Chart(task, "readiness", "Premature commits", "", Axis("", policies), ACCURACY, premature.series(), marks=True),
        Chart(task, "readiness", "Right commits", "", Axis("", GROUPS), ACCURACY, right.series(), marks=True),
    ]
    return [chart for chart in charts if chart.series]


def _share(part: int, whole: int) -> tuple[float, float, float] | None:
    """A share with Wilson's interval; None where there is nothing to take it of."""
    return (part / whole, *wilson(part, whole)) if whole else None
