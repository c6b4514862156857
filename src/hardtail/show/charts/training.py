"""How training went: losses and accuracies over its steps."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, grouped
from hardtail.show.charts.legend import arm_series
from hardtail.study.runs import Run

CONFIDENCE, LOGICAL = "confidence", "logical order"


@dataclass(frozen=True)
class _Logged:
    """Fields of a run's log that one chart shows, by the style they are drawn in."""

    title: str
    panel: str
    note: str
    y: Axis
    fields: Mapping[str, str]


_CHARTS = (
    _Logged(
        "Training loss",
        "Training loss",
        "Of single batches, by the scheme's own weighting: curves of different schemes are not on one scale.",
        Axis("loss", low=0.0, log_on_paper=True),
        {CONFIDENCE: "loss"},
    ),
    _Logged(
        "Accuracy on natural instances",
        "Natural accuracy",
        "Exact match by confidence, EMA weights where the recipe has them.",
        SHARE,
        {CONFIDENCE: "natural"},
    ),
    _Logged(
        "Accuracy on the hard tail",
        "Hard-tail accuracy",
        "The stratum that the recipe watches, decoded by confidence and in logical order.",
        SHARE,
        {CONFIDENCE: "hard", LOGICAL: "hard_logical"},
    ),
    _Logged(
        "Probe loss",
        "Probe loss",
        "Mean negative log-likelihood of the gold tokens with every cell hidden: what checkpoints are chosen by.",
        Axis("nats a cell", low=0.0, log_on_paper=True),
        {CONFIDENCE: "probe_nll"},
    ),
    _Logged(
        "Answer cells that are guessed",
        "Cells guessed",
        "Cells of the probe with over half of the loss that knowing only how common each token is would have.",
        Axis("cells", low=0.0),
        {CONFIDENCE: "probe_guessed"},
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
                    name=run.arm if len(logged.fields) == 1 else f"{run.arm}, {style}",
                    by_variant=True,
                ),
                Line(f"seed {run.seed}", _over_steps(run, field)),
            )
            for style, field in logged.fields.items()
            for run in runs
        ]
        steps = Axis("training step", low=0.0)
        charts.append(Chart(task, "training", logged.title, logged.panel, logged.note, steps, logged.y, grouped(lines)))
    return [chart for chart in charts if chart.series]


def _over_steps(run: Run, field: str) -> tuple[Point, ...]:
    pairs = [(line.step, getattr(line, field)) for line in run.log]
    return tuple(Point(step, value) for step, value in pairs if value is not None)
