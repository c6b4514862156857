"""Where a run's log goes in addition to its own `log.jsonl`, which stays the truth: trackers that people already use.

A sink gets every line that is written, also those that a resumed run writes again. The step is a value of its own, so
that such lines do no harm.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.core.records import LogLine, jsonable
from hardtail.training.recipe import Recipe


class Sink(ABC):
    """One tracker, open for one run."""

    @abstractmethod
    def __init__(self, name: str, folder: Path, recipe: dict[str, Any]) -> None:
        """Begin a run of this name in the tracker; `recipe` is what its configuration shows."""

    @abstractmethod
    def note(self, step: int, values: dict[str, float]) -> None:
        """Add what was measured after a step."""

    @abstractmethod
    def close(self) -> None: ...


class Wandb(Sink):
    """Weights & Biases; WANDB_MODE=offline keeps everything in the run's folder."""

    def __init__(self, name: str, folder: Path, recipe: dict[str, Any]) -> None:
        import wandb

        settings = wandb.Settings(console="off", silent=True)
        self.run = wandb.init(project="hardtail", name=name, dir=str(folder), config=recipe, settings=settings)
        self.run.define_metric("*", step_metric="step")

    def note(self, step: int, values: dict[str, float]) -> None:
        self.run.log({"step": step, **values})

    def close(self) -> None:
        self.run.finish()


class Trackio(Sink):
    """Trackio, whose database is local; TRACKIO_DIR says where."""

    def __init__(self, name: str, folder: Path, recipe: dict[str, Any]) -> None:
        import trackio

        self.run = trackio.init(project="hardtail", name=name, config=recipe, embed=False, auto_log_gpu=False)

    def note(self, step: int, values: dict[str, float]) -> None:
        self.run.log(values, step=step)

    def close(self) -> None:
        self.run.finish()


class TensorBoard(Sink):
    """TensorBoard's event files, in the folder `tensorboard` of the run."""

    def __init__(self, name: str, folder: Path, recipe: dict[str, Any]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(folder / "tensorboard"))
        self.writer.add_text("recipe", str(recipe))

    def note(self, step: int, values: dict[str, float]) -> None:
        for key, value in values.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        self.writer.close()


SINKS: dict[str, type[Sink]] = {"wandb": Wandb, "trackio": Trackio, "tensorboard": TensorBoard}
"""By the name of the package that each needs."""


@contextmanager
def open_sinks(names: Sequence[str], folder: Path, recipe: Recipe) -> Iterator[Callable[[LogLine], None]]:
    """Give the function that passes a line of a run's log on to the named trackers.

    They are opened with the first line: a run that is refused, or has finished already, begins nothing in any of them.
    """
    kinds = {name: _available(name) for name in names}
    with ExitStack() as stack:
        sinks: list[Sink] = []

        def pass_on(line: LogLine) -> None:
            for name, kind in kinds.items() if not sinks else ():
                sinks.append(sink := _opened(name, kind, folder, recipe))
                stack.callback(sink.close)
            numbers = {
                key: float(value)
                for key, value in jsonable(line).items()
                if key != "step" and isinstance(value, int | float)
            }
            for sink in sinks if numbers else ():
                sink.note(line.step, numbers)

        yield pass_on


def _available(name: str) -> type[Sink]:
    """The tracker of this name; raise HardtailError if there is none, or if its package is not installed."""
    if name not in SINKS:
        raise HardtailError(f"there is no tracker {name!r}; --log takes {', '.join(SINKS)}")
    if find_spec(name) is None:
        raise HardtailError(f"--log {name} needs a package: pip install 'hardtail[log]'")
    return SINKS[name]


def _opened(name: str, kind: type[Sink], folder: Path, recipe: Recipe) -> Sink:
    try:
        return kind(f"{recipe.name}-s{recipe.seed}", folder, recipe.as_json())
    except (ImportError, OSError) as error:
        raise HardtailError(f"--log {name} cannot begin: {error}; leave it out, or fix that and try again") from error
