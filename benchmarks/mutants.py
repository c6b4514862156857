"""How many deliberate faults the tests catch: a seeded sample of mutants of the core packages, one test run for each.

    python benchmarks/mutants.py --work /tmp/mutants                 # 200 mutants, seed 0
    python benchmarks/mutants.py --work /tmp/mutants --seed 1 -n 50  # others; the map of tests is used again

The tree is copied to the work folder. There every test file runs once under coverage.py, which says which tests
execute which lines and how long each takes (`maps/`; half an hour; `--record` maps a file anew). Then a mutant at a
time is written into the copy (`mutations.py` says how), and the tests of its line run, the quickest first, until one
fails. A mutant of a line that only an import or compiled code executes gets the tests that touch its file or, failing
that, its folder. Each test run is a fork of a process that has imported torch and numba, so that it takes seconds.

A mutant is caught if a test fails, if nothing can be imported, or if the tests take far longer than they did. The
survivors are printed as diffs; whether one is equivalent, that is, changes nothing that anyone could see, is for a
person to say. Needs coverage.py (`pip install coverage`).
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from arguments import how_many
from mutations import Mutation, compiles, mutations

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    *("core", "traces", "tasks", "models", "schemes", "policies", "decoding", "measuring", "training", "study"),
)
"""Each gives the same number of mutants. The others are what people type and look at."""
NOT_HERE = ("models/attention_kernels.py", "models/capture.py", "figures.py", "draw.py")
"""Code that only a GPU runs, and pictures."""
NOT_RUN = tuple(
    f"test_{name}.py" for name in ("page", "view", "gpu", "docs", "readme", "demo", "imports", "benchmarks")
)
"""Tests that need a browser, a GPU or minutes, and hardly test the core."""
BUDGET = 30.0
"""Seconds of tests, as the map has them, that a mutant gets at most."""
BROKEN = 99
"""The exit code of a fork in which pytest itself failed."""
PATIENCE = 40.0
"""Seconds that a mutant may take beyond five times what its tests took."""


@dataclass(frozen=True)
class Map:
    """Which tests execute which lines of which files, and the seconds that each test takes."""

    lines: dict[str, dict[int, list[str]]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, folder: Path) -> "Map":
        """The maps of all test files together."""
        lines: dict[str, dict[int, list[str]]] = {}
        seconds: dict[str, float] = {}
        for path in sorted(folder.glob("*.json")):
            held = json.loads(path.read_bytes())
            seconds |= held["seconds"]
            for file, of in held["lines"].items():
                for line, tests in of.items():
                    lines.setdefault(file, {}).setdefault(int(line), []).extend(tests)
        return cls(lines, seconds)

    def tests(self, mutation: Mutation) -> list[str]:
        """The tests of a mutation, the quickest first, within the budget; at least one if there is any."""
        in_file = self.lines.get(mutation.path, {})
        found = {test for line in range(mutation.line, mutation.last_line + 1) for test in in_file.get(line, ())}
        found = found or {test for tests in in_file.values() for test in tests}
        folder = str(Path(mutation.path).parent).removesuffix("/solver")
        near = (of for file, of in self.lines.items() if file.startswith(f"{folder}/"))
        found = found or {test for of in near for tests in of.values() for test in tests}
        chosen: list[str] = []
        spent = 0.0
        for test in sorted(found, key=lambda test: self.seconds[test]):
            if chosen and (spent := spent + self.seconds[test]) > BUDGET:
                break
            chosen.append(test)
        return chosen


def in_stages(tests: Sequence[str]) -> list[list[str]]:
    """The tests of the two files that have most of them, then the others: to import many files takes longest."""
    files = Counter(test.split("::")[0] for test in tests)
    first = {file for file, _ in files.most_common(2)}
    stages = [[test for test in tests if (test.split("::")[0] in first) == now] for now in (True, False)]
    return [stage for stage in stages if stage]


class Recorder:
    """A pytest plugin that tells coverage.py which test is running."""

    def __init__(self) -> None:
        import coverage

        self.coverage = coverage.Coverage(source=["src/hardtail"], data_file=None)
        self.seconds: dict[str, float] = {}
        self.failed: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterable[None]:
        began = time.perf_counter()
        self.coverage.switch_context(item.nodeid)
        yield
        self.coverage.switch_context("")
        self.seconds[item.nodeid] = round(time.perf_counter() - began, 3)
        return True  # type: ignore[return-value]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed or report.skipped:
            self.failed.append(report.nodeid)


def record(tree: Path, file: str, path: Path) -> None:
    """Run a test file once and write its map; tests that fail or are skipped as they are have no part in it."""
    os.chdir(tree)
    recorder = Recorder()
    recorder.coverage.start()
    pytest.main(["-q", "-p", "no:cacheprovider", file], plugins=[recorder])
    recorder.coverage.stop()
    data = recorder.coverage.get_data()
    usable = set(recorder.seconds) - set(recorder.failed)
    lines: dict[str, dict[int, list[str]]] = {}
    for name in sorted(data.measured_files()):
        found = {line: sorted(usable & set(tests)) for line, tests in data.contexts_by_lineno(name).items()}
        lines[str(Path(name).relative_to(tree / "src/hardtail"))] = {line: of for line, of in found.items() if of}
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"lines": lines, "seconds": {test: recorder.seconds[test] for test in sorted(usable)}}))
    places = sum(map(len, lines.values()))
    print(f"{file}: {len(usable)} tests, {places:,} lines; failed or skipped: {len(set(recorder.failed))}", flush=True)


def record_missing(tree: Path, maps: Path) -> None:
    """Map the test files that have no map yet, each in a process of its own."""
    own = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    for file in sorted((tree / "tests").glob("test_*.py")):
        if file.name not in NOT_RUN and not (maps / f"{file.stem}.json").exists():
            words = [sys.executable, __file__, "--work", str(maps.parent), "--record", f"tests/{file.name}"]
            subprocess.run(words, env=own, check=True)


def copied(tree: Path) -> None:
    """Copy this checkout, with the times of its files, by which compiled files are found valid."""
    for name in ("src", "tests", "docs", "benchmarks", "results", "results-small", "tools"):
        shutil.copytree(ROOT / name, tree / name, dirs_exist_ok=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md", "Makefile"):
        shutil.copy2(ROOT / name, tree / name)


def sample(n: int, seed: int) -> list[Mutation]:
    """The same number of mutations of every package, drawn without replacement."""
    source = ROOT / "src/hardtail"
    drawn = []
    for place, package in enumerate(PACKAGES):
        files = [str(path.relative_to(source)) for path in sorted((source / package).rglob("*.py"))]
        found = [made for file in files if not file.endswith(NOT_HERE) for made in mutations(source, file)]
        share = (n + len(PACKAGES) - 1 - place) // len(PACKAGES)
        random.Random(f"{seed}/{package}").shuffle(found)
        drawn += list(islice((made for made in found if compiles(source, made)), share))
    return drawn


def outcome(tree: Path, tests: Sequence[str], limit: float, log: Path) -> str:
    """`caught`, `survived` or `hangs`: what the tests say, run in a fork of this process."""
    child = os.fork()
    if child == 0:
        os.setsid()
        out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out, 1)
        os.dup2(out, 2)
        os.chdir(tree)
        sys.path[:0] = [str(tree / "src"), str(tree)]
        code = BROKEN
        try:
            code = int(pytest.main(["-x", "-q", "--no-header", "-p", "no:cacheprovider", *tests]))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    until = time.monotonic() + limit
    while time.monotonic() < until:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended and (code := os.waitstatus_to_exitcode(status)) == BROKEN:
            raise SystemExit(f"the tests cannot be run; {log} says why")
        if ended:
            return "survived" if code == 0 else "caught"
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "hangs"


def run(tree: Path, known: Map, drawn: Sequence[Mutation], work: Path) -> None:
    import numba  # noqa: F401
    import torch

    torch.set_num_threads(1)
    os.environ |= {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    sys.dont_write_bytecode = True
    quick = sorted(known.seconds, key=lambda test: known.seconds[test])[:: max(len(known.seconds) // 40, 1)][:30]
    if (without := outcome(tree, quick, 20 * PATIENCE, work / "last.log")) != "survived":
        raise SystemExit(f"without any fault the tests end as {without!r}; {work / 'last.log'} says why")
    by_package: dict[str, Counter[str]] = defaultdict(Counter)
    survivors = []
    for place, mutation in enumerate(drawn):
        tests = known.tests(mutation)
        path = tree / "src/hardtail" / mutation.path
        source, times = path.read_bytes(), path.stat()
        began = time.monotonic()
        try:
            path.write_bytes(mutation.applied(source))
            found = "untested"
            for stage in in_stages(tests):
                limit = PATIENCE + 5 * sum(known.seconds[test] for test in stage)
                found = outcome(tree, stage, limit, work / "last.log")
                if found != "survived":
                    break
        finally:
            path.write_bytes(source)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        by_package[mutation.path.split("/")[0]][found] += 1
        took = time.monotonic() - began
        print(f"{place + 1:4} {found:9} {took:5.1f} s {len(tests):4} tests  {mutation.path}:{mutation.line} "
              f"({mutation.kind})", flush=True)  # fmt: skip
        if found in ("survived", "untested"):
            survivors.append(mutation.diff(source))
            print(survivors[-1], flush=True)
    print("\n" + "\n\n".join(["SURVIVORS", *survivors]))
    for package, counts in by_package.items():
        print(f"{package:10} {dict(counts)}")
    total = sum(by_package.values(), Counter[str]())
    left = total["survived"] + total["untested"]
    print(
        f"{total.total() - left} of {total.total()} caught ({total['hangs']} by taking far too long); {left} survived"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="a folder for the copy, the map and the log")
    parser.add_argument("-n", type=how_many, default=200, help="how many mutants")
    parser.add_argument("--seed", type=int, default=0, help="which sample")
    parser.add_argument("--record", metavar="FILE", help="only map this test file of the copy anew")
    parser.add_argument("--only", default="", help="only mutants of files whose path contains this")
    asked = parser.parse_args()
    work = asked.work.resolve()
    tree, maps = work / "tree", work / "maps"
    if asked.record:
        sys.path[:0] = [str(tree / "src"), str(tree)]
        record(tree, asked.record, maps / f"{Path(asked.record).stem}.json")
        return
    copied(tree)
    record_missing(tree, maps)
    drawn = [made for made in sample(asked.n, asked.seed) if asked.only in made.path]
    run(tree, Map.read(maps), drawn, work)


if __name__ == "__main__":
    main()
