"""The plots of what a page replays: accuracy, readiness and visited states of its own decodes.

Shapes: N instances, T events, S steps.
"""

import numpy as np

from hardtail.core.types import Array
from hardtail.measuring.diagnosis.coverage import visits
from hardtail.measuring.diagnosis.readiness import readiness
from hardtail.measuring.statistics import wilson
from hardtail.show.page.charts import SHARE, Axis, Chart, Line, Point, SeriesList
from hardtail.show.page.curves import GROUPS, mean_ranks, premature_chart, rank_chart, right_chart
from hardtail.show.page.stages import Decoder, Stage, ready_events, summary

PARTS = 20
"""Portions of a decode, from its first to its last step, in which commits are counted."""


def decode_charts(stage: Stage) -> list[Chart]:
    """What the decoders of a stage did, in numbers."""
    charts = [_accuracy(stage), *_along_the_decode(stage), *_readiness(stage), _ranks(stage)]
    return [chart for chart in charts if chart.series]


def _accuracy(stage: Stage) -> Chart:
    found, lines = SeriesList(), summary(stage)
    strata = tuple(dict.fromkeys(stage.stratum_P.tolist()))
    for decoder in stage.decoders:
        points: list[Point] = [
            (strata.index(line["stratum"]), line["exact"] / line["n"], *wilson(line["exact"], line["n"]))
            for line in lines
            if line["decoder"] is decoder
        ]
        found.add(*_legend(decoder), Line("", points))
    return Chart(
        stage.task.name,
        "accuracy",
        "Accuracy of the decodes on this page",
        "Exact match by stratum; Wilson's 95 % intervals.",
        Axis("stratum", strata),
        SHARE,
        found.series(),
        marks=True,
    )


def _along_the_decode(stage: Stage) -> list[Chart]:
    unready, wrong = SeriesList(), SeriesList()
    for decoder in stage.decoders:
        wrong.add(*_legend(decoder), Line("", _along(decoder, decoder.trace.wrong_NT)))
        if stage.problems.parents_NAE is not None:
            unready.add(*_legend(decoder), Line("", _along(decoder, ~ready_events(stage.task, decoder.trace))))
    along = Axis("part of the decode", low=0.0, high=1.0)
    return [
        Chart(
            stage.task.name,
            "readiness",
            "Unready commits along the decode",
            "The share of commits made before all prerequisites were revealed.",
            along,
            SHARE,
            unready.series(),
        ),
        Chart(
            stage.task.name,
            "readiness",
            "Wrong commits along the decode",
            "The share of commits whose token is not the gold one.",
            along,
            Axis("share", low=0.0),
            wrong.series(),
        ),
    ]


def _readiness(stage: Stage) -> list[Chart]:
    premature, right = SeriesList(), SeriesList()
    policies = tuple(dict.fromkeys(decoder.policy for decoder in stage.decoders))
    for decoder in stage.decoders if stage.problems.parents_NAE is not None else ():
        found = readiness(stage.task, decoder.trace)
        if (early := found.premature_share_of_dependent) is not None:
            at = policies.index(decoder.policy)
            interval = wilson(found.premature, found.dependent)
            premature.add(decoder.model, decoder.model, "", Line(decoder.policy, [(at, early, *interval)]))
        of = [(place, found.accuracy[group]) for place, group in enumerate(GROUPS) if found.accuracy[group].commits]
        shares: list[Point] = [
            (place, group.right / group.commits, *wilson(group.right, group.commits)) for place, group in of
        ]
        right.add(*_legend(decoder), Line("", shares))
    return [
        premature_chart(stage.task.name, "this page", policies, premature),
        right_chart(stage.task.name, "this page", right),
    ]


def _ranks(stage: Stage) -> Chart:
    found = SeriesList()
    if order := next((name for name in stage.task.order_names if name in stage.problems.orders), None):
        for decoder in stage.decoders:
            found.add(*_legend(decoder), Line("", mean_ranks(visits(decoder.trace, order))))
    return rank_chart(stage.task.name, "Where hidden cells lie, in these decodes", found)


def _legend(decoder: Decoder) -> tuple[str, str, str]:
    """Name, hue and style of a decoder's series."""
    return decoder.name, decoder.model, decoder.policy


def _along(decoder: Decoder, marked_NT: Array) -> list[Point]:
    """The share of commits that are marked, by portions of the decode's steps."""
    trace = decoder.trace
    last_N1 = np.max(trace.step_NT, axis=1, where=trace.happened_NT, initial=0)[:, None]
    part_NT = np.minimum(trace.step_NT.astype(np.int32) * PARTS // (last_N1 + 1), PARTS - 1)
    commit_NT = trace.commit_NT
    all_P = np.bincount(part_NT[commit_NT], minlength=PARTS)
    marked_P = np.bincount(part_NT[commit_NT & marked_NT], minlength=PARTS)
    return [
        ((part + 0.5) / PARTS, float(marked_P[part] / all_P[part]), None, None) for part in range(PARTS) if all_P[part]
    ]
