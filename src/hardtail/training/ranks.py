"""The processes that train one run together: each with its share of the data and of the batch, one gradient for all.

`torchrun` starts them and tells each its rank. Only tensors are exchanged. The first rank measures, keeps the files and
decides; the others compute.

Shapes: P numbers to be summed.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from hardtail.core.errors import HardtailError
from hardtail.core.seeds import Stream

LONGEST_WAIT = timedelta(hours=4)
"""How long the others wait while the first rank measures; then they take it for dead."""
AGREE_EVERY = 10
"""Steps between two agreements on whether to stop: each waits for every process."""

Tensors = dict[str, Tensor]


class Ranks(ABC):
    """The processes of a run, as seen from one of them."""

    rank: int
    world: int

    @property
    def first(self) -> bool:
        return self.rank == 0

    def seed(self, seed: int) -> int:
        """The seed of what is random in this process: the run's own in the first, another stream in every other."""
        return seed if self.first else int(Stream(f"training/rank {self.rank}", seed).keys(1)[0])

    @abstractmethod
    def sum(self, vector_P: Tensor) -> None:
        """Replace a vector on the device by its sum over all processes."""

    @abstractmethod
    def most(self, value: int) -> int:
        """The largest value that a process has."""

    def agree(self, value: int, step: int, *, now: bool) -> int:
        """The largest wish of all processes, asked every few steps and when all are asked `now`; 0 in between."""
        return self.most(value) if now or step % AGREE_EVERY == 0 else 0

    @abstractmethod
    def total(self, counts: Tensor) -> Tensor:
        """Counts summed over all processes."""

    @abstractmethod
    def gather(self, own: Tensors) -> list[Tensors]:
        """In the first process: the tensors of every other, which has the same names and shapes; elsewhere nothing."""

    @abstractmethod
    def hand_out(self, common: Tensors, own: Tensors, others: list[Tensors]) -> None:
        """Put the first process's `common` tensors into those of all, and each of `others` into its process's own."""


class Alone(Ranks):
    """A run in one process."""

    rank, world = 0, 1

    def sum(self, vector_P: Tensor) -> None:
        return

    def most(self, value: int) -> int:
        return value

    def agree(self, value: int, step: int, *, now: bool) -> int:
        return value

    def total(self, counts: Tensor) -> Tensor:
        return counts

    def gather(self, own: Tensors) -> list[Tensors]:
        return []

    def hand_out(self, common: Tensors, own: Tensors, others: list[Tensors]) -> None:
        return


class Together(Ranks):
    """A run in several processes, which torch's process group connects.

    Gradients are summed by the group's own backend (NCCL on GPUs); everything else is small and goes over the host.
    """

    def __init__(self) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self.host = dist.new_group(backend="gloo", timeout=LONGEST_WAIT)

    def sum(self, vector_P: Tensor) -> None:
        dist.all_reduce(vector_P)

    def most(self, value: int) -> int:
        found = torch.tensor(value)
        dist.all_reduce(found, dist.ReduceOp.MAX, group=self.host)
        return int(found)

    def total(self, counts: Tensor) -> Tensor:
        found = counts.cpu().clone()
        dist.all_reduce(found, group=self.host)
        return found

    def gather(self, own: Tensors) -> list[Tensors]:
        parts: list[Tensors] = [{} for _ in range(self.world)]
        for name, tensor in own.items():
            sent = _sendable(tensor)
            into = [torch.empty_like(sent) for _ in parts] if self.first else None
            dist.gather(sent, into, group=self.host)
            for part, held in zip(parts, into or (), strict=False):
                part[name] = held.to(tensor.dtype)
        return parts[1:] if self.first else []

    def hand_out(self, common: Tensors, own: Tensors, others: list[Tensors]) -> None:
        with torch.no_grad():
            for tensor in common.values():
                sent = _sendable(tensor)
                dist.broadcast(sent, 0, group=self.host)
                tensor.copy_(sent)
            for name, tensor in own.items():
                sent = _sendable(tensor)
                parts = [sent, *(_sendable(other[name]) for other in others)] if self.first else None
                mine = torch.empty_like(sent)
                dist.scatter(mine, parts, group=self.host)
                tensor.copy_(mine)


def _sendable(tensor: Tensor) -> Tensor:
    """A copy on the host, in a type that can be sent."""
    held = tensor.detach().cpu().contiguous().clone()
    return held.to(torch.uint8) if held.dtype == torch.bool else held


@contextmanager
def open_ranks(device: str) -> Iterator[tuple[Ranks, str]]:
    """The processes that `torchrun` started this one with, if it did, and the device of this one."""
    world = _number("WORLD_SIZE", 1)
    if world == 1:
        yield Alone(), device
        return
    gpu = device.startswith("cuda")
    if gpu:
        if ":" in device:
            raise HardtailError(f"--device {device} names one GPU, and {world} processes train; give --device cuda")
        device = f"cuda:{_number('LOCAL_RANK', 0)}"
        if (count := torch.cuda.device_count()) <= _number("LOCAL_RANK", 0):
            raise HardtailError(f"there is no {device}: this machine has {count} GPUs; start one process for each GPU")
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if gpu else "gloo", timeout=LONGEST_WAIT)
    try:
        yield Together(), device
    finally:
        dist.destroy_process_group()


def _number(name: str, usual: int) -> int:
    given = os.environ.get(name, "")
    return int(given) if given.isdecimal() else usual
