"""What the process that sends out a grid does with what its workers answer; Ray and the time are scripts here."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from hardtail.core.errors import HardtailError
from hardtail.study import on_ray
from hardtail.study.leases import Taken
from hardtail.study.on_ray import MOST_DEATHS, MOST_REFUSALS, PROCESS_MEMORY, Ray
from hardtail.study.store import Store
from hardtail.study.unit import Limits, Seen, Unit, UnitResult, Watching
from hardtail.study.workplaces import FolderRuns
from hardtail.training.estimate import estimate
from tests.scripted_ray import Answer, NodeDiedError, RayTaskError, Script, WorkerCrashedError
from tests.study_toys import entry


@dataclass
class Driven:
    """What was made of a script."""

    failures: dict[str, str]
    said: list[str]
    tables: list[list[Seen]]


@pytest.fixture
def drive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Driven]:
    """Send out runs of these seeds; time ends when nothing is left to do, or after so many seconds."""

    def run(
        script: Script,
        seeds: Sequence[int] = (1,),
        seconds: float = 1e6,
        launcher: Ray = Ray(),  # noqa: B008
        data_file: Path | None = None,
    ) -> Driven:
        monkeypatch.setattr(on_ray, "time", script)
        found = Driven({}, [], [])
        made = replace(launcher, watch=found.tables.append)
        monkeypatch.setattr(on_ray, "connected", lambda address, cpus: _within(script))
        until = script.now + seconds
        limits = Limits(lambda: script.now >= until, lambda: until - script.now)
        sent = [replace(unit, data_file=data_file) for unit in units(tmp_path, seeds)]
        found.failures = made.launch(sent, perform_nothing, limits, found.said.append, Watching())
        return found

    return run


class _within:  # noqa: N801
    def __init__(self, script: Script) -> None:
        self.script = script

    def __enter__(self) -> Script:
        return self.script

    def __exit__(self, *error: object) -> None: ...


def perform_nothing(*given: Any) -> UnitResult:
    raise AssertionError("the work is done elsewhere")


def units(folder: Path, seeds: Sequence[int]) -> list[Unit]:
    store = Store(folder / "results")
    made = [replace(entry(), recipe=replace(entry().recipe, seed=seed)) for seed in seeds]
    return [Unit(of, folder / "runs", store, 5, "cpu") for of in made]


NAMES = {seed: units(Path(), [seed])[0].name for seed in (1, 2)}
ONE, TWO = NAMES[1], NAMES[2]


def test_a_unit_is_sent_with_all_that_a_worker_has_to_know(drive: Callable[..., Driven], tmp_path: Path) -> None:
    script = Script({ONE: [UnitResult(ONE, "recorded", ("trained", "measured"))]})
    found = drive(script, seconds=500, launcher=Ray(cpus=2))
    assert (found.failures, found.said) == ({}, [f"{ONE}: trained", f"{ONE}: measured"])
    ((name, order, how),) = script.sent
    assert (name, order.unit.name, order.work, order.threads) == (ONE, ONE, perform_nothing, 2)
    assert order.until == 1500
    assert order.unit.runs == (tmp_path / "runs").absolute()
    needed = int(PROCESS_MEMORY + estimate(order.unit.entry.recipe).memory)
    assert how == {"name": f"hardtail {ONE}", "num_cpus": 2, "num_gpus": 0.0, "memory": needed}
    assert script.cancelled == []


def test_a_unit_is_sent_with_the_hashes_of_its_data_and_of_the_test_file_beside_it(
    drive: Callable[..., Driven], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("sums.npz", "sums-test.npz"):
        (tmp_path / name).write_bytes(name.encode())
    monkeypatch.chdir(tmp_path)
    script = Script({ONE: [UnitResult(ONE, "recorded")]})
    drive(script, data_file=Path("sums.npz"))
    ((_, order, _),) = script.sent
    assert order.data == {name: hashlib.sha256(name.encode()).hexdigest() for name in ("sums.npz", "sums-test.npz")}
    assert order.unit.data_file == tmp_path / "sums.npz"


@pytest.mark.parametrize(
    ("asked", "device", "given"), [(None, None, 1.0), (None, "cpu", 0.0), (0.25, None, 0.25), (0.0, None, 0.0)]
)
def test_a_run_takes_a_gpu_if_there_is_one_and_nothing_else_is_asked(
    asked: float | None, device: str | None, given: float, tmp_path: Path
) -> None:
    unit = replace(units(tmp_path, [1])[0], device=device)
    wanted = Ray(gpus=asked).resources(unit, 2.0)
    own = int(estimate(unit.entry.recipe).memory)
    assert wanted == {"num_cpus": 1, "num_gpus": given, "memory": PROCESS_MEMORY + (0 if given else own)}
    assert Ray().resources(unit, 0.0)["num_gpus"] == 0.0


def test_what_is_recorded_is_not_sent_again(
    drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Store, "names", lambda store: {ONE})
    script = Script({TWO: [UnitResult(TWO, "recorded")]})
    drive(script, (1, 2))
    assert [name for name, _, _ in script.sent] == [TWO]
    monkeypatch.setattr(Store, "names", lambda store: {ONE, TWO})
    monkeypatch.setattr(Ray, "_cluster", lambda launcher: pytest.fail("nothing is left to connect for"))
    nothing = Limits(lambda: False, lambda: 1.0)
    assert Ray().launch(units(tmp_path, (1, 2)), perform_nothing, nothing, print, Watching()) == {}
    assert Ray().launch([], perform_nothing, nothing, print, Watching()) == {}


@pytest.mark.parametrize(
    ("answer", "failure"),
    [
        (UnitResult(ONE, "failed", ("begun",), "it diverged", ("step 3", "step 4"), "line 1\nline 2"), "it diverged"),
        (RayTaskError(HardtailError("a worker has other code")), "a worker has other code"),
        (RayTaskError(ValueError("x")), "its worker could not begin: the task failed"),
    ],
)
def test_a_run_that_fails_by_itself_is_told_once_and_holds_up_no_other(
    answer: Answer, failure: str, drive: Callable[..., Driven]
) -> None:
    script = Script({ONE: [answer], TWO: [UnitResult(TWO, "recorded", ("done",))]})
    found = drive(script, (1, 2))
    assert found.failures == {ONE: failure}
    details = "\n    log: step 3\n    log: step 4\n    line 1\n    line 2" if isinstance(answer, UnitResult) else ""
    assert found.said[-2:] == [f"{ONE}: {failure}{details}", f"{TWO}: done"]
    assert len(script.sent) == 2


@pytest.mark.parametrize("death", [WorkerCrashedError(), NodeDiedError()])
def test_a_unit_whose_worker_dies_continues_until_it_has_died_too_often(
    death: Exception, drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a worker that its own machine saw die gives up its lease; any other may only be out of reach."""
    dropped = list[Any]()
    monkeypatch.setattr("hardtail.study.leases.Leases.drop", lambda leases, *given: dropped.append(given))
    monkeypatch.setattr(FolderRuns, "gained", lambda runs, name: (40, 0))
    script = Script({ONE: [death] * MOST_DEATHS})
    found = drive(script)
    kind = type(death).__name__
    assert found.failures == {
        ONE: f"its worker died {MOST_DEATHS} times without getting further ({kind}), perhaps for lack of memory"
    }
    assert found.said[:-1] == [f"{ONE}: its worker died ({kind}); it continues from step 40"] * (MOST_DEATHS - 1)
    owners = [order.owner for _, order, _ in script.sent]
    assert len(set(owners)) == MOST_DEATHS  # a new lease each time
    assert dropped == ([(ONE, owner) for owner in owners] if isinstance(death, WorkerCrashedError) else [])


