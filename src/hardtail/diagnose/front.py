"""The one question "what happened in this decode?", answered for any task."""

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

import numpy as np

from hardtail.diagnose.commits import refuse_misfit
from hardtail.diagnose.coverage import Histogram, compare
from hardtail.diagnose.readiness import readiness
from hardtail.diagnose.summary import mean, share
from hardtail.errors import HardtailError
from hardtail.tables import Table, tabulate
from hardtail.tasks.base import Task
from hardtail.types import Trace

Profile = Callable[[Task, Trace], dict[str, Any]]
PROFILES: dict[str, str] = {
    name: f"hardtail.diagnose.{name}:profile" for name in ("addition", "maze", "listops", "countdown", "sudoku")
}
"""Where each task's own part is, loaded when asked for; a package with another task adds its own."""


def diagnose(
    task: Task, trace: Trace, coverage: Mapping[str, Any] | None = None, order: str | None = None
) -> dict[str, Any]:
    """What a trace shows, as JSON holds it.

    `coverage`  contents of a run's `coverage.json`: the mask states of training, to compare the decoder's with
    `order`     the logical order that training counted by; the task's main one by default
    """
    _refuse(task, trace)
    exact_N, scored_NA = trace.exact_N, trace.instances.scored_NA
    right_NA = trace.answer_NA == trace.instances.answer_NA
    result: dict[str, Any] = {
        "task": task.name,
        "about": dict(trace.about),
        "result": {
            "instances": len(trace),
            "exact": int(exact_N.sum()),
            "exact_match": mean(exact_N),
            "cell_accuracy": share((right_NA & scored_NA).sum(), scored_NA.sum()),
        },
        "readiness": readiness(task, trace).as_json(),
    }
    if coverage is not None:
        counted_by = task.order_names[0] if order is None and task.order_names else order
        result["coverage"] = compare(trace, Histogram.from_json(coverage), counted_by).as_json()
    if task.name in PROFILES:
        result["profile"] = _profile_of(task.name)(task, trace)
    return cast(dict[str, Any], jsonable(result))


def tables(diagnosis: Mapping[str, Any]) -> list[Table]:
    """A diagnosis for people, part by part; what else it holds (where it comes from) is not for tables."""
    titles = {
        "result": "result",
        "readiness": "readiness",
        "coverage": "coverage",
        "profile": diagnosis["task"],
        "cross": "solved",
    }
    return [table for name, title in titles.items() for table in tabulate(title, diagnosis.get(name, {}))]


def jsonable(value: Any) -> Any:
    """Numpy's numbers as Python's, tuples as lists, and None for a number that is none."""
    if isinstance(value, Mapping):
        return {str(name): jsonable(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(inner) for inner in value]
    if isinstance(value, np.ndarray | np.generic):
        return jsonable(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _profile_of(name: str) -> Profile:
    module, _, attribute = PROFILES[name].partition(":")
    return cast(Profile, getattr(import_module(module), attribute))


def _refuse(task: Task, trace: Trace) -> None:
    if not len(trace):
        raise HardtailError("there is nothing to diagnose: the trace has no instance")
    refuse_misfit(task, trace)
