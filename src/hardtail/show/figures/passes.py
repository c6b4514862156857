"""Accuracy against forward passes on paper."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from hardtail.show.charts.passes import costs
from hardtail.show.figures.style import COLUMN, MARKERS, SOFT, sheet, style
from hardtail.study.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
