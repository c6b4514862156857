"""How many deliberate faults the tests catch: a seeded sample of mutants of the core packages, one test run for each.

    python benchmarks/mutants.py --work /tmp/mutants                 # 200 mutants, seed 0
    python benchmarks/mutants.py --work /tmp/mutants --seed 1 -n 50  # others; the map of tests is used again

The tree is copied to the work folder, once for each of `--jobs`. There every test file runs once under coverage.py,
which says which tests execute which functions and how long each takes (`maps/`; half an hour; `--record` maps a file
anew). Then a mutant at a time is written into a copy (`mutations.py` says how), and the tests of its function run, the
quickest first, until one fails. A mutant of a function that no test calls by itself, such as compiled code, gets the
tests that touch its file or, failing that, its folder. Each test run is a fork of a process that has imported torch
and numba, so that it takes seconds. What was found is in `found-SEED.jsonl`; the same command goes on from there.

A mutant is caught if a test fails, if nothing can be imported, or if the tests take far longer than they did. The
survivors are printed as diffs; whether one is equivalent, that is, changes nothing that anyone could see, is for a
person to say. Needs coverage.py (`pip install coverage`).
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from arguments import how_many
from mutant_tests import Map, functions, in_stages, record, record_missing
from mutations import Mutation, compiles, mutations

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    *("core", "traces", "tasks", "models", "schemes", "policies", "decoding", "measuring", "training", "study"),
)
"""Each gives the same number of mutants. The others are what people type and look at."""
PICTURES = "figures.py", "draw.py"
"""Drawings of tasks; the figures of claims are numbers."""
GPU_FILES = (
    *("models/kernels/", "models/capture.py", "models/forward.py", "models/fused.py"),
    *("models/aside.py", "models/attended.py"),
)
GPU_FUNCTIONS = (
    *(f"models/attention.py:{name}" for name in ("rounds", "_", "pays", "fused")),
    *(f"training/gradient.py:{name}" for name in ("Fused", "Autograd.compiled")),
    *(f"training/step.py:Step.{name}" for name in ("compile", "_captured", "_on_gpu")),
)
"""Code that only a GPU runs: the beginnings of paths, and of paths with the function."""
BROKEN = 99
"""The exit code of a fork in which pytest itself failed."""
PATIENCE, TIMES = 20.0, 2.5
"""Seconds of a core that a mutant may take beyond this many times what its tests took when they were mapped, which is
about twice what they take."""
WAITING = 15
"""How many times as long it may take on a clock: other processes may have the cores."""
HEAVY = (
    *("torch", "numba", "rich.console", "tyro", "safetensors.torch", "msgspec", "xml.dom.minidom", "hypothesis"),
    *("torch._dynamo", "transformers.models.bert.modeling_bert", "huggingface_hub", "pandas", "pyarrow.parquet"),
)
"""What many tests import; every fork has it."""


def copied(tree: Path) -> None:
    """Copy this checkout, with the times of its files, by which compiled files are found valid."""
    for name in ("src", "tests", "docs", "benchmarks", "results", "results-small", "tools", "examples"):
        shutil.copytree(ROOT / name, tree / name, dirs_exist_ok=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
        shutil.copy2(ROOT / name, tree / name)


def _here(source: Path, mutation: Mutation) -> bool:
    """Whether a CPU runs it."""
    place = f"{mutation.path}:{functions(source / mutation.path).get(mutation.line, '')}"
    return not place.startswith(GPU_FUNCTIONS)


def sample(n: int, seed: int) -> list[Mutation]:
    """The same number of mutations of every package, drawn without replacement."""
    source = ROOT / "src/hardtail"
    drawn: list[Mutation] = []
    for place, package in enumerate(PACKAGES):
        files = [str(path.relative_to(source)) for path in sorted((source / package).rglob("*.py"))]
        found = [
            made
            for file in files
            for made in mutations(source, file)
            if not (file.startswith("tasks/") and file.endswith(PICTURES)) and not file.startswith(GPU_FILES)
        ]
        share = (n + len(PACKAGES) - 1 - place) // len(PACKAGES)
        random.Random(f"{seed}/{package}").shuffle(found)
        drawn += islice((made for made in found if _here(source, made) and compiles(source, made)), share)
    return drawn


class Chosen:
    """A pytest plugin that runs only the chosen tests, in their order, and writes down those that fail."""

    def __init__(self, tests: Sequence[str], failed: Path) -> None:
        self.place, self.failed = {test: place for place, test in enumerate(tests)}, failed
        failed.write_text("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            with self.failed.open("a") as file:
                file.write(f"{report.nodeid}\n")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((item for item in items if item.nodeid in self.place), key=lambda it: self.place[it.nodeid])


def outcome(tree: Path, tests: Sequence[str], limit: float, log: Path, *options: str) -> str:
    """`caught`, `survived` or `hangs`: what the tests say, run in a fork of this process."""
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(tree)
        sys.path[:0] = [str(tree / "src"), str(tree)]
        code = BROKEN
        try:
            files = sorted({test.split("::")[0] for test in tests})
            chosen = Chosen(tests, log.with_suffix(".failed"))
            code = int(pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", *options, *files], [chosen]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + WAITING * limit
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended and (code := os.waitstatus_to_exitcode(status)) in (BROKEN, pytest.ExitCode.NO_TESTS_COLLECTED):
            raise SystemExit(f"the tests cannot be run; {log} says why")
        if ended:
            return {0: "survived", -signal.SIGXCPU: "hangs", -signal.SIGKILL: "hangs"}.get(code, "caught")
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def judge(tree: Path, known: Map, mutation: Mutation, budget: float, log: Path) -> dict[str, Any]:
    """What the tests say of a mutant, and how it differs."""
    tests = known.tests(mutation, budget)
    path = tree / "src/hardtail" / mutation.path
    source, times = path.read_bytes(), path.stat()
    began, found = time.monotonic(), "untested"
    try:
        path.write_bytes(mutation.applied(source))
        for stage in in_stages(tests, known):
            limit = PATIENCE + TIMES * sum(known.seconds[test] for test in stage)
            found = outcome(tree, stage, limit, log, "-x")
            if found != "survived":
                break
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    failed = log.with_suffix(".failed").read_text().splitlines()
    took = round(time.monotonic() - began, 1)
    return {"found": found, "by": failed, "seconds": took, "tests": len(tests), "diff": mutation.diff(source)}


def run(work: Path, known: Map, drawn: Sequence[Mutation], jobs: int, budget: float, kept: Path) -> None:
    """Judge the mutants that `kept` does not have yet, each job in a copy of its own, and add what they find to it.

    Survivors of a smaller budget are judged again.
    """
    for name in HEAVY:
        import_module(name)
    import_module("torch").set_num_threads(1)
    os.environ |= {"PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    sys.dont_write_bytecode = True
    done = {name for name, held in read_found(kept).items() if held["found"] != "survived" or held["budget"] >= budget}
    left = [mutation for mutation in drawn if mutation.name not in done]
    random.Random(0).shuffle(left)  # so that a run that is stopped has some of every package
    children = []
    for job in range(jobs):
        children.append(os.fork())
        if children[-1] == 0:
            tree, log = work / f"tree-{job}", work / f"last-{job}.log"
            os.environ["PYTHONPATH"] = str(tree / "src")
            for mutation in left[job::jobs]:
                found = judge(tree, known, mutation, budget, log) | {"budget": budget}
                with kept.open("a") as file:
                    file.write(json.dumps({"name": mutation.name} | found) + "\n")
                print(
                    f"{found['found']:9} {found['seconds']:5.1f} s {found['tests']:4} tests  {mutation.name}",
                    flush=True,
                )
            os._exit(0)
    ends = [os.waitpid(child, 0)[1] for child in children]
    if any(ends):
        raise SystemExit("a job failed; what it found so far is kept")
    catching = sorted({test for found in read_found(kept).values() for test in found["by"]})
    if catching and outcome(work / "tree-0", catching, 50 * PATIENCE, work / "last-0.log") != "survived":
        raise SystemExit(f"some of these tests fail without any fault; {work / 'last-0.log'} says which")


def read_found(kept: Path) -> dict[str, dict[str, Any]]:
    lines = map(json.loads, kept.read_text().splitlines() if kept.exists() else [])
    return {line["name"]: line for line in lines}


def summary(drawn: Sequence[Mutation], found: dict[str, dict[str, Any]]) -> str:
    by_package: dict[str, Counter[str]] = {}
    survivors = []
    for mutation in drawn:
        held = found[mutation.name]
        by_package.setdefault(mutation.path.split("/")[0], Counter())[held["found"]] += 1
        if held["found"] in ("survived", "untested"):
            survivors.append(held["diff"])
    total = sum(by_package.values(), Counter[str]())
    caught = total.total() - len(survivors)
    packages = [f"{package:10} {dict(counts)}" for package, counts in by_package.items()]
    said = f"{caught} of {total.total()} caught ({total['hangs']} by taking far too long); {len(survivors)} survived"
    return "\n\n".join(["SURVIVORS", *survivors, "\n".join(packages), said])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the copies, the map and what is found")
    parser.add_argument("-n", type=how_many, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which sample")
    parser.add_argument("--jobs", type=how_many, default=1, help="how many mutants at a time")
    parser.add_argument(
        "--budget", type=float, default=30.0, help="seconds of tests, as the map has them, for a mutant"
    )
    parser.add_argument("--record", metavar="FILE", help="only map this test file of the copy anew")
    parser.add_argument("--only", default="", help="only mutants of files whose path contains this")
    asked = parser.parse_args()
    work = asked.work.resolve()
    first, maps = work / "tree-0", work / "maps"
    if asked.record:
        sys.path[:0] = [str(first / "src"), str(first)]
        record(first, asked.record, maps / f"{Path(asked.record).stem}.json")
        return
    for job in range(asked.jobs):
        copied(work / f"tree-{job}")
    record_missing(first, maps)
    drawn = [made for made in sample(asked.n, asked.seed) if asked.only in made.path]
    kept = work / f"found-{asked.seed}.jsonl"
    run(work, Map.read(maps), drawn, asked.jobs, asked.budget, kept)
    print(summary(drawn, read_found(kept)))


if __name__ == "__main__":
    main()
