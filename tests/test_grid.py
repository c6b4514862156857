"""Grids on a real Ray cluster on this machine's loopback interface, with processes killed at the worst moments."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hardtail.core.buckets import BucketDepot
from hardtail.core.depots import place_at
from hardtail.core.errors import HardtailError
from hardtail.core.files import content_hash
from hardtail.core.provenance import code_version
from hardtail.core.trace_files import load_trace
from hardtail.study.advance import Status, advance, status
from hardtail.study.cluster import COMMIT, Crew
from hardtail.study.grids import Entry
from hardtail.study.on_ray import Ray
from hardtail.study.store import Store
from hardtail.study.unit import Seen
from tests.bucket_server import KEYS, Request, serving
from tests.conftest import Command
from tests.grid_toys import Faulty, die, little, untimed
from tests.study_toys import entry

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.xdist_group("ray")]  # Ray warns; one cluster for all

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"  # then Ray takes 127.0.0.1 for what it is, on Linux too

os.environ.update(KEYS)  # the cluster's workers have them, too

KILLED = ("killed in training", "killed in measuring", "killed in copying", "killed in indexing")
FINE = (*KILLED, "refused", "")


def seeded(seed: int, arm: str = "addition-random-smoke") -> Entry:
    made = entry(arm)
    return replace(made, recipe=replace(made.recipe, seed=seed))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two cores of this machine as a cluster of one node; tests may add others."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(COMMIT, code_version())  # workers would see that a file is edited while the tests run
        made = Cluster()
        made.add_node(**node(2))
        made.connect()
        yield made
        import ray

        ray.shutdown()
        made.shutdown()


def node(cpus: int) -> dict[str, Any]:
    return {
        "num_cpus": cpus,
        "node_ip_address": "127.0.0.1",
        "object_store_memory": 80 << 20,
        "memory": 16 << 30,
        "include_dashboard": False,
    }


def on_ray(
    entries: list[Entry],
    folder: Path,
    faults: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    launcher: Ray,
    told: list[str] | None = None,
    bucket: str | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> tuple[list[Status], list[str]]:
    """Advance the entries on the cluster, in a folder or a bucket; their states, and what the user was told."""
    (folder / "marks").mkdir(parents=True, exist_ok=True)
    said = [] if told is None else told
    with monkeypatch.context() as patched:
        patched.setattr("hardtail.study.advance.work", Faulty(folder / "marks", faults))
        runs, results = (place_at(f"{bucket or folder}/{name}") for name in ("runs", "results"))
        store = Store(results)
        found = advance(
            entries,
            runs,
            store,
            minutes=8,
            device="cpu",
            n=5,
            say=said.append,
            should_stop=should_stop,
            launcher=launcher,
        )
    return found, said


def same_as_inline(name: str, made: Entry, folder: Path, reference: Path) -> None:
    """The same weights to the byte, and the same records except for times, each of them once."""
    ours, theirs = folder / "runs" / name, reference / "runs" / name
    for file in ("last.safetensors", "best_probe.safetensors", "coverage.json", "recipe.json"):
        assert (ours / file).read_bytes() == (theirs / file).read_bytes(), file
    for file in ("evaluations.jsonl", "diagnoses.jsonl"):
        assert untimed(folder / "results" / name / file) == untimed(reference / "results" / name / file)
    logged = [untimed(place / "results" / name / "log.jsonl") for place in (folder, reference)]
    assert [line for line in logged[0] if "how" not in line] == [line for line in logged[1] if "how" not in line]
    assert [line.name for line in Store(folder / "results").index()].count(name) == 1


@pytest.fixture(scope="module")
def faulty_grid(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A grid in which every run but one meets something; and what became of it."""
    folder = tmp_path_factory.mktemp("faults")
    runs = {fault: seeded(10 + place) for place, fault in enumerate(FINE)}
    diverging = seeded(30)
    rising = replace(diverging.recipe.optimiser, lr=1e6, floor=0.0, warmup=0, clip=None)
    runs["diverging"] = replace(diverging, recipe=replace(diverging.recipe, optimiser=rising))
    runs["damaged"], runs["torn"] = seeded(31), seeded(32)
    for name, file in (("damaged", "state.safetensors"), ("torn", "recipe.json")):
        (folder / "runs" / runs[name].name).mkdir(parents=True)
        (folder / "runs" / runs[name].name / file).write_text("torn")
    (folder / "runs" / runs["damaged"].name / "recipe.json").write_text(json.dumps(runs["damaged"].recipe.as_json()))
    faults = {made.name: fault for fault, made in runs.items() if fault in (*KILLED, "refused")}
    with pytest.MonkeyPatch.context() as patched:
        found, said = on_ray(list(runs.values()), folder, faults, patched, Ray())
    with little():
        fine = [runs[fault] for fault in FINE]
        advance(fine, folder / "inline" / "runs", Store(folder / "inline" / "results"), minutes=8, device="cpu", n=5)
    return folder, (runs, {item.entry.name: item for item in found}, said)


