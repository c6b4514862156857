"""The plots of recorded runs: how training went, what came of it by stratum and policy, which mask states it saw.

Shapes: K hidden counts, R logical ranks.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from hardtail.core.records import Accuracy
from hardtail.measuring.diagnosis.coverage import Histogram
from hardtail.measuring.statistics import wilson
from hardtail.show.page.charts import SHARE, Axis, Chart, Line, Point, SeriesList
from hardtail.show.page.records import mean_accuracy
from hardtail.study.claims.evidence import arm_of
from hardtail.study.claims.figures import SCHEMES
from hardtail.study.runs import Run

STEPS = Axis("training step", low=0.0)
MOST_POINTS = 400
"""A curve is thinned to about so many points."""
BESIDE = ("max-logit", "margin", "entropy")
"""Other readings of confidence: plotted, but shown only when asked for."""


def run_charts(runs: Sequence[Run], asked: Collection[str] = ()) -> list[Chart]:
    """Every plot that the runs have data for, task by task.

    Shown at first are the arms of runs `asked` for by name and those that the ledger reads; all, where there are none.
    """
    by_task: dict[str, list[Run]] = {}
    for run in runs:
        by_task.setdefault(run.task, []).append(run)
    found = []
    for task, held in by_task.items():
        at_first = _at_first(task, held, asked)
        for plots in (_training, _accuracy, _readiness, _coverage):
            found += plots(task, held, at_first)
    return [chart for chart in found if chart.series]


def _at_first(task: str, runs: Sequence[Run], asked: Collection[str]) -> set[str]:
    arms = {run.arm: run.entry.arm for run in runs}
    read = {arm_of(task, scheme, "release", arms.values()) for scheme in SCHEMES}
    return {run.arm for run in runs if run.name in asked or arms[run.arm] in read} or set(arms)


def hue(arm: str) -> str:
    """The training scheme of an arm: its first word."""
    return arm.partition("-")[0]


# -- training ---------------------------------------------------------------------------------------------------------


def _training(task: str, runs: Sequence[Run], at_first: Collection[str]) -> list[Chart]:
    def over_steps(keys: Mapping[str, str]) -> SeriesList:
        found = SeriesList()
        for style, key in keys.items():
            for run in runs:
                name = run.arm if len(keys) == 1 else f"{run.arm}, {style}"
                stroke = f"{style} {run.arm.partition('-')[2]}"  # arms of one scheme differ in what follows its name
                line = Line(f"seed {run.seed}", _over_steps(run, key))
                found.add(name, hue(run.arm), stroke, line, shown=run.arm in at_first)
        return found

    return [
        Chart(
            task,
            "training",
            "Training loss",
            "Of single batches, by the scheme's own weighting: curves of different schemes are not on one scale.",
            STEPS,
            Axis("loss", low=0.0),
            over_steps({"loss": "loss"}).series(),
        ),
        Chart(
            task,
            "training",
            "Accuracy on natural instances",
            "Exact match by confidence, EMA weights where the recipe has them.",
            STEPS,
            SHARE,
            over_steps({"confidence": "natural"}).series(),
        ),
        Chart(
            task,
            "training",
            "Accuracy on the hard tail",
            "The stratum that the recipe watches, decoded by confidence and in logical order.",
            STEPS,
            SHARE,
            over_steps({"confidence": "hard", "logical order": "hard_logical"}).series(),
        ),
        Chart(
            task,
            "training",
            "Probe loss",
            "Mean negative log-likelihood of the gold tokens with every cell hidden: what checkpoints are chosen by.",
            STEPS,
            Axis("nats a cell", low=0.0),
            over_steps({"probe": "probe_nll"}).series(),
        ),
        Chart(
            task,
            "training",
            "Answer cells that are guessed",
            "Cells of the probe with over half of the loss that knowing only how common each token is would have.",
            STEPS,
            Axis("cells", low=0.0),
            over_steps({"probe": "probe_guessed"}).series(),
        ),
    ]


def _over_steps(run: Run, key: str) -> list[Point]:
    pairs = [(line.step, getattr(line, key)) for line in run.log]
    points: list[Point] = [(step, y, None, None) for step, y in pairs if y is not None]
    every = max(1, len(points) // MOST_POINTS)
    return points[::every] if every == 1 else [*points[::every], points[-1]]


# -- accuracy ---------------------------------------------------------------------------------------------------------


def _accuracy(task: str, runs: Sequence[Run], at_first: Collection[str]) -> list[Chart]:
    """Exact match by stratum: one plot for each kind of weights, the mean over seeds with its interval."""
    held: dict[str, dict[tuple[str, str], dict[str, dict[int, Accuracy]]]] = {}
    for run in runs:
        for record in run.accuracies:
            by_decoder = held.setdefault(str(record.checkpoint), {})
            by_decoder.setdefault((run.arm, record.policy), {}).setdefault(record.stratum, {})[run.seed] = record
    found = []
    for kind, by_decoder in held.items():
        strata = tuple(dict.fromkeys(stratum for of in by_decoder.values() for stratum in of))
        series = SeriesList()
        for (arm, policy), by_stratum in by_decoder.items():
            points = [
                (strata.index(stratum), *mean_accuracy(by_seed.values())) for stratum, by_seed in by_stratum.items()
            ]
            shown = arm in at_first and policy not in BESIDE
            series.add(f"{arm} · {policy}", hue(arm), policy, Line("", sorted(points)), shown=shown)
        found.append(
            Chart(
                task,
                "accuracy",
                f"Accuracy by stratum and policy, {kind.replace('_', ' ')} weights",
                "Exact match; 95 % intervals: Student's over seeds, Wilson's with one seed.",
                Axis("stratum", strata),
                SHARE,
                series.series(),
                marks=True,
            )
        )
    return found


# -- readiness and coverage -------------------------------------------------------------------------------------------

GROUPS = ("free", "ready", "unready")


def _readiness(task: str, runs: Sequence[Run], at_first: Collection[str]) -> list[Chart]:
    premature, right = SeriesList(), SeriesList()
    policies = tuple(dict.fromkeys(record.policy for run in runs for record in run.explained.values()))
    for run in runs:
        for record in run.explained.values():
            policy, found = record.policy, record.readiness
            name, seed = f"{run.arm} · {policy}", f"seed {run.seed}, {record.checkpoint or 'weights'}"
            if (early := found.premature_share_of_dependent) is not None:
                line = Line(seed, [(policies.index(policy), early, None, None)])
                premature.add(run.arm, hue(run.arm), "", line, shown=run.arm in at_first)
            points = []
            for place, group in enumerate(GROUPS):
                right_of = found.accuracy[group]
                if right_of.accuracy is not None:
                    points.append((place, right_of.accuracy, *wilson(right_of.right, right_of.commits)))
            right.add(name, hue(run.arm), policy, Line(seed, points), shown=run.arm in at_first)
    return [
        premature_chart(task, "recorded runs", policies, premature),
        right_chart(task, "recorded runs", right),
    ]


def premature_chart(task: str, of: str, policies: tuple[str, ...], series: SeriesList) -> Chart:
    return Chart(
        task,
        "readiness",
        f"Commits before their prerequisites, {of}",
        "Of the commits in cells that wait for others, those made while some of these were hidden.",
        Axis("decoding order", policies),
        SHARE,
        series.series(),
        marks=True,
    )


def right_chart(task: str, of: str, series: SeriesList) -> Chart:
    return Chart(
        task,
        "readiness",
        f"Right commits by readiness, {of}",
        "Free cells wait for nothing; the others were ready or not when they were committed.",
        Axis("the cell was", GROUPS),
        SHARE,
        series.series(),
        marks=True,
    )


def _coverage(task: str, runs: Sequence[Run], at_first: Collection[str]) -> list[Chart]:
    counts, ranks = SeriesList(), SeriesList()
    for run in runs:
        if run.coverage is None:
            continue
        held, seed = Histogram.of(run.coverage, f"{run.name}/coverage.json"), f"seed {run.seed}"
        trained_K, _ = held.shares()
        points: list[Point] = [(count, float(share), None, None) for count, share in enumerate(trained_K) if share]
        stroke, shown = run.arm.partition("-")[2], run.arm in at_first
        counts.add(run.arm, hue(run.arm), stroke, Line(seed, points), shown=shown)
        ranks.add(run.arm, hue(run.arm), stroke, Line(seed, mean_ranks(held)), shown=shown)
    by_count = Chart(
        task,
        "coverage",
        "Mask states in training",
        "The share of states by the number of hidden cells, on a logarithmic scale.",
        Axis("hidden cells"),
        Axis("share of states", log=True),
        counts.series(),
    )
    return [by_count, rank_chart(task, "Where hidden cells lie, in training", ranks)]


def mean_ranks(held: Histogram) -> list[Point]:
    """The mean logical rank of hidden cells by their number, from 0 (first in the order) to 1 (last)."""
    part_R = np.arange(held.rank_KR.shape[1]) / max(held.rank_KR.shape[1] - 1, 1)
    cells_K = held.rank_KR.sum(axis=1)
    mean_K = held.rank_KR @ part_R / np.maximum(cells_K, 1)
    return [(int(count), float(mean_K[count]), None, None) for count in np.flatnonzero(cells_K) if count]


def rank_chart(task: str, title: str, series: SeriesList) -> Chart:
    return Chart(
        task,
        "coverage",
        title,
        "The mean logical rank of the hidden cells: 0 comes first in the task's order, 1 last. States that decoding "
        "visits and training did not are apart here.",
        Axis("hidden cells"),
        Axis("mean rank", low=0.0, high=1.0),
        series.series(),
    )
