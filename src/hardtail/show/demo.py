"""`hardtail demo`: the shipped models on easy and hard sums next to the paper's figures, and one failure drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hardtail import zoo
from hardtail.core.tables import Cell, Table
from hardtail.core.types import Trace
from hardtail.measuring.statistics import wilson
from hardtail.measuring.subject import load_subject
from hardtail.show.sources import DecodePlan, decoded, load_models
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.tasks.addition.commits import wrong_commits

if TYPE_CHECKING:
    from rich.console import RenderableType

STRATA = ("natural", "chain>=12", "chain>=28")
"""From easy to hard."""
POLICIES = {"top1": "confidence", "lsb": "lsb"}
SUMS = 100
"""Sums per stratum."""
RECORDED_SUMS = 500
"""The zoo's own accuracies are over at least this many sums per stratum (`hardtail study`)."""


@dataclass(frozen=True)
class Shown:
    """One decode of the demonstration."""

    model: str
    stratum: str
    policy: str
    trace: Trace

    @property
    def interval(self) -> tuple[float, float]:
        return wilson(int(self.trace.exact_N.sum()), len(self.trace))


def decodes() -> int:
    """How many instances `decode_all` decodes."""
    return len(_models()) * len(STRATA) * len(POLICIES) * SUMS


def decode_all(progress: Callable[[int], None]) -> list[Shown]:
    """Decode every shipped model on every stratum in both orders."""
    plan = DecodePlan(tuple(POLICIES), STRATA, SUMS, kind=None, seed=None, device="cpu", batch=None)
    parts: dict[tuple[str, str, str], list[Trace]] = {}
    for part in decoded(load_models([zoo.PREFIX + name for name in _models()], plan), plan, progress):
        parts.setdefault((part.about["model"], part.about["stratum"], part.about["policy"]), []).append(part)
    return [Shown(*key, Trace.concat(held)) for key, held in parts.items()]


def table(shown: Sequence[Shown]) -> Table:
    """Our accuracy with its interval next to the paper's figure, if it prints one."""
    rows: list[tuple[Cell, ...]] = []
    at = {(item.model, item.stratum, item.policy): item for item in shown}
    for model in dict.fromkeys(item.model for item in shown):
        for stratum in STRATA:
            cells: list[Cell] = []
            for policy in POLICIES:
                item = at[model, stratum, policy]
                low, high = item.interval
                cells += [f"{item.trace.exact_N.mean():.2f} [{low:.2f}, {high:.2f}]", _paper(model, stratum, policy)]
            rows.append((model, stratum, *cells))
    columns = ("model", "stratum", "confidence", "paper", "LSB-first", "paper ")
    return Table(f"exact match on 32-digit addition, {SUMS} sums each (95 % interval)", columns, tuple(rows))


def compared_with_records(shown: Sequence[Shown]) -> str:
    """Name the recorded accuracies of the same weights, over more sums, that an interval of the table excludes."""
    listed = {model.name: model.accuracy for model in zoo.models()}
    outside = []
    for item in shown:
        recorded = listed[item.model].get(item.stratum, {}).get(item.policy)
        low, high = item.interval
        if recorded is not None and not low <= recorded <= high:
            outside.append(f"{item.model} {recorded:.3f} on {item.stratum} under {POLICIES[item.policy]}")
    found = f"outside the intervals above: {'; '.join(outside)}" if outside else "all within the intervals above"
    return f"Accuracies recorded for the same weights on {RECORDED_SUMS} sums or more (`hardtail zoo`): {found}."


def typical_failure(shown: Sequence[Shown]) -> "tuple[str, RenderableType] | None":
    """Describe and draw the typical wrong commit under confidence of the model that fails most; None if none fails.

    It is at the cell directly above the chain if there is such a failure, and the most confident of those.
    """
    hard = [item for item in shown if item.policy == "top1" and item.stratum == STRATA[-1]]
    item = max(hard, key=lambda item: int((~item.trace.exact_N).sum()), default=None)
    if item is None or item.trace.exact_N.all():
        return None
    task, trace = load_subject(zoo.PREFIX + item.model).task, item.trace
    wrong = wrong_commits(task, trace).lowest_index
    examples = [wrong.example(place) for place in range(len(wrong))]
    above_chain = [one for one in examples if one.at_chain_msb]
    share, one = len(above_chain) / len(wrong), max(above_chain or examples, key=lambda one: one.prob)
    sign = task.vocabulary.decode(trace.answer_NA[one.instance, one.cell])
    off = (
        f"{sign!r}, which is not a digit," if one.difference is None else f"a digit that is off by {one.difference:+d}"
    )
    sentence = (
        f"{item.model} under confidence fails on {len(wrong)} of {len(trace)} sums with {item.stratum}; "
        f"{share:.0%} of the most significant wrong digits are the one directly above the chain. "
        f"Below: at step {one.step + 1} of {trace.answer_NA.shape[1]} it wrote {off} in a cell of role {one.role}, "
        f"with probability {one.prob:.3f}, while {one.masked or 0:.0%} of the chain that it waits for was still hidden."
    )
    return sentence, task.picture(trace.instances, one.instance, trace.answer_NA[one.instance])


def _models() -> list[str]:
    """The shipped models that were measured on the hard stratum."""
    return [model.name for model in zoo.models() if STRATA[-1] in model.accuracy]


def _paper(model: str, stratum: str, policy: str) -> Cell:
    scheme = model.removeprefix("addition-").removesuffix("-paper")
    printed = printed_accuracy().get(("addition", scheme, policy), {}).get(stratum)
    return f"≥ {printed}" if printed is not None and stratum == "natural" else printed
