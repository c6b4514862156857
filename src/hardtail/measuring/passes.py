"""Who makes the forward passes of an evaluation: this process, or others that it sends them to.

Shapes: N instances, A answer cells.
"""

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from contextlib import closing
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hardtail.core.provenance import Origin
from hardtail.core.provenance import origin as made_by
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode_stream
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import Progress
from hardtail.measuring.looking import Judged, judge
from hardtail.measuring.subject import Subject
from hardtail.measuring.trust import trusted
from hardtail.policies.base import Policy


class Passes(ABC):
    """Decodes instances, and judges single passes.

    On a CPU our own models give the same results wherever that is done. On other devices, and with other models,
    results may differ by rounding.
    """

    @abstractmethod
    def origin(self, device: str) -> Origin:
        """The code and the machine that make the passes."""

    @abstractmethod
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
        """The trace part by part, in the order of the instances; and the seconds that only `trust` took of each."""

    @abstractmethod
    def judged(
        self, subject: Subject, instances: Instances, judged_NA: NDArray[np.bool_], decoding: Decoding
    ) -> Judged:
        """How well the judged cells are predicted in one pass (`measuring.looking.judge`)."""


class Here(Passes):
    """In this process."""

    def origin(self, device: str) -> Origin:
        return made_by(device)

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
        decoded = decode_stream(subject.denoiser, instances, policy, decoding, progress=progress, about=about)
        with closing(decoded) as parts:
            for part in parts:
                asking = monotonic()
                yield trusted(subject.denoiser, part, decoding) if trust else part, monotonic() - asking

    def judged(
        self, subject: Subject, instances: Instances, judged_NA: NDArray[np.bool_], decoding: Decoding
    ) -> Judged:
        return judge(subject.denoiser, instances, judged_NA, decoding, subject.name)


HERE = Here()