@pytest.mark.parametrize(("state", "hopeless"), [("refused", False), ("unwritable", True)])
def test_files_that_cannot_be_written_are_tried_again_a_few_times(
    state: Any, hopeless: bool, drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FolderRuns, "gained", lambda runs, name: (0, 0))
    refused = UnitResult(ONE, state, failure="log.jsonl: read-only file system")
    script, began = Script({ONE: [refused] * MOST_REFUSALS}), 1000.0
    if hopeless:
        with pytest.raises(HardtailError, match="read-only file system"):
            drive(script)
    else:
        found = drive(script)
        assert found.failures == {ONE: refused.failure}
        assert found.said == [f"{ONE}: {refused.failure}; trying again"] * 2 + [f"{ONE}: {refused.failure}"]
    assert len(script.sent) == MOST_REFUSALS
    assert 1 + 2 <= script.now - began < 1 + 2 + 2  # each pause is twice as long as the one before


def test_a_full_disk_ends_everything_and_the_others_save(drive: Callable[..., Driven]) -> None:
    script = Script({ONE: [UnitResult(ONE, "full", failure="no space left on the disk")]})
    with pytest.raises(HardtailError, match="no space left on the disk"):
        drive(script, (1, 2))
    assert script.cancelled == [f"{TWO}/1"]


def held(name: str, **fields: Any) -> dict[str, Taken]:
    given = {"owner": "x", "unit": "u", "host": "there", "process": 7, "expires": 1e12, **fields}
    return {name: Taken(**given)}


def recorded_later(monkeypatch: pytest.MonkeyPatch, leases: dict[str, Taken]) -> None:
    """Let a run be recorded once somebody has asked for the leases."""
    recorded = set[str]()

    def asked(store: Any) -> dict[str, Taken]:
        recorded.add(ONE)
        return leases

    monkeypatch.setattr(Store, "names", lambda store: set(recorded))
    monkeypatch.setattr("hardtail.study.leases.Leases.held", asked)


