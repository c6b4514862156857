"""A run from start to end: it resumes a saved state, measures itself, saves itself, and stops when asked to."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from hardtail.core.cores import usable_cores
from hardtail.core.describe import differences
from hardtail.core.errors import HardtailError
from hardtail.core.files import load_instances
from hardtail.core.provenance import origin
from hardtail.core.records import DataFile, LogLine
from hardtail.core.types import Instances
from hardtail.decoding.workers import computing_threads
from hardtail.models.precision import matmul_precision
from hardtail.models.transformer import Transformer
from hardtail.schemes.base import Corpus
from hardtail.tasks import datasets as data
from hardtail.tasks.named import said_task, task_to_json
from hardtail.tasks.stored import refuse_misshapen
from hardtail.training.estimate import estimate
from hardtail.training.keeper import Keeper, open_run
from hardtail.training.monitor import Monitor
from hardtail.training.recipe import Recipe
from hardtail.training.step import Step

Report = Callable[[LogLine], None]
WORTH_SPLITTING = 0.2e9
"""Operations of the smallest step whose products several cores share: below, they wait longer than they gain."""


@dataclass(frozen=True)
class Outcome:
    """How a call of `train` ended."""

    step: int
    finished: bool
    folder: Path
    how: str
    """A description of how the step ran."""
    patience: int | None = None
    """The patience that ran out before the last step, if one did."""


def train(
    recipe: Recipe,
    folder: Path,
    *,
    device: str | None = None,
    data_file: Path | None = None,
    patience: int | None = None,
    report: Report = lambda entry: None,
    progress: Callable[[int], None] = lambda step: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train `recipe` in `folder`: start the run, continue it where it stopped, or return at once if it has finished.

    `patience` ends the run at the first probe that is this many steps or more after the best one; without it, or with
    a larger one, a run that ended this way continues. `report` gets every line of the log, `progress`
    the number of every finished step; `should_stop` is called between steps, and the run is saved before it stops. This
    seeds torch's global generator, or restores it from the saved state.
    """
    refuse_no_patience(patience)
    with open_run(recipe, folder) as keeper:
        if (ended := keeper.ended(patience, data_file)) is not None:
            return Outcome(ended.step, True, folder, "nothing: the run was already finished", ended.patience)
        used = torch.device(device or usual_device())
        run = _Run(recipe, keeper, used, data_file)
        try:
            run.resume()
            precision, threads = recipe.precision if used.type == "cuda" else "fp32", cpu_threads(recipe)
            with matmul_precision(precision), computing_threads(threads):
                return run.go(report, progress, should_stop, patience)
        except BrokenPipeError:  # from the reader of the reports
            raise
        except OSError as error:  # most often a full disk
            raise HardtailError(
                f"{folder} cannot be written: {error.strerror or error}; {keeper.kept()}. "
                "Once that is fixed, the same command continues from there"
            ) from error


def refuse_no_patience(patience: int | None) -> None:
    if patience is not None and patience < 1:
        raise HardtailError(f"the patience is {patience}; it must be a number of steps, at least 1")


def cpu_threads(recipe: Recipe) -> int:
    """The threads that share a training step: one if it is tiny, and never more than there are cores.

    The number depends on nothing that changes from one call to the next, as it changes how sums are rounded.
    """
    if estimate(recipe).flops_per_step < WORTH_SPLITTING:
        return 1
    return min(torch.get_num_threads(), usable_cores())  # torch does not know of a quota


def usual_device() -> str:
    """The GPU, if there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class _Run:
    """The step, the monitor and the keeper of one run; lives while `train` does."""

    def __init__(self, recipe: Recipe, keeper: Keeper, device: torch.device, data_file: Path | None) -> None:
        self.recipe, self.keeper, self.progress, self.device = recipe, keeper, keeper.progress, device
        self.source: DataFile | None = None
        """The file of the training data, if it comes from one."""
        task, watch = recipe.task, recipe.watch
        measured = {name: data.draw(task, *part, recipe.seed) for name, part in watch.parts(task).items()}
        torch.manual_seed(recipe.seed)
        model = Transformer(recipe.shape).initialise(torch.Generator().manual_seed(recipe.seed)).to(device)
        self.step = Step(
            model.train(),
            recipe.scheme,
            Corpus.on(device, self._training_data(data_file), task.vocabulary.mask_id, watch.order),
            recipe.optimiser,
            batch=recipe.batch,
            steps=recipe.steps,
            seed=recipe.seed,
            precision=recipe.precision,
            attention=recipe.attention,
            accumulate=recipe.accumulate,
        )
        self.monitor = Monitor(recipe, measured, self.step, keeper)

    def _training_data(self, data_file: Path | None) -> Instances:
        recipe = self.recipe
        if data_file is None:
            return data.build(recipe.task, data.TRAIN, recipe.seed, recipe.train_size).instances
        instances, manifest = load_instances(data_file)
        if fields := differences(said_task(manifest.about), task_to_json(recipe.task)):
            raise HardtailError(
                f"{data_file} does not hold data of {recipe.task.name} in this recipe's configuration: it differs in "
                f"{', '.join(fields)}"
            )
        if manifest.split not in (data.TRAIN, "all"):
            raise HardtailError(
                f"{data_file} is the split {manifest.split!r}, on which runs are measured; train on {data.TRAIN!r}"
            )
        refuse_misshapen(recipe.task, instances, str(data_file))
        self.source = DataFile(file=data_file.name, sha256=manifest.sha256, count=len(instances))
        return instances

    def resume(self) -> None:
        self.keeper.resume(self.step, self.source.sha256 if self.source else "")

    def go(
        self,
        report: Report,
        moved: Callable[[int], None],
        should_stop: Callable[[], bool],
        patience: int | None,
    ) -> Outcome:
        how = self.step.compile()
        keeper, progress, watch = self.keeper, self.progress, self.recipe.watch
        rounded = progress.rounded or None
        session = LogLine(step=progress.step, how=how, data=self.source, rounded=rounded, **origin(str(self.device)))
        report(keeper.note(session, self.step))
        before, began = progress.wall, time.monotonic()

        def clock() -> None:
            progress.wall = before + time.monotonic() - began

        def measure() -> None:
            if line := self.monitor.due():
                clock()
                report(keeper.note(line, self.step))

        if progress.step == 0 and keeper.latest_probe is None:
            measure()  # the initial weights: where every curve starts
        while progress.step < self.recipe.steps:
            if patience is not None and keeper.waited >= patience:
                return self._finish(how, patience)
            if should_stop():
                clock()
                self._save()
                return Outcome(progress.step, False, keeper.folder, how)
            self.step()
            progress.step += 1
            moved(progress.step)
            measure()
            if progress.step % watch.save_every == 0 and progress.step < self.recipe.steps:
                clock()
                self._save()
        if progress.best_step < 0:  # lost after the last step's own probe: only the last weights are left
            self.monitor.probed()
        return self._finish(how, None)

    def _save(self) -> None:
        self.monitor.refuse_divergence()
        self.keeper.save(self.step)

    def _finish(self, how: str, patience: int | None) -> Outcome:
        self._save()
        self.keeper.finish(how, origin(str(self.device)), self.source, patience)
        return Outcome(self.progress.step, True, self.keeper.folder, how, patience)
