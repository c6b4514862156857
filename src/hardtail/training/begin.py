"""The model that a run begins with: a new transformer, or a pretrained one of another project."""

import torch

from hardtail.core.errors import HardtailError
from hardtail.core.pretrained import Pretrained
from hardtail.models.trainable import Trainable
from hardtail.models.transformer import Transformer
from hardtail.tasks.base import Task
from hardtail.training.recipe import Recipe


def begun(recipe: Recipe) -> Trainable:
    """The model before the first step."""
    if recipe.model is not None:
        return _pretrained(recipe.model, recipe.task)
    return Transformer(recipe.shape).initialise(torch.Generator().manual_seed(recipe.seed))


def _pretrained(wanted: Pretrained, task: Task) -> Trainable:
    from hardtail.models.hf.loading import identified, load_hf

    there = identified(wanted.name, wanted.template)
    if there.sha256 != wanted.sha256:
        raise HardtailError(
            f"{wanted.name} has changed: its files have the hash {there.sha256[:12]}…, and the run is of "
            f"{wanted.sha256[:12]}…; put the old files back, or train in another folder"
        )
    model = load_hf(wanted.name, task.vocabulary, wanted.template).model
    if fault := model.fault(task.vocabulary.size, task.seq_len):
        raise HardtailError(f"{wanted.name} cannot be trained on {task.name}: {fault}")
    return model
