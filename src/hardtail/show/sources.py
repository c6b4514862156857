"""Turn what the user names on the command line into traces and runs: models are decoded, all else is read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.pretrained import HF
from hardtail.core.types import Trace
from hardtail.study.runs import Run
from hardtail.study.store import Store, default_results, recorded
from hardtail.tasks.base import Task
from hardtail.tasks.stored import stored_trace

if TYPE_CHECKING:
    from hardtail.measuring.subject import Kind, Subject
    from hardtail.policies.base import Policy


@dataclass(frozen=True)
class DecodePlan:
    """How models are decoded for a page."""

    policies: tuple[str, ...]
    """If empty, confidence and the task's logical order."""
    strata: tuple[str, ...]
    """If empty, the task's gallery: an easy one and a hard one."""
    n: int
    """Instances per stratum."""
    kind: "Kind | None"
    seed: int | None
    """Seed of the instances; if None, the first model's training seed, so that all models solve the same problems."""
    device: str
    batch: int | None
    template: str | None = None
    """The text around a problem, for models of other projects."""
    trust_remote_code: bool = False


@dataclass(frozen=True)
class Sources:
    """Models to decode, traces to read, run directories whose records are shown."""

    models: tuple[str, ...]
    traces: tuple[Path, ...]
    runs: tuple[Run, ...]


def sorted_sources(names: Sequence[str]) -> Sources:
    models = [name for name in names if not name.endswith(".npz")]
    traces = tuple(Path(name) for name in names if name.endswith(".npz"))
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise HardtailError(f"{repeated} is given more than once; name every run and trace once")
    folders = [Path(name) for name in models if Path(name).is_dir()]
    return Sources(tuple(models), traces, tuple(Run.of_folder(folder) for folder in folders))


def recorded_results(place: str | Path | None) -> Store:
    """Open the given place of recorded runs, or the default one."""
    return Store(default_results()) if place is None else recorded(place)


def results_if_any() -> Store | None:
    """The default folder of recorded runs; None where there is none, as in an installed package."""
    try:
        return recorded_results(None)
    except HardtailError:
        return None


def all_runs(store: Store | None, given: Sequence[Run]) -> list[Run]:
    """Recorded runs, then run directories that are not recorded yet."""
    held = store.runs() if store else []
    names = {run.name for run in held}
    return [*held, *(run for run in given if run.name not in names)]


def load_traces(paths: Sequence[Path]) -> list[Trace]:
    return [stored_trace(path)[1] for path in paths]


def load_models(names: Sequence[str], plan: DecodePlan, task: Task | None = None) -> "list[Subject]":
    """Load the models, each under its own name: two files called `last.safetensors` get their parent folders' names.

    `task` is that of functions, modules and models of other projects, which do not name theirs.
    """
    from hardtail.measuring.models import Reading, needs_task, subject_of

    own = {name: task if needs_task(name) else None for name in names}
    foreign = Reading(plan.template, plan.trust_remote_code)
    subjects = [
        subject_of(
            name,
            own[name],
            kind=plan.kind,
            device=plan.device,
            reading=foreign if name.startswith(HF) else Reading(),
        )
        for name in names
    ]
    titles = [subject.name for subject in subjects]
    longer = [f"{Path(name).absolute().parent.name}/{title}" for name, title in zip(names, titles, strict=True)]
    return [
        subject if titles.count(subject.name) == 1 else replace(subject, name=name)
        for subject, name in zip(subjects, longer, strict=True)
    ]


def on_the_same_problems(subjects: "Sequence[Subject]") -> "list[Subject]":
    """The models, those of one task in the configuration of the first of them, so that all get the same problems.

    A model whose sequences have another size, or that was trained to give other answers, keeps its own.
    """
    found: list[Subject] = []
    for subject in subjects:
        same = [held.task for held in found if _same_answers(held.task, subject.task)]
        found.append(replace(subject, task=same[0]) if same else subject)
    return found


def _same_answers(one: Task, other: Task) -> bool:
    """Whether two configurations of a task differ at most in the problems that they draw, judged by a few problems."""
    if one == other:
        return True
    shapes = [(type(task), task.seq_len, task.answer_len, task.vocabulary) for task in (one, other)]
    if shapes[0] != shapes[1]:
        return False
    drawn = one.sample(16)
    return bool(np.array_equal(other.parse(one.render(drawn)).answer_NA, drawn.answer_NA))


def to_decode(subject: "Subject", plan: DecodePlan) -> "list[tuple[Policy, int]]":
    """How many instances `decoded` decodes with each policy."""
    strata, policies = _choices(subject, plan)
    return [(policy, len(strata) * plan.n) for policy in policies.values()]


def planned(subjects: "Sequence[Subject]", plan: DecodePlan) -> list[Task]:
    """The task of every decoder, a model under a policy, that `decoded` makes traces of."""
    return [subject.task for subject in subjects for _ in _choices(subject, plan)[1]]


def decoded(
    subjects: "Sequence[Subject]", plan: DecodePlan, progress: Callable[[int], None] = lambda done: None
) -> Iterator[Trace]:
    """Decode every model under every policy on the same instances of every stratum."""
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.evaluate import measured_instances, traced

    decoding = Decoding(device=plan.device, batch=plan.batch)
    for subject in subjects:
        seed = subjects[0].seed if plan.seed is None else plan.seed
        strata, policies = _choices(subject, plan)
        for stratum in strata:
            instances = measured_instances(subject.task, stratum, plan.n, seed)
            for name, policy in policies.items():
                yield from traced(subject, name, policy, instances, stratum, decoding, progress)


def _choices(subject: "Subject", plan: DecodePlan) -> "tuple[list[str], dict[str, Policy]]":
    """The strata and policies that a model is decoded with."""
    from hardtail.measuring.evaluate import chosen_policies, chosen_strata

    task = subject.task
    policies = chosen_policies(task, plan.policies or ("top1", *task.order_names[:1]))
    return chosen_strata(task, plan.strata or task.gallery()), policies
