"""How training went: losses and accuracies over its steps."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from hardtail.core.records import LogLine
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, grouped
from hardtail.show.charts.legend import arm_series, variant_of
from hardtail.study.runs import Run

CONFIDENCE, LOGICAL = "confidence", "logical order"


@dataclass(frozen=True)
class _Logged:
    """What one chart shows of a run's log, by the style it is drawn in."""

    title: str
    panel: str
    note: str
    y: Axis
    values: Mapping[str, Callable[[LogLine], float | None]]


_CHARTS = (
    _Logged(
        "Training loss",
        "Training loss",
        "Of single batches, by the scheme's own weighting: curves of different schemes are not on one scale.",
        Axis("loss", low=0.0, log_on_paper=True),
        {CONFIDENCE: lambda line: line.loss},
    ),
    _Logged(
        "Accuracy on natural instances",
        "Natural accuracy",
        "Exact match by confidence, EMA weights where the recipe has them.",
        SHARE,
        {CONFIDENCE: lambda line: line.natural},
    ),
    _Logged(
        "Accuracy on the hard tail",
        "Hard-tail accuracy",
        "The stratum that the recipe watches, decoded by confidence and in logical order.",
        SHARE,
        {CONFIDENCE: lambda line: line.hard, LOGICAL: lambda line: line.hard_logical},
    ),
    _Logged(
        "Probe loss",
        "Probe loss",
        "Mean negative log-likelihood of the gold tokens with every cell hidden: what checkpoints are chosen by.",
        Axis("nats a cell", low=0.0, log_on_paper=True),
        {CONFIDENCE: lambda line: line.probe_nll},
    ),
    _Logged(
        "Answer cells that are guessed",
        "Cells guessed",
        "Cells of the probe with over half of the loss that knowing only how common each token is would have.",
        Axis("cells", low=0.0),
        {CONFIDENCE: lambda line: line.probe_guessed},
    ),
)


def training(task: str, runs: Sequence[Run], at_first: Collection[str] = ()) -> list[Chart]:
    """Loss and accuracy over training by scheme: the paper's second figure, with the hard tail and the probe."""
    charts = []
    for logged in _CHARTS:
        lines = [
            (
                arm_series(
                    run.arm,
                    style,
                    at_first,
                    name=run.arm if len(logged.values) == 1 else f"{run.arm}, {style}",
                    variant=variant_of(run.arm),
                ),
                Line(f"seed {run.seed}", _over_steps(run, value)),
            )
            for style, value in logged.values.items()
            for run in runs
        ]
        steps = Axis("training step", low=0.0)
        charts.append(Chart(task, "training", logged.title, logged.panel, logged.note, steps, logged.y, grouped(lines)))
    return [chart for chart in charts if chart.series]


def _over_steps(run: Run, value: Callable[[LogLine], float | None]) -> tuple[Point, ...]:
    return tuple(Point(line.step, found) for line in run.log if (found := value(line)) is not None)
