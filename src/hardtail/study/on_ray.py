"""Units on a Ray cluster: one task for each unit, started again where its worker or its machine dies."""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from hardtail.core.errors import HardtailError
from hardtail.study.cluster import connected, environment
from hardtail.study.leases import Taken, new_owner
from hardtail.study.unit import (
    Launcher,
    Limits,
    Seen,
    Unit,
    UnitResult,
    Watching,
    Work,
    data_hashes,
    indented,
    raise_if_hopeless,
)
from hardtail.study.worker import WorkOrder, perform
from hardtail.training.estimate import estimate

POLL = 0.5
"""Seconds between looks at what has ended."""
LOOK_EVERY = 2.0
"""Seconds between looks at the store: who works on what, and what others have recorded."""
MOST_DEATHS = 3
"""A unit whose worker died this often without progress in between has failed."""
MOST_REFUSALS = 3
"""How often a unit whose files cannot be written is tried without progress in between."""
PAUSE = 1.0
"""Seconds before it is tried again, the first time; doubled each time."""
PROCESS_MEMORY = 1 << 30
"""Bytes that a process needs in addition to what its recipe needs."""
SAVING = 60.0
"""Seconds that workers have for saving once time is up or the user wants them to stop."""


@dataclass(frozen=True)
class Ray(Launcher):
    """A Ray cluster: the one at `address`, or one that is started on this machine and ends with the call."""

    address: str | None = None
    cpus: int = 1
    """Cores of each run; on a CPU also the threads that it computes with."""
    gpus: float | None = None
    """GPUs of each run, also a share of one; None means one, if the cluster has GPUs and the device is not the CPU."""
    watch: Callable[[list[Seen]], None] = lambda rows: None
    """Shown the state of all runs every few seconds."""

    def launch(
        self, units: Sequence[Unit], work: Work, limits: Limits, say: Callable[[str], None], watching: Watching
    ) -> dict[str, str]:
        recorded = units[0].store.names() if units else set()
        left = [unit.from_anywhere() for unit in units if unit.name not in recorded]
        if not left:
            return {}
        with self._cluster() as ray:
            return _Drive(self, ray, left, work, limits, say).run()

    def _cluster(self) -> AbstractContextManager[Any]:
        return connected(self.address, self.cpus)

    def resources(self, unit: Unit, cluster_gpus: float) -> dict[str, Any]:
        """What a run asks of the cluster."""
        gpus = (1.0 if cluster_gpus and unit.device != "cpu" else 0.0) if self.gpus is None else self.gpus
        needed = PROCESS_MEMORY + (0 if gpus else int(estimate(unit.entry.recipe).memory))
        return {"num_cpus": self.cpus, "num_gpus": gpus, "memory": needed}


