"""A Ray cluster whose workers, and whose time, follow a script."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from hardtail.study.on_ray import PROCESS_MEMORY
from hardtail.study.unit import UnitResult
from hardtail.study.worker import WorkOrder, perform


class RayError(Exception):
    """As in Ray, the kind of all that follow."""


class RayTaskError(RayError):
    def __init__(self, cause: Exception | None) -> None:
        super().__init__("the task failed")
        self.cause = cause


class TaskCancelledError(RayError): ...


class WorkerCrashedError(RayError): ...


class NodeDiedError(RayError): ...


Answer = UnitResult | Exception | Callable[[], Any]


@dataclass
class Script:
    """A cluster whose workers answer what is written here, by the name of the unit, one answer after another; a unit
    without an answer works on until it is cancelled."""

    answers: dict[str, list[Answer]]
    cores: float = 4
    gpus: float = 0
    sent: list[tuple[str, WorkOrder, dict[str, Any]]] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    cancelled: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    deaf: bool = False
    """Whether workers go on when they are cancelled."""
    now: float = 1000.0

    exceptions = SimpleNamespace(
        RayError=RayError,
        RayTaskError=RayTaskError,
        TaskCancelledError=TaskCancelledError,
        WorkerCrashedError=WorkerCrashedError,
    )

    def monotonic(self) -> float:
        return self.now

    time = monotonic

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self.cores, "GPU": self.gpus} if self.gpus else {"CPU": self.cores}

    def nodes(self) -> list[dict[str, Any]]:
        small = {"CPU": 1.0, "memory": float(PROCESS_MEMORY // 2)}
        large = {"CPU": self.cores, "GPU": self.gpus, "memory": 64.0 * (1 << 30)}
        return [{"Alive": True, "Resources": small}, {"Alive": self.cores > 0, "Resources": large}]

    def remote(self, max_retries: int) -> Callable[[Any], Any]:
        assert max_retries == 0  # a unit that is tried again must not be tried by Ray as well

        def made(function: Any) -> Any:
            assert function is perform
            return SimpleNamespace(options=lambda **how: SimpleNamespace(remote=lambda order: self._send(order, how)))

        return made

    def _send(self, order: WorkOrder, how: dict[str, Any]) -> str:
        self.sent.append((order.unit.name, order, how))
        return f"{order.unit.name}/{sum(name == order.unit.name for name, _, _ in self.sent)}"

    def wait(self, references: list[str], num_returns: int, timeout: float) -> tuple[list[str], list[str]]:
        assert num_returns == 1
        self.waits.append(timeout)
        done = [ref for ref in references if self._answer(ref) is not None][:1]
        if not done:
            self.now += timeout
        return done, [ref for ref in references if ref not in done]

    def _answer(self, reference: str) -> Answer | None:
        name, _, place = reference.rpartition("/")
        if reference in self.cancelled and not self.deaf:
            return TaskCancelledError()
        answers = self.answers.get(name, [])
        return answers[int(place) - 1] if len(answers) >= int(place) else None

    def get(self, reference: str) -> UnitResult:
        answer = self._answer(reference)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, UnitResult)
        return answer

    def cancel(self, reference: str, force: bool) -> None:
        assert not force  # a worker that is killed saves nothing
        self.cancelled.append(reference)
