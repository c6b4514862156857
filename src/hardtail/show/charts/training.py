"""How training went: losses and accuracies over its steps."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from hardtail.core.records import LogLine
from hardtail.show.charts.answers import CONFIDENCE, LOGICAL
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, described
from hardtail.show.charts.legend import arm_series, variant_of
from hardtail.study.runs import Run

Value = Callable[[LogLine], float | None]
_CHARTS: Mapping[str, tuple[Axis, Mapping[str, Value]]] = {
    "loss": (Axis("loss", low=0.0, log_on_paper=True), {CONFIDENCE: lambda line: line.loss}),
    "natural": (SHARE, {CONFIDENCE: lambda line: line.natural}),
    "hard": (SHARE, {CONFIDENCE: lambda line: line.hard, LOGICAL: lambda line: line.hard_logical}),
    "probe": (Axis("nats per cell", low=0.0, log_on_paper=True), {CONFIDENCE: lambda line: line.probe_nll}),
    "guessed": (Axis("cells", low=0.0), {CONFIDENCE: lambda line: line.probe_guessed}),
}
"""The y axis of each chart, and what it shows of a run's log, by the style that it is drawn in."""


def training(task: str, runs: Sequence[Run], at_first: Collection[str] = ()) -> list[Chart]:
    """Loss and accuracy over training by scheme: the paper's second figure, with the hard tail and the probe.

    What runs measured on drawn problems and on those of a file is not comparable, and gets charts of its own.
    """
    charts = []
    for chart, (y, values) in _CHARTS.items():
        for file, held in ({"": runs} if chart == "loss" else _by_problems(runs)).items():
            lines = _lines(held, values, at_first)
            charts.append(described(chart, task, Axis("training step", low=0.0), y, lines, file=file))
    return [chart for chart in charts if chart.series]


def _lines(
    runs: Sequence[Run], values: Mapping[str, Value], at_first: Collection[str]
) -> Iterator[tuple[Series, Line]]:
    for style, value in values.items():
        for run in runs:
            ending = "" if len(values) == 1 else f", {style}"
            series = arm_series(run, style, at_first, ending=ending, variant=variant_of(run.arm))
            points = tuple(Point(line.step, found) for line in run.log if (found := value(line)) is not None)
            yield series, Line(f"seed {run.seed}", points)


def _by_problems(runs: Sequence[Run]) -> dict[str, list[Run]]:
    """Group runs by the file whose problems they measured themselves on; those on drawn ones come first."""
    found: dict[str, list[Run]] = {"": []}
    for run in runs:
        found.setdefault(run.watched, []).append(run)
    return found
