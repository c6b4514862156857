"""The model that a user gives: a run, weights, the zoo, or an object of their own, by its name or as it is."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import torch
from torch import nn

from hardtail.core import hub
from hardtail.core.errors import HardtailError
from hardtail.core.fields import Checked, check_fields
from hardtail.core.pretrained import HF, TEMPLATE, ZOO
from hardtail.core.registry import Registry
from hardtail.measuring.subject import Kind, ModelOrigin, Subject, agreed, load_subject
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.own import ACCEPTED, denoiser_of, name_of
from hardtail.models.precision import Precision
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_to_json

MODELS: Registry[object] = Registry("model", "hardtail.models", {}, lambda found: None)
"""Models of other packages; any `package.module:object` is found too."""


def usable_device(given: str | None) -> str:
    """Return the device to compute on, a GPU if there is one; raise HardtailError if it cannot be used."""
    chosen = given or ("cuda" if torch.cuda.is_available() else "cpu")
    try:
        kind = torch.device(chosen).type
    except RuntimeError:
        kind = ""
    if kind not in ("cpu", "cuda", "mps"):
        raise HardtailError(
            f"--device {chosen}: there is no such device; give cpu, cuda or, for the second GPU, cuda:1"
        )
    try:
        torch.zeros(1, device=chosen).item()
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise HardtailError(f"--device {chosen} cannot be used here: {reason}; give cpu") from error
    return chosen


@dataclass(frozen=True)
class Reading(Checked):
    """How a model of another project (`hf:…`) reads problems, and whether code that comes with it may run."""

    template: str | None = None
    trust_remote_code: bool = False

    def refuse_for(self, model: str) -> None:
        """Refuse these options for a model that is not another project's."""
        given = {"template": self.template is not None, "trust_remote_code": self.trust_remote_code}
        if wrong := [name for name, set_ in given.items() if set_]:
            raise HardtailError(f"{wrong[0]} is for models of other projects ({HF}…), not for {model}; leave it out")


def is_own_object(source: str) -> bool:
    """Whether a text names an object of the user's, as `package.module:object`, and not a file or a shipped model."""
    return ":" in source and not source.startswith((ZOO, HF)) and not Path(source).exists()


PLAINLY = Reading()


def needs_task(source: str) -> bool:
    """Whether what a text names does not say its task itself."""
    return is_own_object(source) or (source.startswith(HF) and hub.model_of(source) is None)


def subject_of(
    model: object,
    task: Task | None = None,
    *,
    name: str | None = None,
    kind: Kind | None = None,
    device: str | torch.device | None = None,
    precision: Precision = "fp32",
    compiled: bool = False,
    reading: Reading = PLAINLY,
) -> Subject:
    """The subject of whatever a user gives as a model.

    Runs and weights name their task; a function, a module or `hf:…` needs its `task`. Without `device`, files are
    computed on a GPU if there is one, and objects where their weights are. `name` is what tables call it.
    """
    where = str(device) if isinstance(device, torch.device) else device
    found = _Asked(task, kind, where, precision, compiled, reading).find(model)
    return found if name is None else replace(found, name=name)


