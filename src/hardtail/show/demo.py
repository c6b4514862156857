"""`hardtail demo`: the shipped models on easy and hard sums next to the paper's figures, and one failure drawn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from hardtail import zoo
from hardtail.core.tables import Cell, Table
from hardtail.core.types import Trace
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import chosen_policies, measured_instances, traced
from hardtail.measuring.statistics import wilson
from hardtail.measuring.subject import load_subject
from hardtail.study.claims.ledger import printed_accuracy
from hardtail.tasks.addition.commits import NO_DIGIT, WrongCommits, wrong_commits
from hardtail.tasks.addition.solver import ROLES
from hardtail.tasks.base import Task

if TYPE_CHECKING:
    from rich.console import RenderableType

STRATA = ("natural", "chain>=12", "chain>=28")
"""From easy to hard."""
POLICIES = {"top1": "confidence", "lsb": "lsb"}
SUMS = 100
"""Sums of each stratum."""
RECORDED_SUMS = 500
"""The fewest sums of a stratum that one of the zoo's own figures is of (`hardtail study`)."""


@dataclass(frozen=True)
class Shown:
    """One decode of the demonstration."""

    model: str
    stratum: str
    policy: str
    trace: Trace


def decodes() -> int:
    """How many instances `decode_all` decodes."""
    return len(_models()) * len(STRATA) * len(POLICIES) * SUMS


def decode_all(progress: Callable[[int], None]) -> list[Shown]:
    """Every such model on every stratum and in both orders."""
    shown: list[Shown] = []
    for name in _models():
        subject = load_subject(zoo.PREFIX + name)
        for stratum in STRATA:
            instances = measured_instances(subject.task, stratum, SUMS, subject.seed)
            for policy, rule in chosen_policies(subject.task, tuple(POLICIES)).items():
                parts = []
                for part in traced(subject, policy, rule, instances, stratum, Decoding()):
                    parts.append(part)
                    progress(len(part))
                shown.append(Shown(name, stratum, policy, Trace.concat(parts)))
    return shown


def table(shown: Sequence[Shown]) -> Table:
    """Ours with its interval, and the paper's figure where it prints one."""
    rows: list[tuple[Cell, ...]] = []
    at = {(item.model, item.stratum, item.policy): item.trace for item in shown}
    for model in dict.fromkeys(item.model for item in shown):
        for stratum in STRATA:
            cells: list[Cell] = []
            for policy in POLICIES:
                exact_N = at[model, stratum, policy].exact_N
                low, high = wilson(int(exact_N.sum()), len(exact_N))
                cells += [f"{exact_N.mean():.2f} [{low:.2f}, {high:.2f}]"]
                cells += [_paper(model, stratum, policy)]
            rows.append((model, stratum, *cells))
    columns = ("model", "stratum", "confidence", "paper", "LSB-first", "paper ")
    return Table(f"exact match on 32-digit addition, {SUMS} sums each (95 % interval)", columns, tuple(rows))


def beside_the_record(shown: Sequence[Shown]) -> str:
    """What is recorded of the same weights on more sums, where an interval of the table leaves it out."""
    listed = {model.name: model.accuracy for model in zoo.models()}
    outside = []
    for item in shown:
        exact_N, there = item.trace.exact_N, listed[item.model].get(item.stratum, {}).get(item.policy)
        low, high = wilson(int(exact_N.sum()), len(exact_N))
        if there is not None and not low <= there <= high:
            outside.append(f"{item.model} {there:.3f} on {item.stratum} under {POLICIES[item.policy]}")
    told = f"outside the intervals above: {'; '.join(outside)}" if outside else "all within the intervals above"
    return f"Recorded of the same weights on {RECORDED_SUMS} sums or more (`hardtail zoo`), {told}."


def typical_failure(shown: Sequence[Shown]) -> "tuple[str, RenderableType] | None":
    """A sentence about the typical wrong commit under confidence, and a drawn example of it; None without failures.

    Of the model that fails most.
    """
    hard = [item for item in shown if item.policy == "top1" and item.stratum == STRATA[-1]]
    item = max(hard, key=lambda item: int((~item.trace.exact_N).sum()), default=None)
    if item is None or item.trace.exact_N.all():
        return None
    task = load_subject(zoo.PREFIX + item.model).task
    wrong = wrong_commits(task, item.trace).lowest_index
    i = int(wrong.row_K[_example(wrong)])
    return _sentence(task, item, wrong), task.picture(item.trace.instances, i, item.trace.answer_NA[i])


def _models() -> list[str]:
    """The shipped models that were measured on the hard stratum."""
    return [model.name for model in zoo.models() if STRATA[-1] in model.accuracy]


def _paper(model: str, stratum: str, policy: str) -> Cell:
    scheme = model.removeprefix("addition-").removesuffix("-paper")
    printed = printed_accuracy().get(("addition", scheme, policy), {}).get(stratum)
    return f"≥ {printed}" if printed is not None and stratum == "natural" else printed


def _example(wrong: WrongCommits) -> int:
    """The failure to draw: at the cell above the chain where there is one, the surest of them."""
    at_msb_K = wrong.at_chain_msb_K if wrong.at_chain_msb_K.any() else np.ones(len(wrong), dtype=np.bool_)
    return int(np.argmax(np.where(at_msb_K, wrong.prob_K, -1.0)))


def _sentence(task: Task, item: Shown, wrong: WrongCommits) -> str:
    place = _example(wrong)
    wrote = f"a digit that is off by {wrong.difference_K[place]:+d}"
    if wrong.difference_K[place] == NO_DIGIT:
        sign = task.vocabulary.decode(item.trace.answer_NA[wrong.row_K[place], wrong.cell_K[place]])
        wrote = f"{sign!r}, which is no digit,"
    share = wrong.at_chain_msb_K.mean()
    return (
        f"{item.model} under confidence fails on {len(wrong)} of {len(item.trace)} sums with {item.stratum}; "
        f"{share:.0%} of the most significant wrong digits are the one directly above the chain. Below: at step "
        f"{wrong.step_K[place] + 1} of {item.trace.answer_NA.shape[1]} it wrote {wrote} in a cell of role "
        f"{ROLES[wrong.role_K[place]]}, with probability {wrong.prob_K[place]:.3f}, while "
        f"{wrong.masked_K[place]:.0%} of the chain that it waits for was still hidden."
    )
