"""Weights on disk: a `.safetensors` whose header holds the model's shape and a description. No pickle.

They are saved in float32. A file may hold them in half precision, as shipped models do; they are loaded as float32.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from msgspec import Struct
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor, nn

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic, open_regular
from hardtail.core.manifest import Count
from hardtail.core.parsing import converted, decoded
from hardtail.models.trainable import Trainable
from hardtail.models.transformer import Shape, Transformer

AGAIN = "copy or download it again, or give other weights"
OURS = "give weights that hardtail saved or, of another project's model, its folder as hf:FOLDER"
LARGEST_HEADER = 100_000_000
"""The most bytes that the format allows for a header."""
WEIGHT_TYPES = ("float32", "float16", "bfloat16")
"""The types in which a file may hold weights."""


def save_model(path: Path, model: Trainable, weights: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Weights of a network's parameters, with its architecture; a tied matrix is one parameter and stored once."""
    _save(path, {model.name_in_files(name): tensor for name, tensor in weights.items()}, model.header(), about)


def save_weights(path: Path, weights: dict[str, Tensor], shape: Shape, about: dict[str, Any]) -> None:
    """Weights of our transformer by name, with its shape."""
    _save(path, weights, {"shape": asdict(shape)}, about)


def _save(path: Path, weights: dict[str, Tensor], architecture: dict[str, Any], about: dict[str, Any]) -> None:
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    header = json.dumps({**architecture, "about": about})
    with atomic(path) as file:  # one entry only: the library writes several in an order that changes from run to run
        file.write(save_tensors(held, metadata={"hardtail": header}))


def weights_hash(model: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of all that a model's files hold, wherever it computes."""
    digest = hashlib.sha256()
    held = {name: part for name, part in model.state_dict().items() if isinstance(part, Tensor)}
    for name, tensor in sorted(held.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


class _Header(Struct):
    """The entry `hardtail` in the header of weights."""

    about: dict[str, Any]
    shape: dict[str, Any] | None = None
    """Of our transformer."""
    hf: dict[str, Any] | None = None
    """Of another project's model, as `models.hf.saved` writes it."""


class _Step(Struct):
    step: Count


def load_weights(path: Path) -> tuple[Trainable, dict[str, Any]]:
    """A model in evaluation mode and in float32, and the description it was saved with."""
    try:
        held, metadata = read_tensors(path)
    except HardtailError as error:
        raise HardtailError(f"{error}; {AGAIN}") from error
    header = _header(metadata, path)
    for name, tensor in held.items():
        if (given := str(tensor.dtype).removeprefix("torch.")) not in WEIGHT_TYPES:
            raise HardtailError(f"{path}: the weights {name!r} are {given}; give one of {', '.join(WEIGHT_TYPES)}")
    if header.hf is not None:
        from hardtail.models.hf.saved import rebuilt

        return rebuilt(header.hf, held, str(path)).eval(), header.about
    try:
        shape = Shape(**(header.shape or {}))
        with torch.device("meta"):  # a header may ask for a model of any size: compare before making one
            wanted = {} if shape.layers > len(held) else Transformer(shape).state_dict()
        if {name: tensor.shape for name, tensor in wanted.items()} != {name: held[name].shape for name in held}:
            raise ValueError("the tensors do not fit the shape that it names")
        model = Transformer(shape)
        model.load_state_dict(held)
    except (KeyError, TypeError, ValueError, ArithmeticError, RuntimeError) as error:
        raise HardtailError(f"{path} does not hold a hardtail model ({error}); {OURS}") from error
    return model.eval(), header.about


def saved_step(path: Path) -> int:
    """The training step that weights were saved at; -1 if there are none or they cannot be read."""
    try:
        return converted(_header(read_tensors(path)[1], path).about, _Step, str(path)).step
    except HardtailError:
        return -1


def _header(metadata: Mapping[str, str], path: Path) -> _Header:
    if "hardtail" not in metadata:
        raise HardtailError(f"{path} does not hold a hardtail model (its header does not say so); {OURS}")
    return converted(decoded(metadata["hardtail"], str(path)), _Header, str(path))


class _Tensor(Struct):
    dtype: str
    shape: tuple[Count, ...]
    data_offsets: tuple[Count, Count]


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """The tensors of a `.safetensors`, and the entries of its header, which must describe exactly the file's bytes."""
    try:
        with open_regular(path) as file:
            length, size = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
            if length > min(LARGEST_HEADER, size - 8):
                raise HardtailError("its header is longer than the file")
            header = decoded(file.read(length), "its header")
            metadata = converted(
                header.pop("__metadata__", {}) if isinstance(header, dict) else {}, dict[str, str], "it"
            )
            tensors = converted(header, dict[str, _Tensor], "its header")
            if 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0) != size:
                raise HardtailError("its header describes another number of bytes")
            file.seek(0)
            return load_tensors(file.read()), metadata
    except FileNotFoundError as error:
        raise HardtailError(f"{path} cannot be read: {error.strerror}") from error
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise HardtailError(f"{path} is damaged or not a safetensors file ({error})") from error
