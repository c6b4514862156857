"""A run from start to end: it resumes a saved state, measures itself, saves itself, and stops when asked to."""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch

from hardtail.core.cores import usable_cores
from hardtail.core.describe import refuse_other_task
from hardtail.core.errors import HardtailError
from hardtail.core.files import load_instances
from hardtail.core.hub import called
from hardtail.core.provenance import origin
from hardtail.core.records import DataFile, LogLine
from hardtail.core.types import Instances
from hardtail.decoding.workers import computing_threads
from hardtail.measuring.given import GivenProblems, problems_beside
from hardtail.models.precision import matmul_precision
from hardtail.schemes.base import Corpus
from hardtail.tasks import datasets as data
from hardtail.tasks.named import said_task, task_to_json
from hardtail.tasks.stored import refuse_misshapen
from hardtail.training.begin import begun
from hardtail.training.checkpoint import generators, set_generators
from hardtail.training.estimate import estimate, refuse_too_large
from hardtail.training.keeper import Keeper, counted, open_run
from hardtail.training.monitor import Monitor, decode_precision, due
from hardtail.training.ranks import Ranks
from hardtail.training.recipe import Recipe
from hardtail.training.step import ALONE, Step

Report = Callable[[LogLine], None]
Preparing = Callable[[str], None]
_STOP, _END = 1, 2
"""What a process may wish between two steps: to save and stop, or that the run ends here. The largest wish counts."""
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
    preparing: Preparing = lambda what: None,
    should_stop: Callable[[], bool] = lambda: False,
    ranks: Ranks = ALONE,
) -> Outcome:
    """Train `recipe` in `folder`: start the run, continue it where it stopped, or return at once if it has finished.

    `data_file` replaces the recipe's training data; with `NAME-test.npz` next to `NAME`, the run also measures itself,
    and so chooses its weights, on problems of that file, as far as it has the recipe's kinds. `patience` ends the run
    at the first probe that is this many steps or more after the best one; without it, or with a larger one, a run that
    ended this way continues. `report` gets every line of the log, `progress` the number of every finished step,
    `preparing` what is done before the first; `should_stop` is called between steps, and the run is saved before it
    stops. This seeds torch's global generator, or restores it from the saved state.

    Several processes (`ranks`) train one run if each calls this: every one has its share of the batch and of the data,
    and the first alone measures, reports and writes.
    """
    refuse_no_patience(patience)
    refuse_unequal_shares(recipe, ranks)
    used = torch.device(device or usual_device())
    refuse_too_large(recipe, used, ranks.world)
    with open_run(recipe, folder) if ranks.first else nullcontext(Keeper(recipe, folder)) as keeper:
        ended = keeper.ended(patience, data_file) if ranks.first else None
        if (step := ranks.most(ended.step if ended else 0)) > 0:
            spent = ended.patience if ended else None
            return Outcome(step, True, folder, "it was already finished", spent)
        precision, threads = recipe.precision if used.type == "cuda" else "fp32", cpu_threads(recipe)
        run = _Run(recipe, keeper, used, data_file, ranks, preparing)
        try:
            run.resume()
            with matmul_precision(precision), computing_threads(threads):
                if used.type == "cuda":
                    preparing("compiling the step")
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