@pytest.mark.parametrize("fault", FINE)
def test_a_run_that_meets_a_fault_ends_as_if_nothing_had_happened(fault: str, faulty_grid: tuple[Path, Any]) -> None:
    folder, (runs, found, said) = faulty_grid
    name = runs[fault].name
    assert (found[name].state, found[name].failure) == ("recorded", "")
    assert (folder / "marks" / name).exists() == bool(fault), "it did not meet its fault"
    same_as_inline(name, runs[fault], folder, folder / "inline")
    told = [line for line in said if line.startswith(f"{name}:")]
    assert any("its worker died" in line for line in told) == (fault in KILLED)
    assert any("cannot be written: Input/output error" in line for line in told) == (fault == "refused")


def test_a_worker_killed_in_training_continues_from_its_saved_state(faulty_grid: tuple[Path, Any]) -> None:
    _, (runs, _, said) = faulty_grid
    assert f"{runs['killed in training'].name}: its worker died (WorkerCrashedError); it continues from step 4" in said


@pytest.mark.parametrize(
    ("fault", "words"),
    [("diverging", "has diverged"), ("damaged", "state.safetensors"), ("torn", "this is not valid JSON")],
)
def test_a_run_that_fails_by_itself_is_reported_and_holds_up_no_other(
    fault: str, words: str, faulty_grid: tuple[Path, Any]
) -> None:
    _, (runs, found, said) = faulty_grid
    name = runs[fault].name
    assert words in found[name].failure
    (told,) = [line for line in said if line.startswith(f"{name}:")]
    assert words in told
    assert ("\n    log: {" in told) == (fault == "diverging"), "a run that began has a log to show"


