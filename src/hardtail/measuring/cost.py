"""About how long decodes take, to be said before they begin."""

from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import worker_count
from hardtail.measuring.subject import Subject
from hardtail.models.cost import forward_flops
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Transformer

RATE = 60e9
"""Operations per second that a core reaches in forward passes of the shipped models."""
OVERHEAD = 0.8e-3
"""Seconds that a core also needs for each step of an instance; with the rate, estimates are rather too long."""


def decode_seconds(subject: Subject, decodes: int) -> float | None:
    """How long decodes take at one cell a step; None on a GPU and for models that are not ours, where it is unknown."""
    denoiser, task = subject.denoiser, subject.task
    model = denoiser.model if isinstance(denoiser, ModelDenoiser) else None
    if not isinstance(model, Transformer) or subject.device != "cpu":
        return None
    each = forward_flops(model.shape, task.answer_len) / RATE + OVERHEAD
    return decodes * task.most_hidden * each / worker_count(denoiser, Decoding())
