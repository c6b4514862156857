"""What the decodes of a stage say in a sentence: ordinary instances and the hard tail, by confidence and in order.

The task's showcase says which strata and which order these are and what they are called. If a page shows others, the
story is about those.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hardtail.core.tables import percent
from hardtail.measuring.diagnosis.readiness import Right, readiness
from hardtail.measuring.statistics import Interval, mcnemar, wilson
from hardtail.show.failures import failures
from hardtail.show.stages import Decoder, Stage
from hardtail.show.words import stratum_words
from hardtail.study.claims.evidence import UNLEARNED, gate_of
from hardtail.tasks.base import Task
from hardtail.traces.commits import wrong_cells

CONFIDENCE = "top1"
CLEARLY = 0.02
"""The sentence says "but only" if the hard share is lower than the ordinary one by more than this."""
SIGNIFICANT = 0.05
"""Two ways of decoding differ if McNemar's exact test gives less than this."""


class Side(NamedTuple):
    """One of the two strata or of the two ways of decoding that are compared."""

    name: str
    words: str


class Phrase(NamedTuple):
    """A piece of the sentence; `way` is the index of the decoding that its figure is about, or None."""

    text: str
    way: int | None = None


@dataclass(frozen=True)
class Score:
    """How many instances of a stratum a model solves in one way."""

    stratum: int
    way: int
    right: int
    n: int
    interval: Interval

    @property
    def text(self) -> str:
        return percent(self.right / self.n)


@dataclass(frozen=True)
class Told:
    """One model of the story."""

    name: str
    learned: bool
    """False if it reaches what `gate_of` asks of its task in no way of decoding: it is listed, but decides nothing."""
    scores: tuple[Score, ...]
    decoders: tuple[int | None, ...]
    """Its place among the stage's decoders, by way."""

    def score(self, stratum: int, way: int) -> Score | None:
        return next((one for one in self.scores if (one.stratum, one.way) == (stratum, way)), None)


class RightCommits(NamedTuple):
    """Commits of one kind, and how many of them are right."""

    words: str
    right: int
    n: int


@dataclass(frozen=True)
class Story:
    """A stage in one sentence and one picture, and the problem that shows it best."""

    task: str
    sentence: tuple[Phrase, ...]
    strata: tuple[Side, ...]
    """Ordinary and hard, or the only one."""
    ways: tuple[Side, ...]
    """By confidence and in order, or the only one."""
    models: tuple[Told, ...]
    """The one that the sentence is about first."""
    gain: float
    """The share of hard instances that only the second way solves, less those that only the first solves; 0 if this may
    be chance."""
    mechanism: tuple[RightCommits, ...]
    """How many hard commits of the first way in cells that wait for others are right, by what they were based on."""
    problem: int | None
    """A problem of the stage that the first way fails and, if there is one, the second way solves."""

    @property
    def text(self) -> str:
        return "".join(phrase.text for phrase in self.sentence)


def story(stage: Stage) -> Story:
    """The story of a stage, about the model for which the way of decoding makes the largest difference."""
    strata, ways = _strata(stage), _ways(stage)
    models = [_told(stage, name, strata, ways) for name in dict.fromkeys(one.model for one in stage.decoders)]
    gains = {one.name: _gain(stage, one, strata[-1]) for one in models}
    models.sort(key=lambda one: (one.learned, abs(gains[one.name]), -_hard(one)), reverse=True)
    if not models[0].learned:
        models.sort(key=_ordinary, reverse=True)
    first = models[0]
    sentence = _sentence(stage, first, strata, ways, gains[first.name])
    problem = _telling_problem(stage, first, strata[-1])
    gain = gains[first.name] if first.learned else 0.0
    told = _mechanism(stage, first, strata[-1])
    return Story(stage.task.name, sentence, strata, ways, tuple(models), gain, told, problem)


# -- what is compared -------------------------------------------------------------------------------------------------


def _strata(stage: Stage) -> tuple[Side, ...]:
    """Ordinary and hard instances; the only stratum if there is one."""
    decoded = list(dict.fromkeys(stage.stratum_P.tolist()))
    case, problems = stage.task.showcase(), stage.task.words.problems
    hard = case.hard if case.hard in decoded else decoded[-1]
    ordinary = next((name for name in (case.ordinary, "natural", *decoded) if name in decoded and name != hard), None)
    tail = Side(hard, _named(stage.task, hard))
    if ordinary is None:
        return (tail,)
    easy = f"ordinary {problems}" if ordinary in (case.ordinary, "natural") else _named(stage.task, ordinary)
    return Side(ordinary, easy), tail


