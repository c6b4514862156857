"""An evaluation on a cluster: each worker loads the model and decodes some of the instances.

Shapes: N instances, A answer cells.
"""

import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from hardtail.core.provenance import Origin
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import CPU_BATCH
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import Progress
from hardtail.measuring.looking import Judged
from hardtail.measuring.passes import HERE, Passes
from hardtail.measuring.subject import Subject
from hardtail.policies.base import Policy
from hardtail.study.cluster import Crew

R = TypeVar("R")

MOST = 4096
"""The most instances that a worker is sent at a time."""

Load = Callable[[str], Subject]
"""Loads the model onto a device."""

_loaded: dict[str, Subject] = {}
"""In a worker: the model that it was last sent work for."""


@dataclass(frozen=True)
class Shards(Passes):
    """Passes on a cluster. `load` is called in each worker; the model of this process is not used.

    A worker computes in one thread, so on a CPU results are those of this process to the byte for our own models, which
    always do. The time of a decode includes that of `trust`.
    """

    crew: Crew
    load: Load
    token: str = field(default_factory=lambda: secrets.token_hex(8))
    """Names the model in the workers."""

    def origin(self, device: str) -> Origin:
        return self._origins[device]

    @cached_property
    def _origins(self) -> "_Origins":
        return _Origins(self.crew)

    def traces(
        self,
        subject: Subject,
        policy: Policy,
        instances: Instances,
        decoding: Decoding,
        about: Mapping[str, Any],
        *,
        trust: bool,
        progress: Progress,
    ) -> Generator[tuple[Trace, float], None, None]:
        size = shard_size(len(instances), self.crew.places)
        shards = (instances.take(slice(at, at + size)) for at in range(0, len(instances), size))
        decode = partial(_decoded, policy=policy, about=dict(about), trust=trust)
        for part in self.crew.map(self._with_model(decode, decoding), shards):
            progress(len(part))
            yield part, 0.0

    def judged(
        self, subject: Subject, instances: Instances, judged_NA: NDArray[np.bool_], decoding: Decoding
    ) -> Judged:
        (found,) = self.crew.map(self._with_model(_judged, decoding), [(instances, judged_NA)])
        return found

    def _with_model(self, function: Callable[..., R], decoding: Decoding) -> Callable[[Any], R]:
        alone = replace(decoding, workers=1) if decoding.device == "cpu" else decoding
        return partial(_performed, function, self.token, self.load, alone)


class _Origins(dict[str, Origin]):
    """By device: the code and the machine of a worker, asked for once."""

    def __init__(self, crew: Crew) -> None:
        self.crew = crew

    def __missing__(self, device: str) -> Origin:
        (self[device],) = self.crew.map(HERE.origin, [device])
        return self[device]


def shard_size(n: int, places: int) -> int:
    """Instances of a shard: whole batches, as many shards as there are places, none too large to send."""
    return min(-(-n // (places * CPU_BATCH)) * CPU_BATCH, MOST)


def _performed(function: Callable[..., R], token: str, load: Load, decoding: Decoding, job: Any) -> R:
    if token not in _loaded:
        _loaded.clear()
        _loaded[token] = load(decoding.device)
    return function(_loaded[token], decoding, job)


def _decoded(
    subject: Subject, decoding: Decoding, instances: Instances, *, policy: Policy, about: dict[str, Any], trust: bool
) -> Trace:
    found = HERE.traces(subject, policy, instances, decoding, about, trust=trust, progress=lambda done: None)
    return Trace.concat([part for part, _ in found])


def _judged(subject: Subject, decoding: Decoding, job: tuple[Instances, NDArray[np.bool_]]) -> Judged:
    return HERE.judged(subject, *job, decoding)
