"""Run directories: atomic files, and everything that an exact resumption needs. No pickle.

`recipe.json`            what is trained
`log.jsonl`              what was measured, one object per line
`coverage.json`          which mask states training has seen
`finished.json`          only once the run is complete
`state.safetensors`      all tensors of the step, random state, progress and log included
`last.safetensors`, `best_probe.safetensors`  EMA weights by name, float32, with their shape in the header
"""

import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic, open_regular
from hardtail.core.parsing import converted, decoded, decoded_with_infinity
from hardtail.core.records import Count, LogLine, Positive, Seconds
from hardtail.models.weights import LARGEST_HEADER, read_tensors

STATE = "state.safetensors"
LOG = "progress/log"
"""The log as bytes in a tensor: the header, which holds the rest of the progress, must stay below 100 MB."""
ELSEWHERE = "train in another folder (`train --out`, `study --runs`)"


@dataclass
class Progress:
    """What a run keeps in addition to its tensors."""

    step: Count = 0
    saved: Count = 0
    """The step of the newest saved state."""
    wall: Seconds = 0.0
    """Seconds of training, over all sessions."""
    tokens: Count = 0
    """Cells trained on so far: hidden ones, and those with a token of the model's own (the scheme `own`)."""
    rounded: Count = 0
    """How often the optimiser's moments were rounded to bf16 on their way between machines."""
    world: Positive = 1
    """The number of processes that train it."""
    best_probe: float = float("inf")
    best_step: int = -1
    data: str = ""
    """Hash of the training data, where it came from a file."""
    watched: str = ""
    """Hash of the problems that the run measures itself on, where they come from a file."""
    recipe: Any = None
    """What is trained, as `describe` writes it; None in states from before it was kept."""
    log: list[LogLine] = field(default_factory=list)


def write_json(path: Path, value: Any) -> None:
    with atomic(path) as file:
        file.write(json.dumps(value, indent=1).encode() + b"\n")


def save_state(folder: Path, tensors: dict[str, Tensor], progress: Progress) -> None:
    """Write everything that a resumed run needs in one file, so that no crash can leave half of it."""
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    held |= generators(_device(tensors))
    header = msgspec.to_builtins(progress)
    held[LOG] = torch.frombuffer(bytearray(json.dumps(header.pop("log")).encode()), dtype=torch.uint8)
    with atomic(folder / STATE) as file:
        file.write(save_tensors(held, metadata={"progress": json.dumps(header)}))


def load_state(folder: Path, tensors: dict[str, Tensor]) -> Progress | None:
    """Put a saved state back into `tensors`; None if there is none yet."""
    path = folder / STATE
    if not path.exists():
        return None
    try:
        held, metadata = read_tensors(path)
    except HardtailError as error:
        raise HardtailError(f"{error}; remove it to start the run again, or {ELSEWHERE}") from error
    if missing := sorted(set(tensors) - set(held)):
        raise HardtailError(f"{path} belongs to another kind of run: it has no {missing[0]!r}; {ELSEWHERE}")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != held[name].shape:
                raise HardtailError(f"{path} belongs to a run of another shape ({name}); {ELSEWHERE}")
            tensor.copy_(held[name])
    try:
        header = decoded_with_infinity(metadata["progress"], "its progress")
        if LOG in held:  # older states have the log in the header
            header["log"] = decoded_with_infinity(held[LOG].numpy().tobytes(), "its log")
        progress = converted(header, Progress, "its progress")
        set_generators(held, _device(tensors))
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise HardtailError(f"{path} is not the saved state of a run ({error}); {ELSEWHERE}") from error
    return progress


def state_step(folder: Path) -> int:
    """The step of a saved state, read from its header alone; 0 if there is none or it cannot be read."""
    return _from_header(folder, "step", 0)


def state_world(folder: Path) -> int:
    """The number of processes that saved a state; 1 if there is none or it cannot be read."""
    return _from_header(folder, "world", 1)


def header_step(start: bytes) -> int:
    """The step of a saved state from the beginning of its file; 0 if that cannot be read."""
    return _in_header(io.BytesIO(start), "step", 0)


def _from_header(folder: Path, name: str, usual: int) -> int:
    try:
        with open_regular(folder / STATE) as file:
            return _in_header(file, name, usual)
    except (OSError, ValueError):
        return usual


def _in_header(file: io.BufferedIOBase, name: str, usual: int) -> int:
    try:
        size = int.from_bytes(file.read(8), "little")
        header = decoded(file.read(min(size, LARGEST_HEADER)), STATE)
        return int(decoded_with_infinity(header["__metadata__"]["progress"], STATE)[name])
    except (OSError, KeyError, TypeError, ValueError, OverflowError):  # the last for an infinite step
        return usual


def generators(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's own generators that a run on this device draws from."""
    gpu = {"rng/cuda": torch.cuda.get_rng_state(device)} if device.type == "cuda" else {}
    return {"rng/cpu": torch.get_rng_state(), **gpu}


def set_generators(states: dict[str, Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["rng/cpu"])
    if device.type == "cuda" and "rng/cuda" in states:
        torch.cuda.set_rng_state(states["rng/cuda"], device)


def _device(tensors: dict[str, Tensor]) -> torch.device:
    """The device that a run is on: the CPU unless it has tensors on a GPU, even if there is one."""
    return next((tensor.device for tensor in tensors.values() if tensor.is_cuda), torch.device("cpu"))
