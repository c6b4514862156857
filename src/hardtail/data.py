"""Building the study's data sets: chunks on all cores, training data disjoint from everything it is measured on."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from hardtail import __version__
from hardtail.errors import HardtailError
from hardtail.files import file_hash
from hardtail.seeds import Stream, Streams
from hardtail.tasks.base import Part, Task
from hardtail.tasks.strata import Stratum
from hardtail.types import Instances

CHUNK = 1000
TRAIN = "train"
Progress = Callable[[int], None]
"""Called with the number of instances that were just made."""


@dataclass(frozen=True)
class Built:
    """A data set and what its manifest says of it."""

    instances: Instances
    manifest: dict[str, Any]


def build(
    task: Task,
    split: str = TRAIN,
    seed: int = 0,
    n: int | None = None,
    *,
    keep_overlap: bool = False,
    workers: int | None = None,
    progress: Progress = lambda made: None,
) -> Built:
    """One of the task's splits, from streams named after task, split and stratum.

    The result does not depend on `workers`. Compiled code releases the interpreter lock, so threads fill all cores.
    """
    parts = parts_of(task, split, n)
    streams = Streams(seed)
    removed = 0
    made: list[Instances] = []
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for part in parts:
            held = set[bytes]()
            if split == TRAIN and not keep_overlap:
                held = _measured_on(task, part, streams, pool)
            instances, dropped = _draw(task, part, streams.named(stream_name(task, split, part)), held, pool, progress)
            made.append(instances)
            removed += dropped
    instances = Instances.concat(made)
    source = {"seed": seed, "streams": [stream_name(task, split, part) for part in parts]}
    return Built(instances, _manifest(task, split, source, parts, instances, removed))


def load(task: Task, source: str, split: str | None, seed: int = 0, n: int | None = None) -> Built:
    """Problems from someone else's file; with `split`, what the study keeps of them for that split."""
    path = task.fetch(source)
    instances = task.load(path)
    if split is not None:
        parts_of(task, split, None)
        instances = task.curate(instances, split, Streams(seed).named(f"{task.name}/{split}/{path.name}"))
    if n is not None:
        instances = instances.take(slice(n))
    if not len(instances):
        raise HardtailError(f"{path} holds no problem that the split {split!r} of {task.name} takes")
    origin = {"seed": seed, "file": path.name, "file_sha256": file_hash(path)}
    return Built(instances, _manifest(task, split or "all", origin, [], instances, removed=0))


def parts_of(task: Task, split: str, n: int | None) -> list[Part]:
    """The parts of a split, scaled to `n` instances in total where `n` is given; no part disappears."""
    splits = task.splits()
    if split not in splits:
        raise HardtailError(f"{task.name}: there is no split {split!r}; it is one of {', '.join(splits)}")
    parts = list(splits[split])
    if n is None:
        return parts
    if n < len(parts):
        raise HardtailError(f"{task.name}: {n} instances cannot cover the {len(parts)} strata of {split!r}")
    size_P = np.array([part.n for part in parts])
    edge_P = np.round(np.cumsum(size_P) / size_P.sum() * (n - len(parts))).astype(int)
    return [Part(part.stratum, int(share) + 1) for part, share in zip(parts, np.diff(edge_P, prepend=0), strict=True)]


def stream_name(task: Task, split: str, part: Part) -> str:
    return f"{task.name}/{split}/{part.stratum}"


def _measured_on(task: Task, part: Part, streams: Streams, pool: ThreadPoolExecutor) -> set[bytes]:
    """The problems of all other splits that could also turn up in `part`."""
    stratum = Stratum.parse(part.stratum, task.axes, task.name)
    held = set[bytes]()
    for split, others in task.splits().items():
        for other in others if split != TRAIN else ():
            if not stratum.disjoint(Stratum.parse(other.stratum, task.axes, task.name)):
                stream = streams.named(stream_name(task, split, other))
                for chunk in _chunks(task, other.n, stream, other.stratum, pool):
                    held.update(_problems(chunk))
    return held


def _draw(
    task: Task, part: Part, stream: Stream, held: set[bytes], pool: ThreadPoolExecutor, progress: Progress
) -> tuple[Instances, int]:
    """`part.n` instances that are not in `held`, topped up from further along the stream; and how many were removed."""
    kept: list[Instances] = []
    missing, removed = part.n, 0
    while missing:
        for chunk in _chunks(task, missing, stream, part.stratum, pool):
            fresh = np.array([problem not in held for problem in _problems(chunk)])
            kept.append(chunk if fresh.all() else chunk.take(fresh))
            progress(int(fresh.sum()))
        stream = stream.skip(missing)
        got = sum(map(len, kept))
        removed += missing - (got - (part.n - missing))
        missing = part.n - got
        if removed > 100 * part.n + 10_000:
            raise HardtailError(
                f"{task.name}: nearly every {part.stratum} instance is also in another split; ask for fewer instances, "
                "a larger problem, or keep the overlap"
            )
    return Instances.concat(kept), removed


def _chunks(task: Task, n: int, stream: Stream, stratum: str, pool: ThreadPoolExecutor) -> Iterator[Instances]:
    """`n` instances in order, sampled in parallel."""

    def sample(start: int) -> Instances:
        return task.sample(min(CHUNK, n - start), stream.skip(start), stratum)

    return pool.map(sample, range(0, n, CHUNK))


def _problems(instances: Instances) -> list[bytes]:
    return [instances.prompt(i).tobytes() for i in range(len(instances))]


def _manifest(
    task: Task, split: str, source: dict[str, Any], parts: Sequence[Part], instances: Instances, removed: int
) -> dict[str, Any]:
    return {
        "hardtail": __version__,
        "task": task.name,
        "preset": task.preset_name(),
        "config": task.config(),
        "split": split,
        **source,
        "parts": [part._asdict() for part in parts],
        "removed": removed,
        "distinct": len(set(_problems(instances))),
    }