def test_a_run_of_someone_else_is_waited_for_until_its_lease_has_run_out(
    drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardtail.study.leases.Leases.held", lambda leases: held(ONE))
    first, then = (UnitResult(ONE, "busy", (f"another process is working on it: {holder}",)) for holder in ("a", "b"))
    script = Script({ONE: [first, first, then, UnitResult(ONE, "recorded", ("done",))]})
    found = drive(script)
    waiting = f"{ONE}: another process is working on it"
    told = [f"{waiting}: a; waiting for it", f"{waiting}: b; waiting for it", f"{ONE}: done"]
    assert found.said == told, "once for each holder, not every minute"
    assert len(script.sent) == 4
    assert 180 <= script.now - 1000 < 184  # a lease lasts a minute
    assert set(script.slept) == {on_ray.POLL}


def test_a_run_whose_holder_is_gone_is_taken_at_the_next_look(
    drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hardtail.study.leases.Leases.held", lambda leases: {})
    script = Script({ONE: [UnitResult(ONE, "busy", ("busy",)), UnitResult(ONE, "recorded", ("done",))]})
    drive(script)
    assert len(script.sent) == 2
    assert script.now - 1000 <= on_ray.LOOK_EVERY + 2 * on_ray.POLL


def test_a_run_that_another_process_records_is_not_tried_again(
    drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded_later(monkeypatch, held(ONE))
    script = Script({ONE: [UnitResult(ONE, "busy", ("busy",))]})
    found = drive(script)
    assert found.said[-1] == f"{ONE}: recorded by another process"
    assert len(script.sent) == 1


def test_the_table_says_where_everything_is(drive: Callable[..., Driven], monkeypatch: pytest.MonkeyPatch) -> None:
    steps = entry().recipe.steps
    monkeypatch.setattr(FolderRuns, "step", lambda runs, name: 4)
    monkeypatch.setattr("hardtail.study.leases.Leases.held", lambda leases: held(ONE, doing="training", step=7))
    found = drive(Script({}), (1, 2), seconds=5)
    assert found.tables[0] == [
        Seen(ONE, "training", 7, steps, "process 7 on there"),
        Seen(TWO, "waiting", 4, steps),
    ]
    monkeypatch.setattr("hardtail.study.leases.Leases.held", lambda leases: held(ONE, step=2))
    assert drive(Script({}), seconds=5).tables[0] == [Seen(ONE, "starting", 4, steps, "process 7 on there")]
    failed = Script({ONE: [UnitResult(ONE, "failed", failure="it diverged")]})
    assert Seen(ONE, "failed", 4, steps) in drive(failed, (1, 2), seconds=5).tables[-1]
    recorded_later(monkeypatch, {})
    assert Seen(ONE, "recorded", steps, steps) in drive(Script({}), (1, 2), seconds=5).tables[-1]


def test_when_time_is_up_the_workers_save_and_stop(drive: Callable[..., Driven]) -> None:
    script = Script({})
    found = drive(script, (1, 2), seconds=30)
    assert script.cancelled == [f"{ONE}/1", f"{TWO}/1"]
    assert (found.failures, found.said) == ({}, [])
    assert 30 <= script.now - 1000 < 31
    deaf = Script({}, deaf=True)
    found = drive(deaf, (1,), seconds=30)
    assert found.said == [f"{ONE}: its worker did not stop in time; it continues from what it saved"]
    assert 90 <= deaf.now - 1000 < 91
    assert set(script.waits) == {on_ray.POLL}


def test_a_worker_that_dies_while_it_saves_is_not_replaced(drive: Callable[..., Driven]) -> None:
    script = Script({}, deaf=True)

    def dies(reference: str) -> Answer | None:
        return NodeDiedError() if reference in script.cancelled else None

    script._answer = dies  # type: ignore[method-assign]
    drive(script, seconds=3)
    assert len(script.sent) == 1


@pytest.mark.parametrize("launcher", [Ray(cpus=5), Ray(gpus=1.0)])
def test_a_run_that_no_machine_has_room_for_is_not_waited_for(launcher: Ray, drive: Callable[..., Driven]) -> None:
    script = Script({})
    asked = "5 cores, 0 GPUs" if launcher.cpus == 5 else "1 cores, 1 GPUs"
    with pytest.raises(HardtailError, match=rf"{ONE} needs {asked} and \d\.\d GB of memory, and no machine"):
        drive(script, launcher=launcher)
    assert not script.sent
    with pytest.raises(HardtailError, match="no machine of the cluster has that"):
        drive(Script({}, cores=0))  # a machine that has left the cluster
