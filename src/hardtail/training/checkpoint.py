"""Run directories: one writer, atomic files, and everything that an exact resume needs. No pickle.

`recipe.json`            what is trained
`log.jsonl`              what was measured, one object a line
`coverage.json`          which mask states training has seen
`finished.json`          only once the run is complete
`state.safetensors`      all tensors of the step, random state, progress and log included
`last.safetensors`, `best_probe.safetensors`  EMA weights by name, float32, with their shape in the header
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save as save_tensors
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.files import atomic
from hardtail.models.weights import read_tensors

STATE = "state.safetensors"
LOG = "progress/log"
"""The log as bytes in a tensor: the header, where the rest of the progress is, may not grow beyond 100 MB."""
HEADER = 100_000_000
ELSEWHERE = "train in another folder (`train --out`, `study --runs`)"


@dataclass
class Progress:
    """What a run knows besides its tensors."""

    step: int = 0
    saved: int = 0
    """The step of the newest saved state."""
    wall: float = 0.0
    """Seconds of training, over all sessions."""
    tokens: int = 0
    """Hidden cells trained on so far."""
    best_probe: float = float("inf")
    best_step: int = -1
    data: str = ""
    """Hash of the training data, where it came from a file."""
    recipe: Any = None
    """What is trained, as `describe` has it; None in states of before it was kept."""
    log: list[dict[str, Any]] = field(default_factory=list)


def write_json(path: Path, value: Any) -> None:
    with atomic(path) as file:
        file.write(json.dumps(value, indent=1).encode() + b"\n")


def save_state(folder: Path, tensors: dict[str, Tensor], progress: Progress) -> None:
    """Everything a resume needs, in one file, so that no crash can leave half of it."""
    held = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    held["rng/cpu"] = torch.get_rng_state()
    if (gpu := _gpu(tensors)) is not None:
        held["rng/cuda"] = torch.cuda.get_rng_state(gpu)
    said = dict(vars(progress))
    held[LOG] = torch.frombuffer(bytearray(json.dumps(said.pop("log")).encode()), dtype=torch.uint8)
    with atomic(folder / STATE) as file:
        file.write(save_tensors(held, metadata={"progress": json.dumps(said)}))


def load_state(folder: Path, tensors: dict[str, Tensor]) -> Progress | None:
    """Put a saved state back into `tensors`; None where there is none yet."""
    path = folder / STATE
    if not path.exists():
        return None
    try:
        held, metadata = read_tensors(path)
    except HardtailError as error:
        raise HardtailError(f"{error}; remove it to begin the run anew, or {ELSEWHERE}") from error
    if missing := sorted(set(tensors) - set(held)):
        raise HardtailError(f"{path} is of another kind of run: it has no {missing[0]!r}; {ELSEWHERE}")
    with torch.no_grad():
        for name, tensor in tensors.items():
            if tensor.shape != held[name].shape:
                raise HardtailError(f"{path} is of another shape of run ({name}); {ELSEWHERE}")
            tensor.copy_(held[name])
    try:
        said = json.loads(metadata["progress"])
        if LOG in held:  # older states have the log in the header
            said["log"] = json.loads(held[LOG].numpy().tobytes())
        progress = Progress(**said)
        torch.set_rng_state(held["rng/cpu"])
        if (gpu := _gpu(tensors)) is not None and "rng/cuda" in held:
            torch.cuda.set_rng_state(held["rng/cuda"], gpu)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise HardtailError(f"{path} is no saved state of a run ({error}); {ELSEWHERE}") from error
    return progress


def state_step(folder: Path) -> int:
    """The step of a saved state, of which only the header is read; 0 where there is none that can be read."""
    try:
        with (folder / STATE).open("rb") as file:
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(min(size, HEADER)))
        return int(json.loads(header["__metadata__"]["progress"])["step"])
    except (OSError, KeyError, TypeError, ValueError):
        return 0


def _gpu(tensors: dict[str, Tensor]) -> torch.device | None:
    """The GPU that a run is on; one on a CPU leaves a GPU that there may be alone."""
    return next((tensor.device for tensor in tensors.values() if tensor.is_cuda), None)
