"""Leases: one worker for each run, none for ever, and nothing recorded by a worker that has lost its own."""

import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hardtail.core import depots
from hardtail.core.depots import FolderDepot
from hardtail.core.errors import BusyError
from hardtail.core.files import sole_writer
from hardtail.study import advance as moving
from hardtail.study import leases
from hardtail.study.advance import advance, work
from hardtail.study.leases import Leases
from hardtail.study.measure import measure
from hardtail.study.store import Store
from hardtail.study.unit import Unit, Watching
from tests.grid_toys import little
from tests.study_toys import entry


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "results")


def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on this process is on another machine, which cannot see the processes of the first."""
    monkeypatch.setattr(leases, "_place", lambda: "another machine")


def test_a_run_is_leased_to_one_at_a_time(store: Store) -> None:
    with store.leases.take("run", "unit") as lease:
        with pytest.raises(BusyError, match=f"another process is working on it: {lease.taken.holder}"):
            store.leases.take("run", "unit")
        assert list(store.leases.held()) == ["run"]
    with store.leases.take("run", "unit"):
        pass
    assert store.leases.held() == {}


def test_of_two_that_find_a_run_free_one_gets_it(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = FolderDepot.read

    def read(depot: FolderDepot, key: str) -> Any:
        held = real(depot, key)
        monkeypatch.setattr(FolderDepot, "read", real)
        store.leases.take("run", "the faster one")
        return held

    monkeypatch.setattr(FolderDepot, "read", read)
    with pytest.raises(BusyError, match="has just begun"):
        store.leases.take("run", "the slower one")
    assert store.leases.held()["run"].unit == "the faster one"


def test_the_lease_of_a_dead_process_of_this_machine_ends_with_it(store: Store) -> None:
    holder = multiprocessing.get_context("fork").Process(target=store.leases.take, args=("run", "unit"))
    holder.start()
    holder.join()
    assert (store.folder / ".leases" / "run.json").exists()
    assert store.leases.held() == {}
    store.leases.take("run", "unit")


@pytest.mark.parametrize(
    ("answer", "free"), [(None, False), (PermissionError(), False), (ProcessLookupError(), True)], ids=repr
)
def test_a_process_that_cannot_be_seen_is_not_a_dead_one(
    answer: OSError | None, free: bool, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """/proc is mounted with hidepid, which hides the processes of other users."""
    store.leases.take("run", "unit")

    def kill(process: int, number: int) -> None:
        assert number == 0
        if answer is not None:
            raise answer

    monkeypatch.setattr(leases, "_born", lambda process: 0)
    monkeypatch.setattr(leases, "_seen", lambda process: False)
    monkeypatch.setattr(os, "kill", kill)
    assert ("run" in store.leases.held()) == (not free)


def test_an_index_that_is_being_written_for_long_is_busy_and_not_unwritable(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(depots, "LOCK_WAIT", 0.0)
    unit = Unit(entry(), tmp_path / "runs", store, 5, "cpu")
    store.folder.mkdir()
    with sole_writer(store.folder / "index.jsonl"):
        result = work(unit, lambda: False, Watching())
    assert (result.state, result.failure) == ("busy", "")
    assert "index.jsonl is being written by another process" in result.said[0]
    assert not unit.kept.files([unit.name])[unit.name], "it had begun"
    with little():
        assert work(unit, lambda: False, Watching()).state == "recorded"


def test_the_lease_of_another_machine_ends_when_it_was_not_renewed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.leases.take("run", "unit")
    elsewhere(monkeypatch)
    with pytest.raises(BusyError):
        store.leases.take("run", "unit")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + leases.LASTS - 1)
    assert "run" in store.leases.held()
    monkeypatch.setattr(time, "time", lambda: now + leases.LASTS + 1)
    assert store.leases.held() == {}
    store.leases.take("run", "unit")


def test_a_lease_that_is_renewed_goes_on_and_says_what_is_done(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, now = store.leases.take("run", "unit"), time.time()
    lease.note("training", 60)
    for later in (50, 100, 150):
        monkeypatch.setattr(time, "time", lambda later=later: now + later)
        lease.renew()
    assert not lease.lost
    held = store.leases.held()["run"]
    assert (held.doing, held.step) == ("training", 60)


def test_a_lease_is_renewed_while_its_holder_works(store: Store) -> None:
    with Leases(store.depot, lasts=0.6).take("run", "unit") as lease:
        first = lease.taken.expires
        while lease.taken.expires == first:  # ends with the first renewal, or never
            pass
        assert not lease.lost


def test_a_lease_that_another_has_taken_over_is_lost(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    lease, now = store.leases.take("run", "unit"), time.time()
    monkeypatch.setattr(time, "time", lambda: now + leases.LASTS + 1)
    other = store.leases.take("run", "unit")
    lease.renew()
    assert lease.lost
    with pytest.raises(BusyError, match="ran out"):
        lease.refuse_lost()
    store.leases.drop("run", lease.taken.owner)
    assert store.leases.held()["run"].owner == other.taken.owner, "it is no longer the first one's to drop"


def test_a_renewal_whose_answer_is_lost_does_not_cost_the_lease(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real, now = FolderDepot.swap, time.time()

    def lost(depot: FolderDepot, key: str, content: bytes, expected: str | None) -> str:
        real(depot, key, content, expected)
        monkeypatch.setattr(FolderDepot, "swap", real)
        raise OSError("the connection broke")

    with store.leases.take("run", "unit") as lease:
        monkeypatch.setattr(FolderDepot, "swap", lost)
        for later in (10, 20):
            monkeypatch.setattr(time, "time", lambda later=later: now + later)
            lease.renew()
        assert store.leases.held()["run"].expires == lease.taken.expires == now + 20 + leases.LASTS
        lease.refuse_lost()
        monkeypatch.setattr(FolderDepot, "swap", lost)
        monkeypatch.setattr(time, "time", lambda: now + 30)
        lease.renew()
    assert not (store.folder / ".leases" / "run.json").exists(), "it was let go under a version that it no longer had"


def test_a_worker_whose_lease_was_taken_over_records_nothing(store: Store, tmp_path: Path) -> None:
    """It was stopped for longer than a lease lasts, while it measured."""
    unit = Unit(entry(), tmp_path / "runs", store, 5, "cpu")
    measured: Callable[..., bool] = measure

    def slow(*given: Any, **also: Any) -> bool:
        done = measured(*given, **also)
        (store.folder / ".leases" / f"{unit.name}.json").unlink()
        store.leases.take(unit.name, "the next one's")
        return done

    with little(), pytest.MonkeyPatch.context() as patched:
        patched.setattr(moving, "measure", slow)
        result = work(unit, lambda: False, Watching())
    assert result.state == "busy"
    assert "another process may have taken it over" in result.said[0]
    assert store.names() == set()
    assert store.leases.held()[unit.name].unit == "the next one's"


def test_a_unit_is_what_its_results_depend_on(store: Store, tmp_path: Path) -> None:
    made = Unit(entry(), tmp_path, store, 5, None)
    assert made.identity == Unit(entry(), tmp_path / "elsewhere", store, 5, "cpu").identity
    others = [Unit(entry(steps=13), tmp_path, store, 5, None), Unit(entry(), tmp_path, store, 6, None)]
    assert len({made.identity, *(other.identity for other in others)}) == 3


def test_two_grids_on_one_store_do_each_run_once(store: Store, tmp_path: Path) -> None:
    """The second comes while the first is training."""
    entries = [entry(), entry("addition-puma-smoke")]
    said: list[str] = []

    def second(*given: Any) -> None:
        if not said:
            said.append("")
            advance(entries, tmp_path / "runs", store, minutes=5, device="cpu", n=5, say=said.append)

    with little():
        advance(entries, tmp_path / "runs", store, minutes=5, device="cpu", n=5, report=second, say=said.append)
    assert "another process is working on it" in said[1]
    assert sorted(line.name for line in store.index()) == sorted(item.name for item in entries)
