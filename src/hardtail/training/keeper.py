"""A run's folder: its lock, recipe, state, weights, log and coverage, and whether it has finished."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import torch
from msgspec import structs
from msgspec.json import encode

from hardtail.core.describe import differences
from hardtail.core.errors import HardtailError
from hardtail.core.files import add_line, atomic, clear_parts, load_instances, sole_writer
from hardtail.core.provenance import Origin
from hardtail.core.recipes import RECIPE, read_recipe
from hardtail.core.records import FINISHED, LOG_FILE, DataFile, Finished, LogLine, read_json, write_record
from hardtail.models.weights import save_model, saved_step
from hardtail.training.checkpoint import (
    ELSEWHERE,
    STATE,
    Progress,
    generators,
    load_state,
    save_state,
    state_world,
    write_json,
)
from hardtail.training.ranks import Ranks, Tensors
from hardtail.training.recipe import Recipe
from hardtail.training.step import Step

BEST, LAST = "best_probe.safetensors", "last.safetensors"


@contextmanager
def open_run(recipe: Recipe, folder: Path) -> Iterator["Keeper"]:
    """The folder of one run; other writers are locked out. A new one is removed if nothing is written to it."""
    new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with sole_writer(folder):
            keeper = Keeper(recipe, folder)
            keeper.refuse_another()
            clear_parts(folder)
            yield keeper
    finally:
        if new:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


class Keeper:
    """Writes everything that a run leaves, and reads what an earlier session left."""

    def __init__(self, recipe: Recipe, folder: Path) -> None:
        self.recipe, self.folder, self.described = recipe, folder, recipe.as_json()
        self.progress = Progress(recipe=self.described)
        self.others: list[Tensors] = []
        """What the run's other processes had saved of their own, if there is a saved state of several."""

    @property
    def latest_probe(self) -> int | None:
        """The step of the latest probe."""
        return next((line.step for line in reversed(self.progress.log) if line.probe_nll is not None), None)

    @property
    def waited(self) -> int:
        """Steps from the best probe to the latest one."""
        return (self.latest_probe or 0) - self.progress.best_step if self.progress.best_step >= 0 else 0

    # -- reading -------------------------------------------------------------------------------------------------

    def refuse_another(self) -> None:
        """Raise HardtailError if the folder belongs to another recipe."""
        try:
            held = read_recipe(self.folder)
        except HardtailError as error:
            raise HardtailError(f"{error}; {ELSEWHERE}") from error
        if held is None:
            if left := [name for name in (STATE, FINISHED) if (self.folder / name).exists()]:
                raise HardtailError(
                    f"{self.folder} has a {left[0]} but no recipe.json that says which run it belongs to; {ELSEWHERE}"
                )
            return
        if fields := differences(held.described, self.described):
            raise HardtailError(f"{self.folder} holds another run: it differs in {', '.join(fields)}; {ELSEWHERE}")
        if (self.folder / LAST).exists() and not any((self.folder / name).exists() for name in (STATE, FINISHED)):
            raise HardtailError(
                f"{self.folder} has weights of a run, but neither its {STATE} nor {FINISHED}, and would be trained "
                f"from the start, over them; put one of the two back, remove {LAST} to start it again, or {ELSEWHERE}"
            )

    def ended(self, patience: int | None, data_file: Path | None) -> Finished | None:
        """How the run ended, from `finished.json`; None for a run that continues, perhaps with more patience."""
        try:
            done = read_json(self.folder / FINISHED, Finished)
        except HardtailError as error:
            raise HardtailError(f"{error}; move {FINISHED} away to continue the run from its saved state") from error
        if done is None:
            return None
        ours = load_instances(data_file)[1].sha256 if data_file else ""
        self._refuse_other_data(done.data.sha256 if done.data else "", ours)
        if (had := done.patience) is None or (patience is not None and patience <= had):
            return done
        if not (self.folder / STATE).exists():
            raise HardtailError(
                f"{self.folder} ended at step {done.step:,}, when a patience of {had:,} steps had run out, and cannot "
                f"continue: its {STATE} is missing; put it back, or move {FINISHED} away to start the run again"
            )
        return None

    def resume(self, step: Step, data: str, watched: str) -> None:
        """Put a saved state, if there is one, back into the step's tensors, and start writing this run.

        `data` is the hash of the training data, `watched` that of the problems that the run measures itself on; each is
        empty if they do not come from a file.
        """
        write_json(self.folder / RECIPE, self.described)  # only now: a recipe that cannot run claims nothing
        self._refuse_other_processes(step.ranks)
        others = [_room(step) for _ in range(1, step.ranks.world)]
        named = _named(others)
        held = load_state(self.folder, step.tensors() | named)
        if held is not None:
            self._refuse_another_state(held)
            self._refuse_other_data(held.data, data)
            self._refuse_other_problems(held.watched, watched)
            if held.step > self.recipe.steps or not step.knows_its_rows():
                raise HardtailError(
                    f"{self.folder / STATE} is damaged: it has steps or rows that the run does not have; remove it to "
                    f"start the run again, or {ELSEWHERE}"
                )
            vars(self.progress).update(vars(held) | {"recipe": self.described})
            self.others = others
        self.progress.data, self.progress.watched, self.progress.world = data, watched, step.ranks.world
        if saved_step(self.folder / BEST) != self.progress.best_step:
            # These weights are from after the saved step. Those steps run again, with slightly different results on a
            # GPU. The best weights from before are gone, so the next probe is the best.
            self.progress.best_probe, self.progress.best_step = math.inf, -1
        with atomic(self.folder / LOG_FILE) as log:  # lines after the saved step will be written again
            log.writelines(encode(line) + b"\n" for line in self.progress.log)
        (self.folder / FINISHED).unlink(missing_ok=True)  # a run that was out of patience continues

    def _refuse_other_processes(self, ranks: Ranks) -> None:
        """Refuse to continue a run with another number of processes: each has its own part of the data."""
        if (self.folder / STATE).exists() and (saved := state_world(self.folder)) != ranks.world:
            start = "without torchrun" if saved == 1 else f"with torchrun --nproc-per-node {saved}"
            raise HardtailError(
                f"{self.folder} is trained by {counted(saved)}, and this is {counted(ranks.world)}; continue it {start}"
                f" (or as many on several machines), or {ELSEWHERE}"
            )

    def _refuse_another_state(self, held: Progress) -> None:
        """Raise HardtailError if the saved state is another run's, which the shapes alone may not show."""
        if held.recipe is not None and (fields := differences(held.recipe, self.described)):
            raise HardtailError(
                f"{self.folder / STATE} is from a different run than the recipe.json next to it: it differs in "
                f"{', '.join(fields)}; put the run's own state back, or remove it to start the run again"
            )

    def _refuse_other_data(self, held: str, ours: str) -> None:
        """Refuse to continue a run on other data; both are hashes, empty if the recipe's own data is built."""
        if held != ours:
            raise HardtailError(
                f"{self.folder} was started on other training data; give the same data (`train --data`), or {ELSEWHERE}"
            )

    def _refuse_other_problems(self, held: str, ours: str) -> None:
        """Refuse to continue a run that measured itself on other problems; both are hashes, empty if they are drawn."""
        if held != ours:
            same = (
                "put the same NAME-test.npz back next to its data" if held else "move NAME-test.npz away from its data"
            )
            raise HardtailError(f"{self.folder} was measuring itself on other problems; {same}, or {ELSEWHERE}")

    # -- writing -------------------------------------------------------------------------------------------------

    def kept(self) -> str:
        """Describe what has been saved."""
        saved = self.progress.saved
        return f"{self.folder} keeps the state of step {saved:,}" if saved else "nothing had been saved yet"

    def note(self, line: LogLine, step: Step) -> LogLine:
        """Add a line to the log; return it with the time and the tokens so far."""
        progress = self.progress
        progress.tokens = int(step.seen.total_KR.sum())
        line = structs.replace(line, wall=round(progress.wall, 3), tokens=progress.tokens)
        progress.log.append(line)
        add_line(self.folder / LOG_FILE, encode(line) + b"\n")
        return line

    def save(self, step: Step, others: Sequence[Tensors] = ()) -> None:
        """Save the state; `others` is what every other process has of its own."""
        named = _named(others)
        save_state(self.folder, step.tensors() | named, replace(self.progress, saved=self.progress.step))
        self.progress.saved = self.progress.step
        self.save_weights("last", step)
        counts = {"by_count": step.seen.total_K.tolist(), "by_count_and_rank": step.seen.total_KR.tolist()}
        write_json(self.folder / "coverage.json", counts)

    def save_weights(self, kind: str, step: Step) -> None:
        about = {"recipe": self.described, "step": self.progress.step, "kind": kind}
        views = step.flat.views(step.flat.ema_P)
        save_model(self.folder / f"{kind}.safetensors", step.model, views, about)

    def finish(
        self, how: str, origin: Origin, data: DataFile | None, watched: DataFile | None, patience: int | None
    ) -> None:
        step, wall = self.progress.step, round(self.progress.wall, 3)
        done = Finished(step=step, wall=wall, how=how, data=data, watched=watched, patience=patience, **origin)
        write_record(self.folder / FINISHED, done)


def _named(others: Sequence[Tensors]) -> Tensors:
    """What every other process has of its own, under the names that a state has for it."""
    return {f"rank {rank}/{name}": tensor for rank, own in enumerate(others, 1) for name, tensor in own.items()}


def _room(step: Step) -> Tensors:
    """Room for what another process has of its own."""
    own = step.own() | generators(step.device)
    return {name: torch.empty_like(tensor, device="cpu") for name, tensor in own.items()}


def counted(processes: int) -> str:
    return f"{processes} process{'es' if processes > 1 else ''}"
