"""Building the study's data sets: chunks on all cores, and no problem both trained and measured on."""

import hashlib
import json
import math
import os
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from msgspec import structs

from hardtail.core.cores import usable_cores
from hardtail.core.errors import HardtailError
from hardtail.core.files import MOST_TEXT, file_hash, load_instances, save_instances
from hardtail.core.manifest import Manifest, PartOfSplit
from hardtail.core.seeds import Streams
from hardtail.core.types import Instances
from hardtail.core.version import __version__
from hardtail.tasks.base import Part, Task, shuffled
from hardtail.tasks.named import task_to_json
from hardtail.tasks.stored import refuse_misshapen

CHUNK = 1000
TRAIN = "train"
MEASURED = 4
"""One problem in this many, chosen by a hash of what it shares with its relatives (`Task.kin`), belongs to the splits
that are measured on, the others to training. So the two never meet, whatever their sizes and seeds."""

WHOLE = "all"
"""In place of a stratum: a split with all its parts, in its own proportions."""
KEPT = "HARDTAIL_DATA"
"""The environment variable that names a folder of kept instances: they are drawn once and read from there afterwards,
also on machines that cannot draw them (no numba)."""

Progress = Callable[[int], None]
"""Called with the number of instances that were just made."""


class Pool(Protocol):
    """Makes chunks of a data set at the same time: threads here, or workers elsewhere."""

    def map(self, function: Callable[[int], Instances], jobs: Iterable[int], /) -> Iterator[Instances]:
        """The chunks that begin at these places, in this order."""


@dataclass(frozen=True)
class Built:
    """A data set and its manifest."""

    instances: Instances
    manifest: Manifest


def build(
    task: Task,
    split: str = TRAIN,
    seed: int = 0,
    n: int | None = None,
    *,
    keep_overlap: bool = False,
    workers: int | None = None,
    pool: Pool | None = None,
    progress: Progress = lambda made: None,
) -> Built:
    """One of the task's splits, from streams named after task, split and stratum.

    The result does not depend on `workers`, or on who else makes the chunks (`pool`). Compiled code releases the
    interpreter lock, so threads fill all cores.
    """
    parts = parts_of(task, split, n)

    def make() -> Built:
        with nullcontext(pool) if pool else ThreadPoolExecutor(workers or usable_cores()) as makers:
            drawn = [_draw(task, split, part, seed, keep_overlap, makers, progress) for part in parts]
        instances = Instances.concat([made for made, _ in drawn])
        apart = "not kept apart" if keep_overlap else "by construction"
        if not keep_overlap and any(_meets_other_side(task, split, part) for part in parts):
            apart = f"by a hash of the problem and its close relatives, 1 in {MEASURED} for measuring"
        manifest = structs.replace(
            _manifest(task, split, seed, instances),
            streams=tuple(_stream_name(task, split, part) for part in parts),
            parts=tuple(PartOfSplit(*part) for part in parts),
            train_and_test=apart,
            removed=sum(passed for _, passed in drawn),
        )
        return Built(instances, manifest)

    return _kept(task, split, parts, seed, keep_overlap, make)


def draw(task: Task, split: str, part: Part, seed: int) -> Instances:
    """The first instances of one part of a split, as `build` has them; `WHOLE` is all its parts, shuffled."""
    if part.stratum == WHOLE:
        instances = build(task, split, seed, part.n).instances
        rng = Streams(seed).named(f"{task.name}/{split}/shuffled")
        return instances.take(shuffled(np.arange(len(instances)), rng))
    part = Part(str(task.stratum(part.stratum)), part.n)

    def make() -> Built:
        with ThreadPoolExecutor(1) as pool:
            instances = _draw(task, split, part, seed, False, pool, lambda made: None)[0]
        manifest = structs.replace(_manifest(task, split, seed, instances), part=PartOfSplit(*part))
        return Built(instances, manifest)

    return _kept(task, split, [part], seed, False, make).instances


def _kept(
    task: Task, split: str, parts: Sequence[Part], seed: int, keep_overlap: bool, make: Callable[[], Built]
) -> Built:
    """What `make` draws; read from the folder of kept instances, or added to it, if there is one."""
    folder = os.environ.get(KEPT)
    if not folder:
        return make()
    name, sizes = task_to_json(task)["name"], [list(part) for part in parts]
    drawn_from = [__version__, name, task.config(), split, sizes, seed, keep_overlap]
    drawn_from += [task.edition] if task.edition > 1 else []
    digest = hashlib.sha256(json.dumps(drawn_from, sort_keys=True).encode()).hexdigest()[:16]
    path = Path(folder) / f"{task.name}-{split}-{digest}.npz"
    if path.exists():
        instances, manifest = load_instances(path)
        refuse_misshapen(task, instances, str(path))
        return Built(instances, manifest)
    built = make()
    save_instances(path, built.instances, built.manifest)
    return built


