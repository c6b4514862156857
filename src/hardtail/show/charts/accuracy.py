"""Accuracy by stratum and policy: of recorded runs next to what the paper prints, and of decodes."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from hardtail.core import records
from hardtail.measuring.statistics import wilson
from hardtail.show.charts.chart import SHARE, Axis, Chart, Line, Point, Series, described
from hardtail.show.charts.legend import arm_of_run, arm_series, decoder_series, variant_of
from hardtail.show.stages import Decoder, Stage
from hardtail.study.claims.evidence import Estimate, Value, repeats_the_paper
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.study.runs import Run
from hardtail.tasks.named import kind_named

HIDDEN_AT_FIRST = ("max-logit", "margin", "entropy", "random")
"""Orders other than confidence and logic, which the page shows only on request."""


def recorded_accuracy(task: str, runs: Sequence[Run], kind: str, at_first: Collection[str] = ()) -> Chart:
    """Exact match of one kind of weights by stratum: the mean over seeds with its interval.

    A run that never learned the task is not a seed of the mean; it has a series of its own.
    """
    held: dict[tuple[str, str], dict[str, dict[int, records.Accuracy]]] = {}
    one_of = {arm_of_run(run, kind): run for run in runs}
    for run in runs:
        for record in run.accuracies:
            if record.checkpoint == kind:
                by_stratum = held.setdefault((arm_of_run(run, kind), record.policy), {})
                by_stratum.setdefault(record.stratum, {})[run.seed] = record
    strata = _in_order(task, dict.fromkeys(stratum for of in held.values() for stratum in of))

    def lines() -> Iterator[tuple[Series, Line]]:
        for (arm, policy), by_stratum in held.items():
            shown = () if policy in HIDDEN_AT_FIRST else at_first
            ours = [_mean(strata.index(stratum), by_seed.values()) for stratum, by_seed in by_stratum.items()]
            series = arm_series(one_of[arm], policy, shown, kind=kind, ending=f" · {policy}")
            yield replace(series, seeds=_seeds(by_stratum, strata)), Line("", tuple(sorted(ours)))
            printed = _printed(one_of[arm], policy)
            theirs = [Point(strata.index(stratum), printed[stratum]) for stratum in by_stratum if stratum in printed]
            yield Series(f"{series.name}, paper", series.hue, policy, printed=True), Line("", tuple(theirs))

    x, weights = Axis("stratum", strata), kind.replace("_", " ")
    return described("recorded-accuracy", task, x, SHARE, lines(), of=weights, marks=True)


def _in_order(task: str, strata: Iterable[str]) -> tuple[str, ...]:
    """Strata as the task lists them, from easy to hard; those that it does not list come last."""
    kind = kind_named(task)
    known = {name: place for place, name in enumerate(kind.preset().strata() if kind else ())}
    return tuple(sorted(strata, key=lambda name: known.get(name, len(known))))


def _seeds(by_stratum: Mapping[str, Mapping[int, records.Accuracy]], strata: Sequence[str]) -> tuple[Line, ...]:
    """Every seed by itself, if there are several."""
    seeds = sorted({seed for by_seed in by_stratum.values() for seed in by_seed})
    points = {
        seed: [Point(strata.index(name), held[seed].exact_match) for name, held in by_stratum.items() if seed in held]
        for seed in seeds
    }
    return tuple(Line(f"seed {seed}", tuple(sorted(points[seed]))) for seed in seeds) if len(seeds) > 1 else ()


def _mean(place: int, by_seed: Iterable[records.Accuracy]) -> Point:
    """The mean over seeds and its interval, as in the ledger."""
    found = Estimate.of([Value(record.exact_match, record.n) for record in by_seed], share=True)
    return Point(place, found.mean, found.low, found.high)


def _printed(run: Run, policy: str) -> dict[str, float]:
    """What the paper prints about the arm of a run, by stratum."""
    asked = run.task, run.scheme, policy
    return printed_accuracy().get(asked, {}) if repeats_the_paper(variant_of(run.arm)) else {}


def decoded_accuracy(stage: Stage) -> Chart:
    """Exact match of the decodes of a stage by stratum."""
    strata = tuple(dict.fromkeys(stage.stratum_P.tolist()))
    lines = ((series, Line("", _shares(decoder, strata))) for decoder, series in decoder_series(stage))
    return described("decoded-accuracy", stage.task.name, Axis("stratum", strata), SHARE, lines, marks=True)


def _shares(decoder: Decoder, strata: Sequence[str]) -> tuple[Point, ...]:
    points = []
    for stratum, n in Counter(decoder.stratum_N.tolist()).items():
        exact = int(decoder.trace.exact_N[decoder.stratum_N == stratum].sum())
        points.append(Point(strata.index(stratum), exact / n, *wilson(exact, n)))
    return tuple(points)
