"""The cost of a recipe: parameters, operations and memory by counting, and time at measured rates."""

import os
from dataclasses import dataclass
from typing import NamedTuple

import torch

from hardtail.core.errors import HardtailError
from hardtail.models.cost import forward_flops
from hardtail.models.transformer import Transformer, parameter_count
from hardtail.training.begin import refuse_misfit, shipped
from hardtail.training.recipe import Recipe

# Operations per second that whole steps reach at the middle of the study's shapes, data draw and optimiser included, on
# an H200 and on two CPU cores (docs/performance.md). Good to a factor of two.
GPU_RATE = {"bf16": 160e12, "tf32": 75e12, "fp32": 29e12}
GPU_RATE_BF16_ATTENTION = 90e12
GPU_SHORTEST = 0.6e-3
CPU_RATE = 120e9
CPU_SHORTEST = 15e-3
HOPELESS = 4
"""How many times a machine's memory a recipe must need to be refused, as the estimate is rough."""


@dataclass(frozen=True)
class Cost:
    parameters: int
    flops_per_step: float
    memory: float
    gpu_seconds: float
    cpu_seconds: float


class _Counted(NamedTuple):
    parameters: int
    forward: float
    """Operations of one sequence's forward pass."""
    activations: float
    """Bytes that one sequence's forward pass keeps."""


def estimate(recipe: Recipe) -> Cost:
    """Count a forward pass once and a backward pass twice; refuse a model that the run would refuse."""
    counted = _theirs(recipe) if recipe.model and not recipe.model.shipped else _ours(recipe)
    parameters, flops = counted.parameters, 3.0 * recipe.batch * recipe.accumulate * counted.forward
    activations = recipe.batch * counted.activations
    faster = recipe.attention == "bf16" and recipe.precision == "tf32"
    rate = GPU_RATE_BF16_ATTENTION if faster else GPU_RATE[recipe.precision]
    step = max(flops / rate, GPU_SHORTEST)
    return Cost(
        parameters=parameters,
        flops_per_step=flops,
        memory=parameters * 4 * 7 + activations,
        gpu_seconds=recipe.steps * step,
        cpu_seconds=recipe.steps * max(flops / CPU_RATE, CPU_SHORTEST),
    )


def refuse_too_large(recipe: Recipe, device: torch.device, processes: int = 1) -> None:
    """Raise HardtailError if the recipe cannot fit the machine, before anything is drawn, written or killed."""
    cost, held = estimate(recipe), _memory(device)
    kept = cost.parameters * 4 * 7
    needed = kept + (cost.memory - kept) / processes
    if held and needed > HOPELESS * held:
        raise HardtailError(
            f"this would need about {needed / 1e9:,.0f} GB of memory, and there are {held / 1e9:,.0f} GB; lower "
            "--batch or --sizes"
        )


def _memory(device: torch.device) -> int:
    """Bytes of a GPU, or of the machine; 0 if the system does not tell."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).total_memory)
    names = ("SC_PAGE_SIZE", "SC_PHYS_PAGES")
    known = getattr(os, "sysconf_names", {})
    return os.sysconf(names[0]) * os.sysconf(names[1]) if all(name in known for name in names) else 0


def _ours(recipe: Recipe) -> _Counted:
    shape = recipe.shape if recipe.model is None else shipped(recipe).shape
    with torch.device("meta"):
        parameters = parameter_count(Transformer(shape))
    activations = shape.seq_len * shape.width * shape.layers * (14 + 2 * shape.mlp_ratio) * 4
    return _Counted(parameters, forward_flops(shape, recipe.task.answer_len), activations)


def _theirs(recipe: Recipe) -> _Counted:
    """Two operations for each parameter and token: too many for embeddings, none for attention itself."""
    from hardtail.models.hf.loading import outlined

    assert recipe.model is not None
    model = outlined(recipe.model, recipe.task.vocabulary)
    refuse_misfit(model, recipe)
    parameters, length = parameter_count(model), model.layout.length(recipe.task.seq_len)
    width, layers = model.config.hidden_size, model.config.num_hidden_layers
    kept = length * (width * layers * 22 + model.config.vocab_size) * 4
    return _Counted(parameters, 2.0 * parameters * length, kept)
