"""A third party's package adds a task, scheme, policy and recipe without touching ours: every command knows them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conftest import BROWSER, NO_BROWSER

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HERE = Path(__file__).parent
UNTRAINED = """
import sys
from pathlib import Path
import torch
import hardtail
from hardtail.models.transformer import Shape, Transformer
from hardtail.tasks.named import task_to_json
from hardtail.models.weights import save_weights

task = hardtail.task("parity")
shape = Shape(1, 1, 8, task.vocabulary.size, task.seq_len)
torch.manual_seed(0)
fields = {"name": "untrained", "seed": 1, "task": task_to_json(task)}
about = {"recipe": {"class": "Recipe", "fields": fields}, "kind": "last", "step": 0}
save_weights(Path(sys.argv[1]), Transformer(shape).state_dict(), shape, about)
"""
"""A program that writes a model of the plug-in's task."""


@pytest.fixture(scope="module")
def with_plugin(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the toy package is installed beside hardtail."""
    site = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    options = ["--no-deps", "--no-index", "--no-build-isolation", "--target", str(site)]
    subprocess.run([*pip, *options, str(HERE / "toy_plugin")], check=True)
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))}


def python(arguments: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(arguments: list[str], environment: dict[str, str]) -> str:
    return python(["-m", *arguments], environment)


@pytest.fixture(scope="module")
def decoded(with_plugin: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of an untrained model, as `eval` writes it."""
    folder = tmp_path_factory.mktemp("decoded")
    weights = folder / "untrained.safetensors"
    python(["-c", UNTRAINED, str(weights)], with_plugin)
    policies = ["--policies", "top1", "--strata", "natural", "-n", "6", "--traces", str(folder)]
    table = run(["hardtail", "eval", str(weights), *policies, "--gallery", "1"], with_plugin)
    assert "parity  " in table, "a failure is drawn"
    (trace,) = folder.glob("*.npz")
    return trace


def test_listed(with_plugin: dict[str, str]) -> None:
    assert "parity" in run(["hardtail", "tasks"], with_plugin)
    assert "parity" not in run(["hardtail", "tasks"], dict(os.environ))


def test_sampled_and_solved(with_plugin: dict[str, str]) -> None:
    assert '"ones": ' in run(["hardtail", "sample", "parity", "--json", "--stratum", "ones>=12"], with_plugin)
    solved = run(["hardtail", "solve", "parity", "1000000000000001", "--json"], with_plugin)
    assert '"answer": "1111111111111110"' in solved


def test_contract(with_plugin: dict[str, str]) -> None:
    files = [str(HERE / name) for name in ("test_contract.py", "test_contract_training.py")]
    words = ["-p", "no:cacheprovider", "-p", "no:xdist", "-vv", "-k", "parity or suffix or ends-first"]
    said = run(["pytest", *files, *words], with_plugin)
    for test in ("test_contract[parity-default]", "test_scheme[suffix]", "test_policy[ends-first]"):
        assert f"{test} PASSED" in said


def test_drawn_as_it_says(with_plugin: dict[str, str]) -> None:
    picture = run(["hardtail", "solve", "parity", "1000000000000001"], with_plugin)
    assert "bits    1000000000000001" in picture
    assert "parity  1111111111111110" in picture


def test_diagnosed_with_its_own_profile(with_plugin: dict[str, str], decoded: Path) -> None:
    (found,) = json.loads(run(["hardtail", "diagnose", str(decoded), "--json"], with_plugin))
    profile = found["profile"]
    assert profile["instances"] == 6
    assert 0 < profile["failures"] == profile["first_wrong"]["first_in_time"]["n"]
    assert sum(profile["role"]["all"].values()) == 6 * 16
    assert sum(profile["role"]["lowest_index"].values()) == profile["failures"]
    assert "parity: role" in run(["hardtail", "diagnose", str(decoded), "--full"], with_plugin)


def test_watched_in_the_terminal(with_plugin: dict[str, str], decoded: Path) -> None:
    told = run(["hardtail", "view", str(decoded)], with_plugin)
    assert told.count("step ") == 16
    assert "bits    " in told


@pytest.fixture(scope="module")
def page(with_plugin: dict[str, str], decoded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    run(["hardtail", "report", str(decoded), "--out", str(path)], with_plugin)
    return path


def test_its_scene_is_in_the_page(page: Path) -> None:
    text = page.read_text()
    assert 'register("parity", ParityScene);' in text
    assert ".parity-bit" in text
    assert 'register("maze"' not in text


@pytest.mark.skipif(BROWSER is None, reason=NO_BROWSER)
def test_its_scene_is_shown_in_the_browser(browser: "Browser", page: Path) -> None:
    opened = browser.new_page()
    opened.goto(f"{page.as_uri()}#theatre")
    opened.wait_for_selector("body[data-ready]")
    assert opened.locator(".scene .parity-bit").count() == opened.locator(".scene [data-cell]").count() == 16
    assert opened.locator(".parity-key").inner_text() == "1 flips the parity"
    assert opened.get_by_label("First wrong role").locator("option").all_inner_texts()[0] == "any"
    assert {"keep", "flip"} & set(opened.get_by_label("First wrong role").locator("option").all_inner_texts())
    opened.close()


def test_trained_and_evaluated(with_plugin: dict[str, str], tmp_path: Path) -> None:
    assert "parity-suffix" in run(["hardtail", "train"], with_plugin)
    folder = str(tmp_path / "run")
    assert "finished at step 20" in run(["hardtail", "train", "parity-suffix", "--out", folder], with_plugin)
    words = ["hardtail", "eval", folder, "--policies", "top1", "ends-first", "left_to_right", "--strata", "natural"]
    records = json.loads(run([*words, "-n", "8", "--json"], with_plugin))
    policies = [record["policy"] for record in records if record["kind"] == "accuracy"]
    assert policies == ["top1", "ends-first", "left_to_right"]
    assert {record["task"] for record in records} == {"parity"}
    diagnosed = run(["hardtail", "diagnose", folder, "--strata", "natural", "-n", "8", "--json"], with_plugin)
    assert [diagnosis["task"] for diagnosis in json.loads(diagnosed)] == ["parity", "parity"]
    run(["hardtail", "lm-eval", "write", str(tmp_path / "tasks")], with_plugin)
    assert "parity of all bits" in (tmp_path / "tasks" / "hardtail_parity_natural.yaml").read_text()
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
    assert '"task": "parity"' in run([*words, "--task", "hardtail_toy.task:Parity"], environment)
    pushed = ["hardtail", "push", folder, "hf:someone/parity", "--dry-run", "--task", "hardtail_toy.task:Parity"]
    card = run(pushed, environment)
    assert "files: README.md" in card
    assert 'ht.load("hf:someone/parity", "hardtail_toy.task:Parity,bits=8")' in card
    refused = subprocess.run([sys.executable, "-m", *words], env=environment, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "--task package.module:Class" in refused.stderr