def _named(task: Task, stratum: str) -> str:
    if stratum in ("", "natural"):
        return task.words.problems
    return task.problems_of(stratum) or f"{task.words.problems} with {stratum_words(stratum)}"


def _ways(stage: Stage) -> tuple[Side, ...]:
    """Confidence and the logical order if they were decoded, otherwise the first other policies."""
    decoded, task = list(dict.fromkeys(one.policy for one in stage.decoders)), stage.task
    logical = [name for name in (task.showcase().order, *task.order_names) if name in decoded]
    others = [name for name in decoded if name not in logical]
    first = CONFIDENCE if CONFIDENCE in decoded else (others or logical)[0]
    second = next((name for name in (*logical, *others) if name != first), None)

    def side(policy: str) -> Side:
        unnamed = f"in the order {policy}" if policy in logical else f"under {policy}"
        known = {CONFIDENCE: "by confidence", **task.words.orders}
        return Side(policy, known.get(policy, unnamed))

    return (side(first),) if second is None else (side(first), side(second))


def _told(stage: Stage, model: str, strata: tuple[Side, ...], ways: tuple[Side, ...]) -> Told:
    places = {one.policy: place for place, one in enumerate(stage.decoders) if one.model == model}
    found = tuple(places.get(way.name) for way in ways)
    scores = tuple(
        score
        for at, stratum in enumerate(strata)
        for way, place in enumerate(found)
        if place is not None and (score := _score(stage.decoders[place], stratum.name, at, way)) is not None
    )
    gate, ordinary = gate_of(stage.task.name), strata[0].name if len(strata) > 1 else None
    decoded = [stage.decoders[place] for place in found if place is not None]
    shares = [_share(one, ordinary, gate.metric) for one in decoded if ordinary in one.stratum_N]
    return Told(model, gate.bars_share(max(shares, default=None)) != UNLEARNED, scores, found)


def _share(decoder: Decoder, stratum: str | None, metric: str) -> float:
    """How much of a stratum is right, in answers or in cells."""
    held_N, scored_NA = decoder.stratum_N == stratum, decoder.trace.instances.scored_NA
    if metric == "exact_match":
        return float(decoder.trace.exact_N[held_N].mean())
    return 1 - float(wrong_cells(decoder.trace)[held_N].sum() / max(int(scored_NA[held_N].sum()), 1))


def _score(decoder: Decoder, stratum: str, at: int, way: int) -> Score | None:
    exact_K = decoder.trace.exact_N[decoder.stratum_N == stratum]
    right, n = int(exact_K.sum()), len(exact_K)
    return Score(at, way, right, n, wilson(right, n)) if n else None


def _ordinary(told: Told) -> float:
    """The share of ordinary instances that a model solves in its best way."""
    return max((one.right / one.n for one in told.scores if one.stratum == 0), default=0.0)


def _hard(told: Told) -> float:
    """The lowest share of hard instances that a model solves."""
    last = max((one.stratum for one in told.scores), default=0)
    return min((one.right / one.n for one in told.scores if one.stratum == last), default=1.0)


def _gain(stage: Stage, told: Told, hard: Side) -> float:
    """By how much the second way is better on the same hard instances, as a share; 0 if this may be chance."""
    if None in told.decoders or len(told.decoders) < 2:
        return 0.0
    exact = []
    for place in told.decoders:
        assert place is not None
        decoder, row_N = stage.decoders[place], stage.rows[place]
        inside_N = decoder.stratum_N == hard.name
        exact.append(dict(zip(row_N[inside_N].tolist(), decoder.trace.exact_N[inside_N].tolist(), strict=True)))
    both = sorted(exact[0].keys() & exact[1].keys())
    first, second = (np.array([held[problem] for problem in both], dtype=np.bool_) for held in exact)
    pairs = mcnemar(first, second)
    return (pairs.only_second - pairs.only_first) / len(both) if both and pairs.p < SIGNIFICANT else 0.0


