"""A recipe: everything a training run depends on. The study's own are in `study.recipes`."""

from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from hardtail.core.describe import describe
from hardtail.core.errors import HardtailError
from hardtail.core.fields import AtLeastOne, Bounds, Checked
from hardtail.core.pretrained import Pretrained
from hardtail.models.precision import Precision
from hardtail.models.transformer import Shape
from hardtail.schemes.base import Scheme
from hardtail.tasks import datasets as data
from hardtail.tasks.base import Part, Task
from hardtail.tasks.named import task_to_json
from hardtail.training.optimiser import AdamW
from hardtail.training.step import AttentionPrecision


@dataclass(frozen=True)
class Sizes(Checked):
    """The sizes of the denoiser that do not follow from the task."""

    layers: int = 2
    """Transformer blocks."""
    heads: int = 2
    """Attention heads of a block; they divide the width."""
    width: int = 128
    """Numbers for each position."""
    mlp_ratio: int = 4
    """The MLP's hidden width, in widths."""
    dropout: float = 0.1
    """The share that is dropped in training."""


@dataclass(frozen=True)
class Watch(Checked):
    """What a run measures about itself, and when."""

    log_every: AtLeastOne = 1000
    """Steps between lines of the log."""
    eval_every: AtLeastOne = 5000
    """Steps between probes; a fifth of that during the first tenth of training."""
    gen_every: Annotated[int, Bounds(ge=0)] = 10_000
    """Steps between decodes; 0 means never."""
    probe: tuple[str, str] = ("test", "natural")
    """Split and stratum of the fully masked probe; the stratum `all` is the whole split in its own proportions."""
    probe_size: AtLeastOne = 10_000
    """Instances of the probe."""
    hard: str = ""
    """The stratum whose accuracy is tracked in addition to the natural one; by default the task's own hard one."""
    decoded: AtLeastOne = 500
    """Instances to decode of each stratum."""
    order: str = ""
    """The logical order that is decoded in and that coverage is counted by; by default the task's main one."""
    save_every: AtLeastOne = 10_000
    """Steps between saved states."""

    def of(self, task: Task) -> "Watch":
        """A copy with the task's own hard stratum and order filled in where none was given."""
        return replace(self, hard=self.hard or task.gallery()[1], order=self.order or task.order_names[0])

    def parts(self, task: Task) -> dict[str, tuple[str, Part]]:
        """Split and part of every set that a run measures itself on.

        `natural` is among them only where the probe is a single stratum out of several (Sudoku's is one tier);
        otherwise the probe holds natural problems or a whole test set, and its first instances are the natural slice.
        """
        if self.order not in task.order_names:
            known = ", ".join(task.order_names)
            raise HardtailError(f"the recipe's watch.order is {self.order!r}; {task.name} has {known}")
        for name, stratum in (("hard", self.hard), ("probe", self.probe[1])):
            try:
                if stratum != data.WHOLE:
                    task.stratum(stratum)
            except HardtailError as error:
                raise HardtailError(f"the recipe's watch.{name} is {stratum!r}: {error}") from None
        split, stratum = self.probe
        kinds = data.parts_of(task, split, None)  # refuses an unknown split
        wanted = {"probe": (split, Part(stratum, self.probe_size)), "hard": ("sweep", Part(self.hard, self.decoded))}
        if stratum not in (data.WHOLE, "natural") and [stratum] != [part.stratum for part in kinds]:
            wanted["natural"] = (split, Part("natural", self.decoded))
        return wanted


@dataclass(frozen=True)
class Recipe(Checked):
    """One training run."""

    task: Task
    scheme: Scheme
    sizes: Sizes = field(default_factory=Sizes)
    optimiser: AdamW = field(default_factory=AdamW)
    watch: Watch = field(default_factory=Watch)
    steps: AtLeastOne = 300_000
    """Updates of the weights."""
    batch: AtLeastOne = 256
    """Sequences that are computed at a time."""
    accumulate: AtLeastOne = 1
    """Batches of an update, one after another."""
    precision: Precision = "fp32"
    """Of the forward and backward passes."""
    attention: AttentionPrecision = "same"
    """`bf16` computes attention alone in bf16; in tf32 with dropout that can be faster, by a third on mazes."""
    selection: Literal["last", "best_probe"] = "best_probe"
    """Which weights represent the run; both are kept."""
    train_size: int | None = None
    """Number of training instances; None means the task's own number."""
    seed: Annotated[int, Bounds(ge=0, lt=1 << 64)] = 42
    """The seed of data, initial weights and everything random in training."""
    name: str = "custom"
    """The name of the recipe in records."""
    model: Pretrained | None = None
    """Fine-tune this model and train no new one: `zoo:NAME`, which must have these `sizes`, or `hf:FOLDER-OR-NAME`, of
    which `sizes` says nothing."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "watch", self.watch.of(self.task))

    @property
    def shape(self) -> Shape:
        """The shape of the denoiser: the recipe's sizes and the task's lengths."""
        sizes, lengths = self.sizes, (self.task.vocabulary.size, self.task.seq_len)
        return Shape(sizes.layers, sizes.heads, sizes.width, *lengths, sizes.mlp_ratio, sizes.dropout)

    def as_json(self) -> dict[str, Any]:
        """The recipe as runs keep it: `describe`d, with its task as every file holds tasks."""
        described: dict[str, Any] = describe(self)
        described["fields"]["task"] = task_to_json(self.task)
        if self.model is None:  # as in recipes from before there was a choice
            del described["fields"]["model"]
        return described
