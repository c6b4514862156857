"""What happens in a process of a cluster: it is sent a unit, works on it, and answers with what became of it."""

import signal
import time
from dataclasses import dataclass

from hardtail.study.cluster import prepare
from hardtail.study.unit import Result, Unit, Watching, Work


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


def perform(order: Order) -> Result:
    """Work on a unit; a task that is cancelled saves and stops."""
    import torch

    prepare(order.environment)
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
