"""An evaluation on a cluster: each worker loads the model and decodes some of the instances.

A worker whose model is not the one of the command that sent it work refuses.

Shapes: N instances, A answer cells.
"""

import secrets
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from hardtail.core.errors import HardtailError
from hardtail.core.provenance import Origin
from hardtail.core.types import Instances, Trace
from hardtail.decoding.options import Decoding
from hardtail.decoding.sizes import CPU_BATCH
from hardtail.decoding.workers import Progress
from hardtail.measuring.looking import Judged
from hardtail.measuring.passes import HERE, Passes
from hardtail.measuring.subject import ModelOrigin, Subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.models.own import OwnModel
from hardtail.models.weights import weights_hash
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
class Identity:
    """Which model it is, to be compared between processes."""

    origin: ModelOrigin
    weights: str | None
    """Their hash; None for a function, which has none that can be seen."""

    @classmethod
    def of(cls, subject: Subject) -> "Identity":
        held: object = subject.denoiser
        module = (
            held.model if isinstance(held, ModelDenoiser) else held.function if isinstance(held, OwnModel) else held
        )
        return cls(subject.origin, weights_hash(module) if isinstance(module, nn.Module) else None)

    def refuse_other(self, other: "Identity") -> None:
        """Raise HardtailError if a worker's model is another one."""
        ours, theirs = ({**vars(each.origin), "weights": each.weights} for each in (self, other))
        if differing := [name for name in ours if ours[name] != theirs[name]]:
            raise HardtailError(
                f"a worker has loaded another model than this command: they differ in {', '.join(differing)}; give a "
                "model that is the same on all machines"
            )


@dataclass(frozen=True)
class Shards(Passes):
    """Passes on a cluster. `load` is called in each worker; the model of this process is not used.

    A worker computes in one thread, so on a CPU results are those of this process to the byte for our own models, which
    always do. The time of a decode includes that of `trust`.
    """

    crew: Crew
    load: Load
    model: Identity
    """What `load` must load in each worker."""
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
        return partial(_performed, function, self.token, self.load, self.model, alone)


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


def _performed(function: Callable[..., R], token: str, load: Load, model: Identity, decoding: Decoding, job: Any) -> R:
    if token not in _loaded:
        _loaded.clear()
        subject = load(decoding.device)
        model.refuse_other(Identity.of(subject))
        _loaded[token] = subject
    return function(_loaded[token], decoding, job)


def _decoded(
    subject: Subject, decoding: Decoding, instances: Instances, *, policy: Policy, about: dict[str, Any], trust: bool
) -> Trace:
    found = HERE.traces(subject, policy, instances, decoding, about, trust=trust, progress=lambda done: None)
    return Trace.concat([part for part, _ in found])


def _judged(subject: Subject, decoding: Decoding, job: tuple[Instances, NDArray[np.bool_]]) -> Judged:
    return HERE.judged(subject, *job, decoding)
