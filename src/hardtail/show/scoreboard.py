"""An evaluation in a terminal: the study's tables, and drawings of failures."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from hardtail.core.records import Accuracy, Measurement, Paired, Probe, Reveal, Trust
from hardtail.core.tables import SCREEN, Cell, Table, share_text
from hardtail.core.terminal import wrapped
from hardtail.measuring.evaluate import Found, Outcome
from hardtail.measuring.subject import Subject
from hardtail.tasks.base import Task

if TYPE_CHECKING:
    from rich.console import Console


def eval_tables(subject: Subject, records: Sequence[Measurement]) -> list[Table]:
    """Accuracy by stratum and policy, as the study prints it, then the other measurements."""
    records = [structs.replace(record, stratum=_stratum(record)) for record in records]
    accuracies = [record for record in records if isinstance(record, Accuracy)]
    probes = {record.stratum: record for record in records if isinstance(record, Probe)}
    reveals = [record for record in records if isinstance(record, Reveal)]
    pairs = [record for record in records if isinstance(record, Paired)]
    files = dict.fromkeys(f", on {record.data.file}" for record in accuracies if record.data)
    title = f"{subject.name}{_checkpoint(subject)}{''.join(files)}: exact match (95 % interval)"
    found = _with_probes(_grids(title, accuracies, _share), probes)
    found += _grids("forward passes of an instance, mean", accuracies, lambda record: record.passes, decimals=1)
    if any(record.valid != record.exact_match for record in accuracies):
        found += _grids("valid answers, gold or not", accuracies, lambda record: record.valid, decimals=3)
    if any(record.exact_match < 1 for record in accuracies):
        found += _grids("accuracy of single cells", accuracies, lambda record: record.cell_accuracy, decimals=3)
    if trusts := [record for record in records if isinstance(record, Trust)]:
        found.append(_trust_table(trusts))
    if reveals:
        rows = tuple((record.stratum, record.token_accuracy, record.tokens) for record in reveals)
        found.append(Table("one pass over half-revealed answers", ("stratum", "token accuracy", "tokens"), rows, 3))
    if pairs:
        columns = ("stratum", "policies", "only the first right", "only the second", "p (McNemar)")
        compared = [(pair, f"{pair.policy} / {pair.against}") for pair in pairs]
        cells = ((pair.stratum, both, pair.only_first, pair.only_second, pair.p) for pair, both in compared)
        found.append(Table("on the same instances", columns, tuple(cells)))
    return found


def measured_how(record: Measurement, width: int = SCREEN) -> str:
    """What a record shares with the others of its evaluation, for a person who measures again."""
    drawn = "" if record.data or record.data_seed is None else f"instances of data seed {record.data_seed}, "
    return wrapped(f"{drawn}decoded in {record.decode_precision} on {record.device}", width)


def _share(record: Accuracy) -> Cell:
    return share_text(record.exact_match, record.low, record.high)


def _stratum(record: Measurement) -> str:
    """Its name; `natural` problems of a file are all problems of it, or the first."""
    if record.data is None or record.stratum != "natural":
        return record.stratum
    return "all of the file" if record.n == record.data.count else f"first {record.n:,} of the file"


def _grids(
    title: str,
    accuracies: Sequence[Accuracy],
    cell: Callable[[Accuracy], Cell],
    decimals: int | None = None,
) -> list[Table]:
    """One row per stratum and one column per policy, in as many tables as a screen needs to show every policy."""
    at = {(record.stratum, record.policy): cell(record) for record in accuracies}

    def table(group: Sequence[str], title: str) -> Table:
        strata = dict.fromkeys(record.stratum for record in accuracies if record.policy in group)
        rows = ((stratum, *(at.get((stratum, policy)) for policy in group)) for stratum in strata)
        return Table(title, ("stratum", *group), tuple(rows), decimals)

    groups: list[list[str]] = [[]]
    for policy in dict.fromkeys(record.policy for record in accuracies):
        if groups[-1] and table([*groups[-1], policy], title).width > SCREEN:
            groups.append([])
        groups[-1].append(policy)
    return [table(group, "the same, other policies" if place else title) for place, group in enumerate(groups)]


def _with_probes(tables: Sequence[Table], probes: Mapping[str, Probe]) -> list[Table]:
    """The tables and, for each stratum, the probe's NLL and the number of instances: in the same table if that is the
    only one and they fit, otherwise in one of their own."""
    ends = {
        stratum: ("∞" if probe.probe_nll is None else probe.probe_nll, probe.n) for stratum, probe in probes.items()
    }
    only = tables[0]
    rows = tuple((*row, *ends[str(row[0])]) for row in only.rows)
    wider = Table(only.title, (*only.columns, "probe NLL", "n"), rows)
    if len(tables) == 1 and wider.width <= SCREEN:
        return [wider]
    own = tuple((stratum, *end) for stratum, end in ends.items())
    return [*tables, Table("one pass with everything hidden", ("stratum", "probe NLL", "n"), own)]


def _trust_table(records: Sequence[Trust]) -> Table:
    """How well each score tells wrong answers from right ones; only of policies that got both."""
    shares = list(dict.fromkeys(share for record in records for share in record.accuracy_at))
    columns = ("stratum", "policy", "score", "passes", "wrong", "AUROC", *(f"{float(at):.0%}" for at in shares))
    rows = (
        (of.stratum, of.policy, of.score, of.passes, of.wrong, of.auroc, *(of.accuracy_at.get(at) for at in shares))
        for of in records
        if of.wrong
    )
    return Table("which answers to distrust; last columns: accuracy of the most trusted", columns, tuple(rows), 3)


def _checkpoint(subject: Subject) -> str:
    kind, step = subject.origin.checkpoint, subject.origin.step
    if kind and step is not None:
        return f", {kind} weights, step {step:,}"
    return ", weights of unknown origin" if subject.origin.recipe else ""


def show_failures(console: "Console", task: Task, found: Sequence[Found]) -> None:
    """Draw failures, wrong cells in red."""
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
            reason = f"  {fault or 'a valid answer, but not the gold one'}"
            console.print(wrapped(reason, console.width), markup=False)
