"""The figure of mask states: which cells are hidden, in training and in decodes.

Shapes: K hidden counts, R logical ranks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hardtail.measuring.diagnosis.coverage import Histogram
from hardtail.show.charts.colours import titles
from hardtail.show.charts.states import TRAINED, States
from hardtail.show.figures.style import COLUMN, PAGE, SOFT, sheet, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS_ACROSS = 6
"""The most panels in a row."""


@style()
def states_figure(held: Sequence[States]) -> "Figure":
    """Draw which cells are hidden at each hidden count, with a panel for each arm and decoder; white means never.

    Every rank must belong to one cell (`single_ranks`).
    """
    kinds = [[one for one in held if (one.series.style == TRAINED) is trained] for trained in (True, False)]
    lines = [kind[at : at + PANELS_ACROSS] for kind in kinds for at in range(0, len(kind), PANELS_ACROSS)]
    rows, columns = len(lines), max(map(len, lines))
    figure = sheet(COLUMN if columns < 3 else PAGE, 1.75 * rows + 0.1)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=True, sharex=True)
    named = titles([one.series.hue for one in held])
    for axes in panels.ravel():
        axes.set_visible(False)
    for axes, one in ((panels[y, x], one) for y, line in enumerate(lines) for x, one in enumerate(line)):
        axes.set_visible(True)
        hidden_KR = chance_hidden(one.histogram)
        extent = (-0.5, hidden_KR.shape[1] - 0.5, 0.5, len(hidden_KR) - 0.5)
        shown = {"cmap": "viridis", "vmin": 0, "vmax": 1, "interpolation": "nearest"}
        image = axes.imshow(hidden_KR[1:], origin="lower", extent=extent, aspect="auto", **shown)
        axes.grid(visible=False)
        axes.set_title(named[one.series.hue], pad=12)
        axes.text(0, 1.03, one.series.style, transform=axes.transAxes, color=SOFT, va="bottom")
    figure.supxlabel("rank of the cell in the logical order", fontsize=7)
    figure.supylabel("hidden cells", fontsize=7)
    bar = figure.colorbar(image, ax=panels, aspect=25 * rows, pad=0.01)
    bar.outline.set_visible(False)
    bar.set_label("chance that the cell is hidden")
    return figure


def single_ranks(held: Sequence[States]) -> bool:
    """Whether every rank belongs to a single cell in all of these."""
    return bool(held) and all(one.histogram.rank_KR.shape[1] == len(one.histogram.count_K) - 1 for one in held)


def chance_hidden(histogram: Histogram) -> NDArray[np.float64]:
    """Return the chance that the cell of each rank is hidden at each hidden count; NaN at counts never seen."""
    count_K1 = histogram.count_K[:, None].astype(np.float64)
    return np.divide(histogram.rank_KR, count_K1, out=np.full(histogram.rank_KR.shape, np.nan), where=count_K1 > 0)
