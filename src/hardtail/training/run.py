"""A run from start to end: it resumes what is there, measures itself, saves itself, and stops when it is told to."""

import json
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from hardtail.core.describe import differences
from hardtail.core.errors import HardtailError
from hardtail.core.files import clear_parts, load_instances, read_object, sole_writer
from hardtail.core.provenance import origin
from hardtail.core.types import Instances
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.base import Policy
from hardtail.policies.confidence import Top1
from hardtail.policies.orders import Logical
from hardtail.schemes.base import Corpus
from hardtail.tasks import datasets as data
from hardtail.tasks.named import said_task, task_to_json
from hardtail.training.checkpoint import (
    ELSEWHERE,
    STATE,
    Progress,
    load_state,
    save_state,
    save_weights,
    saved_step,
    write_json,
)
from hardtail.training.probe import Probe
from hardtail.training.recipe import Recipe
from hardtail.training.step import Step

Report = Callable[[dict[str, Any]], None]
FINISHED = "finished.json"
BEST = "best_probe.safetensors"
FILES = "recipe.json", "coverage.json", FINISHED, STATE, "last.safetensors", BEST
LOST = 100
"""A probe that is so many times worse than guessing is of a run that has diverged, though all are numbers still."""


@dataclass(frozen=True)
class Outcome:
    """How a call of `train` ended."""

    step: int
    finished: bool
    folder: Path
    how: str
    """How the step ran, in words."""
    patience: int | None = None
    """The patience that ran out before the last step; None where none did."""


