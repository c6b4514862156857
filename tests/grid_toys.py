"""Work on small units with a fault at a chosen moment, for processes of a cluster; and what it must not change."""

import errno
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

from hardtail.core.buckets import BucketDepot
from hardtail.core.depots import FolderDepot
from hardtail.study import measure as measuring
from hardtail.study.advance import work
from hardtail.study.unit import Unit, UnitResult, Watching
from hardtail.tasks.base import Part
from hardtail.training.step import Step
from tests.study_toys import _diagnosed

PARTS = [(Part("natural", 5), ("top1", "lsb")), (Part("chain>=4", 5), ("top1", "lsb"))]


@contextmanager
def little() -> Iterator[None]:
    """Measure a finished run on little."""
    with (
        patch.object(measuring, "study_parts", lambda task, n, **_: PARTS),
        patch.object(measuring, "explain_model", _diagnosed),
    ):
        yield


@dataclass(frozen=True)
class Faulty:
    """`work` that meets the fault of a run's name once: the first process that gets there leaves a mark."""

    marks: Path
    faults: dict[str, str]

    def __call__(self, unit: Unit, over: Callable[[], bool], watching: Watching, owner: str | None) -> UnitResult:
        fault, mark = self.faults.get(unit.name, ""), self.marks / unit.name
        with ExitStack() as stack:
            stack.enter_context(little())
            if fault == "pauses":
                stack.enter_context(at_step(partial(pause, over), mark, unit))
            elif fault and not mark.exists():
                stack.enter_context(FAULTS[fault](mark, unit))
            return work(unit, over, watching, owner)


def die(mark: Path) -> None:
    mark.touch()
    os.kill(os.getpid(), signal.SIGKILL)


def wait(mark: Path) -> None:
    """Wait for whoever sees the mark to end this process."""
    mark.touch()
    while True:
        signal.pause()


def pause(over: Callable[[], bool], mark: Path) -> None:
    """Wait until this worker is asked to stop, then go on; Ray asks without a signal that would end a wait."""
    mark.touch()
    while not over():
        threading.Event().wait(0.02)


def at_step(then: Callable[[Path], None], mark: Path, unit: Unit) -> Any:
    real = Step.__call__

    def step(self: Step) -> None:
        if int(self.step) == 6:
            then(mark)
        real(self)

    return patch.object(Step, "__call__", step)


def while_measuring(mark: Path, unit: Unit) -> Any:
    real: Callable[..., Any] = vars(measuring)["keep"]

    def keep(*given: Any) -> Any:
        real(*given)
        die(mark)

    return patch.object(measuring, "keep", keep)


def while_recording(file: str, mark: Path, unit: Unit) -> Any:
    """Killed when a file of the results is about to take the place of the one before."""
    file = file.format(unit.name)
    return (
        while_replacing(unit.store.folder / file, mark)
        if isinstance(unit.store.place, Path)
        else while_sending(file, mark, unit)
    )


def while_sending(file: str, mark: Path, unit: Unit) -> Any:
    """Killed when a file is about to be sent to object storage."""
    real = BucketDepot.swap

    def swap(self: BucketDepot, key: str, content: bytes, expected: str | None) -> str:
        if self == unit.store.place and key == file:
            die(mark)
        return real(self, key, content, expected)

    return patch.object(BucketDepot, "swap", swap)


def while_replacing(target: Path, mark: Path) -> Any:
    real = Path.replace

    def replace(self: Path, to: Path) -> Path:
        if Path(to) == target:
            die(mark)
        return real(self, to)

    return patch.object(Path, "replace", replace)


def refusing(number: int, mark: Path, unit: Unit) -> Any:
    """The store refuses to take a run's files."""
    real = FolderDepot.write

    def write(self: FolderDepot, key: str, content: bytes) -> None:
        if key.startswith(f"{unit.name}/"):
            mark.touch()
            raise OSError(number, os.strerror(number))
        real(self, key, content)

    return patch.object(FolderDepot, "write", write)


FAULTS: dict[str, Callable[[Path, Unit], Any]] = {
    "killed in training": lambda mark, unit: at_step(die, mark, unit),
    "killed in measuring": while_measuring,
    "killed in copying": lambda mark, unit: while_recording("{}/log.jsonl", mark, unit),
    "killed in indexing": lambda mark, unit: while_recording("index.jsonl", mark, unit),
    "refused": lambda mark, unit: refusing(errno.EIO, mark, unit),
    "full": lambda mark, unit: refusing(errno.ENOSPC, mark, unit),
    "waits": lambda mark, unit: at_step(wait, mark, unit),
}


def untimed(path: Path) -> list[dict[str, Any]]:
    """The records of a file without the seconds that they took."""
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in record.items() if key != "wall"} for record in records]
