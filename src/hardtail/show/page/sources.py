"""What a person names on the command line, as traces and records: models are decoded, everything else is read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hardtail.core.errors import HardtailError
from hardtail.core.types import Trace
from hardtail.show.page.records import RunRecord, of_folder
from hardtail.traces.files import load_trace

if TYPE_CHECKING:
    from hardtail.measuring.subject import Kind, Subject


@dataclass(frozen=True)
class Showing:
    """How models are decoded for a page."""

    policies: tuple[str, ...]
    """By default confidence and the task's logical order."""
    strata: tuple[str, ...]
    """By default an easy one and a hard one, the task's gallery."""
    n: int
    """Instances of each stratum."""
    kind: "Kind | None"
    seed: int | None
    """Of the instances: the first model's training seed by default, so that all models solve the same problems."""
    device: str
    batch: int | None


@dataclass(frozen=True)
class Sources:
    """Sorted: models to decode, traces to read, run directories whose records are shown."""

    models: tuple[str, ...]
    traces: tuple[Path, ...]
    runs: tuple[RunRecord, ...]


def sorted_sources(names: Sequence[str]) -> Sources:
    models = [name for name in names if not name.endswith(".npz")]
    traces = tuple(Path(name) for name in names if name.endswith(".npz"))
    if repeated := next((name for name in names if names.count(name) > 1), None):
        raise HardtailError(f"{repeated} is given more than once; name every run and trace once")
    folders = [Path(name) for name in models if Path(name).is_dir()]
    return Sources(tuple(models), traces, tuple(of_folder(folder) for folder in folders))


def load_traces(paths: Sequence[Path]) -> list[Trace]:
    return [load_trace(path) for path in paths]


def load_models(names: Sequence[str], showing: Showing) -> "list[Subject]":
    """The models, each under a name of its own: a parent folder tells two `last.safetensors` apart."""
    from hardtail.measuring.subject import load_subject

    subjects = [load_subject(name, kind=showing.kind, device=showing.device) for name in names]
    titles = [subject.name for subject in subjects]
    return [
        subject
        if titles.count(subject.name) == 1
        else replace(subject, name=f"{Path(name).absolute().parent.name}/{subject.name}")
        for name, subject in zip(names, subjects, strict=True)
    ]


def rounds(subjects: "Sequence[Subject]", showing: Showing) -> int:
    """Instances that `decoded` decodes in all."""
    return sum(len(_strata(subject, showing)) * len(_policies(subject, showing)) for subject in subjects) * showing.n


def decoded(
    subjects: "Sequence[Subject]", showing: Showing, progress: Callable[[int], None] = lambda done: None
) -> Iterator[Trace]:
    """Every model under every policy on the same instances of every stratum."""
    from hardtail.decoding.options import Decoding
    from hardtail.measuring.evaluate import chosen_policies, measured_instances, traced

    decoding = Decoding(device=showing.device, batch=showing.batch)
    for subject in subjects:
        seed = subjects[0].seed if showing.seed is None else showing.seed
        for stratum in _strata(subject, showing):
            instances = measured_instances(subject.task, stratum, showing.n, seed)
            for name, policy in chosen_policies(subject.task, _policies(subject, showing)).items():
                for part in traced(subject, name, policy, instances, stratum, decoding):
                    yield part
                    progress(len(part))


def _policies(subject: "Subject", showing: Showing) -> tuple[str, ...]:
    return showing.policies or ("top1", *subject.task.order_names[:1])


def _strata(subject: "Subject", showing: Showing) -> list[str]:
    from hardtail.measuring.evaluate import chosen_strata

    return chosen_strata(subject.task, showing.strata or subject.task.gallery())
