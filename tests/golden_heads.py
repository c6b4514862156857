"""What heads are taught of problems with different numbers of maskable cells, and what they have learned after a while.

Shapes: B batch, A answer cells.
"""

from typing import Any

import torch

import hardtail
from hardtail.core.files import content_hash
from hardtail.measuring.subject import Subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.transformer import Shape, Transformer
from hardtail.schemes.base import Corpus
from hardtail.training.heads import Agreeing, Fit, InOrder, Teacher, Written, fitted

TEACHERS: dict[str, Teacher] = {
    "written": Written(),
    "written, cooler": Written(temperature=0.7),
    "in order": InOrder(),
    "agreeing": Agreeing(),
}


def heads() -> dict[str, Any]:
    """By teacher: the lessons of a batch, and the losses of a few steps."""
    task = hardtail.task("maze", size=2)
    mask_id = task.vocabulary.mask_id
    model = Transformer(Shape(layers=1, heads=2, width=16, vocab_size=task.vocabulary.size, seq_len=task.seq_len))
    denoiser = ModelDenoiser(model.initialise(torch.Generator().manual_seed(3)), mask_id)
    corpus = Corpus.on(torch.device("cpu"), task.sample(12, "natural", seed=4), mask_id, task.order_names[0])
    rows = corpus.rows(torch.arange(12))
    found = {}
    for name, teacher in TEACHERS.items():
        lesson = teacher.lesson(denoiser, rows, corpus.rank_NA, torch.Generator().manual_seed(5))
        taught = [content_hash({"": part.numpy()})[:12] for part in lesson]
        subject = Subject(task, denoiser, "tiny")
        _, losses = fitted(subject, teacher, Fit(problems=20, steps=4, batch=6, rate=0.03, seed=2))
        found[name] = [*taught, *(round(loss, 4) for loss in losses)]
    return found
