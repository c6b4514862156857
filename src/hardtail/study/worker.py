"""What happens in a process of a cluster: it is sent a unit, works on it, and answers with what became of it."""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from hardtail.core.errors import HardtailError
from hardtail.core.provenance import code_version
from hardtail.study.unit import Result, Unit, Watching, Work
from hardtail.tasks.datasets import KEPT

COMMIT = "HARDTAIL_COMMIT"
STORE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_REGION")
"""Where object storage is; what gives access to it is not passed on: every machine has that, or gets it, by itself."""


@dataclass(frozen=True)
class Order:
    """What a worker is sent."""

    unit: Unit
    work: Work
    until: float
    """When it has to stop, in seconds since 1970."""
    owner: str
    """The word that it takes the lease under."""
    threads: int
    environment: dict[str, str]


def environment() -> dict[str, str]:
    """What a worker has to know of the environment, and the code that it must be of."""
    kept = {KEPT: str(Path(os.environ[KEPT]).absolute())} if os.environ.get(KEPT) else {}
    store = {name: os.environ[name] for name in STORE if os.environ.get(name)}
    return {COMMIT: code_version(), **kept, **store}


def perform(order: Order) -> Result:
    """Work on a unit; a task that is cancelled saves and stops."""
    import torch

    if (ours := code_version()) != (theirs := order.environment[COMMIT]):
        raise HardtailError(
            f"a worker has other code ({ours}) than the command that sent it work ({theirs}); install the same on all "
            f"machines, and set {COMMIT} to its commit where there is no history"
        )
    os.environ.update(order.environment)
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
