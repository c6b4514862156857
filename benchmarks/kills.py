"""Kill real processes at their writes, a thousand times, and see that nothing is lost, doubled or torn.

    python benchmarks/kills.py --kills 1000 --seed 0

A small library (`kills.c`, compiled and preloaded here) counts every call that changes a file (opening one for writing,
write, fsync, rename, unlink) and kills the process with SIGKILL at the chosen one: before it, after it, or, of a write,
after half of its bytes. One kill in five comes at a random moment instead. The processes are forks of one that has
imported torch. They run `train` (every scheme), `study advance`, `eval --out` and `report`.

- `train` is killed again and again until it finishes: its weights, its coverage and its log equal an unbroken run's.
- `study advance` trains, measures and records two runs: every record is there once, with an unbroken study's figures.
- `eval --out`: afterwards the file has all of the old lines, and all of the new ones or none.
- `report`: the page is the old one or the whole new one.

What the killed left unfinished is gone after the next whole run of the same command.
"""

import argparse
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NoReturn

from arguments import how_many

ROOT = Path(__file__).resolve().parents[1]
LEASES = ".leases"
LIBRARY = "HARDTAIL_KILLS"
"""The environment variable that names the preloaded library."""
TRAINED = (
    *(["addition-random-smoke"], ["addition-papl-smoke"], ["addition-puma-smoke"], ["addition-oracle-smoke"]),
    *(
        ["addition-mixture-smoke"],
        ["addition-random-smoke", "--scheme", "focal"],
        ["addition-puma-smoke", "--scheme", "puma,start=spread,refill=fraction"],
    ),
    *(["listops-puma-smoke"], ["maze-random-smoke"]),
)
"""What is trained: every scheme, and tasks with cells that are never hidden."""
WAIT = 120.0
"""Seconds after which a process that was not killed has failed."""


def start_with_library() -> NoReturn:
    """Compile the library, and start this program again with it."""
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    made, source = folder / "kills.so", Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", made, source, "-ldl"], check=True)
    own = {LIBRARY: str(made), "LD_PRELOAD": str(made), "OMP_NUM_THREADS": "1"}
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | own)


@dataclass(frozen=True)
class Kill:
    """When a process is killed: at a call that changes a file, or after some seconds; never, if both are None."""

    call: int | None = None
    moment: int = 0
    seconds: float | None = None


NEVER = Kill()


class Killer:
    """Runs work in forks and kills them; `kills` counts, by what was hit."""

    def __init__(self, library: ctypes.CDLL, rng: Random) -> None:
        self.library, self.rng, self.kills = library, rng, Counter[str]()

    def drawn(self, calls: int, seconds: float) -> Kill:
        """A kill within work that makes this many calls and takes this long."""
        if self.rng.random() < 0.2:
            return Kill(seconds=self.rng.uniform(0, seconds))
        return Kill(self.rng.randint(1, calls), self.rng.randrange(3))

    def run(self, work: Callable[[], object], kill: Kill = NEVER) -> bool:
        """Run the work in a process of its own; return whether it was killed. A failure of its own ends everything."""
        child = os.fork()
        if child == 0:
            code = 1
            try:
                sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115
                self.library.kills_arm(ctypes.c_long(kill.call or -1), kill.moment)
                work()
                code = 0
            except SystemExit as stop:
                code = int(stop.code or 0)
            except Exception:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        began = time.monotonic()
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            past = time.monotonic() - began
            if past > WAIT or (kill.seconds is not None and past > kill.seconds):
                os.kill(child, signal.SIGKILL)
            time.sleep(0.002)
        code = os.waitstatus_to_exitcode(ended[1])
        if time.monotonic() - began > WAIT:
            raise SystemExit(f"a process that should have ended did not: {work}, {kill}")
        if code == -signal.SIGKILL:
            where = "any moment" if kill.call is None else ("before", "after", "half of")[kill.moment] + " a call"
            self.kills[where] += 1
            return True
        if code:
            raise SystemExit(f"a process failed by itself with code {code}: {work}, {kill}")
        return False

    def measured(self, work: Callable[[], object]) -> tuple[int, float]:
        """How many calls that change files the work makes unbroken, and how long it takes."""
        read, write = os.pipe()

        def counted() -> None:
            work()
            os.write(write, str(self.library.kills_seen()).encode())

        began = time.monotonic()
        self.run(counted)
        return int(os.read(read, 20)), time.monotonic() - began


