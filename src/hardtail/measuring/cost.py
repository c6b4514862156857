"""About how long decodes take, to be said before they begin."""

from collections.abc import Iterable

from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import worker_count
from hardtail.measuring.subject import Subject
from hardtail.models.cost import forward_flops
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Transformer
from hardtail.policies.base import Commit, Policy

RATE = 90e9
"""Operations per second that a core reaches in forward passes of the shipped models (docs/performance.md)."""
OVERHEAD = 0.5e-3
"""Seconds that a core also needs for each pass of an instance: what the shipped models take beyond their operations."""


def decode_seconds(
    subject: Subject, decodes: Iterable[tuple[Policy, int]], commit: Commit | None = None, further: int = 0
) -> float | None:
    """About how long it takes to decode this many instances with each policy, with `further` passes over each answer;
    None on a GPU and for models that are not ours, where it is unknown."""
    denoiser, task = subject.denoiser, subject.task
    model = denoiser.model if isinstance(denoiser, ModelDenoiser) else None
    if not isinstance(model, Transformer) or subject.device != "cpu":
        return None
    each = forward_flops(model.shape, task.answer_len) / RATE + OVERHEAD
    passes = sum(n * (policy.likely_passes(task.most_hidden, commit or Commit()) + further) for policy, n in decodes)
    return passes * each / worker_count(denoiser, Decoding())
