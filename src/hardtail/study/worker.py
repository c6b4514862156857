"""What happens in a process of a cluster: it is sent a unit, works on it, and answers with what became of it."""

import signal
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hardtail.core.errors import HardtailError
from hardtail.study.cluster import prepare
from hardtail.study.unit import Unit, UnitResult, Watching, Work, data_hashes


@dataclass(frozen=True)
class WorkOrder:
    """What a worker is sent."""

    unit: Unit
    work: Work
    until: float
    """When it has to stop, in seconds since 1970."""
    owner: str
    """The token of the lease that it takes."""
    threads: int
    environment: dict[str, str]
    data: dict[str, str]
    """`data_hashes` where the command runs."""


def perform(order: WorkOrder) -> UnitResult:
    """Work on a unit; a task that is cancelled saves and stops."""
    import torch

    prepare(order.environment)
    refuse_other_data(order.unit.data_file, order.data)
    torch.set_num_threads(order.threads)
    stopping = False

    def stop(number: int, frame: object) -> None:
        nonlocal stopping
        stopping = True

    before = signal.signal(signal.SIGINT, stop)  # how Ray cancels a task
    try:
        # Nobody reads this process's output; what it measures is in the run's log.
        return order.work(order.unit, lambda: stopping or time.time() >= order.until, Watching(), order.owner)
    finally:
        signal.signal(signal.SIGINT, before)


def refuse_other_data(data_file: Path | None, theirs: Mapping[str, str]) -> None:
    """Raise HardtailError unless this machine has the same data, and the same test file or none, as the command."""
    here = f"on the worker {socket.gethostname()}"
    try:
        ours = data_hashes(data_file)
    except HardtailError as error:
        raise HardtailError(f"{error} ({here})") from error
    for name in sorted(ours.keys() | theirs.keys()):
        if ours.get(name) != theirs.get(name):
            how = "is missing" if name not in ours else "differs" if name in theirs else "is found only"
            raise HardtailError(
                f"--data {data_file}: {name} {how} {here}; all machines need the files of the command that sent work"
            )
