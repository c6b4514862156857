"""A third party's package adds a task, a scheme, a policy and a recipe without touching ours.

They are listed, contract-tested, trained and evaluated.
"""

import json
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
    contract = [
        "pytest",
        str(HERE / "test_contract.py"),
        "-k",
        "parity or suffix or ends",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
    ]
    assert " passed" in run([*contract, "-v"], with_plugin)


def test_trained_and_evaluated(with_plugin: dict[str, str], tmp_path: Path) -> None:
    assert "parity-suffix" in run(["hardtail", "train"], with_plugin)
    folder = str(tmp_path / "run")
    assert "finished at step 20" in run(["hardtail", "train", "parity-suffix", "--out", folder], with_plugin)
    words = ["hardtail", "eval", folder, "--policies", "top1", "ends-first", "left_to_right", "--strata", "natural"]
    records = json.loads(run([*words, "-n", "8", "--json"], with_plugin))
    assert [record["policy"] for record in records] == ["top1", "ends-first", "left_to_right"]
    assert {record["task"] for record in records} == {"parity"}
    diagnosed = run(["hardtail", "diagnose", folder, "--strata", "natural", "-n", "8", "--json"], with_plugin)
    assert [diagnosis["task"] for diagnosis in json.loads(diagnosed)] == ["parity", "parity"]
    recipe = json.loads((tmp_path / "run" / "recipe.json").read_text())["fields"]
    assert recipe["task"] == {"name": "parity", "fields": {"bits": 8}}
    assert (recipe["name"], recipe["watch"]["fields"]["order"]) == ("parity-suffix", "left_to_right")


def test_used_by_path_where_it_is_not_installed(tmp_path: Path) -> None:
    """A folder on the path is enough: nothing is registered, and a run is read only with the class that is given."""
    here = os.pathsep.join(filter(None, (str(HERE / "toy_plugin" / "src"), os.environ.get("PYTHONPATH"))))
    environment, folder = {**os.environ, "PYTHONPATH": here}, str(tmp_path / "run")
    scheme = ["--scheme", "hardtail_toy.training:Suffix,earliest=0.5", "--steps", "2"]
    run(["hardtail", "train", "hardtail_toy.training:parity_suffix", *scheme, "--out", folder], environment)
    recipe = json.loads((tmp_path / "run" / "recipe.json").read_text())["fields"]
    assert recipe["scheme"] == {"class": "hardtail_toy.training:Suffix", "fields": {"earliest": 0.5}}
    words = ["hardtail", "eval", folder, "--strata", "natural", "-n", "4", "--json"]
    words += ["--policies", "hardtail_toy.training:EndsFirst"]
    assert '"task": "parity"' in run([*words, "--task", "hardtail_toy:Parity"], environment)
    refused = subprocess.run([sys.executable, "-m", *words], env=environment, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--task package.module:Class" in refused.stderr
