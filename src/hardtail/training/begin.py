"""The model that a run begins with: a new transformer, one of the zoo, or a pretrained one of another project."""

from dataclasses import asdict

import torch

from hardtail import zoo
from hardtail.core.errors import HardtailError
from hardtail.core.pretrained import TEMPLATE, ZOO, Pretrained
from hardtail.models.trainable import Trainable
from hardtail.models.transformer import Transformer
from hardtail.models.weights import load_weights
from hardtail.training.recipe import Recipe


def begun(recipe: Recipe) -> Trainable:
    """The model before the first step."""
    if recipe.model is not None:
        return _pretrained(recipe.model, recipe)
    return Transformer(recipe.shape).initialise(torch.Generator().manual_seed(recipe.seed))


def identified(name: str, template: str | None = None) -> Pretrained:
    """Which model a user names for training, `zoo:NAME` or `hf:NAME`, by the hash of its files."""
    if not name.startswith(ZOO):
        from hardtail.models.hf.loading import identified as of_another_project

        return of_another_project(name, TEMPLATE if template is None else template)
    if template is not None:
        raise HardtailError(f"--template is the text around a problem for --model hf:…; {name} reads problems alone")
    return Pretrained(name, zoo.find(name.removeprefix(ZOO)).sha256)


def shipped(recipe: Recipe) -> Transformer:
    """The model of the zoo that a recipe begins with."""
    assert recipe.model is not None
    model, _ = load_weights(zoo.find(recipe.model.name.removeprefix(ZOO)).path)
    assert isinstance(model, Transformer)
    refuse_misfit(model, recipe)
    held = asdict(model.shape)
    if other := {name: held[name] for name, size in asdict(recipe.sizes).items() if size != held[name]}:
        own = " ".join(f"--sizes.{name.replace('_', '-')} {size}" for name, size in other.items())
        raise HardtailError(
            f"{recipe.model.name} has other sizes than the recipe and keeps them; say so with {own}, or leave --model "
            "out to train a new model"
        )
    return model


def refuse_misfit(model: Trainable, recipe: Recipe) -> None:
    """Raise HardtailError if the pretrained model of a recipe cannot read its task."""
    assert recipe.model is not None
    task = recipe.task
    if fault := model.fault(task.vocabulary.size, task.seq_len):
        raise HardtailError(f"{recipe.model.name} cannot be trained on {task.name}: {fault}")


def _pretrained(wanted: Pretrained, recipe: Recipe) -> Trainable:
    there = identified(wanted.name, None if wanted.shipped else wanted.template)
    if there.sha256 != wanted.sha256:
        raise HardtailError(
            f"{wanted.name} has changed: its files have the hash {there.sha256[:12]}…, and the run is of "
            f"{wanted.sha256[:12]}…; put the old files back, or train in another folder"
        )
    if wanted.shipped:
        return shipped(recipe)
    from hardtail.models.hf.loading import load_hf

    model = load_hf(wanted.name, recipe.task.vocabulary, wanted.template).model
    refuse_misfit(model, recipe)
    return model