def train(
    recipe: Recipe,
    folder: Path,
    *,
    device: str | None = None,
    data_file: Path | None = None,
    patience: int | None = None,
    report: Report = lambda entry: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Train `recipe` in `folder`: start it, go on where it stopped, or find it finished.

    `patience` ends the run at the first probe that is so many steps or more after the best one; without it, or
    with more of it, such a run goes on. `report` gets every log entry; `should_stop` is asked between steps, and a run
    that it stops has been saved. It seeds torch's global generator, or sets it to the saved state's.
    """
    refuse_no_patience(patience)
    folder.mkdir(parents=True, exist_ok=True)
    with sole_writer(folder):
        _refuse_another(folder, recipe)
        for name in FILES:
            clear_parts(folder / name)
        if (done := read_object(folder / FINISHED)) is not None:
            ours = load_instances(data_file)[1]["sha256"] if data_file else ""
            _refuse_other_data(folder, done.get("data", {}).get("sha256", ""), ours)
            if (ended := _ended(folder, done, recipe, patience)) is not None:
                return ended
        run = _Run(recipe, folder, torch.device(device or usual_device()), data_file)
        try:
            write_json(folder / "recipe.json", recipe.as_json())  # only now: a recipe that cannot run claims nothing
            run.resume()
            (folder / FINISHED).unlink(missing_ok=True)  # of a run that ran out of patience, and goes on
            with _own_matmul_precision():
                return run.go(report, should_stop, patience)
        except BrokenPipeError:  # of whoever read the reports
            raise
        except OSError as error:  # most often a full disk
            raise HardtailError(
                f"{folder} cannot be written: {error.strerror or error}; {run.kept()}. "
                "Once that is mended, the same command goes on from there"
            ) from error


def refuse_no_patience(patience: int | None) -> None:
    if patience is not None and patience < 1:
        raise HardtailError(f"the patience is {patience}; it is a number of steps, and at least 1")


def _ended(folder: Path, done: dict[str, Any], recipe: Recipe, patience: int | None) -> Outcome | None:
    """The outcome of a run that `finished.json` says has ended; None for one that had less patience, and goes on."""
    how = "nothing: it was finished already"
    if (had := done.get("patience")) is None:
        return Outcome(recipe.steps, True, folder, how)
    if not isinstance(had, int) or not isinstance(step := done.get("step"), int):
        raise HardtailError(f"{folder / FINISHED} is damaged; move it away, and the run goes on from its saved state")
    if patience is not None and patience <= had:
        return Outcome(step, True, folder, how, had)
    if not (folder / STATE).exists():
        raise HardtailError(
            f"{folder} ended at step {step:,}, when a patience of {had:,} steps had run out, and cannot go on: its "
            f"{STATE} is missing; put it back, or move {FINISHED} away to begin the run anew"
        )
    return None


@contextmanager
def _own_matmul_precision() -> Iterator[None]:
    """What a step sets for the whole process is as it was before once the run ends."""
    before = torch.get_float32_matmul_precision()
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _refuse_another(folder: Path, recipe: Recipe) -> None:
    """A folder belongs to one recipe."""
    path, wanted = folder / "recipe.json", recipe.as_json()
    if not path.exists():
        if left := [name for name in (STATE, FINISHED) if (folder / name).exists()]:
            raise HardtailError(f"{folder} has a {left[0]} but no recipe.json to say of what run; {ELSEWHERE}")
        return
    try:
        held = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise HardtailError(f"{path} cannot be read ({error}); {ELSEWHERE}") from error
    if fields := differences(held, wanted):
        raise HardtailError(f"{folder} holds another run: it differs in {', '.join(fields)}; {ELSEWHERE}")


def _refuse_other_data(folder: Path, held: str, ours: str) -> None:
    """A folder's run is of one data set; both are hashes, empty where the recipe's own data is built."""
    if held != ours:
        raise HardtailError(
            f"{folder} was begun on other training data; give the same (`train --data`), or {ELSEWHERE}"
        )


def usual_device() -> str:
    """The GPU, where there is one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


class _Run:
    """The parts of one run; lives while `train` does."""

    def __init__(self, recipe: Recipe, folder: Path, device: torch.device, data_file: Path | None) -> None:
        self.recipe, self.folder, self.device = recipe, folder, device
        self.progress = Progress(recipe=recipe.as_json())
        self.source: dict[str, Any] = {}
        task, sizes, watch = recipe.task, recipe.sizes, recipe.watch
        self.shape = Shape(
            sizes.layers, sizes.heads, sizes.width, task.vocabulary.size, task.seq_len, sizes.mlp_ratio, sizes.dropout
        )
        measured = {name: data.draw(task, *part, recipe.seed) for name, part in watch.parts(task).items()}
        torch.manual_seed(recipe.seed)
        model = Transformer(self.shape).initialise(torch.Generator().manual_seed(recipe.seed)).to(device)
        corpus = Corpus.on(device, self._training_data(data_file), task.vocabulary.mask_id, watch.order)
        self.step = Step(
            model.train(),
            recipe.scheme,
            corpus,
            recipe.optimiser,
            batch=recipe.batch,
            steps=recipe.steps,
            seed=recipe.seed,
            precision=recipe.precision,
            attention=recipe.attention,
            accumulate=recipe.accumulate,
        )
        self.judge = Transformer(self.shape).to(device).eval().requires_grad_(False)
        self.probe = Probe(Corpus.on(device, measured["probe"], task.vocabulary.mask_id), task.vocabulary.size)
        self.natural = measured.get("natural", measured["probe"].take(slice(watch.decoded)))
        self.hard = measured["hard"]
        self.probed = 0
        """The step of the latest probe."""

    def _training_data(self, data_file: Path | None) -> Instances:
        recipe = self.recipe
        if data_file is None:
            return data.build(recipe.task, data.TRAIN, recipe.seed, recipe.train_size).instances
        instances, manifest = load_instances(data_file)
        if differences(said_task(manifest), task_to_json(recipe.task)):
            raise HardtailError(f"{data_file} holds other data than {recipe.task.name} as this recipe has it")
        if (split := manifest.get("split")) not in (data.TRAIN, "all"):
            raise HardtailError(
                f"{data_file} is the split {split!r}, which runs are measured on; train on {data.TRAIN!r}"
            )
        self.source = {"data": {"file": data_file.name, "sha256": manifest["sha256"], "count": len(instances)}}
        self.progress.data = manifest["sha256"]
        return instances

    def resume(self) -> None:
        begun = self.progress
        self.progress = load_state(self.folder, self.step.tensors()) or begun
        self._refuse_another_state(begun.recipe)
        _refuse_other_data(self.folder, self.progress.data, begun.data)
        if saved_step(self.folder / BEST) != self.progress.best_step:
            # Of a stretch after the saved step, which is run again and on a GPU comes out a little different: what was
            # best before is gone, so the next probe is the best.
            self.progress.best_probe, self.progress.best_step = math.inf, -1
        self.probed = max((entry["step"] for entry in self.progress.log if "probe_nll" in entry), default=0)
        with (self.folder / "log.jsonl").open("w") as log:  # entries after the saved step will come again
            log.writelines(json.dumps(entry) + "\n" for entry in self.progress.log)

    def _refuse_another_state(self, wanted: Any) -> None:
        """Tensors of equal shapes may be those of another run."""
        held, self.progress.recipe = self.progress.recipe, wanted
        if held is not None and (fields := differences(held, wanted)):
            raise HardtailError(
                f"{self.folder / STATE} is of another run than the recipe.json beside it: it differs in "
                f"{', '.join(fields)}; put the run's own state back, or remove it to begin the run anew"
            )

    def go(self, report: Report, should_stop: Callable[[], bool], patience: int | None) -> Outcome:
        how = self.step.compile()
        said = {"how": how, **origin(str(self.device)), **self.source}
        report(self._note(said))
        before, began = self.progress.wall, time.monotonic()
        if self.progress.step == 0 and not any("probe_nll" in entry for entry in self.progress.log):
            entry = self._due()  # of the initial weights: where every curve starts
            self.progress.wall = before + time.monotonic() - began
            report(self._note(entry))
        while self.progress.step < self.recipe.steps:
            if patience is not None and self._waited() >= patience:
                self._save()
                return self._finish(said, patience)
            if should_stop():
                self.progress.wall = before + time.monotonic() - began
                self._save()
                return Outcome(self.progress.step, False, self.folder, how)
            self.step()
            self.progress.step += 1
            if entry := self._due():
                self.progress.wall = before + time.monotonic() - began
                report(self._note(entry))
            if self.progress.step % self.recipe.watch.save_every == 0 and self.progress.step < self.recipe.steps:
                self.progress.wall = before + time.monotonic() - began
                self._save()
        if self.progress.best_step < 0:  # gone after the last step's own probe: only the last weights are left
            self._probe()
        self._save()
        return self._finish(said, None)

    def _waited(self) -> int:
        """Steps from the best probe to the latest one."""
        return self.probed - self.progress.best_step if self.progress.best_step >= 0 else 0

    def _finish(self, said: dict[str, Any], patience: int | None) -> Outcome:
        step, wall = self.progress.step, round(self.progress.wall, 3)
        ran_out = {} if patience is None else {"patience": patience}
        write_json(self.folder / FINISHED, {"step": step, "wall": wall, **ran_out, **said})
        return Outcome(step, True, self.folder, said["how"], patience)

    # -- measuring ----------------------------------------------------------------------------------------------

    def _due(self) -> dict[str, Any]:
        """What is to be measured after this step, or before the first; empty where nothing is."""
        step, watch, steps = self.progress.step, self.recipe.watch, self.recipe.steps
        entry: dict[str, Any] = {}
        often = max(watch.eval_every // 5, 1) if step <= steps // 10 else watch.eval_every
        last = step == steps
        if step and (last or step % watch.log_every == 0 or step % often == 0):
            self._refuse_divergence()
            entry |= {"loss": self.step.loss.item(), "norm": self.step.norm.item()}
        if last or step % often == 0:
            entry |= self._probe()
        if watch.gen_every and (last or step % watch.gen_every == 0):
            entry |= self._decode()
        return entry

    def _judge(self) -> Transformer:
        self.judge.load_state_dict(self.step.flat.views(self.step.flat.ema_P))
        return self.judge

    def _probe(self) -> dict[str, float]:
        found, self.probed = self.probe.of(self._judge()), self.progress.step
        guessing = math.log(self.shape.vocab_size)
        if not found.nll < LOST * guessing:
            raise self._diverged(f"the probe's NLL is {found.nll:.3g}, where guessing has {guessing:.2g}")
        if found.nll < self.progress.best_probe:
            self.progress.best_probe, self.progress.best_step = found.nll, self.progress.step
            self._save_weights("best_probe")
        return {"probe_nll": found.nll, "probe_guessed": found.guessed}

    def _decode(self) -> dict[str, float]:
        denoiser = ModelDenoiser(self._judge(), self.recipe.task.vocabulary.mask_id)

        def accuracy(instances: Instances, policy: Policy) -> float:
            return float(decode(denoiser, instances, policy, Decoding(device=str(self.device))).exact_N.mean())

        return {
            "natural": accuracy(self.natural, Top1()),
            "hard": accuracy(self.hard, Top1()),
            "hard_logical": accuracy(self.hard, Logical(self.recipe.watch.order)),
        }

    def _refuse_divergence(self) -> None:
        """Asked before anything is measured or saved, so that what is saved is good."""
        if bool(torch.isfinite(self.step.loss) & torch.isfinite(self.step.flat.weight_P).all()):
            return
        raise self._diverged("the loss or the weights are no numbers any more")

    def _diverged(self, sign: str) -> HardtailError:
        finer = "" if self.recipe.precision == "fp32" else f", or a higher precision than {self.recipe.precision}"
        return HardtailError(
            f"the run has diverged: at step {self.progress.step:,} {sign}; {self.kept()}. "
            f"Try a lower learning rate, or a longer warm-up{finer}"
        )

    # -- keeping ------------------------------------------------------------------------------------------------

    def kept(self) -> str:
        """What is safe, in words."""
        saved = self.progress.saved
        return f"{self.folder} keeps the state of step {saved:,}" if saved else "nothing had been saved yet"

    def _note(self, entry: dict[str, Any]) -> dict[str, Any]:
        hidden = torch.arange(len(self.step.coverage.count_K), device=self.device) * self.step.coverage.count_K
        self.progress.tokens = int(hidden.sum())
        progress = self.progress
        entry = {"step": progress.step, **entry, "wall": round(progress.wall, 3), "tokens": progress.tokens}
        progress.log.append(entry)
        with (self.folder / "log.jsonl").open("a") as log:
            log.write(json.dumps(entry) + "\n")
        return entry

    def _save(self) -> None:
        self._refuse_divergence()
        save_state(self.folder, self.step.tensors(), replace(self.progress, saved=self.progress.step))
        self.progress.saved = self.progress.step
        self._save_weights("last")
        coverage = {
            "by_count": self.step.coverage.count_K.tolist(),
            "by_count_and_rank": self.step.coverage.rank_KR.tolist(),
        }
        write_json(self.folder / "coverage.json", coverage)

    def _save_weights(self, kind: str) -> None:
        about = {"recipe": self.recipe.as_json(), "step": self.progress.step, "kind": kind}
        views = self.step.flat.views(self.step.flat.ema_P)
        save_weights(self.folder / f"{kind}.safetensors", views, self.shape, about)
