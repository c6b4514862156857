"""The one question "what happened in this decode?", answered for any task."""

from collections import ChainMap
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from hardtail.core.errors import HardtailError
from hardtail.core.records import Coverage, Head, as_json
from hardtail.core.registry import TASKS
from hardtail.core.tables import Table, tabulate
from hardtail.core.types import Trace
from hardtail.measuring.diagnosis.by_stratum import by_stratum
from hardtail.measuring.diagnosis.cells import mostly_wrong
from hardtail.measuring.diagnosis.checks import checks
from hardtail.measuring.diagnosis.coverage import Histogram, compare
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.measuring.diagnosis.record import Diagnosis, FirstWrong, Result
from hardtail.tasks.base import Task
from hardtail.traces.commits import refuse_misfit
from hardtail.traces.summary import mean, share

_SHORT_HEADINGS = {
    "by stratum": {"failures": "failed", "exact match": "exact", "gold second": "gold 2nd"},
    "first wrong": {
        "probability mean": "prob mean",
        "probability median": "prob median",
        "gold ranked second": "gold 2nd",
    },
}
"""Headings by a part of the table's title, so that it fits a screen of 100 columns; tasks add their own."""


def diagnose(
    task: Task,
    trace: Trace,
    coverage: Coverage | None = None,
    order: str | None = None,
    groups: Mapping[str, NDArray[np.bool_]] | None = None,
) -> Diagnosis:
    """What a trace shows.

    `coverage`  a run's `coverage.json`: the mask states of training, to compare the decoder's with
    `order`     the logical order that training counted by; the task's main one by default
    `groups`    which instances [N] are of which stratum, for the figures by stratum
    """
    _refuse(task, trace)
    counted_by = task.order_names[0] if order is None and task.order_names else order
    return Diagnosis(
        **msgspec.structs.asdict(_head(task, trace.about)),
        strata=tuple(groups or ()),
        result=_result(task, trace),
        readiness=readiness(task, trace),
        first_wrong=FirstWrong(by_stratum(task, trace, groups)),
        coverage=None if coverage is None else compare(trace, Histogram.of(coverage), counted_by),
        profile=task.profile(trace),
        checks=checks(trace),
    )


def _head(task: Task, about: Mapping[str, Any]) -> Head:
    """The facts about a trace that its record keeps."""
    known = {name: about[name] for name in Head.__struct_fields__ if name in about and name != "task"}
    try:
        return msgspec.convert({"task": task.name, "policy": "", **known}, Head)
    except msgspec.ValidationError as error:
        raise HardtailError(f"the trace's `about` is not what `hardtail eval --traces` writes: {error}") from error


def _result(task: Task, trace: Trace) -> Result:
    exact_N, right_NA = trace.exact_N, trace.answer_NA == trace.instances.answer_NA
    judged_NA = trace.instances.maskable_NA & trace.instances.scored_NA
    mostly, worst = mostly_wrong(task, right_NA, judged_NA)
    return Result(
        instances=len(trace),
        exact=int(exact_N.sum()),
        exact_match=mean(exact_N),
        cell_accuracy=share((right_NA & judged_NA).sum(), judged_NA.sum()),
        cells_mostly_wrong=mostly,
        worst_cells=worst,
    )


def tables(diagnosis: Diagnosis) -> list[Table]:
    """A diagnosis for people, part by part, without where it comes from."""
    titles = {
        "result": "result",
        "first_wrong": "first wrong commits",
        "checks": "commits that were looked at again",
        "readiness": "readiness",
        "coverage": "coverage",
        "profile": str(diagnosis.task),
        "cross": "solved",
    }
    held = as_json(diagnosis)
    own = TASKS.load(diagnosis.task).short_headings if diagnosis.task in TASKS.names() else {}

    def narrow(table: Table) -> Table:
        known = [kinds.get(part, {}) for kinds in (_SHORT_HEADINGS, own) for part in table.title.split(": ")]
        short = ChainMap(*map(dict, known))
        return replace(table, columns=tuple(short.get(column, column) for column in table.columns))

    return [narrow(table) for name, title in titles.items() for table in tabulate(title, held.get(name, {}))]


def _refuse(task: Task, trace: Trace) -> None:
    if not len(trace):
        raise HardtailError("there is nothing to diagnose: the trace has no instances")
    refuse_misfit(task, trace)
