"""Accuracy against forward passes, and against time, on paper."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hardtail.core.records import Accuracy
from hardtail.show.charts.passes import costs
from hardtail.show.figures.style import COLUMN, MARKERS, SOFT, sheet, style
from hardtail.study.runs import Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

OURS = "#d55e00"
NEAR = 0.04
"""Names that would be this near to each other in accuracy, at similar costs, share a label."""
THIN: dict[str, Any] = {"markersize": 2.5, "linewidth": 0.5}


@style()
def passes_figure(
    runs: Mapping[str, Run], kind: str, colours: Mapping[str, str], stratum: str, policies: Mapping[str, str]
) -> "Figure":
    """One colour for each of the named runs that has records of this kind of weights, one mark for each policy, named
    as in the legend."""
    figure = sheet(COLUMN, 2.6)
    axes = figure.subplots()
    found = {name: costs(run, kind, stratum, policies) for name, run in runs.items()}
    found = {name: held for name, held in found.items() if held}
    _plot(axes, found, colours, policies)
    _label(axes, stratum, most=32)
    _explain(axes, found, colours, policies)
    return figure


@style()
def seconds_figure(
    records: Sequence[Accuracy], colours: Mapping[str, str], stratum: str, policies: Mapping[str, str]
) -> "Figure":
    """The same against the time of an instance: one panel for each device, one colour for each model."""
    held: dict[str, dict[str, dict[str, tuple[float, float]]]] = {}
    for record in records:
        model, device = record.model or "", (record.device or "").partition(",")[0]
        if (record.stratum, model in colours, record.policy in policies) == (stratum, True, True) and record.wall:
            at = 1000 * record.wall / record.n, record.exact_match
            held.setdefault(device, {}).setdefault(model, {})[record.policy] = at
    figure = sheet(COLUMN, 2.6)
    panels = figure.subplots(1, len(held), sharey=True, squeeze=False)[0]
    for axes, (device, found) in zip(panels, held.items(), strict=True):
        _plot(axes, found, colours, policies)
        axes.set_xlim(left=0)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("ms of an instance, mean")
        axes.set_title(device)
    panels[0].set_ylabel(f"exact match, {stratum}")
    models = dict.fromkeys(name for found in held.values() for name in found)
    _explain(panels[0], models, colours, policies)
    return figure


def _plot(
    axes: "Axes",
    found: Mapping[str, Mapping[str, tuple[float, float]]],
    colours: Mapping[str, str],
    policies: Iterable[str],
) -> None:
    """A thin line for each model through its policies, by cost, and a mark for each of them."""
    marks = dict(zip(policies, MARKERS, strict=False))
    for name, by_policy in found.items():
        held = sorted(by_policy.items(), key=lambda item: item[1])
        axes.plot(*zip(*(at for _, at in held), strict=True), color=colours[name], linewidth=0.5, alpha=0.4)
        for policy, at in held:
            axes.plot(*at, marks[policy], color=colours[name], markersize=4)


def _explain(axes: "Axes", names: Iterable[str], colours: Mapping[str, str], policies: Mapping[str, str]) -> None:
    """The legend below: marks of policies, colours of models."""
    marks = zip(policies.values(), MARKERS, strict=False)
    handles = [axes.plot([], [], mark, color=SOFT, label=label)[0] for label, mark in marks]
    handles += [axes.plot([], [], color=colours[name], label=name)[0] for name in names]
    axes.figure.legend(handles=handles, loc="outside lower center", ncols=3)


@style()
def policies_figure(records: Sequence[Accuracy], stratum: str, ours: str) -> "Figure":
    """Every policy of one model as a line over its settings, by cost, with its name at the best; `ours` in colour."""
    figure = sheet(COLUMN, 2.6)
    axes = figure.subplots()
    by_policy: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record.passes is not None and record.stratum == stratum:
            by_policy.setdefault(record.policy.partition(",")[0], []).append((record.passes, record.exact_match))
    labels: dict[tuple[float, float], list[str]] = {}
    for policy, points in by_policy.items():
        axes.plot(*zip(*sorted(points), strict=True), "o-", color=OURS if policy == ours else SOFT, **THIN)
        best = max(points, key=lambda at: (at[1], -at[0]))
        near = (at for at in labels if abs(at[1] - best[1]) < NEAR and 1 / 2 < at[0] / best[0] < 2)
        labels.setdefault(next(near, best), []).append(policy)
    for at, policies in labels.items():
        colour = OURS if ours in policies else SOFT
        axes.annotate(", ".join(policies), at, (3, 2), textcoords="offset points", color=colour, fontsize=6)
    _label(axes, stratum, most=256)
    return figure


def _label(axes: "Axes", stratum: str, most: int) -> None:
    axes.set_xscale("log", base=2)
    ticks = [1 << power for power in range(most.bit_length())]
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("forward passes of an instance, mean")
    axes.set_title(f"Exact match, {stratum}")
