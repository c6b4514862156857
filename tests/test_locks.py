"""Locks and interrupts at their worst moments, which no stress test is sure to meet."""

import fcntl
import multiprocessing
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from hardtail import HardtailError
from hardtail.core.errors import BusyError
from hardtail.core.files import atomic, save_instances, sole_writer
from hardtail.core.types import Instances
from tests.test_files import saved

__all__ = ["saved"]


def lock_of(path: Path) -> Path:
    return path.with_name(f".{path.name}.lock")


def free(lock: Path) -> bool:
    """Whether another process could lock the file that is at this place now."""
    with lock.open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


def swapping(lock: Path, times: int) -> Callable[[IO[str] | int, int], None]:
    """`flock`, before which the file that was opened is replaced by another, as a writer that finishes then does."""
    real, left = fcntl.flock, times

    def flock(file: IO[str] | int, operation: int) -> None:
        nonlocal left
        if left:
            left -= 1
            lock.unlink()
            lock.touch()
        real(file, operation)

    return flock


def test_a_lock_on_a_file_that_was_swapped_is_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "records.jsonl"
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    monkeypatch.setattr(fcntl, "flock", swapping(lock_of(path), times=2))
    with sole_writer(path, wait=60.0):
        assert len(slept) == 2, "it did not try again"
        assert not free(lock_of(path)), "the lock is on a file that is no longer there"
    assert not lock_of(path).exists()
    monkeypatch.setattr(fcntl, "flock", swapping(lock_of(path), times=1))
    with pytest.raises(BusyError, match="another process"), sole_writer(path):
        pass


def test_a_lock_that_vanishes_between_opening_and_locking_is_taken_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, real, asked = tmp_path / "records.jsonl", fcntl.flock, 0

    def flock(file: IO[str] | int, operation: int) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            lock_of(path).unlink()
        real(file, operation)

    monkeypatch.setattr("time.sleep", lambda seconds: None)
    monkeypatch.setattr(fcntl, "flock", flock)
    with sole_writer(path, wait=60.0):
        assert asked == 2
        assert not free(lock_of(path))


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit, MemoryError])
def test_an_interrupt_inside_a_write_leaves_no_part(interrupt: type[BaseException], tmp_path: Path) -> None:
    """Ctrl-C is no `Exception`."""
    path = tmp_path / "file"
    path.write_text("old")

    def write_half() -> None:
        with atomic(path) as file:
            file.write(b"half of the ne")
            raise interrupt

    with pytest.raises(interrupt):
        write_half()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("broken", ["os.fsync", "pathlib.Path.replace"])
def test_an_interrupt_at_the_end_of_a_write_leaves_no_part(
    broken: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def interrupt(*words: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(broken, interrupt)
        with pytest.raises(KeyboardInterrupt), atomic(path) as file:
            file.write(b"all of the new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupt_between_data_and_manifest_leaves_the_old_pair(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hardtail.core.files import load_instances

    old, manifest = load_instances(saved)
    names = sorted(path.name for path in saved.parent.iterdir())

    def interrupt(*words: Any, **options: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("hardtail.core.files.np.savez_compressed", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save_instances(saved, Instances.concat([old, old]), manifest)
    assert sorted(path.name for path in saved.parent.iterdir()) == names
    assert load_instances(saved)[1] == manifest


def _append(path: Path, name: str, records: int) -> None:
    from hardtail.core.files import append_bytes

    for number in range(records):
        with sole_writer(path, wait=60.0):
            append_bytes(path, f"{name} {number}\n".encode())


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append, args=(path, name, 20)) for name in "ab"]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]
    assert sorted(path.read_text().split("\n")) == sorted(["", *(f"{n} {i}" for n in "ab" for i in range(20))])


def test_a_holder_that_is_killed_leaves_its_lock_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"

    def hold() -> None:
        with sole_writer(path):
            signal.raise_signal(signal.SIGKILL)

    holder = multiprocessing.get_context("fork").Process(target=hold)
    holder.start()
    holder.join()
    assert holder.exitcode == -signal.SIGKILL
    assert lock_of(path).exists()
    with sole_writer(path):
        assert not free(lock_of(path))


# -- what killed writers leave -----------------------------------------------------------------------------------------


def killed_while_writing(path: Path) -> None:
    """A process that dies by SIGKILL in the middle of an atomic write."""

    def write_half() -> None:
        with atomic(path) as file:
            file.write(b"half of the ne")
            file.flush()
            signal.raise_signal(signal.SIGKILL)

    writer = multiprocessing.get_context("fork").Process(target=write_half)
    writer.start()
    writer.join()
    assert writer.exitcode == -signal.SIGKILL


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_next_write_into_a_folder_removes_what_killed_writers_left(tmp_path: Path) -> None:
    for name in ("page.html", "records.jsonl"):
        killed_while_writing(tmp_path / name)
        (left,) = names_in(tmp_path)
        assert left.startswith(f".{name}.")
    with atomic(tmp_path / "another") as file:
        file.write(b"whole")
    assert names_in(tmp_path) == ["another"]


def test_only_the_parts_of_the_dead_are_removed(tmp_path: Path) -> None:
    """Not a living writer's, not a user's own hidden file, not what a link of such a name points to."""
    own = [".notes.part", ".page.html.0123abcd", "page.html.0123abcd.part", ".page.html.0123ABCD.part"]
    for name in own:
        (tmp_path / name).write_text("mine")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / ".link.0123abcd.part").symlink_to(victim)
    (tmp_path / ".folder.0123abcd.part").mkdir()
    with atomic(tmp_path / "slow") as slow:
        slow.write(b"still ")
        with atomic(tmp_path / "quick") as quick:
            quick.write(b"done")
        slow.write(b"there")
    assert (tmp_path / "slow").read_bytes() == b"still there"
    assert names_in(tmp_path) == sorted(
        [*own, "victim", ".link.0123abcd.part", ".folder.0123abcd.part", "slow", "quick"]
    )


@pytest.mark.parametrize("locked", [True, False])
def test_a_part_that_is_taken_for_a_dead_writers_is_made_again(
    locked: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making and locking it, another writer may find it without a lock, and lock it or have removed it."""
    real, asked = fcntl.flock, 0

    def flock(file: IO[bytes], operation: int) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            (part,) = tmp_path.iterdir()
            part.unlink()
            if locked:
                raise BlockingIOError
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with atomic(tmp_path / "file") as file:
        file.write(b"whole")
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert asked == 2


def test_a_file_system_without_locks_is_written_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    killed_while_writing(tmp_path / "file")
    left = names_in(tmp_path)

    def flock(file: IO[bytes], operation: int) -> None:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(fcntl, "flock", flock)
    with atomic(tmp_path / "file") as file:
        file.write(b"whole")
    assert names_in(tmp_path) == [*left, "file"]


@pytest.mark.parametrize("folder", [True, False])
def test_a_lock_that_is_no_regular_file_is_neither_used_nor_removed(folder: bool, tmp_path: Path) -> None:
    path = tmp_path / "it"
    if folder:
        path.mkdir()
    lock = path / "lock" if folder else tmp_path / ".it.lock"
    os.mkfifo(lock)
    with pytest.raises(HardtailError, match="is a pipe; give a new name or a regular file"), sole_writer(path):
        pass
    assert lock.exists()
