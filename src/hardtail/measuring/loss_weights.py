"""Which cells a loss favours: the weights that a model's own confidence gives to hidden cells, as in a training step.

Shapes: N instances, A answer cells, L sequence, B batch.
"""

import numpy as np
import torch
from numpy.typing import NDArray

from hardtail.core.types import Instances
from hardtail.models.denoiser import Denoiser
from hardtail.schemes.base import View, log_likelihood
from hardtail.schemes.papl import Reweighted

BATCH = 256


def relative_weights(
    denoiser: Denoiser, instances: Instances, scheme: Reweighted, rng: np.random.Generator
) -> NDArray[np.float64]:
    """`weight_NA`: each hidden cell's weight over the mean weight of its sequence's hidden cells; nan if not hidden.

    Every sequence hides its maskable cells with a rate of its own, uniform on (0, 1), as random masking does. 1 is what
    a cell would weigh without the model's confidence.
    """
    maskable_NA = instances.maskable_NA
    hidden_NA = maskable_NA & (rng.random(maskable_NA.shape) < rng.random(len(instances))[:, None])
    parts = [
        _factors(denoiser, instances.take(part), hidden_NA[part], scheme)
        for part in (slice(start, start + BATCH) for start in range(0, len(instances), BATCH))
    ]
    weight_NA = np.where(hidden_NA, np.concatenate(parts), np.nan)
    some_N = hidden_NA.any(axis=1)
    weight_NA[some_N] /= np.nanmean(weight_NA[some_N], axis=1, keepdims=True)
    return weight_NA


def _factors(
    denoiser: Denoiser, instances: Instances, hidden_BA: NDArray[np.bool_], scheme: Reweighted
) -> NDArray[np.float64]:
    at_BA = torch.from_numpy(instances.answer_at_NA)
    gold_BA = torch.from_numpy(instances.answer_NA.astype(np.int64))
    hidden = torch.from_numpy(hidden_BA)
    tokens_BL = torch.from_numpy(instances.tokens_NL.astype(np.int64))
    tokens_BL.scatter_(1, at_BA, torch.where(hidden, denoiser.mask_id, gold_BA))
    maskable_BA = torch.from_numpy(instances.maskable_NA)
    view = View(tokens_BL, at_BA, gold_BA, hidden, maskable_BA, torch.arange(len(instances)))
    with torch.inference_mode():
        log_p_BA = log_likelihood(denoiser.logits(tokens_BL, at_BA), gold_BA)
        return scheme.factor(log_p_BA, view).double().numpy()