def refuse_left_over(folder: Path) -> None:
    """End everything if a killed writer's temporary file is still there; a lock stays until that file is written."""
    if left := [str(path.relative_to(folder)) for path in folder.rglob(".*.part")]:
        raise SystemExit(f"{folder} still has what a killed process left: {left}")


# -- the commands -----------------------------------------------------------------------------------------------------


def command(*words: object) -> None:
    """`hardtail WORDS`."""
    from hardtail import cli

    sys.argv = ["hardtail", *map(str, words)]
    cli.main()


def train(recipe: Sequence[str], folder: Path) -> None:
    watch = {"log": 3, "eval": 4, "gen": 8, "save": 3}
    flags = [word for name, every in watch.items() for word in (f"--watch.{name}-every", every)]
    sizes = ("--steps", 14, "--batch", 4, "--train-size", 30, "--watch.probe-size", 6, "--watch.decoded", 2)
    command("train", *recipe, "--out", folder, "--device", "cpu", *sizes, *flags)


def trained(folder: Path) -> dict[str, Any]:
    """What a run leaves, but for times and the lines about each session."""
    from hardtail.models.weights import read_tensors

    held: dict[str, Any] = {
        name: (folder / name).read_bytes() for name in ("last.safetensors", "best_probe.safetensors", "coverage.json")
    }
    log = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    held["log"] = [{key: value for key, value in line.items() if key != "wall"} for line in log if "how" not in line]
    state = read_tensors(folder / "state.safetensors")[0]
    held["state"] = {name: tensor.numpy().tobytes() for name, tensor in state.items() if name != "progress/log"}
    held["files"] = sorted(path.name for path in folder.iterdir())
    return held


