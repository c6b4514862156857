"""About how long decodes take, to be said before they begin."""

from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import worker_count
from hardtail.measuring.subject import Subject
from hardtail.models.cost import forward_flops
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Transformer

RATE = 30e9
"""Operations per second that a core reaches in decodes of the shipped addition models; larger models reach up to three
times as many, so estimates are rather too long."""
SHORTEST = 0.5e-3
"""Seconds that a core needs for the smallest forward pass of an instance."""


def decode_seconds(subject: Subject, decodes: int) -> float | None:
    """How long decodes take at one cell a step; None on a GPU and for models that are not ours, where it is unknown."""
    denoiser, cells = subject.denoiser, subject.task.answer_len
    model = denoiser.model if isinstance(denoiser, ModelDenoiser) else None
    if not isinstance(model, Transformer) or subject.device != "cpu":
        return None
    each = max(forward_flops(model.shape, cells) / RATE, SHORTEST)
    return decodes * cells * each / worker_count(denoiser, Decoding())