@dataclass(frozen=True)
class _Asked:
    """What a user asks of a model, whichever it is."""

    task: Task | None
    checkpoint: Kind | None
    device: str | None
    precision: Precision
    compiled: bool
    reading: Reading

    def __post_init__(self) -> None:
        check_fields(self, "the model")

    def find(self, model: object) -> Subject:
        if isinstance(model, str) and model.startswith(HF):
            if (found := hub.model_of(model)) is None:
                return self._of_another_project(model)
            self.reading.refuse_for(model)
            return self._of_ours(found)
        called = _called(model)
        self.reading.refuse_for(called)
        if isinstance(model, str | Path) and not (isinstance(model, str) and is_own_object(model)):
            return self._of_file(str(model))
        if (self.checkpoint, self.precision, self.compiled) != (None, "fp32", False):
            raise HardtailError(
                f"{called}: a checkpoint, a precision or compiling can be chosen for runs and weights only"
            )
        name = None
        if isinstance(model, str):
            name, model = model.rpartition(":")[2], MODELS.load(model)
        if isinstance(model, Subject):
            return self._as_it_is(model)
        if self.task is None and not callable(model) and not isinstance(model, Denoiser):
            raise HardtailError(f"{called} cannot be decoded; give {ACCEPTED}, or the name of a run or file")
        task = self._task_of(called)
        where = _place(model) if self.device is None else usable_device(self.device)
        return Subject(task, denoiser_of(model, task.vocabulary, where), name or name_of(model), device=where)

    def _of_file(self, source: str) -> Subject:
        where, precision, compiled = usable_device(self.device), self.precision, self.compiled
        return load_subject(
            source, task=self.task, kind=self.checkpoint, device=where, precision=precision, compiled=compiled
        )

    def _of_ours(self, found: hub.Snapshot) -> Subject:
        """A model of ours on the Hub, at the commit that its name says, or in a folder."""
        kinds: list[Kind] = [each for each in get_args(Kind) if (found.folder / f"{each}.safetensors").exists()]
        only = kinds[0] if len(kinds) == 1 else None  # weights that were pushed without their run
        own = replace(self, checkpoint=self.checkpoint or only)._of_file(str(found.folder))
        return own if found.address is None else replace(own, name=found.name, records=False)

    def _of_another_project(self, model: str) -> Subject:
        from hardtail.models.hf.loading import load_hf

        task = self._task_of(model)
        if self.checkpoint is not None or self.compiled:
            raise HardtailError(f"{model}: a checkpoint or compiling can be chosen for runs and weights only")
        where, precision, reading = usable_device(self.device), self.precision, self.reading
        template, trusted = TEMPLATE if reading.template is None else reading.template, reading.trust_remote_code
        found = load_hf(model, task.vocabulary, template, device=where, precision=precision, trust_remote_code=trusted)
        if fault := found.model.fault(task.vocabulary.size, task.seq_len):
            raise HardtailError(f"{model} cannot be used on {task.name}: {fault}")
        origin = ModelOrigin(decode_precision=precision, reading=task.preset_name(), pretrained=found.pretrained)
        # Its weights have their precision already, so the denoiser adds none.
        denoiser = ModelDenoiser(found.model, task.vocabulary.mask_id, "fp32" if precision == "bf16" else precision)
        return Subject(task, denoiser, found.called, origin, device=where)

    def _as_it_is(self, subject: Subject) -> Subject:
        """A subject; raise HardtailError if another task or device is asked for."""
        try:
            if self.task is not None:
                agreed(task_to_json(subject.task), self.task)
        except HardtailError as error:
            raise HardtailError(f"{subject.name}: {error}; leave the task out") from error
        if self.device is None:
            return subject
        asked, own = torch.device(usable_device(self.device)), torch.device(subject.device)
        if (asked.type, asked.index or 0) != (own.type, own.index or 0):
            raise HardtailError(
                f"{subject.name} computes on {subject.device}, not on {self.device}; choose the device when it is "
                "loaded"
            )
        return subject

    def _task_of(self, model: str) -> Task:
        """The task of a model that does not name its own; raise HardtailError if it was not given."""
        if self.task is None:
            raise HardtailError(
                f"{model} does not say its task; give it, for example as task='addition' (--task addition)"
            )
        return self.task


def _called(model: object) -> str:
    """What messages call a model; a module would print all of its layers."""
    if isinstance(model, str | Path):
        return str(model)
    return model.name if isinstance(model, Subject) else name_of(model)


def _place(model: object) -> str:
    """Where a model's weights are."""
    first = next(iter(model.parameters()), None) if isinstance(model, nn.Module) else None
    return "cpu" if first is None else str(first.device)
