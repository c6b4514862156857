"""Building the study's data sets: chunks on all cores, and no problem both trained and measured on."""

import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hardtail.core.errors import HardtailError
from hardtail.core.files import file_hash, load_instances, save_instances
from hardtail.core.seeds import Stream, Streams
from hardtail.core.types import Instances
from hardtail.core.version import __version__
from hardtail.tasks.base import Part, Task
from hardtail.tasks.named import task_to_json

CHUNK = 1000
TRAIN = "train"
MEASURED = 4
"""One problem in this many, by a hash of the problem itself, belongs to the splits that are measured on, the others to
training. So the two never meet, whatever their sizes and seeds, and the laws of difficulty stay as they are."""

WHOLE = "all"
"""In place of a stratum: a split with all its parts, in its own proportions."""
KEPT = "HARDTAIL_DATA"
"""The environment variable that names a folder in which drawn instances are kept: drawn once, and read from there
afterwards, also on machines that cannot draw them (no numba)."""

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
    if (kept := _kept(task, split, parts, seed, keep_overlap)) is not None and kept.exists():
        return Built(*load_instances(kept))
    removed = 0
    made: list[Instances] = []
    with ThreadPoolExecutor(workers or os.cpu_count()) as pool:
        for part in parts:
            instances, dropped = _draw(task, split, part, seed, keep_overlap, pool, progress)
            made.append(instances)
            removed += dropped
    instances = Instances.concat(made)
    apart = "not kept apart" if keep_overlap else "by construction"
    if not keep_overlap and any(_meets_other_side(task, split, part) for part in parts):
        apart = f"by a hash of the problem, 1 in {MEASURED} for measuring"
    origin = {"seed": seed, "streams": [stream_name(task, split, part) for part in parts]}
    facts = {"parts": [part._asdict() for part in parts], "train_and_test": apart, "removed": removed}
    built = Built(instances, _manifest(task, split, origin | facts, instances))
    if kept is not None:
        save_instances(kept, built.instances, built.manifest)
    return built


def draw(task: Task, split: str, part: Part, seed: int) -> Instances:
    """The first instances of one part of a split, as `build` has them; `WHOLE` is all its parts, shuffled."""
    if part.stratum == WHOLE:
        instances = build(task, split, seed, part.n).instances
        shuffled = Streams(seed).named(f"{task.name}/{split}/shuffled").keys(len(instances))
        return instances.take(np.argsort(shuffled, kind="stable"))
    part = Part(str(task.stratum(part.stratum)), part.n)
    kept = _kept(task, split, [part], seed, False)
    if kept is not None and kept.exists():
        return load_instances(kept)[0]
    with ThreadPoolExecutor(1) as pool:
        instances = _draw(task, split, part, seed, False, pool, lambda made: None)[0]
    if kept is not None:
        save_instances(kept, instances, _manifest(task, split, {"seed": seed, "part": part._asdict()}, instances))
    return instances


def _kept(task: Task, split: str, parts: Sequence[Part], seed: int, keep_overlap: bool) -> Path | None:
    """Where these instances are kept, if anywhere: a name from everything that they depend on."""
    folder = os.environ.get(KEPT)
    if not folder:
        return None
    asked = [__version__, task.name, task.config(), split, [list(part) for part in parts], seed, keep_overlap]
    digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]
    return Path(folder) / f"{task.name}-{split}-{digest}.npz"


def load(task: Task, source: str, split: str = "", seed: int = 0, n: int | None = None) -> Built:
    """Problems from someone else's file; with `split`, what the study keeps of them for that split."""
    path = task.fetch(source)
    instances = task.load(path)
    rng = Streams(seed).named(f"{task.name}/{split}/{path.name}")
    if split:
        parts_of(task, split, None)
        instances = task.curate(instances, split, rng)
    if n is not None and n < len(instances):  # a random choice keeps the split's proportions
        instances = instances.take(np.sort(np.argsort(rng.child("some").keys(len(instances)), kind="stable")[:n]))
    if not len(instances):
        raise HardtailError(f"{path} holds no problem that the split {split!r} of {task.name} takes")
    origin = {"seed": seed, "file": path.name, "file_sha256": file_hash(path)}
    facts = {"train_and_test": "as in the file", "removed": None}
    return Built(instances, _manifest(task, split or "all", origin | facts, instances))


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


def _meets_other_side(task: Task, split: str, part: Part) -> bool:
    """Whether problems of this part could also turn up on the other side of the line between training and measuring."""
    stratum = task.stratum(part.stratum)
    return any(
        not stratum.disjoint(task.stratum(other.stratum))
        for name, others in task.splits().items()
        if (name == TRAIN) != (split == TRAIN)
        for other in others
    )


def _draw(
    task: Task, split: str, part: Part, seed: int, keep_overlap: bool, pool: ThreadPoolExecutor, progress: Progress
) -> tuple[Instances, int]:
    """The first `part.n` instances of the part's stream that are on the split's side, and how many were passed over."""
    stream = Streams(seed).named(stream_name(task, split, part))
    filtered = not keep_overlap and _meets_other_side(task, split, part)
    share = (1 - 1 / MEASURED if split == TRAIN else 1 / MEASURED) if filtered else 1.0
    kept: list[Instances] = []
    got = passed = asked = 0
    while got < part.n:
        ask = math.ceil((part.n - got) / share)
        for chunk in _chunks(task, ask, stream.skip(asked), part.stratum, pool):
            ours_C = np.ones(len(chunk), dtype=np.bool_)
            if filtered:
                ours_C = np.array([is_measured(problem) != (split == TRAIN) for problem in _problems(chunk)])
            place_K = np.flatnonzero(ours_C)[: part.n - got]
            seen = len(chunk) if got + place_K.size < part.n else int(place_K[-1]) + 1 if place_K.size else 0
            passed += seen - place_K.size
            kept.append(chunk if place_K.size == len(chunk) else chunk.take(place_K))
            got += place_K.size
            progress(place_K.size)
        asked += ask
        if not got and asked > 1000:
            raise HardtailError(
                f"{task.name}: there are too few different problems with {part.stratum} to keep some for {split} only; "
                "take larger problems, or keep the overlap"
            )
    return Instances.concat(kept), passed


def is_measured(problem: bytes) -> bool:
    """Which side of the line a problem (its prompt's tokens) is on."""
    return zlib.crc32(problem) % MEASURED == 0


def _chunks(task: Task, n: int, stream: Stream, stratum: str, pool: ThreadPoolExecutor) -> Iterator[Instances]:
    """`n` instances in order, sampled in parallel."""

    def sample(start: int) -> Instances:
        return task.sample(min(CHUNK, n - start), stream.skip(start), stratum)

    return pool.map(sample, range(0, n, CHUNK))


def _problems(instances: Instances) -> list[bytes]:
    return [instances.prompt(i).tobytes() for i in range(len(instances))]


def _manifest(task: Task, split: str, facts: dict[str, Any], instances: Instances) -> dict[str, Any]:
    return {
        "hardtail": __version__,
        "task": task_to_json(task),
        "preset": task.preset_name(),
        "split": split,
        **facts,
        "distinct": len(set(_problems(instances))),
    }
