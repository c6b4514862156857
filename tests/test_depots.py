"""Shared files in a folder and in object storage: what one implementation promises, the other keeps, too."""

import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from hardtail.core import buckets
from hardtail.core.buckets import PROMPT, BucketDepot
from hardtail.core.depots import ConflictError, Depot, FolderDepot, place_at
from hardtail.core.errors import BusyError, HardtailError
from hardtail.study import leases
from hardtail.study.advance import advance, status, work
from hardtail.study.leases import Leases
from hardtail.study.store import Store, recorded
from hardtail.study.unit import Unit, Watching
from hardtail.study.workplaces import BucketRuns
from tests.bucket_server import Buckets, Request, serving
from tests.conftest import Command
from tests.grid_toys import little
from tests.study_toys import entry

pytestmark = pytest.mark.xdist_group("buckets")  # one server


@pytest.fixture(scope="module")
def server() -> Iterator[Buckets]:
    with serving() as held:
        yield held


@pytest.fixture
def bucket(server: Buckets, tmp_path: Path) -> Iterator[BucketDepot]:
    """A place of its own in the bucket; what a test did to the server ends with it."""
    yield BucketDepot(f"s3://grids/{tmp_path.name}")
    server.fault, server.unconditional = (lambda request: None), False
    server.lost = server.cut = lambda request: False


@pytest.fixture(params=["folder", "bucket"])
def depot(request: pytest.FixtureRequest, tmp_path: Path) -> Depot:
    if request.param == "folder":
        return FolderDepot(tmp_path)
    held: BucketDepot = request.getfixturevalue("bucket")
    return held


def content(depot: Depot, key: str) -> bytes | None:
    held = depot.read(key)
    return held.content if held else None


def test_a_file_that_changed_is_not_replaced(depot: Depot) -> None:
    first = depot.swap("file", b"one", None)
    for expected in (None, "other"):
        with pytest.raises(ConflictError, match="meanwhile"):
            depot.swap("file", b"two", expected)
    depot.remove("file", "other")
    held = depot.read("file")
    assert held is not None
    assert (held.content, held.version) == (b"one", first)
    second = depot.swap("file", b"two", first)
    depot.remove("file", second)
    assert depot.read("file") is None
    assert depot.keys("none") == []
    depot.swap("file", b"three", None)
    assert content(depot, "file") == b"three"


def test_the_first_bytes_of_a_file_that_was_removed_are_none(bucket: BucketDepot) -> None:
    version = bucket.swap("file", b"hello world", None)
    assert (bucket.head("file", 5), bucket.head("none", 5)) == (b"hello", None)
    bucket.remove("file", version)
    assert bucket.head("file", 5) is None


def test_of_many_that_swap_at_once_one_succeeds(depot: Depot) -> None:
    barrier = threading.Barrier(8)

    def swap(number: int) -> bool:
        barrier.wait()
        try:
            depot.swap("file", str(number).encode(), None)
        except BusyError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(swap, range(8)))
    assert sum(won) == 1
    assert content(depot, "file") == str(won.index(True)).encode()


def test_many_that_publish_at_once_all_end_in_the_index(depot: Depot) -> None:
    def publish(number: int) -> None:
        depot.publish({f"{number}/file": b"held"}, "index", lambda index: index + f"{number}\n".encode())

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(publish, range(6)))
    assert sorted((content(depot, "index") or b"").split()) == [str(number).encode() for number in range(6)]
    assert [content(depot, f"{number}/file") for number in range(6)] == [b"held"] * 6


def test_nothing_is_written_for_an_index_that_refuses(depot: Depot) -> None:
    def refuse(index: bytes) -> bytes:
        raise HardtailError("it is there already")

    with pytest.raises(HardtailError, match="already"):
        depot.publish({"run/file": b"new"}, "index", refuse)
    assert content(depot, "run/file") is None
    assert content(depot, "index") is None