def test_a_grid_in_object_storage_meets_the_same_faults_and_ends_the_same(
    cluster: Any, faulty_grid: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, (runs, _, _) = faulty_grid
    killed = tuple(fault for fault in KILLED if fault != "killed in measuring")  # no other path than for a folder
    faults = {runs[fault].name: fault for fault in killed}
    refused = runs["refused"].name

    def refuse_once(request: Request) -> int | None:
        if request.method != "PUT" or request.key != f"grid/results/{refused}/log.jsonl":
            return None
        mark = tmp_path / "marks" / refused
        first = not mark.exists()
        mark.touch()
        return 403 if first else None

    with serving() as server:
        server.fault = refuse_once
        entries = [runs[fault] for fault in (*killed, "refused")]
        found, said = on_ray(entries, tmp_path, faults, monkeypatch, Ray(), bucket="s3://grids/grid")
        again, more = on_ray(entries, tmp_path, {}, monkeypatch, Ray(), bucket="s3://grids/grid")
        held = BucketDepot("s3://grids/grid")
        copy = held.local(held.sizes())
        assert held.keys("results/.leases") == []
    assert [(item.state, item.failure) for item in found] == [("recorded", "")] * len(entries)
    for fault in (*killed, "refused"):
        name = runs[fault].name
        assert (tmp_path / "marks" / name).exists(), f"{fault}: it did not meet its fault"
        same_as_inline(name, runs[fault], copy, reference / "inline")
        assert any(line.startswith(f"{name}: its worker died") for line in said) == (fault in killed)
    assert f"{runs['killed in training'].name}: its worker died (WorkerCrashedError); it continues from step 4" in said
    words = f"{refused}: s3://grids/grid/results/{refused}/log.jsonl cannot be written: Forbidden; trying again"
    assert words in said
    assert (again, more) == (found, []), "a second call does nothing"


def test_leases_and_parts_of_files_are_gone_in_the_end(faulty_grid: tuple[Path, Any]) -> None:
    folder, _ = faulty_grid
    assert Store(folder / "results").leases.held() == {}
    assert not [path for path in (folder / "results" / ".leases").iterdir() if path.suffix == ".json"]
    left = [path.name for path in (folder / "results").rglob(".*") if path.name != ".leases"]
    assert all(name.endswith(".lock") for name in left), left


def test_a_second_call_does_nothing(faulty_grid: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, (runs, _, _) = faulty_grid
    index = (folder / "results" / "index.jsonl").read_bytes()
    monkeypatch.setattr(Ray, "_cluster", lambda self: pytest.fail("there was nothing to do"))
    found, said = on_ray([runs[fault] for fault in FINE], folder, {}, monkeypatch, Ray())
    assert {item.state for item in found} == {"recorded"}
    assert said == []
    assert (folder / "results" / "index.jsonl").read_bytes() == index


def test_a_full_disk_stops_the_grid_and_the_next_call_finishes_it(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = seeded(50)
    with pytest.raises(
        HardtailError, match=r"No space left on device; .* is not recorded yet, and nothing of it is lost"
    ):
        on_ray([run], tmp_path, {run.name: "full"}, monkeypatch, Ray())
    assert Store(tmp_path / "results").names() == set()
    measured = (tmp_path / "runs" / run.name / "evaluations.jsonl").read_bytes()
    (found,), _ = on_ray([run], tmp_path, {}, monkeypatch, Ray())
    assert found.state == "recorded"
    assert (tmp_path / "results" / run.name / "evaluations.jsonl").read_bytes() == measured


def test_a_run_moves_to_another_machine_when_its_own_is_gone(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, lost = seeded(51), [cluster.add_node(**node(4))]

    def remove(rows: list[Seen]) -> None:
        if lost and (tmp_path / "marks" / run.name).exists():
            cluster.remove_node(lost.pop(), allow_graceful=False)
            cluster.add_node(**node(4))

    (found,), said = on_ray([run], tmp_path, {run.name: "waits"}, monkeypatch, Ray(cpus=4, watch=remove))
    assert not lost, "the machine was not removed"
    assert (found.state, found.failure) == ("recorded", "")
    assert any("it continues from step 4" in line for line in said)


def test_a_run_that_someone_else_works_on_is_waited_for(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, store = seeded(52), Store(tmp_path / "results")
    lease = store.leases.take(run.name, "someone else's")
    said: list[str] = []
    where: list[str] = []

    def release(rows: list[Seen]) -> None:
        where.append(rows[0].where)
        if said:
            store.leases.drop(run.name, lease.taken.owner)

    (found,) = on_ray([run], tmp_path, {}, monkeypatch, Ray(watch=release), said)[0]
    assert lease.taken.holder in where, "the table does not say who"
    assert said[0] == f"{run.name}: another process is working on it: {lease.taken.holder}; waiting for it"
    assert found.state == "recorded"


def test_a_driver_that_is_killed_is_followed_by_the_next(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = seeded(53)
    driver = subprocess.Popen(
        [sys.executable, "-m", "tests.grid_driver", cluster.address, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    assert any("at work" in line for line in driver.stdout)  # Ray may say something of its own before
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    driver.stdout.close()
    (found,), _ = on_ray([run], tmp_path, {run.name: "waits"}, monkeypatch, Ray())
    assert (found.state, found.failure) == ("recorded", "")
    assert [line["step"] for line in untimed(tmp_path / "runs" / run.name / "log.jsonl") if "how" in line] == [0, 4]


def test_a_run_that_no_machine_has_room_for_is_refused(
    cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(HardtailError, match=r"needs 64 cores, 0 GPUs and .* no machine of the cluster has that"):
        on_ray([seeded(54)], tmp_path, {}, monkeypatch, Ray(cpus=64))


@pytest.mark.parametrize("end", ["Ctrl-C", "failure"])
def test_workers_save_when_the_driver_is_stopped_or_fails(
    end: str, cluster: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker is in the middle of its training; a run that it has no room for yet does not begin."""
    run, next_one = seeded(55), seeded(56)
    mark, said = tmp_path / "marks" / run.name, list[str]()

    def fail(rows: list[Seen]) -> None:
        if end == "failure" and mark.exists():
            raise RuntimeError("the screen is gone")

    def stop() -> bool:
        return end == "Ctrl-C" and mark.exists()

    launcher = Ray(cpus=2, watch=fail)
    faults = {made.name: "pauses" for made in (run, next_one)}
    with nullcontext() if end == "Ctrl-C" else pytest.raises(RuntimeError, match="the screen is gone"):
        on_ray([run, next_one], tmp_path, faults, monkeypatch, launcher, said, should_stop=stop)
    assert f"{run.name}: saved at step 7 of 12" in said
    store = Store(tmp_path / "results")
    assert [item.step for item in status([run], tmp_path / "runs", store)] == [7]
    assert store.leases.held() == {}


def test_an_evaluation_in_shards_has_the_records_and_traces_of_one_process(
    cluster: Any, faulty_grid: tuple[Path, Any], tmp_path: Path, hardtail_command: Command
) -> None:
    folder, (runs, _, _) = faulty_grid
    run, how = folder / "inline" / "runs" / runs[""].name, ("--temperature", "0.5", "--device", "cpu", "--trust")
    words = ("eval", str(run), "-n", "70", "--strata", "natural", "chain>=4", "--policies", "top1", "random", *how)
    for name, more in (("here", ()), ("there", ("--launcher", "ray"))):
        where = ("--out", str(tmp_path / f"{name}.jsonl"), "--traces", str(tmp_path / name))
        code, _, error = hardtail_command(*words, *where, *more)
        assert code == 0, error
    assert untimed(tmp_path / "there.jsonl") == untimed(tmp_path / "here.jsonl")
    assert len(untimed(tmp_path / "here.jsonl")) > 10
    for path in (tmp_path / "here").glob("*.npz"):
        ours, theirs = load_trace(path), load_trace(tmp_path / "there" / path.name)
        assert ours.about == theirs.about
        assert content_hash(ours.arrays()) == content_hash(theirs.arrays())


def test_data_from_a_cluster_is_that_of_one_process(cluster: Any, tmp_path: Path, hardtail_command: Command) -> None:
    for name, more in (("here", ()), ("there", ("--launcher", "ray"))):
        words = ("data", "addition", "-n", "2500", "--seed", "3", "--set", "digits=6")
        code, out, error = hardtail_command(*words, "--out", str(tmp_path / f"{name}.npz"), *more)
        assert code == 0, error
        assert "2,500 instances" in out
    for ending in (".npz", ".json"):
        here, there = ((tmp_path / name).with_suffix(ending).read_bytes() for name in ("here", "there"))
        assert here == there


def test_a_job_whose_worker_dies_is_done_again_and_one_that_is_wrong_is_not(cluster: Any, tmp_path: Path) -> None:
    import ray

    def job(number: int) -> int:
        if number == 3 and not (tmp_path / "mark").exists():
            die(tmp_path / "mark")
        if number > 5:
            raise HardtailError(f"{number} is too many")
        return number * number

    crew = Crew(ray)
    assert list(crew.map(job, range(6))) == [0, 1, 4, 9, 16, 25]
    assert (tmp_path / "mark").exists()
    with pytest.raises(HardtailError, match=r"^6 is too many$"):
        list(crew.map(job, range(7)))
