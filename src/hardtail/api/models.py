"""Models: load one, decode it, measure it."""

import reprlib
from collections.abc import Sequence
from pathlib import Path

import torch

from hardtail.api.results import Evaluation
from hardtail.core.errors import HardtailError, on_files
from hardtail.core.fields import spelled
from hardtail.core.types import Instances, Trace
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies, chosen_strata
from hardtail.measuring.evaluate import evaluate_all, records_of, traced
from hardtail.measuring.models import Reading, subject_of
from hardtail.measuring.subject import Kind, Subject
from hardtail.models.precision import Precision
from hardtail.policies.base import Commit, Policy
from hardtail.policies.named import name_of, policy_named
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_given

Given = str | Policy
"""A decoding order: by its name, or as it is."""


@on_files()
def load(
    model: object,
    task: Task | str | None = None,
    *,
    name: str | None = None,
    checkpoint: Kind | None = None,
    device: str | torch.device | None = None,
    precision: Precision = "fp32",
    template: str | None = None,
    trust_remote_code: bool = False,
) -> Subject:
    """A model that can be decoded, measured and explained.

    `model`       a run directory, a .safetensors file, zoo:NAME, hf:FOLDER-OR-NAME, package.module:object, a function
                  or an nn.Module
    `task`        the task of a function, module or hf: model: a name such as "addition", or a Task; files name theirs
    `name`        what tables call it
    `checkpoint`  "last" or "best_probe" of a run; by default the one that its recipe selects
    `device`      by default a GPU if there is one, and for a module wherever its weights are
    `template`    the text around a problem for an hf: model, such as "Add: {prompt}\\n{answer}"
    `trust_remote_code`  whether code that comes with an hf: model may run
    """
    own = None if task is None else task_given(task)
    reading = Reading(template, trust_remote_code)
    return subject_of(model, own, name=name, kind=checkpoint, device=device, precision=precision, reading=reading)


@on_files()
def evaluate(
    model: object,
    task: Task | str | None = None,
    *,
    policies: Given | Sequence[Given] = (),
    strata: str | Sequence[str] = (),
    n: int = 100,
    data_seed: int | None = None,
    each: int = 1,
    batch: int | None = None,
    traces: str | Path | None = None,
) -> Evaluation:
    """Exact match by decoding order and stratum, with intervals; it prints as a table.

    `policies`   decoding orders, such as "top1", "lsb" or "block,size=4"; by default confidence, the task's logical
                 order and random order
    `strata`     such as "natural" or "chain>=28"; by default all of the study's
    `n`          instances of each stratum, the same for every order
    `data_seed`  seed of the instances; by default the model's own
    `each`       cells to commit per step
    `traces`     a folder to write every decode to
    """
    subject = load(model, task)
    if not hasattr(n, "__index__") or n < 1:
        raise HardtailError(f"n is {n!r}; give a whole number of instances of each stratum, at least 1")
    seed = subject.seed if data_seed is None else data_seed
    found = evaluate_all(
        subject,
        _policies([policies] if isinstance(policies, Given | type) else policies, subject.task),
        chosen_strata(subject.task, [strata] if isinstance(strata, str) else strata),
        n,
        Decoding(Commit(each), batch, subject.device),
        data_seed=seed,
        traces=None if traces is None else Path(traces),
    )
    return Evaluation(subject, tuple(records_of(list(found))))


def decode(
    model: object,
    instances: Instances,
    policy: Given = "top1",
    task: Task | str | None = None,
    *,
    each: int = 1,
    stratum: str | None = None,
    batch: int | None = None,
) -> Trace:
    """Decode instances in one order; the trace keeps every commit, and where it comes from.

    `stratum` is what the trace calls the instances; by default the hardest of the study's strata that has them all.
    """
    subject = load(model, task)
    _refuse_others(subject, instances)
    ((name, chosen),) = _policies([policy], subject.task).items()
    label = _stratum(subject.task, instances) if stratum is None else stratum
    decoding = Decoding(Commit(each), batch, subject.device)
    return Trace.concat(list(traced(subject, name, chosen, instances, label, decoding)))


def _refuse_others(subject: Subject, instances: Instances) -> None:
    """Refuse instances of another task than the model's, or of another size."""
    if not isinstance(instances, Instances):
        raise HardtailError(
            f"{reprlib.repr(instances)} cannot be decoded; draw problems, as model.task.sample(10), or read them, as "
            "model.task.parse([PROMPT])"
        )
    task, cells = subject.task, (instances.tokens_NL.shape[1], instances.answer_len)
    own, fault = (task.seq_len, task.answer_len), ""
    if cells != own:
        fault = f"they have {cells[0]} tokens and {cells[1]} answer cells, its task has {own[0]} and {own[1]}"
    elif instances.strata and (missing := [axis for axis in task.axes if axis not in instances.strata]):
        fault = f"they have no {missing[0]}"
    if fault:
        raise HardtailError(
            f"these are not problems for {subject.name}: {fault}; draw them from its own task, as model.task.sample(10)"
        )


def _policies(given: Sequence[Given], task: Task) -> dict[str, Policy]:
    """Policies by the names that records call them; the usual ones if none are given."""
    found: dict[str, Policy] = {} if given else chosen_policies(task, ())
    for each in given:
        if not isinstance(each, Given):
            raise HardtailError(f"{each!r} is not a policy; give a name, such as 'top1', or a Policy, such as Top1()")
        policy = each if isinstance(each, Policy) else policy_named(each, task.order_names)
        name = name_of(each) if isinstance(each, Policy) else spelled(each)
        if found.setdefault(name, policy) != policy:
            raise HardtailError(f"two different policies are called {name}; evaluate them one after the other")
    return found


def _stratum(task: Task, instances: Instances) -> str:
    """The last of the study's strata that holds for all instances; nothing for bare ones."""
    if not instances.strata:
        return ""
    return next((name for name in reversed(task.strata()) if task.stratum(name).holds(instances.strata).all()), "")
