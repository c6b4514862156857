"""How figures look and how they are saved: one style for all, and the same files every time.

The fonts come with matplotlib, so a figure looks the same everywhere. A PDF embeds them as TrueType and its text stays
text; in an SVG letters are outlines.
"""

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.core.types import Trace
from hardtail.show.charts.colours import STEP_RAMP, WHITE_UNTIL, colours

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNDATED = {".pdf": {"CreationDate": None}, ".png": {"Software": None}, ".svg": {"Date": None}}
"""The formats, by the ending of a file, and what leaves the date out of each."""
COLUMN, PAGE = 3.3, 6.75
"""Widths in inches of one column of a two-column paper, and of both columns."""
DPI = 300
INK, SOFT, RULE = "#1b2430", "#5a6675", "#c9d0d8"
WRONG, CHAIN, HIDDEN = "#d55e00", "#fdf0c8", "#eef1f4"

STROKES: tuple[Any, ...] = ("-", (0, (4, 1.6)), (0, (1, 1.3)), (0, (6, 1.5, 1, 1.5)), (0, (3, 1, 1, 1, 1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")

_TICKS, _MAJOR_TICKS, _MINOR_TICKS = (tuple(f"{axis}tick{kind}" for axis in "xy") for kind in ("", ".major", ".minor"))
_SETTINGS: Sequence[tuple[str | tuple[str, ...], Mapping[str, Any]]] = (
    ("font", {"family": "DejaVu Sans", "size": 7}),
    ("axes", {"titlesize": 7.5, "titleweight": "bold", "titlelocation": "left", "titlepad": 4}),
    ("axes", {"labelsize": 7, "labelcolor": INK, "labelpad": 2, "edgecolor": SOFT, "linewidth": 0.6, "grid": True}),
    ("axes.spines", {"top": False, "right": False}),
    ("grid", {"color": "#e3e7eb", "linewidth": 0.5}),
    (_TICKS, {"labelsize": 7, "color": SOFT}),
    (_MAJOR_TICKS, {"size": 2, "width": 0.6}),
    (_MINOR_TICKS, {"size": 0}),
    ("text", {"color": INK, "parse_math": False}),
    ("legend", {"fontsize": 7, "frameon": False, "handlelength": 1.9, "columnspacing": 1.2, "handletextpad": 0.5}),
    ("lines", {"linewidth": 1.2, "markersize": 3}),
    ("pdf", {"fonttype": 42}),
    ("svg", {"fonttype": "path", "hashsalt": "hardtail"}),
    ("savefig", {"bbox": None}),
)
"""Arguments of `matplotlib.rc`."""


def ensure_matplotlib() -> None:
    """Raise HardtailError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise HardtailError("figures need matplotlib; pip install 'hardtail[report]'") from error


@contextmanager
def style() -> Iterator[None]:
    """Apply the settings above: `with style():`, or `@style()` above a function that draws."""
    ensure_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()  # the user's own matplotlibrc changes nothing
        for group, settings in _SETTINGS:
            mpl.rc(group, **settings)
        yield


def sheet(width: float, height: float, *, arranged: bool = True) -> "Figure":
    """Return an empty figure; `arranged` lays out its contents automatically."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.03, hspace=0.04) if arranged else None
    return Figure(figsize=(width, height), layout=engine)


def save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Save the figure as PDF, PNG and SVG."""
    with style():
        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # arranged once, the same in all formats
    paths = [folder / f"{name}{ending}" for ending in UNDATED]
    for path in paths:
        write(figure, path)
    return paths


def write(figure: "Figure", path: Path) -> None:
    """Write the figure in the format of the path's ending, without a date so that equal figures are equal files."""
    held = io.BytesIO()
    with style():
        figure.savefig(held, format=path.suffix[1:], dpi=DPI, metadata=UNDATED[path.suffix])
    with atomic(path) as file:
        file.write(held.getvalue())


# -- parts of figures ------------------------------------------------------------------------------------------


def ramp(part: float) -> tuple[tuple[float, float, float], str]:
    """The fill of a commit, from dark (first) to light (last), and a legible colour for text on it."""
    at = min(max(part, 0.0), 1.0) * (len(STEP_RAMP) - 1)
    low = min(int(at), len(STEP_RAMP) - 2)
    pairs = zip(STEP_RAMP[low], STEP_RAMP[low + 1], strict=True)
    red, green, blue = ((one + (other - one) * (at - low)) / 255 for one, other in pairs)
    return (red, green, blue), "white" if part < WHITE_UNTIL else "#0b1f33"


def apart(count: int) -> list[str]:
    """This many colours, none of them a training scheme's."""
    return list(colours([*map(str, range(count))]).values())


def slug(*words: object) -> str:
    """Join words into a file name."""
    return "-".join(filter(None, (re.sub(r"[^A-Za-z0-9.]+", "-", str(word)).strip("-.") for word in words)))


def source(trace: Trace) -> str:
    """State where a trace comes from, with its `note` if it has one."""
    return ", ".join(trace.source.words)


def bare(axes: "Axes") -> None:
    """Remove frame, ticks and grid."""
    axes.set_axis_off()
    axes.grid(visible=False)
