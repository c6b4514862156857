"""What a launcher costs, and what two workers gain: a grid of small runs, inline and on Ray with one and two workers.

    python benchmarks/grid.py                   # 16 runs, three ways
    python benchmarks/grid.py --runs 4          # a quick look

Every way does the same work in folders of its own, one thread for each run. *Overhead* is the time that a way takes
beyond the work itself, for each run: the work is timed inside the workers. *Processor* is what the work takes of it.
Where that stays the same with two workers, they add no computing; what they wait for (a core, the disk, the index) is
not in it. A cluster is started before the clock is, and each worker has imported torch (its first run is not counted),
as in a grid that lasts longer than this one.
"""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `tests`, here and in the workers

import torch
from tests.grid_toys import little

from hardtail.study import advance as moving
from hardtail.study.advance import work
from hardtail.study.grids import Entry
from hardtail.study.on_ray import Ray
from hardtail.study.recipes import recipe_named
from hardtail.study.store import Store
from hardtail.study.unit import Inline, Launcher, Unit, UnitResult, Watching


@dataclass(frozen=True)
class Timed:
    """`work`, measured on little, that leaves its seconds, and the processor's, in a file."""

    folder: Path

    def __call__(self, unit: Unit, over: Callable[[], bool], watching: Watching, owner: str | None) -> UnitResult:
        began, busy = time.perf_counter(), time.process_time()
        with little():
            result = work(unit, over, watching, owner)
        (self.folder / unit.name).write_text(f"{time.perf_counter() - began} {time.process_time() - busy}")
        return result


def entries(count: int, steps: int, first: int) -> list[Entry]:
    recipe = replace(recipe_named("addition-random-smoke"), steps=steps)
    return [Entry("bench", replace(recipe, seed=first + seed, name="bench")) for seed in range(count)]


def timed(launcher: Launcher, runs: list[Entry], folder: Path) -> tuple[float, float, float]:
    """Seconds that a grid takes, seconds of work in it, and the processor's seconds for that work."""
    (folder / "times").mkdir(parents=True)
    where = folder / "runs", Store(folder / "results")
    said: list[str] = []
    with patch.object(moving, "work", Timed(folder / "times")):
        began = time.perf_counter()
        found = moving.advance(runs, *where, minutes=60, device="cpu", n=5, say=said.append, launcher=launcher)
        took = time.perf_counter() - began
    assert all(item.state == "recorded" for item in found), [item.failure for item in found]
    times = [path.read_text().split() for path in (folder / "times").iterdir()]
    return took, sum(float(work) for work, _ in times), sum(float(busy) for _, busy in times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=16)
    parser.add_argument("--steps", type=int, default=400)
    given = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["OMP_NUM_THREADS"] = "1"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray

    print(f"{given.runs} runs of {given.steps} steps; load before: {os.getloadavg()[0]:.1f}")
    print("| where | workers | seconds | work | processor | overhead a run | gain |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        timed(Inline(), entries(1, given.steps, 900), folder / "warm")
        ways: list[tuple[str, int]] = [("inline", 1), ("ray", 1), ("ray", 2)]
        single = 0.0
        for name, workers in ways:
            if name == "ray":
                local = {"include_dashboard": False, "_node_ip_address": "127.0.0.1", "logging_level": "ERROR"}
                own = {"address": "local", "object_store_memory": 80 << 20}  # not a cluster that is there already
                ray.init(num_cpus=workers, log_to_driver=False, **own, **local)
                timed(Ray(), entries(workers, given.steps, 800), folder / f"warm {workers}")
            launcher = Inline() if name == "inline" else Ray()
            took, worked, busy = timed(launcher, entries(given.runs, given.steps, 1), folder / f"{name} {workers}")
            if name == "ray":
                ray.shutdown()
            single = took if (name, workers) == ("ray", 1) else single
            gain = f"{single / took:.2f}×" if workers > 1 else ""
            over = (took - worked / workers) / given.runs
            print(
                f"| {name} | {workers} | {took:.1f} | {worked:.1f} | {busy:.1f} | {over:.3f} s | {gain} |", flush=True
            )
    print(f"load after: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
