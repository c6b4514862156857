"""Figures of traces: readiness along a decode, and the mask states it visits beside those of training.

Shapes: N instances, T events, S steps, K hidden counts, R logical ranks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardtail.core.types import Array
from hardtail.measuring.diagnosis.coverage import Histogram, visits
from hardtail.measuring.diagnosis.readiness import readiness as profile
from hardtail.measuring.statistics import wilson
from hardtail.show.figures.recorded import ACCURACY, GROUPS
from hardtail.show.figures.style import COLUMN, PAGE, SOFT, schemes, sheet, styled, titles
from hardtail.show.page.charts import Axis, Chart, Line, Point, SeriesList
from hardtail.show.page.curves import hue, mean_ranks
from hardtail.show.page.stages import Decoder, Stage, ready_events
from hardtail.study.runs import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TRAINED = "trained"
ACROSS = 6
"""Panels of mask states in a row."""


def readiness(stage: Stage) -> list[Chart]:
    """The share of commits made before their prerequisites, step by step, and how often commits were right."""
    early, right = SeriesList(), SeriesList()
    if stage.problems.parents_NAE is None:
        return []
    scheme = schemes([decoder.model for decoder in stage.decoders])
    for decoder in stage.decoders:
        named = decoder.name, scheme[decoder.model], decoder.policy
        early.add(*named, Line("", _along(decoder, ~ready_events(stage.task, decoder.trace))))
        found = profile(stage.task, decoder.trace).accuracy
        points: list[Point] = [
            (place, found[group].right / found[group].commits, *wilson(found[group].right, found[group].commits))
            for place, group in enumerate(GROUPS)
            if found[group].commits
        ]
        right.add(*named, Line("", points))
    return [
        Chart(stage.task.name, "readiness", "Premature commits", "", Axis("decoding step"), ACCURACY, early.series()),
        Chart(
            stage.task.name,
            "readiness",
            "Right commits",
            "",
            Axis("cell at commit", GROUPS),
            ACCURACY,
            right.series(),
            marks=True,
        ),
    ]


def _along(decoder: Decoder, marked_NT: Array) -> list[Point]:
    """The share of commits that are marked, by step from 1."""
    trace = decoder.trace
    step_K, marked_K = trace.step_NT[trace.commit_NT], marked_NT[trace.commit_NT]
    all_S = np.bincount(step_K)
    marked_S = np.bincount(step_K[marked_K], minlength=len(all_S))
    return [(step + 1, float(marked_S[step] / all_S[step]), None, None) for step in np.flatnonzero(all_S).tolist()]


# -- mask states ------------------------------------------------------------------------------------------------------


def states(task: str, runs: Sequence[Run], stage: Stage | None) -> dict[str, tuple[str, str, Histogram]]:
    """Mask states by name, with the hue and style they are drawn in: of training, then those that decoders visited."""
    found: dict[str, tuple[str, str, Histogram]] = {}
    for run in runs:
        if run.task == task and run.coverage is not None:
            held = Histogram.of(run.coverage, f"{run.name}/coverage.json")
            if stage is not None and len(held.count_K) != stage.task.answer_len + 1:
                continue  # another size of the task
            name = f"{run.arm} {TRAINED}"
            found[name] = hue(run.arm), TRAINED, _sum(found[name][2], held) if name in found else held
    if stage is None:
        return found
    order = next((name for name in stage.task.order_names if name in stage.problems.orders), None)
    scheme = schemes([decoder.model for decoder in stage.decoders])
    for decoder in stage.decoders:
        found[decoder.name] = scheme[decoder.model], decoder.policy, visits(decoder.trace, order)
    return found


def _sum(one: Histogram, other: Histogram) -> Histogram:
    """Seeds of one arm together."""
    if one.rank_KR.shape != other.rank_KR.shape:
        return other
    return Histogram(one.count_K + other.count_K, one.rank_KR + other.rank_KR)


def coverage(task: str, held: dict[str, tuple[str, str, Histogram]]) -> list[Chart]:
    """Trained and visited mask states by the number of hidden cells, and where in the logical order these lie."""
    counts, ranks = SeriesList(), SeriesList()
    for name, (of, style, histogram) in held.items():
        share_K, _ = histogram.shares()
        points: list[Point] = [(count, float(share), None, None) for count, share in enumerate(share_K) if share]
        counts.add(name, of, style, Line("", points))
        ranks.add(name, of, style, Line("", mean_ranks(histogram)))
    hidden = Axis("hidden cells")
    charts = [
        Chart(task, "coverage", "States by hidden cells", "", hidden, Axis("", log=True), counts.series()),
        Chart(task, "coverage", "Mean hidden rank", "", hidden, Axis("", low=0.0, high=1.0), ranks.series()),
    ]
    return [chart for chart in charts if chart.series]


@styled
def states_figure(held: dict[str, tuple[str, str, Histogram]]) -> "Figure":
    """Which cells are hidden, by how many are: one panel for training and for each decoder; white never was.

    Every rank must be one cell's (`single_ranks`).
    """
    kinds = [[one for one in held.values() if (one[1] == TRAINED) is trained] for trained in (True, False)]
    lines = [kind[at : at + ACROSS] for kind in kinds for at in range(0, len(kind), ACROSS)]
    rows, columns = len(lines), max(map(len, lines))
    figure = sheet(COLUMN if columns < 3 else PAGE, 1.75 * rows + 0.1)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True, sharex=True)
    named = titles([of for of, _, _ in held.values()])
    image = None
    for axes in panels.ravel():
        axes.set_visible(False)
    for axes, (of, style, histogram) in (
        (panels[y, x], one) for y, line in enumerate(lines) for x, one in enumerate(line)
    ):
        axes.set_visible(True)
        hidden_KR = chance_hidden(histogram)
        extent = (-0.5, hidden_KR.shape[1] - 0.5, 0.5, len(hidden_KR) - 0.5)
        shown = {"cmap": "viridis", "vmin": 0, "vmax": 1, "interpolation": "nearest"}
        image = axes.imshow(hidden_KR[1:], origin="lower", extent=extent, aspect="auto", **shown)
        axes.grid(visible=False)
        axes.set_title(named[of], pad=12)
        axes.text(0, 1.03, style, transform=axes.transAxes, color=SOFT, va="bottom")
    figure.supxlabel("rank of the cell in the logical order", fontsize=7)
    figure.supylabel("hidden cells", fontsize=7)
    if image is not None:
        bar = figure.colorbar(image, ax=panels, aspect=25 * rows, pad=0.01)
        bar.outline.set_visible(False)
        bar.set_label("chance that the cell is hidden")
    return figure


def single_ranks(held: dict[str, tuple[str, str, Histogram]]) -> bool:
    """Whether every rank is one cell's, in all of these."""
    return bool(held) and all(one.rank_KR.shape[1] == len(one.count_K) - 1 for _, _, one in held.values())


def chance_hidden(histogram: Histogram) -> NDArray[np.float64]:
    """The chance that the cell of each rank is hidden, by how many are; NaN at counts that never were."""
    count_K1 = histogram.count_K[:, None].astype(np.float64)
    return np.divide(histogram.rank_KR, count_K1, out=np.full(histogram.rank_KR.shape, np.nan), where=count_K1 > 0)