def test_a_process_that_was_suspended_while_recording_replaces_nothing_that_counts(
    bucket: BucketDepot,
) -> None:
    """It has seen that the run is not recorded yet; then another one records it."""

    def added(index: bytes) -> bytes:
        if not index:
            bucket.publish({"run/one": b"theirs", "run/two": b"theirs"}, "index", lambda index: b"run\n")
        return b"run\n"

    with pytest.raises(BusyError):
        bucket.publish({"run/one": b"ours", "run/two": b"ours"}, "index", added)
    assert [content(bucket, f"run/{file}") for file in ("one", "two")] == [b"theirs"] * 2


def test_a_write_whose_answer_is_lost_has_been_made(bucket: BucketDepot, server: Buckets) -> None:
    lost: list[Request] = []

    def lose(request: Request) -> bool:
        if request.method == "PUT" and not lost:
            lost.append(request)
            return True
        return False

    server.lost = lose
    version = bucket.swap("file", b"ours", None)
    assert lost
    assert bucket.swap("file", b"next", version)


def test_a_line_of_the_index_whose_answer_is_lost_is_there_once(
    bucket: BucketDepot, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the writer looks again, someone else has added a line."""
    real = BucketDepot.swap

    def swap(self: BucketDepot, key: str, content: bytes, expected: str | None) -> str:
        version = real(self, key, content, expected)
        if key == "index":
            monkeypatch.setattr(BucketDepot, "swap", real)
            bucket.publish({}, "index", lambda index: index + b"theirs\n")
            raise ConflictError("it has changed")
        return version

    monkeypatch.setattr(BucketDepot, "swap", swap)
    bucket.publish({"run/file": b"held"}, "index", lambda index: index + b"ours\n")
    assert content(bucket, "index") == b"ours\ntheirs\n"


@pytest.mark.parametrize(("breaks", "whole"), [(2, True), (3, False)])
def test_an_answer_that_breaks_off_is_read_again(
    breaks: int, whole: bool, bucket: BucketDepot, server: Buckets
) -> None:
    bucket.swap("file", b"whole" * 1000, None)
    cut: list[Request] = []

    def broken(request: Request) -> bool:
        if request.method == "GET" and len(cut) < breaks:
            cut.append(request)
            return True
        return False

    server.cut = broken
    if whole:
        assert content(bucket, "file") == b"whole" * 1000
    else:
        with pytest.raises(HardtailError, match=rf"{bucket.url}/file cannot be read: ") as raised:
            bucket.read("file")
        assert isinstance(raised.value.__cause__, OSError), "a run would fail by what is not its fault"
    assert len(cut) == breaks


def test_an_answer_that_makes_no_sense_is_named(bucket: BucketDepot, monkeypatch: pytest.MonkeyPatch) -> None:
    from botocore.parsers import ResponseParserError

    def garbled(*given: Any, **also: Any) -> Any:
        raise ResponseParserError("no XML")

    monkeypatch.setattr(bucket._store, "call_s3", garbled)
    requests: list[Callable[[str], object]] = [bucket.read, bucket.sizes, lambda key: bucket.swap(key, b"new", None)]
    for request in requests:
        with pytest.raises(HardtailError, match=r"cannot be (read|listed|written): .*no XML") as raised:
            request("file")
        assert isinstance(raised.value.__cause__, OSError)


def test_requests_for_a_lease_are_over_before_it_is(bucket: BucketDepot, server: Buckets) -> None:
    server.fault = lambda request: 503 if "/.leases/" in request.key and request.method == "PUT" else None
    before = len(server.asked)
    with pytest.raises(HardtailError, match="cannot be written"):
        Store(bucket).leases.take("run", "unit")
    tried = [request for request in server.asked[before:] if request.method == "PUT"]
    assert len(tried) == PROMPT.attempts
    server.cut, before = (lambda request: True), len(server.asked)
    with pytest.raises(HardtailError, match="cannot be listed"):
        Store(bucket).leases.held()
    assert len(server.asked) - before <= PROMPT.attempts, "s3fs tries again what botocore does"
    longest = PROMPT.attempts * PROMPT.repeats * PROMPT.reads * (PROMPT.connect + PROMPT.read)
    assert 2 * longest < leases.LASTS - leases.LASTS / leases.RENEWALS, "a write, and a look at what became of it"


@pytest.mark.parametrize(("status", "words"), [(403, "Forbidden"), (507, "No space left on device")])
def test_a_store_that_refuses_is_named_with_its_reason(
    status: int, words: str, bucket: BucketDepot, server: Buckets, tmp_path: Path
) -> None:
    unit = Unit(entry(), tmp_path / "runs", Store(bucket), 5, "cpu")
    server.fault = lambda request: status if (request.method, request.key[-12:]) == ("PUT", "/recipe.json") else None
    with little():
        result = work(unit, lambda: False, Watching())
    assert result.state == {403: "refused", 507: "full"}[status]
    assert result.failure == f"{bucket.url}/{unit.name}/recipe.json cannot be written: {words}"
    assert Store(bucket).names() == set()


def test_a_store_that_ignores_conditions_is_refused(bucket: BucketDepot, server: Buckets) -> None:
    bucket.refuse_unwritable("index.jsonl")
    server.unconditional = True
    with pytest.raises(HardtailError, match="ignores the condition of a write"):
        bucket.refuse_unwritable("index.jsonl")


@pytest.mark.parametrize("text", ["s3://", "s3://Grids/x", "s3://grids//x", "gs://grids/x", "https://grids"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(HardtailError, match=r"give (a folder or )?s3://BUCKET/PREFIX"):
        place_at(text)


def test_without_the_extra_an_address_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    buckets._connection.cache_clear()
    try:
        with pytest.raises(HardtailError, match=r"s3:// needs s3fs: pip install 'hardtail\[s3\]'"):
            Store(place_at("s3://grids/grid")).index()
    finally:
        buckets._connection.cache_clear()


def test_a_bucket_that_does_not_exist_is_not_an_empty_one(server: Buckets) -> None:
    with pytest.raises(HardtailError, match=r"s3://nowhere/grid/index.jsonl cannot be read: .* does not exist"):
        Store(place_at("s3://nowhere/grid")).index()


def test_a_lease_in_a_bucket_is_one_worker_s_and_runs_out(bucket: BucketDepot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_place", lambda: "")  # as if each call were on a machine of its own
    first = Leases(bucket).take("run", "unit")
    with pytest.raises(BusyError, match="another process is working on it"):
        Leases(bucket).take("run", "unit")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + leases.LASTS + 1)
    with Leases(bucket).take("run", "unit") as second:
        first.renew()
        with pytest.raises(BusyError, match="ran out"):
            first.refuse_lost()
        assert Leases(bucket).held()["run"].owner == second.taken.owner
    assert Leases(bucket).held() == {}


def test_a_worker_that_was_taken_for_dead_cannot_undo_the_next_one_s_work(bucket: BucketDepot) -> None:
    """The first is suspended while it trains; the second finishes the run; then the first goes on."""
    unit = Unit(entry(), bucket, Store(BucketDepot(f"{bucket.url}/results")), 5, "cpu")
    ended: list[Any] = []

    def stop() -> bool:
        if not ended and unit.kept.step(unit.name):
            ended.append(None)
            held = unit.store.leases.held()[unit.name]
            unit.store.leases.drop(unit.name, held.owner)
            ended.append(work(unit, lambda: False, Watching()))
            ended.append(bucket.sizes(unit.name))
        return False

    with little():
        late = work(unit, stop, Watching())
    assert ended[1].state == "recorded"
    assert late.state == "busy"
    assert bucket.sizes(unit.name) == ended[2]
    assert [item.name for item in unit.store.index()] == [unit.name]


def test_a_worker_that_has_lost_its_lease_sends_nothing(bucket: BucketDepot) -> None:
    """The next one has taken the run and fetched it, but sent nothing yet: no condition of a write would fail."""
    unit = Unit(entry(), bucket, Store(BucketDepot(f"{bucket.url}/results")), 5, "cpu")
    sent: list[dict[str, str]] = []

    def versions() -> dict[str, str]:
        found = {key: bucket.read(key) for key in bucket.sizes(unit.name)}
        return {key: held.version for key, held in found.items() if held is not None}

    def stop() -> bool:
        if not sent and unit.kept.step(unit.name):
            unit.store.leases.drop(unit.name, unit.store.leases.held()[unit.name].owner)
            unit.store.leases.take(unit.name, "the next one's")
            sent.append(versions())
        return False

    with little():
        late = work(unit, stop, Watching())
    assert late.state == "busy"
    assert "another process may have taken it over" in late.said[0]
    assert sent == [versions()]


def test_a_run_is_fetched_in_the_reverse_order_of_sending(bucket: BucketDepot, server: Buckets) -> None:
    """Someone may still be sending: what is sent before the state must not be read in an older version than it."""
    runs, lease = BucketRuns(bucket), Leases(bucket).take("run", "unit")
    files = ["recipe.json", "best_probe.safetensors", "log.jsonl", "state.safetensors", "finished.json"]
    with runs.opened("run", lease) as desk:
        for file in files:
            (desk.folder / file).write_text(file)
        before = len(server.asked)
        desk.keep()
        written = [request.key for request in server.asked[before:] if "/run/" in request.key]
    before = len(server.asked)
    with runs.opened("run", lease) as desk:
        assert {path.name: path.read_text() for path in desk.folder.iterdir()} == {file: file for file in files}
        read = [request.key for request in server.asked[before:] if "/run/" in request.key]
    assert [key.rpartition("/")[2] for key in written] == files
    assert read == written[::-1]


def test_a_removal_that_failed_is_made_up_for(bucket: BucketDepot, server: Buckets) -> None:
    runs, lease = BucketRuns(bucket), Leases(bucket).take("run", "unit")
    with runs.opened("run", lease) as desk:
        (desk.folder / "finished.json").write_text("{}")
    with runs.opened("run", lease) as desk:
        (desk.folder / "finished.json").unlink()
        server.fault = lambda request: 403 if request.key.endswith("/finished.json") else None
        with pytest.raises(HardtailError, match="cannot be written: Forbidden"):
            desk.keep()
        server.fault = lambda request: None
        desk.keep()
        assert bucket.sizes("run") == {}


def test_a_grid_in_a_bucket_is_that_of_a_folder(bucket: BucketDepot, tmp_path: Path, hardtail_command: Command) -> None:
    """It is stopped once, continued, recorded, and read by the commands that read results."""
    run, store = entry(), Store(BucketDepot(f"{bucket.url}/results"))
    runs = BucketDepot(f"{bucket.url}/runs")

    def grid(stop: bool) -> list[str]:
        found = advance(
            [run], runs, store, minutes=5, device="cpu", n=5, should_stop=lambda: stop and bool(runs.sizes(run.name))
        )
        return [item.state for item in found]

    with little():
        assert grid(True) == ["started"]
        assert status([run], runs, store)[0].step == 4
        assert grid(False) == ["recorded"]
        (there,) = advance([run], tmp_path / "runs", Store(tmp_path / "results"), minutes=5, device="cpu", n=5)
    assert there.state == "recorded"
    for file in ("last.safetensors", "best_probe.safetensors", "coverage.json", "recipe.json"):
        assert content(runs, f"{run.name}/{file}") == (tmp_path / "runs" / run.name / file).read_bytes()
    (ours,), (theirs,) = recorded(store.depot.place).runs(), Store(tmp_path / "results").runs()
    assert [record.exact_match for record in ours.accuracies] == [record.exact_match for record in theirs.accuracies]
    assert ours.coverage == theirs.coverage
    places = ("--results", store.depot.place, "--runs", runs.url)
    code, out, _ = hardtail_command("study", "addition-smoke", *places)
    assert code == 0
    assert re.search(rf"{run.name} +recorded", out)
    code, _, error = hardtail_command("study", "pack", run.name, *places[2:])
    assert (code, "give a folder" in error) == (2, True)