def kill_train(killer: Killer, folder: Path, recipe: Sequence[str], kills: int) -> None:
    whole = folder / "whole"
    calls, seconds = killer.measured(partial(train, recipe, whole))
    wanted, done, runs = trained(whole), 0, 0
    while done < kills:
        own, before = folder / f"run-{runs}", done
        while killer.run(partial(train, recipe, own), killer.drawn(calls // 2, seconds / 2)):
            done += 1
        killer.run(partial(train, recipe, own))
        found = trained(own)
        if differing := [name for name in wanted if wanted[name] != found[name]]:
            raise SystemExit(f"{own} differs from an unbroken run in {differing} after {done - before} kills")
        shutil.rmtree(own)
        runs += 1
    words = " ".join(recipe)
    print(f"train {words}: {done} kills, {runs} runs, {calls} calls each; all end bit-equal", flush=True)


def advance(folder: Path) -> None:
    """`study advance` on two small runs, measured on little."""
    moving: Any = import_module("hardtail.study.advance")
    measuring: Any = import_module("hardtail.study.measure")
    from hardtail.study.grids import Entry
    from hardtail.study.recipes import recipe_named
    from hardtail.study.store import Store
    from hardtail.tasks.base import Part

    entries = []
    for arm in ("addition-puma-smoke", "addition-papl-smoke"):
        recipe = recipe_named(arm)
        watch = replace(recipe.watch, log_every=2, eval_every=4, gen_every=4, save_every=2, probe_size=6, decoded=2)
        entries.append(Entry(arm, replace(recipe, steps=4, watch=watch, train_size=30, batch=4)))
    few = [Part("natural", 3)]
    real = measuring.explain_model
    measuring.study_parts = lambda task, n, **_: [(part, ("top1", "lsb")) for part in (*few, Part("chain>=4", 3))]
    measuring.diagnosed = lambda task, strata, n: few
    measuring.explain_model = lambda subject, orders, strata, n, decoding, **_: real(
        subject, (), ["natural"], 3, decoding
    )
    found = moving.advance(entries, folder / "runs", Store(folder / "results"), minutes=5, device="cpu")
    if failed := [(item.entry.name, item.state, item.failure) for item in found if item.state != "recorded"]:
        raise RuntimeError(failed)


def recorded(folder: Path) -> dict[str, list[str]]:
    """Every record of the results, but for times, sorted; one that was recorded twice is there twice.

    A killed process may leave its lease, which counts for nothing once its holder is dead.
    """
    held = {}
    for path in sorted((folder / "results").rglob("[!.]*.json*")):
        if path.parent.name == LEASES:
            continue
        whole = path.read_text()
        lines = map(json.loads, whole.splitlines() if path.suffix == ".jsonl" else [whole])
        kept = [line for line in lines if path.name != "log.jsonl" or "how" not in line]
        plain = [{key: value for key, value in line.items() if key != "wall"} for line in kept]
        held[str(path.relative_to(folder))] = sorted(json.dumps(line, sort_keys=True) for line in plain)
    return held


def kill_advance(killer: Killer, folder: Path, kills: int) -> None:
    whole = folder / "whole"
    calls, seconds = killer.measured(partial(advance, whole))
    wanted, done, studies = recorded(whole), 0, 0
    while done < kills:
        own = folder / f"study-{studies}"
        while killer.run(partial(advance, own), killer.drawn(calls // 2, seconds / 2)):
            done += 1
        killer.run(partial(advance, own))
        if (found := recorded(own)) != wanted:
            differing = [name for name in {**wanted, **found} if wanted.get(name) != found.get(name)]
            counts = {name: f"{len(found.get(name, ()))} of {len(wanted.get(name, ()))}" for name in differing}
            raise SystemExit(f"{own} has other records than an unbroken study: {counts}")
        refuse_left_over(own)
        shutil.rmtree(own)
        studies += 1
    print(f"study advance: {done} kills, {studies} studies, {calls} calls each; every record is there once", flush=True)


def kill_eval(killer: Killer, folder: Path, kills: int) -> None:
    run, out = folder / "run", folder / "out.jsonl"
    killer.run(partial(train, ["addition-random-smoke"], run))
    options = ("--policies", "top1", "lsb", "--strata", "natural", "-n", 2, "--device", "cpu", "--out", out)
    work = partial(command, "eval", run, *options)
    calls, seconds = killer.measured(work)
    new = out.read_bytes().splitlines()
    done = whole = 0
    out.unlink()
    held: list[bytes] = []
    while done < kills:
        done += killer.run(work, killer.drawn(calls, seconds))
        after = out.read_bytes().splitlines() if out.exists() else []
        added = len(after) - len(held)
        if after[: len(held)] != held or added not in (0, len(new)) or not all(map(json.loads, after)):
            raise SystemExit(f"{out} has lost or torn lines: {len(held)} before, {len(after)} after")
        held, whole = after, whole + bool(added)
    killer.run(work)
    refuse_left_over(folder)
    print(f"eval --out: {done} kills, {whole} of them after all lines were added; none added a part", flush=True)


def kill_report(killer: Killer, folder: Path, kills: int) -> None:
    page, results = folder / "page.html", folder / "results"
    shutil.copytree(ROOT / "results-small", results)
    work = partial(command, "report", "--results", results, "--out", page)
    calls, seconds = killer.measured(work)
    new, done, whole = page.read_bytes(), 0, 0
    while done < kills:
        page.write_bytes(b"old")
        done += killer.run(work, killer.drawn(calls, seconds))
        if (found := page.read_bytes()) not in (b"old", new):
            raise SystemExit(f"{page} is neither the old page nor the new one: {len(found)} bytes")
        whole += found == new
    killer.run(work)
    refuse_left_over(folder)
    print(f"report: {done} kills, {whole} of them with the new page in place; none left a part of it", flush=True)


@contextmanager
def warmed() -> Iterator[Path]:
    """A folder to work in; everything that the forks need is imported."""
    import torch

    from hardtail import cli  # noqa: F401
    from hardtail.measuring import evaluate  # noqa: F401
    from hardtail.show.page import data  # noqa: F401
    from hardtail.training import run  # noqa: F401

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory(prefix="kills-") as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=how_many, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    if LIBRARY not in os.environ:
        start_with_library()
    library = ctypes.CDLL(os.environ[LIBRARY])
    sys.path[:0] = [str(ROOT / "src")]
    killer = Killer(library, Random(asked.seed))
    with warmed() as folder:
        kill_report(killer, _made(folder / "report"), asked.kills // 10)
        kill_eval(killer, _made(folder / "eval"), asked.kills // 10)
        kill_advance(killer, _made(folder / "advance"), asked.kills // 4)
        for place, recipe in enumerate(TRAINED):
            left = asked.kills - killer.kills.total()
            kill_train(killer, _made(folder / f"train-{place}"), recipe, -(-left // (len(TRAINED) - place)))
    print(f"{killer.kills.total()} kills: {dict(killer.kills)}")


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


if __name__ == "__main__":
    main()
