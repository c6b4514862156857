"""Accuracy against forward passes: what a decoder costs and what it gets right."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from hardtail.core.records import Accuracy
from hardtail.show.figures.style import COLUMN, MARKERS, SOFT, sheet, style
from hardtail.study.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def costs(run: Run, stratum: str, policies: Iterable[str]) -> dict[str, tuple[float, float]]:
    """Mean forward passes and accuracy by policy, over all records of a stratum that count passes."""
    found = {}
    for policy in policies:
        held = [
            record
            for record in run.evaluations
            if isinstance(record, Accuracy) and (record.policy, record.stratum) == (policy, stratum)
        ]
        counted = [(record.n, record.passes, record.exact_match) for record in held if record.passes is not None]
        if total := sum(n for n, _, _ in counted):
            passes, right = (sum(row[0] * row[at] for row in counted) / total for at in (1, 2))
            found[policy] = (passes, right)
    return found


@style()
def passes_figure(
    runs: Mapping[str, Run], colours: Mapping[str, str], stratum: str, policies: Mapping[str, str]
) -> "Figure":
    """One colour for each of the named runs that has records, one mark for each policy, named as in the legend."""
    figure = sheet(COLUMN, 2.6)
    axes = figure.subplots()
    marks = dict(zip(policies, MARKERS, strict=False))
    found = {name: costs(run, stratum, policies) for name, run in runs.items()}
    found = {name: held for name, held in found.items() if held}
    for name, by_policy in found.items():
        held = sorted(by_policy.items(), key=lambda item: item[1])
        axes.plot(*zip(*(at for _, at in held), strict=True), color=colours[name], linewidth=0.5, alpha=0.4)
        for policy, at in held:
            axes.plot(*at, marks[policy], color=colours[name], markersize=4)
    axes.set_xscale("log", base=2)
    ticks = [1, 2, 4, 8, 16, 32]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("forward passes of an instance, mean")
    axes.set_title(f"Exact match, {stratum}")
    handles = [axes.plot([], [], marks[policy], color=SOFT, label=label)[0] for policy, label in policies.items()]
    handles += [axes.plot([], [], color=colours[name], label=name)[0] for name in found]
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure
