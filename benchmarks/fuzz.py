"""Attack every parser and file kind with damaged inputs for some minutes, and count what gets through.

    python benchmarks/fuzz.py --minutes 30 --seed 1
    python benchmarks/fuzz.py --minutes 30 --seed 1 --keep fuzz.json     # again to go on, with the counts of both

The doors and the damage are those of `tests/fuzz_doors.py`; `make test` tries some of each. Inputs are brought in by
forked processes, a batch at a time, in a folder of their own. An input is a find if it raises anything but a
HardtailError (a raw error), gives a message that repeats a huge input, takes longer than ten seconds (a hang), ends its
process, or takes the process above 1 GB. Finds are printed with the key that makes the input again
(`--again KEY`); the exit code is 1 if there are any. `--keep` writes the counts to a file after every batch.
"""

import argparse
import json
import mmap
import os
import resource
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from arguments import how_many

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT)]
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.fuzz_doors import Door, doors, refused  # noqa: E402

from hardtail.core.files import atomic  # noqa: E402
from hardtail.core.provenance import code_version  # noqa: E402

BATCH = 2000
HANG = 10.0
"""Seconds that one input may take."""
MEMORY = 1 << 30
"""Bytes that a process may take, its libraries included."""
ROOM = 4 << 30
"""Bytes that a process can take at most beyond its libraries, so that a bomb harms nobody."""


def drawn(held: Sequence[Door], key: str) -> tuple[Door, Random]:
    """The door of a key, by weight, and the random numbers that make its input."""
    rng = Random(key)
    return rng.choices(held, [door.weight for door in held])[0], rng


def bring(held: Sequence[Door], keys: Sequence[str], beat: mmap.mmap) -> dict[str, Any]:
    """Bring one input in for every key; return counts, times and finds."""
    counts, turned_away, slowest, finds = Counter[str](), Counter[str](), defaultdict[str, float](float), []
    for place, key in enumerate(keys):
        beat[:4] = struct.pack("I", place)
        door, rng = drawn(held, key)
        given = door.draw(rng)
        began = time.perf_counter()
        try:
            turned_away[door.name] += refused(door, given)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            at = [frame for frame in frames if "/src/hardtail/" in frame.filename] or frames
            where = f"{Path(at[-1].filename).name}:{at[-1].lineno}"
            finds.append((door.name, f"{type(error).__name__} at {where}", key, str(error)[:200]))
        counts[door.name] += 1
        slowest[door.name] = max(slowest[door.name], time.perf_counter() - began)
        if (peak := resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024) > MEMORY:
            finds.append((door.name, f"memory of {peak / 1e9:.1f} GB", key, ""))
            break
    return {"counts": counts, "refused": turned_away, "slowest": slowest, "finds": finds, "peak": peak}


def in_a_fork(held: Sequence[Door], keys: Sequence[str]) -> dict[str, Any]:
    """What `bring` returns, from a process of its own that is ended if an input hangs."""
    beat = mmap.mmap(-1, 4)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        code = 1
        try:
            os.setsid()
            size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
            with os.fdopen(write, "w") as pipe:
                json.dump(bring(held, keys, beat), pipe)
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    place, since, text = -1, time.monotonic(), b""
    os.set_blocking(read, False)
    while True:
        try:
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            text += piece
        except BlockingIOError:
            time.sleep(0.02)
        now = struct.unpack("I", beat[:4])[0]
        if now != place:
            place, since = now, time.monotonic()
        elif time.monotonic() - since > HANG:
            os.killpg(child, signal.SIGKILL)
            break
    os.close(read)
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status) == 0:
        found: dict[str, Any] = json.loads(text)
        return found
    door = drawn(held, keys[place])[0]
    what = "hang" if time.monotonic() - since > HANG else f"the process ended ({os.waitstatus_to_exitcode(status)})"
    counts = Counter(drawn(held, key)[0].name for key in keys[: place + 1])
    return {"counts": counts, "finds": [(door.name, what, keys[place], "")]}


@dataclass
class Tally:
    """What was found so far, over all batches; as JSON it is what `--keep` writes."""

    seed: int
    commit: str
    batches: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    slowest: dict[str, float] = field(default_factory=dict)
    peak: int = 0
    finds: list[list[str]] = field(default_factory=list)

    @classmethod
    def begun(cls, seed: int, kept: Path | None) -> "Tally":
        if kept is None or not kept.exists():
            return cls(seed, code_version())
        held = json.loads(kept.read_bytes())
        if (held["seed"], held["commit"]) != (seed, code_version()):
            raise SystemExit(f"{kept} is of seed {held['seed']} and commit {held['commit']}; give another file")
        return cls(**held | {"counts": Counter(held["counts"]), "refused": Counter(held["refused"])})

    def add(self, found: dict[str, Any]) -> None:
        self.batches += 1
        self.counts.update(found["counts"])
        self.refused.update(found.get("refused", {}))
        for name, seconds in found.get("slowest", {}).items():
            self.slowest[name] = max(self.slowest.get(name, 0.0), seconds)
        self.peak = max(self.peak, found.get("peak", 0))
        for find in found["finds"]:
            self.finds.append(find)
            print("FIND", *find, flush=True)

    def table(self) -> str:
        lines = ["| door | inputs | refused | slowest |", "| --- | ---: | ---: | ---: |"]
        for name, count in self.counts.items():
            lines.append(
                f"| {name} | {count:,} | {self.refused[name] / count:.0%} | {self.slowest.get(name, 0):.2f} s |"
            )
        lines += ["", f"{self} and {len(self.finds)} finds:"]
        kinds = Counter((find[0], find[1]) for find in self.finds)
        return "\n".join(lines + [f"  {count:6} {name}: {what}" for (name, what), count in kinds.most_common()])

    def __str__(self) -> str:
        total, doors = self.counts.total(), len(self.counts)
        known = f"seed {self.seed}, commit {self.commit}; at most {self.peak / 1e9:.2f} GB"
        return f"{total:,} inputs at {doors} doors, {known}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--inputs", type=how_many, help="stop after this many inputs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="go on where the run with this file stopped")
    parser.add_argument("--again", metavar="KEY", help="bring in the one input of a find, and show its error")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    shared = Path("/dev/shm")
    kept = asked.keep and asked.keep.absolute()
    tally = Tally.begun(asked.seed, kept)
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        os.chdir(folder)  # whatever a command line makes stays here
        held = doors(Path(folder))
        if asked.again:
            door, rng = drawn(held, asked.again)
            print(door.name)
            refused(door, door.draw(rng))
            return
        until = time.monotonic() + 60 * asked.minutes
        while time.monotonic() < until and tally.counts.total() < (asked.inputs or sys.maxsize):
            tally.add(in_a_fork(held, [f"{asked.seed}/{tally.batches}/{place}" for place in range(BATCH)]))
            if kept:
                with atomic(kept) as file:
                    file.write(json.dumps(vars(tally)).encode())
            if tally.batches % 10 == 0:
                print(tally, flush=True)
        os.chdir(ROOT)
    print(tally.table())
    sys.exit(bool(tally.finds))


if __name__ == "__main__":
    main()