@dataclass
class _Drive:
    """One call: what is running where, what has to wait, and what has failed."""

    launcher: Ray
    ray: Any
    units: Sequence[Unit]
    work: Work
    limits: Limits
    say: Callable[[str], None]
    running: dict[Any, tuple[Unit, str]] = field(default_factory=dict)
    """By the reference to its task: the unit, and its lease's owner."""
    later: dict[str, tuple[Unit, float]] = field(default_factory=dict)
    """By name: units to try again, and when."""
    waiting: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By name: what was said about who else works on a unit."""
    deaths: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    gained: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By name: how far a unit had come when its worker last died or could not write."""
    steps: dict[str, int] = field(default_factory=dict)
    """By name: the steps that were saved when a unit was last given to a worker."""
    failures: dict[str, str] = field(default_factory=dict)
    hopeless: UnitResult | None = None
    looked: float = 0.0

    def run(self) -> dict[str, str]:
        self.task = self.ray.remote(max_retries=0)(perform)
        gpus = self.ray.cluster_resources().get("GPU", 0.0)
        self.needs = {unit.name: self.launcher.resources(unit, gpus) for unit in self.units}
        self.refuse_too_large()
        self.data = {file: data_hashes(file) for file in {unit.data_file for unit in self.units}}
        for unit in self.units:
            self.submit(unit)
        try:
            while (self.running or self.later) and self.hopeless is None and not self.limits.over():
                self.turn(POLL)
        finally:  # whatever happened here, the workers save what they have
            self.drain()
        if self.hopeless is not None:
            raise_if_hopeless(self.hopeless)
        return self.failures

    def refuse_too_large(self) -> None:
        """Raise HardtailError for a run that no machine of the cluster has room for: it would wait for ever."""
        nodes = [node["Resources"] for node in self.ray.nodes() if node["Alive"]]
        names = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
        for name, needs in self.needs.items():
            if any(all(node.get(names[kind], 0) >= need for kind, need in needs.items()) for node in nodes):
                continue
            asked = (
                f"{needs['num_cpus']} cores, {needs['num_gpus']:g} GPUs and {needs['memory'] / 1e9:.1f} GB of memory"
            )
            raise HardtailError(
                f"{name} needs {asked}, and no machine of the cluster has that; ask for less (--cpus-per-run, "
                "--gpus-per-run), or add a machine"
            )

    # -- one turn -----------------------------------------------------------------------------------------------

    def submit(self, unit: Unit) -> None:
        with suppress(HardtailError, OSError):  # only for the table
            self.steps[unit.name] = unit.kept.step(unit.name)
        owner = new_owner()
        seconds = self.limits.seconds()
        task = self.task.options(name=f"hardtail {unit.name}", **self.needs[unit.name])
        order = WorkOrder(
            unit, self.work, time.time() + seconds, owner, self.launcher.cpus, environment(), self.data[unit.data_file]
        )
        self.running[task.remote(order)] = unit, owner

    def turn(self, timeout: float) -> None:
        """Take what has ended within this many seconds, and try again what it is time for."""
        if self.running:
            done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=timeout)
            for reference in done:
                self.take(reference, *self.running.pop(reference))
        else:
            time.sleep(timeout)
        now = time.monotonic()
        for unit, when in [*self.later.values()]:
            if now >= when:
                del self.later[unit.name]
                self.submit(unit)
        if now - self.looked >= LOOK_EVERY:
            self.looked = now
            with suppress(HardtailError, OSError):  # what cannot be read now may be readable at the next look
                self.look()

    def take(self, reference: Any, unit: Unit, owner: str) -> None:
        """What became of a task."""
        errors = self.ray.exceptions
        try:
            result: UnitResult = self.ray.get(reference)
        except errors.TaskCancelledError:
            return
        except errors.RayTaskError as error:  # before or outside of the work: code that is not there, or another one
            cause = getattr(error, "cause", None)
            words = str(cause) if isinstance(cause, HardtailError) else f"its worker could not begin: {error}"
            self.fail(UnitResult(unit.name, "failed", failure=words))
            return
        except errors.RayError as error:
            self.died(unit, owner, error)
            return
        if result.state == "busy":
            self.busy(unit, result)
            return
        self.waiting.pop(unit.name, None)
        for words in result.said:
            self.say(f"{unit.name}: {words}")
        if result.state in ("refused", "unwritable"):
            self.refused(unit, result)
        elif result.state == "full":
            self.hopeless = result
        elif result.failure:
            self.fail(result)

    def died(self, unit: Unit, owner: str, error: Exception) -> None:
        """A worker was killed, or its machine is gone: the unit continues from what was saved."""
        name, kind = unit.name, type(error).__name__
        with suppress(HardtailError, OSError):  # a store that cannot be reached now: its lease also ends by itself
            if isinstance(error, self.ray.exceptions.WorkerCrashedError):
                unit.store.leases.drop(name, owner)  # seen dead by its own machine; any other may only be out of reach
        self.forgive_if_further(unit)
        self.deaths[name] += 1
        if self.deaths[name] >= MOST_DEATHS:
            words = f"its worker died {MOST_DEATHS} times without getting further ({kind}), perhaps for lack of memory"
            self.fail(UnitResult(name, "failed", failure=words))
            return
        self.say(f"{name}: its worker died ({kind}); it continues from step {self.gained.get(name, (0, 0))[0]:,}")
        self.later[name] = unit, time.monotonic()

    def busy(self, unit: Unit, result: UnitResult) -> None:
        """Someone else works on it: wait until they have recorded it or their lease has run out."""
        if self.waiting.get(unit.name) != result.said:  # once for each holder, not whenever it is tried again
            self.waiting[unit.name] = result.said
            self.say(f"{unit.name}: {' '.join(result.said)}; waiting for it")
        self.later[unit.name] = unit, time.monotonic() + unit.store.leases.lasts

    def refused(self, unit: Unit, result: UnitResult) -> None:
        """Its files could not be written: try again later, a few times."""
        self.forgive_if_further(unit)
        self.refusals[unit.name] += 1
        if (tried := self.refusals[unit.name]) < MOST_REFUSALS:
            self.say(f"{unit.name}: {result.failure}; trying again")
            self.later[unit.name] = unit, time.monotonic() + PAUSE * 2 ** (tried - 1)
        elif result.state == "unwritable":
            self.hopeless = result
        else:
            self.fail(result)

    def forgive_if_further(self, unit: Unit) -> None:
        """Forget the earlier faults of a unit that has made progress since."""
        with suppress(HardtailError, OSError):  # of a store that cannot be reached now, nothing new is known
            gained = unit.kept.gained(unit.name)
            if gained != self.gained.get(unit.name, gained):
                del self.deaths[unit.name], self.refusals[unit.name]
            self.gained[unit.name] = gained

    def fail(self, result: UnitResult) -> None:
        log = "".join(f"\n    log: {line}" for line in result.log)
        self.say(f"{result.name}: {result.failure}{log}{indented(result.trace)}")
        self.failures[result.name] = result.failure

    def look(self) -> None:
        """See what others have done meanwhile, and show where everything is."""
        store = self.units[0].store
        recorded, held = store.names(), store.leases.held()
        for name in [*self.later]:
            if name in recorded:
                del self.later[name]
                self.say(f"{name}: recorded by another process")
            elif name not in held and name not in self.refusals:
                self.later[name] = self.later[name][0], time.monotonic()
        self.launcher.watch([self.seen(unit, recorded, held) for unit in self.units])

    def seen(self, unit: Unit, recorded: set[str], held: dict[str, Taken]) -> Seen:
        row = Seen(unit.name, "waiting", self.steps.get(unit.name, 0), unit.entry.recipe.steps)
        if unit.name in recorded:
            return replace(row, state="recorded", step=row.steps)
        if unit.name in self.failures:
            return replace(row, state="failed")
        if (taken := held.get(unit.name)) is not None:
            return replace(row, state=taken.doing or "starting", step=max(taken.step, row.step), where=taken.holder)
        return row

    # -- the end ------------------------------------------------------------------------------------------------

    def drain(self) -> None:
        """Ask the workers to save and stop, and wait for them; what has not begun does not begin."""
        self.later.clear()
        for reference in self.running:
            self.ray.cancel(reference, force=False)
        until = time.monotonic() + SAVING
        while self.running and time.monotonic() < until:
            done, _ = self.ray.wait(list(self.running), num_returns=1, timeout=POLL)
            for reference in done:
                unit, owner = self.running.pop(reference)
                self.take(reference, unit, owner)
                self.later.clear()
        for unit, _ in self.running.values():
            self.say(f"{unit.name}: its worker did not stop in time; it continues from what it saved")
