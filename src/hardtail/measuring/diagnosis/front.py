"""The one question "what happened in this decode?", answered for any task."""

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.tables import Table, tabulate
from hardtail.core.types import Trace
from hardtail.measuring.diagnosis.by_stratum import by_stratum
from hardtail.measuring.diagnosis.cells import mostly_wrong
from hardtail.measuring.diagnosis.coverage import Histogram, compare
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.tasks.base import Task
from hardtail.traces.commits import refuse_misfit
from hardtail.traces.summary import mean, share

_SHORT = {
    "by stratum": {"failures": "failed", "exact match": "exact", "gold second": "gold 2nd"},
    "by chain": {
        "instances": "n",
        "failures": "failed",
        "at chain msb": "at msb",
        "plus one at g": "+1 at g",
        "minus one at k": "-1 at k",
        "inside chain": "inside",
        "premature": "unready",
        "confidence mean": "prob",
        "chain masked median": "masked",
        "step median": "step",
    },
    "examples": {"instance": "no.", "at chain msb": "at msb", "difference": "diff", "gold rank": "rank"},
    "roles": {"corridor endpoint": "endpoint", "corridor entrance": "entrance", "dead end tip": "tip"},
    "first wrong": {
        "probability mean": "prob mean",
        "probability median": "prob median",
        "gold ranked second": "gold 2nd",
        "was a candidate": "candidate",
    },
}
"""Headings of tables, by a part of their title, with which a screen of 100 columns cuts nothing off."""


def diagnose(
    task: Task,
    trace: Trace,
    coverage: Mapping[str, Any] | None = None,
    order: str | None = None,
    groups: Mapping[str, NDArray[np.bool_]] | None = None,
) -> dict[str, Any]:
    """What a trace shows, as JSON holds it.

    `coverage`  contents of a run's `coverage.json`: the mask states of training, to compare the decoder's with
    `order`     the logical order that training counted by; the task's main one by default
    `groups`    which instances [N] are of which stratum, for the figures by stratum
    """
    _refuse(task, trace)
    exact_N, right_NA = trace.exact_N, trace.answer_NA == trace.instances.answer_NA
    judged_NA = trace.instances.maskable_NA & trace.instances.scored_NA
    result: dict[str, Any] = {
        "task": task.name,
        "about": dict(trace.about),
        "result": {
            "instances": len(trace),
            "exact": int(exact_N.sum()),
            "exact_match": mean(exact_N),
            "cell_accuracy": share((right_NA & judged_NA).sum(), judged_NA.sum()),
            **mostly_wrong(task, right_NA, judged_NA),
        },
        "first_wrong": {"by_stratum": {name: asdict(line) for name, line in by_stratum(task, trace, groups).items()}},
        "readiness": readiness(task, trace).as_json(),
    }
    if coverage is not None:
        counted_by = task.order_names[0] if order is None and task.order_names else order
        result["coverage"] = compare(trace, Histogram.from_json(coverage), counted_by).as_json()
    if (profile := task.profile(trace)) is not None:
        result["profile"] = asdict(profile)
    return cast(dict[str, Any], jsonable(result))


def tables(diagnosis: Mapping[str, Any]) -> list[Table]:
    """A diagnosis for people, part by part; what else it holds (where it comes from) is not for tables."""
    titles = {
        "result": "result",
        "first_wrong": "first wrong commits",
        "readiness": "readiness",
        "coverage": "coverage",
        "profile": diagnosis["task"],
        "cross": "solved",
    }
    return [_narrow(table) for name, title in titles.items() for table in tabulate(title, diagnosis.get(name, {}))]


def _narrow(table: Table) -> Table:
    """The same table with shorter words above its columns, where it has many."""
    short = {long: word for part in table.title.split(": ") for long, word in _SHORT.get(part, {}).items()}
    return replace(table, columns=tuple(short.get(column, column) for column in table.columns))


def jsonable(value: Any) -> Any:
    """Numpy's numbers as Python's, tuples as lists, and None for a number that is none."""
    if isinstance(value, Mapping):
        return {str(name): jsonable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _refuse(task: Task, trace: Trace) -> None:
    if not len(trace):
        raise HardtailError("there is nothing to diagnose: the trace has no instance")
    refuse_misfit(task, trace)
