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
    from hardtail.measuring.models import Reading
    from hardtail.measuring.subject import Kind, Subject
    from hardtail.policies.base import Policy


@dataclass(frozen=True)
class Sources:
    """Models to decode, traces to read, run directories whose records are shown."""

    models: tuple[str, ...]
    traces: tuple[Path, ...]
    runs: tuple[Run, ...]


def sorted_sources(names: Sequence[str]) -> Sources:
    models = [name for name in names if not name.endswith(".npz")]
    traces = tuple(Path(name) for name in names if name.endswith(".npz"))
    refuse_repeated(names)
    folders = [Path(name) for name in models if Path(name).is_dir()]
    return Sources(tuple(models), traces, tuple(Run.of_folder(folder) for folder in folders))


def refuse_repeated(names: Sequence[str]) -> None:
    """Refuse models and traces of which one is named twice, perhaps in two spellings."""
    places = [str(Path(name).resolve()) if Path(name).exists() else name for name in names]
    if repeated := next((name for name, at in zip(names, places, strict=True) if places.count(at) > 1), None):
        raise HardtailError(f"{repeated} is given more than once; name every run and trace once")


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
    by_name = {run.name: run for run in held}
    for run in given:
        if (other := by_name.get(run.name)) and not _are_one(run, other):
            raise HardtailError(f"{run.folder} has the name of a recorded run, {other.folder}; rename the folder")
    return [*held, *(run for run in given if run.name not in by_name)]


def _are_one(given: Run, recorded: Run) -> bool:
    """Whether a run directory is that of a recorded run: a training is told by how long it took."""
    return given.folder.resolve() == recorded.folder.resolve() or given.entry.wall == recorded.entry.wall


def load_traces(paths: Sequence[Path], own: Task | None = None) -> list[Trace]:
    """The traces in these files; `own` is the task that the user gave for them."""
    held = [stored_trace(path) for path in paths]
    refuse_other_task(own, [(task, str(path)) for (task, _), path in zip(held, paths, strict=True)])
    return [trace for _, trace in held]


def refuse_other_task(own: Task | None, found: Sequence[tuple[Task, str]]) -> None:
    """Refuse a `--task` that none of the traces or models has, each given with its name."""
    if own is not None and found and not any(type(task) is type(own) for task, _ in found):
        task, name = found[0]
        raise HardtailError(f"{name} is of the task {task.name}, but --task is {own.name}; leave it out")


def load_models(
    names: Sequence[str],
    task: Task | None = None,
    *,
    kind: "Kind | None" = None,
    device: str = "cpu",
    reading: "Reading | None" = None,
) -> "list[Subject]":
    """Load the models, each under a name that no other has: two files called `last.safetensors` get their parent
    folders' names and, where these are the same too, are called what the user calls them.

    `task` is that of functions, modules and models of other projects, which do not name theirs; `reading` is for the
    last of these.
    """
    from hardtail.measuring.models import PLAINLY, needs_task, subject_of

    if reading and not any(name.startswith(HF) for name in names):
        reading.refuse_for(names[0])
    subjects = [
        subject_of(
            name,
            task if needs_task(name) else None,
            kind=kind,
            device=device,
            reading=reading if reading and name.startswith(HF) else PLAINLY,
        )
        for name in names
    ]
    titles = [subject.name for subject in subjects]
    longer = [f"{Path(name).absolute().parent.name}/{title}" for name, title in zip(names, titles, strict=True)]

    def called(place: int) -> str:
        return next((held[place] for held in (titles, longer) if held.count(held[place]) == 1), names[place])

    return [replace(subject, name=called(place)) for place, subject in enumerate(subjects)]


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


def to_decode(
    subject: "Subject", n: int, policies: Sequence[str] = (), strata: Sequence[str] = ()
) -> "list[tuple[Policy, int]]":
    """How many instances `decoded` decodes with each policy."""
    chosen, wanted = _choices(subject.task, policies, strata)
    return [(policy, len(wanted) * n) for policy in chosen.values()]


def decoded(
    subjects: "Sequence[Subject]",
    n: int,
    policies: Sequence[str] = (),
    strata: Sequence[str] = (),
    *,
    seed: int | None = None,
    batch: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Iterator[Trace]:
    """Decode every model under every policy on the same `n` instances of every stratum.

    By default, the policies are confidence and the task's logical order, the strata the task's gallery (an easy one and
    a hard one), and `seed` the first model's, so that all models solve the same problems.
    """
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.choices import measured_instances
    from hardtail.measuring.evaluate import traced

    for subject in subjects:
        decoding = Decoding(device=subject.device, batch=batch)
        chosen, wanted = _choices(subject.task, policies, strata)
        for stratum in wanted:
            instances = measured_instances(subject.task, stratum, n, subjects[0].seed if seed is None else seed)
            for name, policy in chosen.items():
                yield from traced(subject, name, policy, instances, stratum, decoding, progress)


def _choices(task: Task, policies: Sequence[str], strata: Sequence[str]) -> "tuple[dict[str, Policy], list[str]]":
    """The policies and strata that a model of a task is decoded with."""
    from hardtail.measuring.choices import chosen_policies, chosen_strata

    chosen = chosen_policies(task, policies or ("top1", *task.order_names[:1]))
    return chosen, chosen_strata(task, strata or task.gallery())
