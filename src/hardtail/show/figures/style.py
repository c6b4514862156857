"""How figures look and how they are saved: one style for all, and the same files every time.

Fonts are those that come with matplotlib, so that a figure looks the same everywhere; in a PDF they are embedded as
TrueType and text stays text, in an SVG letters are outlines.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.core.types import Trace
from hardtail.show.charts.colours import STEP_RAMP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLUMN, PAGE = 3.3, 6.75
"""Widths in inches: of one column of a two-column paper, and of both."""
FORMATS = ("pdf", "png", "svg")
DPI = 300
INK, SOFT, RULE = "#1b2430", "#5a6675", "#c9d0d8"
WRONG, CHAIN, HIDDEN = "#d55e00", "#fdf0c8", "#eef1f4"

STROKES: tuple[Any, ...] = ("-", (0, (4, 1.6)), (0, (1, 1.3)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_SETTINGS: Mapping[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 4,
    "axes.labelsize": 7,
    "axes.labelcolor": INK,
    "axes.labelpad": 2,
    "axes.edgecolor": SOFT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e3e7eb",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "text.color": INK,
    "text.parse_math": False,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.9,
    "legend.columnspacing": 1.2,
    "legend.handletextpad": 0.5,
    "lines.linewidth": 1.2,
    "lines.markersize": 3,
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "hardtail",
    "savefig.bbox": None,
}

P = ParamSpec("P")


def ensure_matplotlib() -> None:
    """Raise HardtailError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise HardtailError("figures need matplotlib; pip install 'hardtail[report]'") from error


@contextmanager
def style() -> Iterator[None]:
    """Use the settings above within this context."""
    ensure_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()  # a person's own matplotlibrc changes nothing
        mpl.rcParams.update(_SETTINGS)
        yield


def styled(draw: "Callable[P, Figure]") -> "Callable[P, Figure]":
    """Make a function draw its figure in this style."""

    @wraps(draw)
    def drawing(*args: P.args, **kwargs: P.kwargs) -> "Figure":
        with style():
            return draw(*args, **kwargs)

    return drawing


def sheet(width: float, height: float, *, arranged: bool = True) -> "Figure":
    """Return an empty figure; `arranged` lays out its contents automatically."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.03, hspace=0.04) if arranged else None
    return Figure(figsize=(width, height), layout=engine)


def save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Save the figure as PDF, PNG and SVG, without dates so that equal figures are equal files."""
    undated = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {"Software": None}}
    paths = []
    with style():
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # arranged once, the same in all formats
    for kind in FORMATS:
        held = io.BytesIO()
        with style():
            figure.savefig(held, format=kind, dpi=DPI, metadata=undated[kind])
        path = folder / f"{name}.{kind}"
        with atomic(path) as file:
            file.write(held.getvalue())
        paths.append(path)
    return paths


# -- parts of figures ------------------------------------------------------------------------------------------


def ramp(part: float) -> tuple[tuple[float, float, float], str]:
    """From a decode's first commit, dark, to its last, light: the fill and the ink that is read on it."""
    at = min(max(part, 0.0), 1.0) * (len(STEP_RAMP) - 1)
    low = min(int(at), len(STEP_RAMP) - 2)
    pairs = zip(STEP_RAMP[low], STEP_RAMP[low + 1], strict=True)
    red, green, blue = ((one + (other - one) * (at - low)) / 255 for one, other in pairs)
    return (red, green, blue), "white" if part < 0.5 else "#0b1f33"


def slug(*words: object) -> str:
    """Join words into a file name."""
    return "-".join(filter(None, (re.sub(r"[^A-Za-z0-9.]+", "-", str(word)).strip("-.") for word in words)))


def source(trace: Trace) -> str:
    """Say where a trace comes from; its `note` says what else a reader must know."""
    return ", ".join(str(trace.about[key]) for key in ("model", "note", "policy", "stratum") if trace.about.get(key))


def bare(axes: "Axes") -> None:
    """Remove frame, ticks and grid."""
    axes.set_axis_off()
    axes.grid(visible=False)