def refuse_unequal_shares(recipe: Recipe, ranks: Ranks) -> None:
    """Raise HardtailError if the recipe's batch, which is that of all processes together, cannot be shared."""
    if recipe.batch % ranks.world:
        raise HardtailError(
            f"a batch of {recipe.batch} cannot be shared by {counted(ranks.world)}; start a number that divides it, or "
            "change --batch"
        )


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

    def __init__(
        self,
        recipe: Recipe,
        keeper: Keeper,
        device: torch.device,
        data_file: Path | None,
        ranks: Ranks,
        preparing: Preparing = lambda what: None,
    ) -> None:
        self.ranks = ranks
        self.recipe, self.keeper, self.progress, self.device = recipe, keeper, keeper.progress, device
        self.source: DataFile | None = None
        """The file of the training data, if it comes from one."""
        test_file = problems_beside(data_file) if ranks.first else None
        given = GivenProblems.read(recipe.task, test_file, "recipe") if test_file else None
        self.watched = given.file if given else None
        corpus = None if data_file is None else self._corpus(self._read(data_file))  # refused before a plan is told
        preparing("drawing problems to measure on")
        measured = self._measured(given) if ranks.first else {}
        if corpus is None:
            preparing("drawing training data")
            corpus = self._corpus(data.build(recipe.task, data.TRAIN, recipe.seed, recipe.train_size).instances)
        torch.manual_seed(ranks.seed(recipe.seed))
        self.step = Step(
            begun(recipe).to(device).train(),
            recipe.scheme,
            corpus,
            recipe.optimiser,
            batch=recipe.batch // ranks.world,
            steps=recipe.steps,
            seed=recipe.seed,
            precision=recipe.precision,
            attention=recipe.attention,
            accumulate=recipe.accumulate,
            ranks=ranks,
        )
        self.monitor = Monitor(recipe, measured, self.step, keeper) if ranks.first else None

    def _measured(self, given: GivenProblems | None) -> dict[str, Instances]:
        """What the run measures itself on: some of the given problems where they are of the right kind, else drawn."""
        task, watch = self.recipe.task, self.recipe.watch
        found = {}
        for name, (split, part) in watch.parts(task).items():
            stratum = "natural" if part.stratum == data.WHOLE else part.stratum
            if given is not None and given.count(stratum):
                found[name] = given.spread(stratum, part.n)
            else:
                found[name] = data.draw(task, split, part, self.recipe.seed)
        if given is not None:  # not the first of the probe, which may be the easiest
            found["natural"] = given.spread("natural", watch.decoded)
        return found

    def _corpus(self, instances: Instances) -> Corpus:
        """What this process trains on."""
        mask_id, order, ranks = self.recipe.task.vocabulary.mask_id, self.recipe.watch.order, self.ranks
        return Corpus.on(self.device, instances, mask_id, order).share(ranks.rank, ranks.world)

    def _read(self, data_file: Path) -> Instances:
        """The training data in a file; `source` says which."""
        recipe = self.recipe
        instances, manifest = load_instances(data_file)
        refuse_other_task(said_task(manifest.about), task_to_json(recipe.task), str(data_file), "recipe")
        if manifest.split not in (data.TRAIN, "all"):
            raise HardtailError(
                f"{data_file} is the split {manifest.split!r}, on which runs are measured; train on {data.TRAIN!r}"
            )
        refuse_misshapen(recipe.task, instances, str(data_file))
        self.source = DataFile(file=called(data_file), sha256=manifest.sha256, count=len(instances))
        return instances

    def resume(self) -> None:
        """Continue from the saved state, if there is one: the first process reads it and hands out what is others'."""
        step, keeper = self.step, self.keeper
        if self.ranks.first:
            keeper.resume(step, *(file.sha256 if file else "" for file in (self.source, self.watched)))
        if self.ranks.most(int(self.progress.step > 0)):
            own = step.own() | generators(self.device)
            self.ranks.hand_out(step.common(), own, keeper.others)
            set_generators(own, self.device)
            self.progress.step = int(step.step)

    def go(
        self,
        report: Report,
        moved: Callable[[int], None],
        should_stop: Callable[[], bool],
        patience: int | None,
    ) -> Outcome:
        how = self.step.compile()
        keeper, progress, watch = self.keeper, self.progress, self.recipe.watch
        session = LogLine(
            step=progress.step,
            how=how,
            data=self.source,
            watched=self.watched,
            rounded=progress.rounded or None,
            decode_precision=None if (precision := decode_precision(self.recipe, self.device)) == "fp32" else precision,
            **origin(str(self.device)),
        )
        self.step.seen.add_up()
        if self.monitor:
            report(keeper.note(session, self.step))
        before, began = progress.wall, time.monotonic()

        def clock() -> None:
            progress.wall = before + time.monotonic() - began

        def measure() -> None:
            wanted = due(self.recipe, progress.step)
            if not any(wanted):
                return
            self.step.seen.add_up()
            if self.monitor:
                line = self.monitor.measured(wanted)
                clock()
                report(keeper.note(line, self.step))

        def wish() -> int:
            if patience is not None and keeper.waited >= patience:
                return _END
            return _STOP if should_stop() else 0

        if progress.step == 0 and not self.ranks.most(int(keeper.latest_probe is not None)):  # the first alone knows
            measure()  # the initial weights: where every curve starts
        first = progress.step
        while progress.step < self.recipe.steps:
            # Patience can run out where something is measured, or have run out already; all processes know when.
            decisive = progress.step == first or any(due(self.recipe, progress.step))
            wanted = self.ranks.agree(wish(), progress.step, now=decisive)
            if wanted == _END:
                return self._finish(how, patience)
            if wanted == _STOP:
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
        if self.monitor and progress.best_step < 0:  # lost after the last step's own probe: only the last weights left
            self.monitor.probed()
        return self._finish(how, None)

    def _save(self) -> None:
        self.step.seen.add_up()
        others = self.ranks.gather(self.step.own() | generators(self.device))
        if self.monitor:
            self.monitor.refuse_divergence()
            self.keeper.save(self.step, others)

    def _finish(self, how: str, patience: int | None) -> Outcome:
        self._save()
        if self.monitor:
            self.keeper.finish(how, origin(str(self.device)), self.source, self.watched, patience)
        return Outcome(self.progress.step, True, self.keeper.folder, how, patience)
