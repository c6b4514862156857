"""What a run measures about itself in training, on the EMA weights: probes, decodes, and whether it has diverged."""

import math
from typing import NamedTuple

import torch
from msgspec import structs

from hardtail.core.errors import HardtailError
from hardtail.core.records import LogLine
from hardtail.core.types import Instances
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.precision import Precision
from hardtail.models.trainable import Trainable
from hardtail.policies.base import Policy
from hardtail.policies.confidence import Top1
from hardtail.policies.orders import Logical
from hardtail.schemes.base import Corpus
from hardtail.training.keeper import Keeper
from hardtail.training.probe import Probe, Probed
from hardtail.training.recipe import Recipe
from hardtail.training.step import Step

DIVERGENCE_FACTOR = 100
"""A run whose probe is this many times worse than guessing has diverged, even if everything is still finite."""


class Monitor:
    """Measures a run between its steps, and keeps the best weights that a probe finds."""

    def __init__(self, recipe: Recipe, measured: dict[str, Instances], step: Step, keeper: Keeper) -> None:
        task, device = recipe.task, step.device
        self.recipe, self.step, self.keeper, self.progress = recipe, step, keeper, keeper.progress
        self.judge = step.model.twin().eval().requires_grad_(False)
        precision = decode_precision(recipe, device)
        self.denoiser = ModelDenoiser(self.judge, task.vocabulary.mask_id, precision)  # keeps the decodes it captures
        self.probe = Probe(Corpus.on(device, measured["probe"], task.vocabulary.mask_id), task.vocabulary.size)
        self.natural = measured.get("natural", measured["probe"].take(slice(recipe.watch.decoded)))
        self.hard = measured["hard"]

    def measured(self, wanted: "Due") -> LogLine:
        """Measure what is wanted after this step."""
        line = LogLine(step=self.progress.step)
        if wanted.loss:
            self.refuse_divergence()
            line = structs.replace(line, loss=self.step.loss.item(), norm=self.step.norm.item())
        if wanted.probe:
            found = self.probed()
            line = structs.replace(line, probe_nll=found.nll, probe_guessed=found.guessed)
        if wanted.decodes:
            top1, logical = Top1(), Logical(self.recipe.watch.order)
            pairs = {"natural": (self.natural, top1), "hard": (self.hard, top1), "hard_logical": (self.hard, logical)}
            line = structs.replace(line, **{name: self._accuracy(*pair) for name, pair in pairs.items()})
        return line

    def probed(self) -> Probed:
        """Probe the weights, and keep them if they are the best so far."""
        found = self.probe.of(self._judge())
        guessing = math.log(self.recipe.task.vocabulary.size)
        if not found.nll < DIVERGENCE_FACTOR * guessing:
            raise self._diverged(f"the probe's NLL is {found.nll:.3g}, while guessing would give {guessing:.2g}")
        if found.nll < self.progress.best_probe:
            self.progress.best_probe, self.progress.best_step = found.nll, self.progress.step
            self.keeper.save_weights("best_probe", self.step)
        return found

    def _accuracy(self, instances: Instances, policy: Policy) -> float:
        self._judge()
        return float(decode(self.denoiser, instances, policy, Decoding(device=str(self.step.device))).exact_N.mean())

    def refuse_divergence(self) -> None:
        """Raise HardtailError if training has diverged; called before anything is measured or saved."""
        if not bool(torch.isfinite(self.step.loss) & torch.isfinite(self.step.flat.weight_P).all()):
            raise self._diverged("the loss or a weight is no longer finite")

    def _judge(self) -> Trainable:
        return self.judge.put(self.step.flat.views(self.step.flat.ema_P))

    def _diverged(self, sign: str) -> HardtailError:
        finer = "" if self.recipe.precision == "fp32" else f", or a higher precision than {self.recipe.precision}"
        return HardtailError(
            f"the run has diverged: at step {self.progress.step:,} {sign}; {self.keeper.kept()}. "
            f"Try a lower learning rate, or a longer warm-up{finer}"
        )


def decode_precision(recipe: Recipe, device: torch.device) -> Precision:
    """A GPU decodes a run in its own precision, which takes a fraction of fp32's time."""
    return recipe.precision if device.type == "cuda" else "fp32"


class Due(NamedTuple):
    """What is measured after a step, or before the first."""

    loss: bool
    probe: bool
    decodes: bool


def due(recipe: Recipe, step: int) -> Due:
    """What is measured after this step: all of it after the last; early in training, probes are five times as often."""
    watch, last = recipe.watch, step == recipe.steps
    often = max(watch.eval_every // 5, 1) if step <= recipe.steps // 10 else watch.eval_every
    probe = last or step % often == 0
    return Due(
        loss=step > 0 and (probe or step % watch.log_every == 0),
        probe=probe,
        decodes=watch.gen_every > 0 and (last or step % watch.gen_every == 0),
    )
