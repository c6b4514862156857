"""Which tests execute which functions, and how long each takes: what `mutants.py` chooses its tests by."""

import ast
import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from mutations import Mutation

ROOT = Path(__file__).resolve().parents[1]
NOT_RUN = tuple(
    f"test_{name}.py" for name in ("page", "view", "gpu", "docs", "readme", "demo", "imports", "benchmarks")
)
"""Tests that need a browser, a GPU or minutes, and hardly test the core."""
PINNED = "tests/test_golden.py"


@cache
def functions(path: Path) -> dict[int, str]:
    """The function or class that each line of a file is in; lines of the module itself are not listed."""
    held: dict[int, str] = {}

    def visit(node: ast.AST, name: str) -> None:
        for child in ast.iter_child_nodes(node):
            inner = name
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                inner = f"{name}.{child.name}" if name else child.name
                held.update(dict.fromkeys(range(child.lineno, (child.end_lineno or 0) + 1), inner))
            visit(child, inner)

    visit(ast.parse(path.read_bytes()), "")
    return held


@dataclass(frozen=True)
class Map:
    """Which tests execute which functions of which files, and the seconds that each test takes."""

    tests_of: dict[str, dict[str, set[str]]]
    seconds: dict[str, float]

    @classmethod
    def read(cls, folder: Path) -> "Map":
        """The maps of all test files together."""
        tests_of: dict[str, dict[str, set[str]]] = {}
        seconds: dict[str, float] = {}
        for path in sorted(folder.glob("*.json")):
            held = json.loads(path.read_bytes())
            seconds |= held["seconds"]
            for file, of in held["functions"].items():
                for name, tests in of.items():
                    tests_of.setdefault(file, {}).setdefault(name, set()).update(tests)
        return cls(tests_of, seconds)

    def tests(self, mutation: Mutation, budget: float) -> list[str]:
        """The tests of a mutation, the quickest first, within the budget; at least one if there is any.

        Tests of pinned figures that touch its folder come last in any case: compiled code leaves no traces.
        """
        in_file = self.tests_of.get(mutation.path, {})
        found = in_file.get(functions(ROOT / "src/hardtail" / mutation.path).get(mutation.line, ""), set())
        found = found or {test for tests in in_file.values() for test in tests}
        folder = str(Path(mutation.path).parent).removesuffix("/solver")
        near = {
            test
            for file, of in self.tests_of.items()
            if file.startswith(f"{folder}/")
            for tests in of.values()
            for test in tests
        }
        found = found or near
        chosen: list[str] = []
        spent = 0.0
        for test in sorted(found, key=lambda test: (self.seconds[test], test)):
            if chosen and (spent := spent + self.seconds[test]) > budget:
                break
            chosen.append(test)
        pinned = {test for test in near if test.startswith(PINNED)} - set(chosen)
        return chosen + sorted(pinned, key=lambda test: self.seconds[test])


def in_stages(tests: Sequence[str], known: Map) -> list[list[str]]:
    """The tests of the two files that are most about this, then the others: to import many files takes longest."""
    every = Counter(test.split("::")[0] for test in known.seconds)
    files = Counter(test.split("::")[0] for test in tests)
    first = sorted(files, key=lambda file: (file == PINNED, -files[file] / every[file], file))[:2]
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
    held: dict[str, dict[str, list[str]]] = {}
    for name in sorted(data.measured_files()):
        found: dict[str, set[str]] = {}
        for line, tests in data.contexts_by_lineno(name).items():
            found.setdefault(functions(Path(name)).get(line, ""), set()).update(usable & set(tests))
        held[str(Path(name).relative_to(tree / "src/hardtail"))] = {of: sorted(found[of]) for of in found if found[of]}
    path.parent.mkdir(exist_ok=True)
    seconds = {test: recorder.seconds[test] for test in sorted(usable)}
    path.write_text(json.dumps({"functions": held, "seconds": seconds}))
    print(f"{file}: {len(usable)} tests; failed or skipped: {len(set(recorder.failed))}", flush=True)


def record_missing(tree: Path, maps: Path) -> None:
    """Map the test files that have no map yet, each in a process of its own."""
    own = os.environ | {"PYTHONPATH": str(tree / "src"), "OMP_NUM_THREADS": "1"}
    for file in sorted((tree / "tests").glob("test_*.py")):
        if file.name not in NOT_RUN and not (maps / f"{file.stem}.json").exists():
            words = [
                sys.executable,
                str(Path(__file__).with_name("mutants.py")),
                "--work",
                str(maps.parent),
                "--record",
                f"tests/{file.name}",
            ]
            subprocess.run(words, env=own, check=True)
