"""A third party's package adds a task without touching ours: it is listed, sampled and contract-tested."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def with_plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the toy package is installed beside hardtail."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, *options, str(HERE / "toy_plugin")], check=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))}


def run(arguments: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, "-m", *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_listed(with_plugin: dict[str, str]) -> None:
    assert "parity" in run(["hardtail", "tasks"], with_plugin)
    assert "parity" not in run(["hardtail", "tasks"], dict(os.environ))


def test_sampled_and_solved(with_plugin: dict[str, str]) -> None:
    assert '"ones": ' in run(["hardtail", "sample", "parity", "--json", "--stratum", "ones>=12"], with_plugin)
    solved = run(["hardtail", "solve", "parity", "1000000000000001", "--json"], with_plugin)
    assert '"answer": "1111111111111110"' in solved


def test_contract(with_plugin: dict[str, str]) -> None:
    contract = ["pytest", str(HERE / "test_contract.py"), "-k", "parity", "-p", "no:cacheprovider", "-p", "no:xdist"]
    assert " passed" in run([*contract, "-v"], with_plugin)
