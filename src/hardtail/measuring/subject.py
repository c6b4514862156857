"""The subject of an evaluation: a denoiser, its task, and where it comes from; our own weights are loaded here."""

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from msgspec import Struct

from hardtail import zoo
from hardtail.core.describe import differences, registered_name
from hardtail.core.errors import HardtailError
from hardtail.core.manifest import Count
from hardtail.core.parsing import converted
from hardtail.core.pretrained import ZOO, Pretrained
from hardtail.core.recipes import RECIPE, RecipeFile, recipe_of
from hardtail.core.recipes import Kind as Kind
from hardtail.core.records import FINISHED, LOG_FILE, Coverage, DataFile, read_json
from hardtail.models.denoiser import Denoiser, ModelDenoiser
from hardtail.models.precision import Precision
from hardtail.models.weights import load_weights
from hardtail.policies.base import Policy
from hardtail.tasks.base import Task
from hardtail.tasks.named import task_from_json, task_to_json


@dataclass(frozen=True)
class ModelOrigin:
    """Where weights come from, as every record about them says. None is unknown."""

    recipe: str | None = None
    seed: int | None = None
    """The seed of the training."""
    checkpoint: str | None = None
    step: int | None = None
    decode_precision: Precision = "fp32"
    reading: str | None = None
    """The task's configuration, by the name of its preset."""
    data_seed: int | None = None
    """The seed of the instances that it is measured on."""
    data: DataFile | None = None
    """The file that those instances are from, if they are not drawn."""
    pretrained: Pretrained | None = None
    """The model of another project that it is, or was trained from."""


@dataclass(frozen=True)
class Subject:
    """A denoiser that can be decoded, measured and explained."""

    task: Task
    denoiser: Denoiser
    name: str
    origin: ModelOrigin = ModelOrigin()
    order: str | None = None
    """The logical order that its training counted mask states by."""
    folder: Path | None = None
    """Its run directory, if it has one."""
    device: str = "cpu"
    """Where its denoiser computes."""
    records: bool = True
    """Whether measurements are added to its run directory; not to a copy of what is on the Hub."""
    unfinished: int | None = None
    """How many steps its training takes, if its run has begun and not finished."""
    settled: dict[Policy, Policy] = field(default_factory=dict, compare=False)
    """Policies, and the same with what its model has chosen for them (`measuring.influence`)."""

    def __repr__(self) -> str:
        kind, step = self.origin.checkpoint, self.origin.step
        weights = f", {kind} weights of step {step:,}" if kind and step is not None else ""
        return f"<{self.name}: {self.task.name}{weights}, on {self.device}>"

    @property
    def seed(self) -> int:
        """The seed of its training, which also names the instances that it is measured on."""
        return self.origin.seed or 0

    def file(self, name: str) -> Path | None:
        """A file in its run directory, if it has one."""
        return self.folder / name if self.folder else None

    def record_file(self, name: str) -> Path | None:
        """The file in its run directory that measurements are added to, if any."""
        return self.file(name) if self.records else None

    @property
    def coverage(self) -> Coverage | None:
        """The mask states that it was trained on, if its run recorded them."""
        path = self.file("coverage.json")
        return None if path is None else read_json(path, Coverage)


class _Header(Struct):
    """What the header of weights says about them."""

    recipe: dict[str, Any]
    step: Count | None = None
    kind: str | None = None


class _Task(Struct):
    fields: dict[str, Any] = {}


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

    Its task is the registered one that the file names; a task that is not registered must be given. The `kind` of a
    run's checkpoint is the one that its recipe selects, unless it is given.
    """
    path = zoo.find(source.removeprefix(ZOO)).path if source.startswith(ZOO) else Path(source)
    folder = path if path.is_dir() else None
    own = recipe_of(folder) if folder else None
    if folder is not None and own is not None:
        _task_in(own, task, folder / RECIPE)
        path = folder / f"{kind or own.fields.selection}.safetensors"
    if not path.exists():
        raise HardtailError(_not_there(path, folder))
    if path.suffix == ".npz":
        raise HardtailError(
            f"{path} is not a model: diagnose, view, compare and report read traces, and `eval MODEL --data` reads data"
        )
    model, about = load_weights(path)
    header = converted(about, _Header, str(path))
    recipe = RecipeFile.of(header.recipe, str(path))
    task = _task_in(recipe, task, path)
    if kind is not None and header.kind != kind:
        raise HardtailError(f"{path} holds the weights {header.kind!r}, not {kind!r}; give the run directory to choose")
    if own is not None and (others := [name for name in differences(header.recipe, own.described) if name != "name"]):
        raise HardtailError(
            f"{path} is from a different run than the recipe.json next to it: it differs in {', '.join(others)}; put "
            "the run's own weights back"
        )
    fields = (own or recipe).fields  # a run that was renamed goes by its new name
    if fault := model.fault(task.vocabulary.size, task.seq_len):
        raise HardtailError(f"{path}: the weights do not fit the task {task.name} that they name: {fault}")
    origin = ModelOrigin(
        fields.name or path.stem, fields.seed, header.kind, header.step, precision, task.preset_name(),
        pretrained=fields.pretrained,
    )  # fmt: skip
    denoiser = ModelDenoiser(model.to(device), task.vocabulary.mask_id, precision, compiled=compiled)
    name = folder.name if folder else path.stem
    going_on = folder is not None and (folder / LOG_FILE).exists() and not (folder / FINISHED).exists()
    return Subject(
        task, denoiser, name, origin, fields.order, folder, device, unfinished=fields.steps if going_on else None
    )


def _not_there(path: Path, folder: Path | None) -> str:
    """What to say about a model that does not exist; in the `folder` of a run, a checkpoint."""
    if folder is not None:
        held = [kind for kind in get_args(Kind) if (folder / f"{kind}.safetensors").exists()]
        does = f"it has {held[0]} (--checkpoint {held[0]})" if held else "continue it with `hardtail train`"
        return f"{path}: this run has no such checkpoint; {does}"
    shipped = [model.name for model in zoo.models()]
    if close := get_close_matches(str(path), shipped, n=1, cutoff=0.93):
        return f"{path}: there is no such run or file; did you mean {ZOO}{close[0]}?"
    what = "there is no such file" if path.suffix == ".safetensors" else "there is no such run or file"
    return f"{path}: {what}; give a directory that `hardtail train` wrote, a .safetensors file, or zoo:NAME"


def _task_in(recipe: RecipeFile, given: Task | None, path: Path) -> Task:
    """The task of the recipe in a file."""
    try:
        return agreed(recipe.fields.task, given)
    except HardtailError as error:
        if given is not None:
            raise HardtailError(f"{path}: {error}") from error
        raise HardtailError(f"{path} does not name a task that can be used here ({error})") from error


def agreed(described: dict[str, Any], given: Task | None) -> Task:
    """The task that a file describes, or the given one, which must agree with the file."""
    if given is None:
        return task_from_json(described)
    own, name = task_to_json(given), registered_name(described)
    # A class of a script has `__main__` as its module, whatever imports it afterwards.
    if name is None or name.rpartition(":")[2] not in (own["name"], type(given).__qualname__):
        raise HardtailError(f"its task is {name}, but {own['name']} was given")
    for field_name, value in converted(described, _Task, "its task").fields.items():
        if (other := own["fields"].get(field_name)) != value:
            raise HardtailError(f"its task has {field_name}={value!r}, but {field_name}={other!r} was given")
    return given
