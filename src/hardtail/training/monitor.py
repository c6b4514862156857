"""What a run measures of itself while it trains, on the EMA weights: probes, decodes, and whether it has diverged."""

import math
from typing import Any

import torch

from hardtail.core.errors import HardtailError
from hardtail.core.types import Instances
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Transformer
from hardtail.policies.base import Policy
from hardtail.policies.confidence import Top1
from hardtail.policies.orders import Logical
from hardtail.schemes.base import Corpus
from hardtail.training.keeper import Keeper
from hardtail.training.probe import Probe
from hardtail.training.recipe import Recipe
from hardtail.training.step import Step

DIVERGENCE_FACTOR = 100
"""A probe this many times worse than guessing is of a run that has diverged, though everything is still finite."""


class Monitor:
    """Looks at a run between its steps; the best weights so far are kept where a probe finds them."""

    def __init__(self, recipe: Recipe, measured: dict[str, Instances], step: Step, keeper: Keeper) -> None:
        task, device = recipe.task, step.device
        self.recipe, self.step, self.keeper, self.progress = recipe, step, keeper, keeper.progress
        self.judge = Transformer(step.model.shape).to(device).eval().requires_grad_(False)
        self.probe = Probe(Corpus.on(device, measured["probe"], task.vocabulary.mask_id), task.vocabulary.size)
        self.natural = measured.get("natural", measured["probe"].take(slice(recipe.watch.decoded)))
        self.hard = measured["hard"]

    def due(self) -> dict[str, Any]:
        """What is to be measured after this step, or before the first; empty where nothing is."""
        step, watch, steps = self.progress.step, self.recipe.watch, self.recipe.steps
        entry: dict[str, Any] = {}
        often = max(watch.eval_every // 5, 1) if step <= steps // 10 else watch.eval_every
        last = step == steps
        if step and (last or step % watch.log_every == 0 or step % often == 0):
            self.refuse_divergence()
            entry |= {"loss": self.step.loss.item(), "norm": self.step.norm.item()}
        if last or step % often == 0:
            entry |= self.probed()
        if watch.gen_every and (last or step % watch.gen_every == 0):
            entry |= self.decoded()
        return entry

    def probed(self) -> dict[str, float]:
        """Probe the weights, and keep them where they are the best so far."""
        found = self.probe.of(self._judge())
        guessing = math.log(self.judge.shape.vocab_size)
        if not found.nll < DIVERGENCE_FACTOR * guessing:
            raise self._diverged(f"the probe's NLL is {found.nll:.3g}, where guessing has {guessing:.2g}")
        if found.nll < self.progress.best_probe:
            self.progress.best_probe, self.progress.best_step = found.nll, self.progress.step
            self.keeper.save_weights("best_probe", self.step)
        return {"probe_nll": found.nll, "probe_guessed": found.guessed}

    def decoded(self) -> dict[str, float]:
        denoiser = ModelDenoiser(self._judge(), self.recipe.task.vocabulary.mask_id)
        decoding = Decoding(device=str(self.step.device))

        def accuracy(instances: Instances, policy: Policy) -> float:
            return float(decode(denoiser, instances, policy, decoding).exact_N.mean())

        return {
            "natural": accuracy(self.natural, Top1()),
            "hard": accuracy(self.hard, Top1()),
            "hard_logical": accuracy(self.hard, Logical(self.recipe.watch.order)),
        }

    def refuse_divergence(self) -> None:
        """Asked before anything is measured or saved, so that what is saved is good."""
        if not bool(torch.isfinite(self.step.loss) & torch.isfinite(self.step.flat.weight_P).all()):
            raise self._diverged("the loss or a weight is no longer finite")

    def _judge(self) -> Transformer:
        self.judge.load_state_dict(self.step.flat.views(self.step.flat.ema_P))
        return self.judge

    def _diverged(self, sign: str) -> HardtailError:
        finer = "" if self.recipe.precision == "fp32" else f", or a higher precision than {self.recipe.precision}"
        return HardtailError(
            f"the run has diverged: at step {self.progress.step:,} {sign}; {self.keeper.kept()}. "
            f"Try a lower learning rate, or a longer warm-up{finer}"
        )
