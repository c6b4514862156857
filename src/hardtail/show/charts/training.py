"""How training went: losses and accuracies over its steps."""

from collections.abc import Callable, Collection, Mapping, Sequence

from hardtail.core.records import LogLine
from hardtail.show.charts.answers import CONFIDENCE, LOGICAL
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, described
from hardtail.show.charts.legend import arm_of_run, arm_series, variant_of
from hardtail.study.runs import Run

_CHARTS: Mapping[str, tuple[Axis, Mapping[str, Callable[[LogLine], float | None]]]] = {
    "loss": (Axis("loss", low=0.0, log_on_paper=True), {CONFIDENCE: lambda line: line.loss}),
    "natural": (SHARE, {CONFIDENCE: lambda line: line.natural}),
    "hard": (SHARE, {CONFIDENCE: lambda line: line.hard, LOGICAL: lambda line: line.hard_logical}),
    "probe": (Axis("nats per cell", low=0.0, log_on_paper=True), {CONFIDENCE: lambda line: line.probe_nll}),
    "guessed": (Axis("cells", low=0.0), {CONFIDENCE: lambda line: line.probe_guessed}),
}
"""The y axis of each chart, and what it shows of a run's log, by the style that it is drawn in."""


def training(task: str, runs: Sequence[Run], at_first: Collection[str] = ()) -> list[Chart]:
    """Loss and accuracy over training by scheme: the paper's second figure, with the hard tail and the probe."""
    charts = []
    for chart, (y, values) in _CHARTS.items():
        lines = []
        for style, value in values.items():
            for run in runs:
                arm = arm_of_run(run)
                name = arm if len(values) == 1 else f"{arm}, {style}"
                series = arm_series(arm, style, at_first, name=name, variant=variant_of(run.arm))
                points = tuple(Point(line.step, found) for line in run.log if (found := value(line)) is not None)
                lines.append((series, Line(f"seed {run.seed}", points)))
        charts.append(described(chart, task, Axis("training step", low=0.0), y, lines))
    return [chart for chart in charts if chart.series]
