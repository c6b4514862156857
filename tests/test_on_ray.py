"""What the command that sends out work decides by itself, and what a worker refuses; no cluster is needed for this."""

import os
import signal
import socket
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from hardtail.cli import grid
from hardtail.core.errors import HardtailError
from hardtail.core.provenance import code_version
from hardtail.decoding.options import Decoding
from hardtail.measuring.models import subject_of
from hardtail.measuring.subject import Subject, load_subject
from hardtail.models.denoiser import ModelDenoiser
from hardtail.study import cluster, worker
from hardtail.study.advance import work
from hardtail.study.cluster import Crew
from hardtail.study.on_ray import MOST_DEATHS, MOST_REFUSALS, Ray, _Drive
from hardtail.study.shards import Identity, Shards
from hardtail.study.store import Store
from hardtail.study.unit import Limits, Unit, UnitResult, data_hashes
from hardtail.study.workplaces import FolderRuns
from hardtail.tasks.datasets import KEPT
from hardtail.tasks.named import make_task
from tests.study_toys import entry


class Alone(Crew):
    """This process as the only worker."""

    @property
    def places(self) -> int:
        return 1

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> Iterator[Any]:
        return map(function, jobs)


def model(device: str = "cpu") -> Subject:
    return load_subject("zoo:addition-random", device=device)


def of_another_step(device: str) -> Subject:
    subject = model(device)
    return replace(subject, origin=replace(subject.origin, step=1))


def with_another_weight(device: str) -> Subject:
    subject = model(device)
    assert isinstance(subject.denoiser, ModelDenoiser)
    with torch.no_grad():
        next(iter(subject.denoiser.model.parameters())).view(-1)[0] += 1e-3
    return subject


@pytest.mark.parametrize(
    ("load", "differing"), [(model, None), (of_another_step, "step"), (with_another_weight, "weights")]
)
def test_a_worker_decodes_only_with_the_model_of_the_command(
    load: Callable[[str], Subject], differing: str | None
) -> None:
    """A run may be another one under the same path of another machine."""
    subject = model()
    problems = subject.task.sample(2, "natural", seed=0)
    shards = Shards(Alone(None), load, Identity.of(subject))

    def judged() -> float:
        return shards.judged(subject, problems, problems.maskable_NA, Decoding()).nll

    if differing is None:
        assert judged() > 0
        return
    for _ in range(2):  # what was refused is not kept for the next job either
        with pytest.raises(HardtailError, match=f"another model than this command: they differ in {differing}; give"):
            judged()


def test_what_has_no_weights_is_compared_by_its_origin() -> None:
    task = make_task("addition", digits=4)
    module = torch.nn.Embedding(task.vocabulary.size, task.vocabulary.size)
    assert Identity.of(subject_of(module, task)).weights is not None
    assert Identity.of(subject_of(lambda tokens_BL, at_BA: tokens_BL, task)).weights is None


@pytest.mark.parametrize(("gpus", "device", "expected"), [(0, None, "cpu"), (1, None, "cuda"), (1, "cuda", "cuda")])
def test_an_evaluation_goes_where_the_cluster_can_do_it(
    gpus: int, device: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "connected", lambda address: _cluster(gpus))
    with grid.passes("ray", None, device, model(), model) as (makers, where):
        assert isinstance(makers, Shards)
        assert (where, makers.crew.gpu) == (expected, expected == "cuda")


def test_an_evaluation_on_gpus_that_the_cluster_does_not_have_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "connected", lambda address: _cluster(0))
    with (
        pytest.raises(HardtailError, match=r"--device cuda: the cluster has no GPU; give --device cpu"),
        grid.passes("ray", None, "cuda", model(), model),
    ):
        pass


@contextmanager
def _cluster(gpus: int) -> Iterator[Any]:
    yield SimpleNamespace(cluster_resources=lambda: {"CPU": 2.0, "GPU": float(gpus)})


