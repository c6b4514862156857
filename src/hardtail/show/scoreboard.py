"""An evaluation as a person reads it: the study's tables, and failures drawn."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from hardtail.core.records import Accuracy, Measurement, Paired, Probe, Reveal
from hardtail.core.tables import Cell, Table
from hardtail.measuring.evaluate import Found, Outcome
from hardtail.measuring.subject import Subject
from hardtail.tasks.base import Task

if TYPE_CHECKING:
    from rich.console import Console

BESIDE = 3
"""Policies whose accuracies, intervals included, a screen still shows beside each other."""


def eval_tables(subject: Subject, records: Sequence[Measurement]) -> list[Table]:
    """Accuracy by stratum and policy, as the study prints it; then what goes beside it."""
    accuracies = [record for record in records if isinstance(record, Accuracy)]
    probes = {record.stratum: record for record in records if isinstance(record, Probe)}
    reveals = [record for record in records if isinstance(record, Reveal)]
    pairs = [record for record in records if isinstance(record, Paired)]
    title = f"{subject.task.name}: exact match (95 % interval), {subject.name}, {_checkpoint(subject)}"
    found = _grids(title, accuracies, _share, probes)
    if any(record.valid != record.exact_match for record in accuracies):
        found += _grids("valid answers, gold or not", accuracies, lambda record: record.valid)
    if any(record.exact_match < 1 for record in accuracies):
        found += _grids("accuracy of single cells", accuracies, lambda record: record.cell_accuracy)
    if reveals:
        shown = tuple((record.stratum, record.token_accuracy, record.tokens) for record in reveals)
        found.append(Table("one pass over half-revealed answers", ("stratum", "token accuracy", "tokens"), shown))
    if pairs:
        columns = ("stratum", "policies", "only the first right", "only the second", "p (McNemar, exact)")
        rows = tuple(
            (pair.stratum, f"{pair.policy} / {pair.against}", pair.only_first, pair.only_second, pair.p)
            for pair in pairs
        )
        found.append(Table("on the same instances", columns, rows))
    return found


def _grids(
    title: str,
    accuracies: Sequence[Accuracy],
    cell: Callable[[Accuracy], Cell],
    probes: Mapping[str, Probe] | None = None,
) -> list[Table]:
    """`_grid`, in as many tables as it takes for a screen to show every policy."""
    names = list(dict.fromkeys(record.policy for record in accuracies))
    groups = [names[start : start + BESIDE] for start in range(0, len(names), BESIDE)]
    titles = [title] + ["the same, other policies"] * (len(groups) - 1)
    return [
        _grid(above, [record for record in accuracies if record.policy in group], cell, probes)
        for above, group in zip(titles, groups, strict=True)
    ]


def _grid(
    title: str, accuracies: Sequence[Accuracy], cell: Callable[[Accuracy], Cell], probes: Mapping[str, Probe] | None
) -> Table:
    """One row a stratum and one column a policy; with `probes` also the probe's NLL and the number of instances."""
    policies = tuple(dict.fromkeys(record.policy for record in accuracies))
    strata = dict.fromkeys(record.stratum for record in accuracies)
    at = {(record.stratum, record.policy): cell(record) for record in accuracies}
    rows = tuple((stratum, *(at.get((stratum, policy)) for policy in policies)) for stratum in strata)
    if not probes:
        return Table(title, ("stratum", *policies), rows)
    rows = tuple((*row, probes[str(row[0])].probe_nll, probes[str(row[0])].n) for row in rows)
    return Table(title, ("stratum", *policies, "probe NLL", "n"), rows)


def _checkpoint(subject: Subject) -> str:
    kind, step = subject.origin.checkpoint, subject.origin.step
    return f"{kind} weights, step {step:,}" if kind and step is not None else "weights of unknown origin"


def _share(record: Accuracy) -> str:
    return f"{record.exact_match:.3f} [{record.low:.3f}, {record.high:.3f}]"


def show_failures(console: "Console", task: Task, found: Sequence[Found]) -> None:
    """Failures as a person would draw them, wrong cells in red."""
    from rich.panel import Panel
    from rich.text import Text

    for item in found:
        if not isinstance(item, Outcome) or item.failures is None:
            continue
        for i in range(len(item.failures)):
            picture = task.picture(item.failures.instances, i, item.failures.answer_NA[i])
            title = Text(f"{item.record.policy} on {item.record.stratum}")
            console.print(Panel(picture, title=title, title_align="left", expand=False))
            fault = task.fault(item.failures.instances, i, item.failures.answer_NA[i])
            console.print(f"  {fault}" if fault else "  a valid answer, but not the gold one", markup=False)
