"""`hardtail demo`: the shipped models of one task on ordinary and hard instances, and one failure drawn.

The task's showcase says what is decoded: two strata, each by confidence and in the task's logical order.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardtail import zoo
from hardtail.core.pretrained import ZOO
from hardtail.core.tables import Cell, Table
from hardtail.core.types import Trace
from hardtail.measuring.statistics import wilson
from hardtail.show.charts.colours import scheme_in
from hardtail.show.failures import failures
from hardtail.show.sources import decoded, load_models
from hardtail.show.stages import Stage, stages
from hardtail.show.story import CONFIDENCE, Story, story
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.tasks.base import Task
from hardtail.tasks.named import make_task, task_of
from hardtail.tasks.parts import Showcase

if TYPE_CHECKING:
    from rich.console import RenderableType

INSTANCES = 100
"""Instances of each stratum."""
RECORDED_INSTANCES = 500
"""The zoo's own accuracies are over at least this many instances of each stratum (`hardtail study`)."""


@dataclass(frozen=True)
class Shown:
    """One decode of the demonstration."""

    model: str
    stratum: str
    policy: str
    trace: Trace

    @property
    def right(self) -> int:
        return int(self.trace.exact_N.sum())

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(self.right, len(self.trace))


def decodes() -> int:
    """How many instances `decode_all` decodes."""
    return len(_models()) * len(_strata()) * len(_policies()) * INSTANCES


def decode_all(progress: Callable[[int], None]) -> list[Shown]:
    """Decode every shipped model of the task on both strata in both orders."""
    models = load_models([ZOO + name for name in _models()])
    parts: dict[tuple[str, str, str], list[Trace]] = {}
    for part in decoded(models, INSTANCES, _policies(), _strata(), progress=progress):
        of = part.source
        parts.setdefault((of.model, of.stratum, of.policy), []).append(part)
    return [Shown(*key, Trace.concat(held)) for key, held in parts.items()]


def table(shown: Sequence[Shown]) -> Table:
    """How many instances each model solves, next to the paper's figure if it prints one."""
    rows: list[tuple[Cell, ...]] = []
    at = {(item.model, item.stratum, item.policy): item for item in shown}
    policies = list(dict.fromkeys(item.policy for item in shown))
    for model, stratum in dict.fromkeys((item.model, item.stratum) for item in shown):
        cells: list[Cell] = []
        for policy in policies:
            item = at[model, stratum, policy]
            cells += [f"{item.right} of {len(item.trace)}", _paper(model, stratum, policy)]
        rows.append((model, stratum, *cells))
    problems = shown_task().words.problems.capitalize()
    heads = (f"{_called(policy)}{place * ' '}" for place, policy in enumerate(policies))
    columns = [name for place, head in enumerate(heads) for name in (head, "paper" + place * " ")]
    return Table(f"{problems} solved by the shipped models", ("model", "stratum", *columns), tuple(rows))


def compared_with_records(shown: Sequence[Shown]) -> str:
    """Where counts differ clearly from what is recorded for the same weights on more instances: both numbers.

    Clearly means that the recorded share is outside the 95 % interval of the count. The instances here are among the
    recorded ones, so how often that happens is no test.
    """
    listed = {model.name: model.accuracy for model in zoo.models()}
    compared, outside = 0, []
    for item in shown:
        recorded = listed[item.model].get(item.stratum, {}).get(item.policy)
        if recorded is None:
            continue
        compared += 1
        low, high = item.interval
        if not low <= recorded <= high:
            here = f"{item.right} of {len(item.trace)} here, {100 * recorded:.1f} % there"
            outside.append(f"{item.model}, {item.stratum}, {_called(item.policy)}: {here}")
    said = (
        f"{compared - len(outside)} of {compared} counts are close to those of the same weights on "
        f"{RECORDED_INSTANCES} or more {shown_task().words.problems} (`hardtail zoo`)"
    )
    return f"{said}; the other{'s' * (len(outside) > 1)}: {'; '.join(outside)}." if outside else f"{said}."


def look_table(looks: Sequence[Trace]) -> Table:
    """How many problems of other tasks the recorded decodes solved."""
    ends: dict[tuple[str, str, str], dict[bool, Cell]] = {}
    for trace in looks:
        of, right = trace.source, f"{int(trace.exact_N.sum())} of {len(trace)}"
        key = (task_of(trace.about, "a recorded decode").name, of.model, of.stratum)
        ends.setdefault(key, {})[of.policy == CONFIDENCE] = right
    rows = tuple((*key, end[True], end[False]) for key, end in ends.items())
    columns = ("task", "model", "stratum", "by confidence", "in logical order")
    return Table("Decodes of other tasks, recorded earlier, that the page replays", columns, rows)


def told(shown: Sequence[Shown]) -> tuple[Story, Stage]:
    """The most telling story of what was decoded, as on the page."""
    found = [(story(stage), stage) for stage in stages(item.trace for item in shown)]
    return max(found, key=lambda held: abs(held[0].gain))


def failure(found: Story, stage: Stage) -> "tuple[str, RenderableType] | None":
    """Describe and draw the story's failure; None if nothing fails."""
    place = found.models[0].decoders[0]
    if place is None or found.problem is None:
        return None
    trace, row_N = stage.decoders[place].trace, stage.rows[place]
    one = next(one for one in failures(stage.task, trace) if row_N[one.row] == found.problem)
    return one.sentence, stage.task.picture(trace.instances, one.row, trace.answer_NA[one.row])


def shown_task() -> Task:
    """The task with the most shipped models."""
    ((name, _),) = Counter(model.task for model in zoo.models()).most_common(1)
    return make_task(name)


def _showcase() -> Showcase:
    return shown_task().showcase()


def _strata() -> tuple[str, str]:
    return _showcase().ordinary, _showcase().hard


def _policies() -> tuple[str, str]:
    return CONFIDENCE, _showcase().order


def _called(policy: str) -> str:
    return "by confidence" if policy == CONFIDENCE else shown_task().words.orders.get(policy, policy)


def _models() -> list[str]:
    return [model.name for model in zoo.models() if model.task == shown_task().name]


def _paper(model: str, stratum: str, policy: str) -> Cell:
    printed = printed_accuracy().get((shown_task().name, scheme_in(model) or "", policy), {}).get(stratum)
    return f"≥ {printed}" if printed is not None and stratum == _showcase().ordinary else printed
