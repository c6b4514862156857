"""A recipe: everything a training run depends on. The study's own are in `study.recipes`."""

from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal

from hardtail.core.describe import describe
from hardtail.core.errors import HardtailError
from hardtail.core.fields import check_fields
from hardtail.models.precision import Precision
from hardtail.schemes.base import Scheme
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task
from hardtail.tasks.named import task_to_json
from hardtail.training.optimiser import AdamW
from hardtail.training.step import AttentionPrecision


@dataclass(frozen=True)
class Sizes:
    """The denoiser's sizes that do not follow from the task."""

    layers: int = 2
    heads: int = 2
    width: int = 128
    mlp_ratio: int = 4
    dropout: float = 0.1


@dataclass(frozen=True)
class Watch:
    """What a run measures of itself, and when."""

    log_every: int = 1000
    eval_every: int = 5000
    """Steps between probes; a fifth of it during the first tenth of training."""
    gen_every: int = 10_000
    """Steps between decodes; 0 is never."""
    probe: tuple[str, str] = ("test", "natural")
    """Split and stratum of the fully masked probe; the stratum `all` is the whole split in its own proportions."""
    probe_size: int = 10_000
    hard: str = ""
    """The stratum whose accuracy is followed next to the natural one; a recipe puts the task's hardest one here."""
    decoded: int = 500
    """Instances of each that are decoded."""
    order: str = ""
    """The logical order that is followed, and that coverage is counted by; a recipe puts the task's main one here."""
    save_every: int = 10_000

    def __post_init__(self) -> None:
        for name in ("log_every", "eval_every", "save_every", "probe_size", "decoded"):
            if getattr(self, name) < 1:
                raise HardtailError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if self.gen_every < 0:
            raise HardtailError(f"gen_every is {self.gen_every}; it is at least 1, or 0 for never")

    def of(self, task: Task) -> "Watch":
        """The same with the task's own hard stratum and order, where none was given."""
        return replace(self, hard=self.hard or task.gallery()[1], order=self.order or task.order_names[0])

    def parts(self, task: Task) -> dict[str, tuple[str, Part]]:
        """Split and part of every set that a run measures itself on.

        `natural` is among them only where the probe is a single stratum out of several (Sudoku's is one tier);
        anywhere else the probe is natural problems or a whole test set, and its first instances are the natural slice.
        """
        self._refuse_misfit(task)
        split, stratum = self.probe
        kinds = data.parts_of(task, split, None)  # refuses a split that there is not
        wanted = {"probe": (split, Part(stratum, self.probe_size)), "hard": ("sweep", Part(self.hard, self.decoded))}
        if stratum not in (data.WHOLE, "natural") and [stratum] != [part.stratum for part in kinds]:
            wanted["natural"] = (split, Part("natural", self.decoded))
        return wanted

    def _refuse_misfit(self, task: Task) -> None:
        """An order or a stratum that the task does not have."""
        if self.order not in task.order_names:
            raise HardtailError(
                f"the recipe's watch.order is {self.order!r}; {task.name} has {', '.join(task.order_names)}"
            )
        for name, stratum in (("hard", self.hard), ("probe", self.probe[1])):
            try:
                if stratum != data.WHOLE:
                    task.stratum(stratum)
            except HardtailError as error:
                raise HardtailError(f"the recipe's watch.{name} is {stratum!r}: {error}") from None


@dataclass(frozen=True)
class Recipe:
    """One training run."""

    task: Task
    scheme: Scheme
    sizes: Sizes = field(default_factory=Sizes)
    optimiser: AdamW = field(default_factory=AdamW)
    watch: Watch = field(default_factory=Watch)
    steps: int = 300_000
    batch: int = 256
    accumulate: int = 1
    precision: Precision = "fp32"
    attention: AttentionPrecision = "same"
    """`bf16` computes attention alone in bf16; in tf32 with dropout that can be faster, by a third on mazes."""
    selection: Literal["last", "best_probe"] = "best_probe"
    """Which weights stand for the run; both are kept."""
    train_size: int | None = None
    """Training instances; None is the task's own number."""
    seed: int = 42
    """Of data, initial weights and everything random in training."""
    name: str = "custom"
    """What it is called in records."""

    def __post_init__(self) -> None:
        _check(self, "recipe")
        object.__setattr__(self, "watch", self.watch.of(self.task))
        for name in ("steps", "batch", "accumulate"):
            if getattr(self, name) < 1:
                raise HardtailError(f"{name} is {getattr(self, name)}; it must be at least 1")
        if not 0 <= self.seed < 1 << 64:
            raise HardtailError(f"the seed is {self.seed}; it is at least 0 and below 2 to the power of 64")

    def as_json(self) -> dict[str, Any]:
        """The recipe as runs keep it: `describe`d, with its task as every file holds tasks."""
        described: dict[str, Any] = describe(self)
        described["fields"]["task"] = task_to_json(self.task)
        return described


def _check(config: Any, name: str) -> None:
    """Refuse what is no value of a field, here and in the configurations within; a seed has bounds of its own."""
    check_fields(config, name, wide=["seed"])
    for item in fields(config):
        value = getattr(config, item.name)
        if is_dataclass(value) and not isinstance(value, type):
            _check(value, item.name)
