"""What heads are taught of problems with different numbers of maskable cells, and what they have learned after a while.

Shapes: B batch, A answer cells.
"""

from typing import Any

import numpy as np
import torch

import hardtail
from hardtail.core.files import content_hash
from hardtail.measuring.influence import apart
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


def groups() -> dict[str, Any]:
    """How cells that depend on each other are divided, also into numbers of groups that do not divide them evenly."""
    rng = np.random.default_rng(7)
    kinds = {
        "none": np.zeros((7, 7)),
        "chain": np.eye(11, k=1) + 0.5 * np.eye(11, k=2),
        "any": rng.random((13, 13)) ** 3,
        "some": (rng.random((10, 10)) < 0.2).astype(np.float64),
        "with themselves": 9 * np.eye(6) + rng.random((6, 6)),
    }
    return {name: [apart(held_AA, parts) for parts in (1, 2, 3, 4, 6)] for name, held_AA in kinds.items()}
