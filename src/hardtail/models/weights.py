"""Weights on disk: a `.safetensors` whose header holds the model's shape and a description. No pickle."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.models.transformer import Shape, Transformer


def save_weights(path: Path, weights: dict[str, Tensor], shape: Shape, about: dict[str, Any]) -> None:
    """Weights by name with the model's shape; the tied matrix is one parameter and stored once."""
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    header = json.dumps({"shape": asdict(shape), "about": about})
    with atomic(path) as file:  # one entry only: the library writes several in an order that changes from run to run
        file.write(save_tensors(held, metadata={"hardtail": header}))


def load_weights(path: Path) -> tuple[Transformer, dict[str, Any]]:
    """A model in evaluation mode, and the description it was saved with."""
    held, metadata = read_tensors(path)
    try:
        header = json.loads(metadata["hardtail"])
        shape = Shape(**header["shape"])
        with torch.device("meta"):  # a header may ask for a model of any size: compare before making one
            wanted = {} if shape.layers > len(held) else Transformer(shape).state_dict()
        if {name: tensor.shape for name, tensor in wanted.items()} != {name: held[name].shape for name in held}:
            raise ValueError("the tensors do not fit the shape that it names")
        model = Transformer(shape)
        model.load_state_dict(held)
        about: dict[str, Any] = header["about"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise HardtailError(f"{path} does not hold a hardtail model ({error})") from error
    return model.eval(), about


def saved_step(path: Path) -> int:
    """The training step that weights were saved at; -1 if there are none or they cannot be read."""
    try:
        return int(json.loads(read_tensors(path)[1]["hardtail"])["about"]["step"])
    except (HardtailError, KeyError, TypeError, ValueError):
        return -1


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a `.safetensors`, and the entries of its header."""
    try:
        raw = path.read_bytes()
        held = load_tensors(raw)
        header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
        return held, header.get("__metadata__", {})
    except OSError as error:
        raise HardtailError(f"{path} cannot be read: {error.strerror or error}") from error
    except (SafetensorError, ValueError) as error:
        raise HardtailError(f"{path} is damaged or not a safetensors file ({error})") from error