@pytest.mark.parametrize(("cores", "asked", "given"), [(2, 1, 2), (2, 5, 5)])
def test_a_cluster_of_our_own_is_reached_from_this_machine_only(
    cores: int, asked: int, given: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever reaches a cluster can run code on it: no dashboard, and the loopback interface alone."""
    started = list[dict[str, Any]]()
    ray = SimpleNamespace(
        is_initialized=lambda: False, init=lambda **how: started.append(how), shutdown=lambda: started.append({})
    )
    monkeypatch.setattr(cluster, "imported", lambda: ray)
    monkeypatch.setattr(cluster, "usable_cores", lambda: cores)
    with cluster.connected(None, asked):
        (how,) = started
    assert started[1:] == [{}]  # it ends with the call
    assert (how["address"], how["_node_ip_address"], how["include_dashboard"]) == ("local", "127.0.0.1", False)
    assert (how["num_cpus"], how["object_store_memory"]) == (given, cluster.OBJECT_STORE)
    assert (how["log_to_driver"], how["logging_level"]) == (False, "ERROR")


# -- what a worker does -----------------------------------------------------------------------------------------------


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    """What a worker is told of the environment of the command."""
    for name in (*cluster.STORE, KEPT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(KEPT, "kept")
    monkeypatch.setenv("AWS_REGION", "here")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    told = cluster.environment()
    assert told == {cluster.COMMIT: code_version(), KEPT: str(tmp_path / "kept"), "AWS_REGION": "here"}
    return told


def test_a_worker_is_set_up_as_the_command_and_stops_when_time_is_up_or_it_is_cancelled(
    known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "elsewhere")
    clock, seen = [99.0], list[Any]()
    monkeypatch.setattr(worker, "time", SimpleNamespace(time=lambda: clock[0]))

    def work(unit: Any, over: Callable[[], bool], watching: Any, owner: str | None) -> Any:
        seen.extend([unit, owner, torch.get_num_threads(), os.environ["AWS_REGION"], over()])
        clock[0] = 100.0
        seen.append(over())
        clock[0] = 0.0
        os.kill(os.getpid(), signal.SIGINT)  # as Ray cancels a task
        seen.append(over())
        return "done"

    before, threads = signal.getsignal(signal.SIGINT), torch.get_num_threads()
    unit: Any = SimpleNamespace(data_file=None)
    try:
        found = worker.perform(worker.WorkOrder(unit, work, 100.0, "its owner", 3, known, {}))
    finally:
        torch.set_num_threads(threads)
    assert str(found) == "done"
    assert seen == [unit, "its owner", 3, "here", False, True, True]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_worker_with_other_code_refuses_to_work(known: dict[str, str]) -> None:
    theirs = known | {cluster.COMMIT: "another"}
    with pytest.raises(
        HardtailError, match=r"a worker has other code .* than the command that sent it work \(another\)"
    ):
        cluster._answer(theirs, str, 1)
    assert cluster._answer(known, str, 1) == "1"


HERE = f"on the worker {socket.gethostname()}"


@pytest.mark.parametrize(
    ("theirs", "ours", "refusal"),
    [
        ({"sums": b"1", "sums-test": b"2"}, {"sums": b"1", "sums-test": b"2"}, None),
        ({"sums": b"1"}, {"sums": b"1"}, None),
        ({"sums": b"1", "sums-test": b"2"}, {"sums": b"1"}, f": sums-test.npz is missing {HERE}; all machines need"),
        ({"sums": b"1"}, {"sums": b"1", "sums-test": b"2"}, f": sums-test.npz is found only {HERE}; all machines"),
        ({"sums": b"1", "sums-test": b"2"}, {"sums": b"1", "sums-test": b"3"}, f": sums-test.npz differs {HERE}; all"),
        ({"sums": b"1"}, {"sums": b"2"}, f": sums.npz differs {HERE}; all"),
        ({"sums": b"1"}, {}, rf" cannot be read: No such file or directory \({HERE}\)"),
    ],
)
def test_a_worker_with_other_data_or_another_test_file_refuses_to_work(
    theirs: dict[str, bytes], ours: dict[str, bytes], refusal: str | None, known: dict[str, str], tmp_path: Path
) -> None:
    """A run that found no test file next to its data would be measured, and choose its weights, on other problems."""
    for name, content in theirs.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
    file, worked = tmp_path / "sums.npz", UnitResult("a run", "recorded")
    unit = Unit(entry(), tmp_path / "runs", Store(tmp_path / "results"), 5, "cpu", data_file=file)
    order = worker.WorkOrder(
        unit, lambda *given: worked, 0.0, "its owner", torch.get_num_threads(), known, data_hashes(file)
    )
    for name in theirs:
        (tmp_path / f"{name}.npz").unlink()
    for name, content in ours.items():
        (tmp_path / f"{name}.npz").write_bytes(content)
    if refusal is None:
        assert worker.perform(order) is worked
    else:
        with pytest.raises(HardtailError, match=f"--data {file}{refusal}"):
            worker.perform(order)


class DiedError(Exception):
    cause: Exception | None = None


class WrongError(DiedError):
    def __init__(self, cause: Exception | None) -> None:
        self.cause = cause


class Jobs:
    """Ray's part in a crew's jobs: each is done when its result is asked for."""

    exceptions = SimpleNamespace(RayTaskError=WrongError, RayError=DiedError)

    def __init__(self, cores: float, gpus: float = 0.0) -> None:
        self.cores, self.gpus, self.waiting, self.most, self.how = cores, gpus, 0, 0, dict[str, Any]()

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores, "GPU": self.gpus}

    def put(self, held: Any) -> Any:
        return held

    def remote(self, **how: Any) -> Callable[[Any], Any]:
        self.how = how

        def made(function: Any) -> Any:
            return SimpleNamespace(remote=lambda known, sent, job: self._sent(lambda: function(known, sent, job)))

        return made

    def _sent(self, job: Callable[[], Any]) -> Callable[[], Any]:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return job

    def get(self, job: Callable[[], Any]) -> Any:
        self.waiting -= 1
        return job()


@pytest.mark.parametrize(
    ("ray", "gpu", "most"),
    [(Jobs(2.0), False, 4), (Jobs(2.0, 1.0), True, 2), (Jobs(0.5), False, 2), (Jobs(8.0), False, 7)],
)
def test_a_few_jobs_at_a_time_and_their_results_in_order(ray: Jobs, gpu: bool, most: int) -> None:
    """Two for each place, so that none is idle while results are taken."""
    crew = Crew(ray, gpu)
    assert list(crew.map(lambda job: job * job, range(7))) == [job * job for job in range(7)]
    assert ray.most == most
    assert ray.how == {"max_retries": cluster.RETRIES, "num_cpus": 1, "num_gpus": int(gpu)}


def test_what_a_job_raises_is_the_commands_own_error() -> None:
    def fail(error: Exception) -> Any:
        raise error

    crew = Crew(Jobs(1.0))
    with pytest.raises(HardtailError, match=r"^no such stratum$"):
        list(crew.map(fail, [WrongError(HardtailError("no such stratum"))]))
    with pytest.raises(WrongError):
        list(crew.map(fail, [WrongError(ValueError("a mistake of ours"))]))
    with pytest.raises(HardtailError, match=r"the worker of a job died 4 times \(DiedError\)"):
        list(crew.map(fail, [DiedError()]))


def test_jobs_on_gpus_need_a_cluster_that_has_some() -> None:
    assert Crew(Jobs(2.0, 1.0)).on("cuda").gpu
    assert not Crew(Jobs(2.0)).on("cpu").gpu
    with pytest.raises(HardtailError, match="--device cuda: the cluster has no GPU"):
        Crew(Jobs(2.0, 0.5)).on("cuda")


@pytest.mark.parametrize("address", [None, "10.0.0.1:6379"])
def test_a_cluster_that_is_not_there_is_a_sentence(address: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**how: Any) -> None:
        assert how.get("address") == (address or "local")
        raise ConnectionError("nobody answers")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr(cluster, "imported", lambda: ray)
    wanted = f"there is no Ray cluster at {address or 'this machine'}: nobody answers"
    with pytest.raises(HardtailError, match=wanted), cluster.connected(address):
        pass


def test_a_cluster_of_this_process_is_used_as_it_is_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = SimpleNamespace(is_initialized=lambda: True)  # neither begun nor ended
    monkeypatch.setattr(cluster, "imported", lambda: ray)
    with cluster.connected("elsewhere") as used:
        assert used is ray


# -- what the command decides -----------------------------------------------------------------------------------------


@pytest.fixture
def drive(tmp_path: Path) -> _Drive:
    unit = Unit(entry(), tmp_path / "runs", Store(tmp_path / "results"), 5, "cpu")
    errors = SimpleNamespace(WorkerCrashedError=ChildProcessError)
    return _Drive(
        Ray(), SimpleNamespace(exceptions=errors), [unit], work, Limits(lambda: False, lambda: 60.0), lambda words: None
    )


@pytest.mark.parametrize(("fault", "most"), [("refused", MOST_REFUSALS), ("died", MOST_DEATHS)])
@pytest.mark.parametrize("further", [True, False])
def test_only_faults_without_progress_in_between_are_counted(
    fault: str, most: int, further: bool, drive: _Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    (unit,), steps = drive.units, iter(range(100))
    monkeypatch.setattr(FolderRuns, "gained", lambda runs, name: (next(steps) if further else 4, 0))
    for _ in range(most):
        assert drive.failures == {}
        if fault == "refused":
            drive.refused(unit, UnitResult(unit.name, "refused", failure="it cannot be written"))
        else:
            drive.died(unit, "its owner", OSError("out of reach"))
    assert bool(drive.failures) == (not further)


def test_a_run_without_files_has_gained_nothing(tmp_path: Path) -> None:
    runs = FolderRuns(tmp_path)
    assert runs.gained("none") == (0, 0)
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "evaluations.jsonl").write_bytes(b"12345")
    assert runs.gained("some") == (0, 5)
