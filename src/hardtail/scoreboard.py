"""An evaluation as a person reads it: the study's tables, and failures drawn."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hardtail.evaluate import Outcome, Record
from hardtail.subject import Subject
from hardtail.tables import Table
from hardtail.tasks.base import Task

if TYPE_CHECKING:
    from rich.console import Console


def eval_tables(subject: Subject, records: Sequence[Record]) -> list[Table]:
    """Accuracy by stratum and policy, as the study prints it; then what goes beside it."""
    kinds = {kind: [record for record in records if record["kind"] == kind] for kind in ("accuracy", "probe", "paired")}
    accuracies = kinds["accuracy"]
    policies = list(dict.fromkeys(record["policy"] for record in accuracies))
    strata = list(dict.fromkeys(record["stratum"] for record in accuracies))
    at = {(record["stratum"], record["policy"]): record for record in accuracies}
    probes = {record["stratum"]: record["probe_nll"] for record in kinds["probe"]}

    def grid(title: str, cell: Callable[[Record], str]) -> Table:
        rows = [
            [stratum, *(cell(at[stratum, policy]) if (stratum, policy) in at else "" for policy in policies)]
            for stratum in strata
        ]
        return Table(title, ["stratum", *policies], rows)

    checkpoint = f"{subject.name}, {subject.origin['checkpoint']} weights of step {subject.origin['step'] or 0:,}"
    found = [grid(f"{subject.task.name}: exact match of {checkpoint} (95 % interval)", _share)]
    for row in found[0].rows:
        row.append(f"{probes[row[0]]:.4g}" if row[0] in probes else "")
        row.append(next(str(record["n"]) for record in accuracies if record["stratum"] == row[0]))
    found[0].columns.extend(["probe NLL", "n"])
    if any(record["valid"] != record["exact_match"] for record in accuracies):
        found.append(grid("valid answers, gold or not", lambda record: f"{record['valid']:.3f}"))
    if any(record["exact_match"] < 1 for record in accuracies):
        found.append(grid("accuracy of single cells", lambda record: f"{record['cell_accuracy']:.4f}"))
    if reveals := [record for record in records if record["kind"] == "reveal"]:
        rows = [[record["stratum"], f"{record['token_accuracy']:.4f}", str(record["tokens"])] for record in reveals]
        found.append(Table("one pass over half-revealed answers", ["stratum", "token accuracy", "tokens"], rows))
    if kinds["paired"]:
        rows = [
            [
                record["stratum"],
                f"{record['policy']} / {record['against']}",
                str(record["only_first"]),
                str(record["only_second"]),
                f"{record['p']:.2g}",
            ]
            for record in kinds["paired"]
        ]
        columns = ["stratum", "policies", "only the first right", "only the second", "p (McNemar, exact)"]
        found.append(Table("on the same instances", columns, rows))
    return found


def _share(record: Record) -> str:
    return f"{record['exact_match']:.3f} [{record['low']:.3f}, {record['high']:.3f}]"


def show_failures(console: "Console", task: Task, found: Sequence[Outcome | Record]) -> None:
    """Failures as a person would draw them, wrong cells in red."""
    from rich.panel import Panel

    for item in found:
        if not isinstance(item, Outcome) or item.failures is None:
            continue
        for i in range(len(item.failures)):
            picture = task.picture(item.failures.instances, i, item.failures.answer_NA[i])
            title = f"{item.record['policy']} on {item.record['stratum']}"
            console.print(Panel(picture, title=title, title_align="left", expand=False))
            fault = task.fault(item.failures.instances, i, item.failures.answer_NA[i])
            console.print(f"  {fault}" if fault else "  a valid answer, but not the gold one")