def load(
    task: Task, source: str, split: str = "", seed: int = 0, n: int | None = None, *, limit: int = MOST_TEXT
) -> Built:
    """Problems from someone else's file; with `split`, those that the study would use for that split.

    The file's text may take `limit` bytes of memory.
    """
    path = task.fetch(source)
    try:
        instances = task.load(path, limit)
    except HardtailError as error:
        raise error if str(path) in str(error) else HardtailError(f"{path}: {error}") from error
    rng = Streams(seed).named(f"{task.name}/{split}/{path.name}")
    if split:
        parts_of(task, split, None)
        instances = task.curate(instances, split, rng)
    if n is not None and n < len(instances):  # a random choice keeps the split's proportions
        instances = instances.take(np.sort(shuffled(np.arange(len(instances)), rng.child("some"))[:n]))
    if not len(instances):
        what = f"for the split {split!r} of {task.name}" if split else f"of {task.name}; give one on each line"
        raise HardtailError(f"{path} has no problem {what}")
    manifest = structs.replace(
        _manifest(task, split or "all", seed, instances),
        file=path.name,
        file_sha256=file_hash(path),
        train_and_test="not compared with other splits",
    )
    return Built(instances, manifest)


def parts_of(task: Task, split: str, n: int | None) -> list[Part]:
    """The parts of a split, scaled to `n` instances in total where `n` is given; no part disappears."""
    splits = task.splits()
    if split not in splits:
        raise HardtailError(f"{task.name}: there is no split {split!r}; give one of {', '.join(splits)}")
    parts = list(splits[split])
    if n is None:
        return parts
    if n < len(parts):
        raise HardtailError(
            f"{task.name}: {n} instances cannot cover the strata of {split!r}; give at least {len(parts)}"
        )
    size_P = np.array([part.n for part in parts])
    edge_P = np.round(np.cumsum(size_P) / size_P.sum() * (n - len(parts))).astype(int)
    return [Part(part.stratum, int(share) + 1) for part, share in zip(parts, np.diff(edge_P, prepend=0), strict=True)]


def _stream_name(task: Task, split: str, part: Part) -> str:
    return f"{task.name}/{split}/{part.stratum}"


def _meets_other_side(task: Task, split: str, part: Part) -> bool:
    """Whether problems of this part could also occur on the other side, training or measuring."""
    stratum = task.stratum(part.stratum)
    return any(
        not stratum.disjoint(task.stratum(other.stratum))
        for name, others in task.splits().items()
        if (name == TRAIN) != (split == TRAIN)
        for other in others
    )


def _draw(
    task: Task, split: str, part: Part, seed: int, keep_overlap: bool, pool: Pool, progress: Progress
) -> tuple[Instances, int]:
    """The first `part.n` instances of the part's stream that are on the split's side, and how many were skipped."""
    stream = Streams(seed).named(_stream_name(task, split, part))
    filtered = not keep_overlap and _meets_other_side(task, split, part)
    share = (1 - 1 / MEASURED if split == TRAIN else 1 / MEASURED) if filtered else 1.0
    kept: list[Instances] = []
    got = passed = asked = 0
    while got < part.n:
        end = asked + math.ceil((part.n - got) / share)

        def sample(start: int, end: int = end) -> Instances:
            return task.sample(min(CHUNK, end - start), stream.skip(start), part.stratum)

        for chunk in pool.map(sample, range(asked, end, CHUNK)):
            ours_C = np.ones(len(chunk), dtype=np.bool_)
            if filtered:
                ours_C = np.array([measured_on(kin) != (split == TRAIN) for kin in task.kin(chunk)])
            place_K = np.flatnonzero(ours_C)[: part.n - got]
            seen = len(chunk) if got + place_K.size < part.n else int(place_K[-1]) + 1 if place_K.size else 0
            passed += seen - place_K.size
            kept.append(chunk if place_K.size == len(chunk) else chunk.take(place_K))
            got += place_K.size
            progress(place_K.size)
        asked = end
        if got < part.n and asked > 1000 and got < asked / 500:
            raise HardtailError(
                f"{task.name}: there are too few different problems with {part.stratum} to keep some for {split} only; "
                "use larger problems, or keep the overlap"
            )
    return Instances.concat(kept), passed


def measured_on(kin: bytes) -> bool:
    """Whether problems with this value of `Task.kin` belong to the splits that are measured on."""
    return zlib.crc32(kin) % MEASURED == 0


def _manifest(task: Task, split: str, seed: int, instances: Instances) -> Manifest:
    return Manifest(
        hardtail=__version__,
        task=task_to_json(task),
        preset=task.preset_name(),
        split=split,
        seed=seed,
        distinct=len({instances.prompt(i).tobytes() for i in range(len(instances))}),
    )
