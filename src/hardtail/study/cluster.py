"""A connection to a Ray cluster, and jobs on it whose results are wanted here, in their order.

Ray moves work between processes by pickle, so everyone who reaches a cluster can run code on it: use one that is your
own. A cluster that is started here listens on the loopback interface only. No torch here: a worker that draws problems
starts without it.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hardtail.core.cores import usable_cores
from hardtail.core.errors import HardtailError
from hardtail.core.provenance import code_version
from hardtail.tasks.datasets import KEPT

Job = TypeVar("Job")
Answer = TypeVar("Answer")

COMMIT = "HARDTAIL_COMMIT"
STORE = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_DEFAULT_REGION", "AWS_REGION")
"""Where object storage is; what gives access to it is not passed on: every machine has that, or gets it, by itself."""
EXTRA = "pip install 'hardtail[grid]'"
OBJECT_STORE = 80 << 20
"""Bytes of shared memory of a cluster that is started here: little is passed through it."""
JOBS_PER_PLACE = 2
"""Jobs for each place on the cluster that are under way or waiting, so that none is idle while results are taken."""
RETRIES = 3
"""How often a job is sent again whose worker died; a job has no other effect than its result."""


def imported() -> Any:
    """The package `ray`."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # a run without a GPU sees the machine as it is
    try:
        import ray
        import ray.exceptions
    except ImportError as error:
        raise HardtailError(f"`--launcher ray` needs Ray: {EXTRA}") from error
    return ray


@contextmanager
def connected(address: str | None, cpus: int = 1) -> Iterator[Any]:
    """Connect to the cluster at an address, or start one here with at least this many cores.

    A cluster that is running in this process is used as it is.
    """
    ray = imported()
    mine = not ray.is_initialized()
    if mine:
        try:
            ray.init(**_settings(address, cpus))
        except (ConnectionError, RuntimeError, ValueError) as error:
            raise HardtailError(f"there is no Ray cluster at {address or 'this machine'}: {error}") from error
    try:
        yield ray
    finally:
        if mine:
            ray.shutdown()


def _settings(address: str | None, cpus: int) -> dict[str, Any]:
    quiet = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is not None:
        return {"address": address, **quiet}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    here = {
        "address": "local",
        "include_dashboard": False,
        "_node_ip_address": "127.0.0.1",
        "object_store_memory": OBJECT_STORE,
    }
    return {"num_cpus": max(usable_cores(), cpus), **here, **quiet}


@dataclass(frozen=True)
class Crew:
    """The workers of an open cluster, each with one core, and with a GPU if the jobs need one."""

    ray: Any
    gpu: bool = False

    @property
    def places(self) -> int:
        """How many jobs the cluster does at the same time."""
        return max(int(self.ray.cluster_resources().get("GPU" if self.gpu else "CPU", 0)), 1)

    @property
    def has_gpus(self) -> bool:
        return self.ray.cluster_resources().get("GPU", 0) >= 1

    def on(self, device: str) -> "Crew":
        """The workers for jobs on a device; raise HardtailError if none has it, since jobs would wait for ever."""
        if device != "cpu" and not self.has_gpus:
            raise HardtailError(
                f"--device {device}: the cluster has no GPU; give --device cpu, or add a machine with one"
            )
        return replace(self, gpu=device != "cpu")

    def map(self, function: Callable[[Job], Answer], jobs: Iterable[Job]) -> Iterator[Answer]:
        """The results of the jobs, in their order; only a few jobs at a time are under way."""
        task = self.ray.remote(max_retries=RETRIES, num_cpus=1, num_gpus=int(self.gpu))(_answer)
        sent, known, pending = self.ray.put(function), environment(), deque[Any]()
        most = JOBS_PER_PLACE * self.places
        for job in jobs:
            pending.append(task.remote(known, sent, job))
            if len(pending) == most:
                yield self._answered(pending.popleft())
        while pending:
            yield self._answered(pending.popleft())

    def _answered(self, reference: Any) -> Any:
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, HardtailError):
                raise HardtailError(str(cause)) from error
            raise
        except self.ray.exceptions.RayError as error:
            kind = type(error).__name__
            raise HardtailError(
                f"the worker of a job died {RETRIES + 1} times ({kind}), perhaps for lack of memory; try again with "
                "fewer instances, or on larger machines"
            ) from error


def _answer(known: dict[str, str], function: Callable[[Job], Answer], job: Job) -> Answer:
    """What a worker does with a job; Ray has told it to compute in one thread."""
    prepare(known)
    return function(job)


def environment() -> dict[str, str]:
    """What a worker has to know of the environment, and the code that it must be of."""
    kept = {KEPT: str(Path(os.environ[KEPT]).absolute())} if os.environ.get(KEPT) else {}
    store = {name: os.environ[name] for name in STORE if os.environ.get(name)}
    return {COMMIT: code_version(), **kept, **store}


def prepare(known: dict[str, str]) -> None:
    """Set a worker up as the command that sends it work is; raise HardtailError if it has other code."""
    if (ours := code_version()) != (theirs := known[COMMIT]):
        raise HardtailError(
            f"a worker has other code ({ours}) than the command that sent it work ({theirs}); install the same on all "
            f"machines, and set {COMMIT} to its commit where there is no history"
        )
    os.environ.update(known)
