"""What every scheme hides, costs and reveals, step by step, on instances with different numbers of maskable cells.

Shapes: B batch, A answer cells, V vocabulary.
"""

from typing import Any

import torch

import hardtail
from hardtail.core.files import content_hash
from hardtail.core.noise import Moment, mix
from hardtail.schemes.base import Corpus, Scheme
from hardtail.schemes.mixture import Mixture
from hardtail.schemes.own import Own
from hardtail.schemes.papl import Focal, Papl
from hardtail.schemes.puma import Puma, official, oracle_order, paper
from hardtail.schemes.random import Random
from hardtail.schemes.stages import Fixed, Ramp, Stages, Stairs

BATCH, SEED, STEPS = 6, 11, 9
SCHEMES: dict[str, Scheme] = {
    "random": Random(),
    "count": Random(draw="count"),
    "none at times": Random(at_least_one=False),
    "rate": Random(at_least_one=False, weighting="rate"),
    "count, bound": Random(draw="count", weighting="bound"),
    "batch": Random(weighting="batch"),
    "papl": Papl(alpha=3.0, tau=0.5),
    "papl, matched, none at times": Papl(planner="matched", masking=Random(at_least_one=False)),
    "papl, none at times": Papl(masking=Random(at_least_one=False)),
    "focal": Focal(gamma=1.5),
    "puma": Puma(stages=Fixed(4), threshold=0.3),
    "puma, random": Puma(stages=Fixed(5), threshold=None, score="random"),
    "puma, around": Puma(stages=Fixed(3), law="around", threshold=None),
    "puma, paper": paper(Ramp(2, 6)),
    "puma, official": official(Ramp(2, 5)),
    "puma, rebuilt": official(Ramp(2, 4, over=0.7)),
    "puma, collapse": official(Fixed(4), threshold=0.3),
    "puma, logical": oracle_order(Fixed(4)),
    "puma, refilled": Puma(stages=Fixed(3), refill="fraction", threshold=0.25),
    "own": Own(),
    "own, path": Own(path=3, first="masked", scored="hidden", temperature=1.0),
    "own, rewritten": Own(path=2, again=0.8),
    "mixture, own": Mixture(Own(), Puma(stages=Fixed(3)), share=0.5),
    "mixture": Mixture(Puma(stages=Fixed(3)), Random(weighting="batch"), share=0.3, share_end=0.8),
    "mixture, rate": Mixture(Puma(stages=Fixed(3)), Random(at_least_one=False, weighting="rate"), share=0.5),
    "mixture, two chains": Mixture(Puma(stages=Fixed(3)), official(Fixed(4)), share=0.5),
}
STAGES: dict[str, Stages] = {
    "fixed": Fixed(7),
    "stairs": Stairs(3, 16, 3),
    "stairs by 1": Stairs(2, 9, 1),
    "ramp": Ramp(3, 16),
    "ramp over all": Ramp(3, 16, over=1.0),
    "ramp at once": Ramp(3, 16, over=0.0),
}


def schemes() -> dict[str, Any]:
    """By scheme and step: hidden cells, loss, its gradient, and what is carried on."""
    task = hardtail.task("maze", size=3)
    held = task.sample(20, "natural", seed=2)
    corpus = Corpus.on(torch.device("cpu"), held, task.vocabulary.mask_id, task.order_names[0])
    return {name: [_step(*made) for made in _steps(scheme, corpus)] for name, scheme in SCHEMES.items()}


def _steps(scheme: Scheme, corpus: Corpus) -> Any:
    size = int(corpus.tokens_NL.max()) + 2
    state = scheme.begin(corpus, BATCH, Moment(SEED, torch.tensor(-1), STEPS))
    for step in range(STEPS):
        now = Moment(SEED, torch.tensor(step), STEPS)
        view = scheme.corrupt(state, corpus, BATCH, now)
        key_BA = view.row_B[:, None] * 1000 + torch.arange(view.gold_BA.shape[1]) * 7 + step * 100_000
        word_BAV = mix(mix(key_BA[..., None] * size + torch.arange(size)))
        logits_BAV = ((word_BAV & 0xFFFF).double() * (6 / 0xFFFF)).requires_grad_()
        loss = scheme.loss(logits_BAV, view)
        (gradient_BAV,) = torch.autograd.grad(loss, logits_BAV)
        scheme.advance(state, logits_BAV.detach(), view, corpus, now)
        yield view.hidden_BA, loss, gradient_BAV, state


def _step(hidden_BA: Any, loss: Any, gradient_BAV: Any, state: dict[str, Any]) -> list[Any]:
    carried = {name: tensor.numpy() for name, tensor in state.items()}
    total = float((gradient_BAV[..., :3] * torch.arange(1, 4)).sum())
    return [content_hash({"": hidden_BA.numpy()})[:12], loss.item(), round(total, 9), content_hash(carried)[:12]]


def stages() -> dict[str, Any]:
    """K at some steps of a short and of a long run."""
    asked = {9: (0, 1, 3, 8), 300_000: (0, 999, 1000, 20_000, 24_999, 25_000, 99_999, 100_000, 299_999)}
    return {
        f"{name}, {steps}": [int(kind.at(torch.tensor(step), steps)) for step in at]
        for name, kind in STAGES.items()
        for steps, at in asked.items()
    }
