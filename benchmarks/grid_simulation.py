"""Where a grid stops scaling: recorded run times replayed on 10, 100 and 1,000 workers that share a store.

    python benchmarks/grid_simulation.py
    python benchmarks/grid_simulation.py --measure

Each worker takes the next unit, works on it for the recorded seconds of a run (those of `results/`, in turn), and then
records it: the index is changed under a lock, one worker at a time, and grows by a line. Each lease is renewed several
times a minute. The driver starts units one by one. What the store and the driver take for that are assumptions, printed
with the result: a fast disk, and a slow file system that machines share. `--measure` times this machine's disk instead.
"""

import argparse
import heapq
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from hardtail.core.depots import FolderDepot
from hardtail.study.leases import LASTS, RENEWALS
from hardtail.study.store import Store

LINE = 230
"""Bytes of a line of the index."""


@dataclass(frozen=True)
class Costs:
    """Seconds that operations take."""

    name: str
    update: float
    """Changing the index: lock, read, write, release."""
    submit: float = 0.003
    """The driver's own, for each unit."""
    bandwidth: float = 200e6
    """Bytes a second at which the index is read and written."""


ASSUMED = Costs("assumed: a fast disk", update=0.005), Costs("assumed: a slow shared file system", update=0.1)


@dataclass(frozen=True)
class Simulated:
    hours: float
    busy: float
    """Share of the workers' time that went into units."""
    waited: float
    """Seconds that the slowest recording took, most of it waiting for others."""
    renewals: float
    """Leases that are written in a second."""


def simulate(workers: int, durations: list[float], units: int, costs: Costs) -> Simulated:
    """Replay the durations, in turn."""
    driver = store = worked = slowest = 0.0
    ends: list[float] = []
    for unit in range(units):
        now = heapq.heappop(ends) if unit >= workers else 0.0
        if unit >= workers:  # the worker that is free next first records what it has done
            done = max(now, store) + costs.update + 2 * unit * LINE / costs.bandwidth
            slowest, store, now = max(slowest, done - now), done, done
        driver = max(driver, now) + costs.submit
        lasts = durations[unit % len(durations)]
        worked += lasts
        heapq.heappush(ends, driver + lasts)
    end = max(max(ends), store) + costs.update
    return Simulated(end / 3600, worked / (end * workers), slowest, workers * RENEWALS / LASTS)


def measured(times: int = 30) -> Costs:
    """What changing an index of 1,000 lines takes in a folder of this machine, the median."""
    took = []
    with tempfile.TemporaryDirectory() as place:
        depot = FolderDepot(Path(place))
        depot.write("index.jsonl", b"x" * LINE * 1000)
        for _ in range(times):
            began = time.perf_counter()
            depot.publish({}, "index.jsonl", lambda index: index)
            took.append(time.perf_counter() - began)
    return Costs("measured: this machine's disk", median(took))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure this machine's disk instead of the defaults")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--units", type=int, default=10, help="units for each worker")
    given = parser.parse_args()
    walls = [entry.wall for entry in Store(given.results).index() if entry.wall]
    print(f"{len(walls)} recorded runs of {min(walls):.0f} to {max(walls):.0f} s, {given.units} units for each worker")
    for costs in (measured(),) if given.measure else ASSUMED:
        print(f"\n{costs.name}: the index takes {costs.update * 1e3:.1f} ms, a start {costs.submit * 1e3:.1f} ms")
        print("| unit | workers | hours | busy | slowest recording | leases a second |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        for label, scale in (("as recorded", 1.0), ("a hundredth", 0.01)):
            for workers in (10, 100, 1000):
                found = simulate(workers, [wall * scale for wall in walls], workers * given.units, costs)
                shown = f"{found.hours:.2f} | {found.busy:.0%} | {found.waited:.2f} s | {found.renewals:.0f} |"
                print(f"| {label} | {workers:,} | {shown}")


if __name__ == "__main__":
    main()
