"""What is evaluated: a denoiser, the task it is for, and where it comes from; our own weights are loaded here."""

import json
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from hardtail import zoo
from hardtail.core.describe import differences, registered_name
from hardtail.core.errors import HardtailError
from hardtail.core.records import Coverage, read_json
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.precision import Precision
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_from_json, task_to_json
from hardtail.training.checkpoint import load_weights

T = TypeVar("T")
Kind = Literal["last", "best_probe"]


@dataclass(frozen=True)
class Origin:
    """Where weights come from: what every record about them carries. None is unknown."""

    recipe: str | None = None
    seed: int | None = None
    """Of the training."""
    checkpoint: str | None = None
    step: int | None = None
    decode_precision: Precision = "fp32"
    reading: str | None = None
    """The task's configuration, by the name of its preset."""
    data_seed: int | None = None
    """Of the instances that it is measured on."""


@dataclass(frozen=True)
class Subject:
    """A denoiser that can be decoded, measured and explained."""

    task: Task
    denoiser: Denoiser
    name: str
    origin: Origin = Origin()
    order: str | None = None
    """The logical order that its training counted mask states by."""
    folder: Path | None = None
    """Its run directory, where it has one."""

    @property
    def seed(self) -> int:
        """The seed of its training, which also names the instances that it is measured on."""
        return self.origin.seed or 0

    def file(self, name: str) -> Path | None:
        """A file in its run directory, where it has one."""
        return self.folder / name if self.folder else None

    @property
    def coverage(self) -> Coverage | None:
        """The mask states it was trained on, where its run recorded them."""
        path = self.file("coverage.json")
        return None if path is None else read_json(path, Coverage)


def load_subject(
    source: str,
    *,
    task: Task | None = None,
    kind: Kind | None = None,
    device: str = "cpu",
    precision: Precision = "fp32",
    compiled: bool = False,
) -> Subject:
    """The model in a run directory, in a `.safetensors` file, or in the zoo (`zoo:addition-puma`).

    Its task is the registered one that the file names, unless it is given: one that is not registered must be. A run's
    `kind` of checkpoint is the one that its recipe selects, unless it is given.
    """
    path = zoo.find(source.removeprefix(zoo.PREFIX)).path if source.startswith(zoo.PREFIX) else Path(source)
    folder = path if path.is_dir() else None
    own: dict[str, Any] | None = None
    if folder is not None:
        selected, own = _recipe(folder, task)
        path = folder / f"{kind or selected}.safetensors"
    if not path.exists():
        what = "no such checkpoint in this run yet" if folder else "neither a run directory nor a weights file"
        raise HardtailError(
            f"{path}: {what}; give a directory that `hardtail train` wrote, a .safetensors file, or zoo:NAME"
        )
    model, about = load_weights(path)
    task, fields = _task(about, path, task)
    if kind is not None and (said := _said(about, "kind", str)) != kind:
        raise HardtailError(f"{path} holds the weights {said!r}, not {kind!r}; give the run directory to choose")
    if own is not None:
        if others := [name for name in differences(about["recipe"], own) if name != "name"]:
            raise HardtailError(
                f"{path} is of another run than the recipe.json beside it: it differs in {', '.join(others)}; put the "
                "run's own weights back"
            )
        fields = _fields(own)  # a run that was renamed goes by its new name
    if (model.shape.vocab_size, model.shape.seq_len) != (task.vocabulary.size, task.seq_len):
        raise HardtailError(f"{path}: the weights do not fit the task {task.name} that they say they are for")
    origin = Origin(
        recipe=_said(fields, "name", str) or path.stem,
        seed=_said(fields, "seed", int),
        checkpoint=_said(about, "kind", str),
        step=_said(about, "step", int),
        decode_precision=precision,
        reading=task.preset_name(),
    )
    denoiser = ModelDenoiser(model.to(device), task.vocabulary.mask_id, precision, compiled=compiled)
    order = _said(_said(_said(fields, "watch", dict) or {}, "fields", dict) or {}, "order", str)
    return Subject(task, denoiser, folder.name if folder else path.stem, origin, order, folder)


def _agreed(said: Any, given: Task | None) -> Task:
    """The task that a file names; a given one in its place, unless the file says something else of it."""
    if given is None:
        return task_from_json(said)
    own, theirs = task_to_json(given), said if isinstance(said, dict) else {}
    name = registered_name(theirs)
    # A class of a script has `__main__` as its module, whatever imports it afterwards.
    if name is None or name.rpartition(":")[2] not in (own["name"], type(given).__qualname__):
        raise HardtailError(f"its task is {name}, and {own['name']} was given")
    for field_name, value in (_said(theirs, "fields", dict) or {}).items():
        if own["fields"].get(field_name) != value:
            raise HardtailError(f"its task has {field_name}={value!r}, and {given} was given")
    return given


def _recipe(folder: Path, task: Task | None) -> tuple[Kind, dict[str, Any]]:
    """The checkpoint that a run's recipe selects, and the recipe."""
    path = folder / "recipe.json"
    try:
        recipe = json.loads(path.read_bytes())
        fields = _fields(recipe)
        _agreed(fields.get("task"), task)  # refuses what it cannot be
    except FileNotFoundError as error:
        raise HardtailError(f"{folder} is no run directory: it has no recipe.json") from error
    except (OSError, ValueError, TypeError) as error:
        raise HardtailError(f"{path} cannot be read ({error})") from error
    return "last" if fields.get("selection") == "last" else "best_probe", recipe


def _fields(recipe: Any) -> dict[str, Any]:
    """The fields of a recipe that `describe` wrote down."""
    fields = recipe.get("fields") if isinstance(recipe, dict) else None
    if not isinstance(fields, dict):
        raise HardtailError(
            f"its recipe is {reprlib.repr(recipe)}; it takes what `hardtail train` wrote, an object with fields"
        )
    return fields


def _said(held: Mapping[str, Any], name: str, kind: type[T]) -> T | None:
    """What a file says under a name; None where it says nothing, or nothing of the right kind."""
    value = held.get(name)
    return value if isinstance(value, kind) else None


def _task(about: Mapping[str, Any], path: Path, given: Task | None) -> tuple[Task, Mapping[str, Any]]:
    try:
        fields = _fields(about.get("recipe"))
        return _agreed(fields.get("task"), given), fields
    except (HardtailError, TypeError) as error:
        raise HardtailError(f"{path} names no task that can be used here ({error})") from error