def _mechanism(stage: Stage, told: Told, hard: Side) -> tuple[RightCommits, ...]:
    """Whether commits were right, by whether all they wait for was known and right; empty if nothing waits."""
    place = told.decoders[0]
    if place is None or stage.problems.parents_NAE is None:
        return ()
    decoder = stage.decoders[place]
    inside_N = decoder.stratum_N == hard.name
    if not inside_N.any():
        return ()
    found = readiness(stage.task, decoder.trace.take(inside_N))
    if found.ready is None or not found.dependent:
        return ()

    def commits(words: str, held: Right) -> RightCommits:
        return RightCommits(words, held.right, held.commits)

    return (
        commits("where all that the cell waits for was known and right", found.ready.prerequisites_right),
        commits("where it was known but wrong", found.ready.prerequisite_wrong),
        commits("where some of it was still hidden", found.accuracy["unready"]),
    )


# -- the sentence -----------------------------------------------------------------------------------------------------


def _sentence(
    stage: Stage, told: Told, strata: tuple[Side, ...], ways: tuple[Side, ...], gain: float
) -> tuple[Phrase, ...]:
    if not told.learned:
        best = max((one for one in told.scores if one.stratum == 0), key=lambda one: one.right / one.n)
        whom = told.name if len({one.model for one in stage.decoders}) == 1 else f"the best of them, {told.name},"
        none = f"No model here has learned {stage.task.name}: {whom} solves "
        return (Phrase(none), Phrase(best.text, best.way), Phrase(f" of {strata[0].words}."))
    hard = [told.score(len(strata) - 1, way) for way in range(len(ways))]
    easy = told.score(0, 0) if len(strata) > 1 else None
    first, second = hard[0], hard[-1] if len(ways) > 1 else None
    name, tail = told.name, strata[-1].words
    if first is None:  # this model was decoded in the other way only
        first, second, ways, easy = second, None, ways[1:], None
    if first is None:
        return (Phrase(f"{name} was not decoded on {tail}."),)
    begun: tuple[Phrase, ...] = (Phrase(f"{_capital(ways[0].words)}, {name} solves "),)
    if easy is not None:
        worse = first.right / first.n < easy.right / easy.n - CLEARLY
        joined = " and " if not worse else " but only " if first.right else " but "
        begun += (Phrase(easy.text, 0), Phrase(f" of {strata[0].words}{joined}"))
    share, of = (first.text, "of") if first.right else ("none", "of the")
    begun += (Phrase(share, first.way), Phrase(f" {of} {tail}"))
    if second is None:
        return (*begun, Phrase("."))
    other = ways[1].words
    if gain > 0:
        return (*begun, Phrase(f". With the same weights, {other}, it solves "), Phrase(second.text, 1), Phrase("."))
    if gain < 0:
        return (*begun, Phrase(f". {_capital(other)}, it solves fewer: "), Phrase(second.text, 1), Phrase("."))
    if not first.right and not second.right:
        return (*begun, Phrase(f". {_capital(other)}, it solves none of them either."))
    if second.right * first.n == first.right * second.n:
        return (*begun, Phrase(f". {_capital(other)}, it solves as many: "), Phrase(second.text, 1), Phrase("."))
    chance = f"; with {first.n:,} {stage.task.words.problems} this may be chance."
    return (*begun, Phrase(f". {_capital(other)}, it solves "), Phrase(second.text, 1), Phrase(chance))


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


# -- the problem that shows it ----------------------------------------------------------------------------------------


def _telling_problem(stage: Stage, told: Told, hard: Side) -> int | None:
    """A failure of the first way: on the hard tail, solved by the second way, a sure commit that did not wait."""
    first, second = told.decoders[0], told.decoders[-1]
    if first is None:
        return None
    decoder, row_N = stage.decoders[first], stage.rows[first]
    solved: set[int] = set()
    if second is not None and second != first:
        solved = set(stage.rows[second][stage.decoders[second].trace.exact_N].tolist())
    found = failures(stage.task, decoder.trace)
    best = max(
        found,
        key=lambda one: (
            int(row_N[one.row]) in solved,
            decoder.stratum_N[one.row] == hard.name,
            one.waiting,
            round(one.prob or 0.0, 2),
            one.step > 0,  # there is something to see before it
            -one.row,
        ),
        default=None,
    )
    return None if best is None else int(row_N[best.row])
