"""`hardtail eval` and `diagnose` as a person types them: what they keep of a run, and what a mistake costs."""

import gc
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any, ClassVar
from weakref import WeakSet

import pytest

from hardtail import HardtailError
from hardtail.cli import common
from hardtail.core.seeds import Stream
from hardtail.core.trace_files import save_trace
from hardtail.measuring.one_pass import probe
from hardtail.measuring.subject import load_subject
from hardtail.study.recipes import recipe_named
from hardtail.tasks.addition.task import Addition
from hardtail.training.run import train
from tests.conftest import Command
from tests.diagnose_toys import gold_trace


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps."""
    recipe = recipe_named("addition-puma-smoke")
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(replace(recipe, steps=30, watch=replace(recipe.watch, eval_every=10)), folder)
    return folder


def test_a_runs_own_selection_is_evaluated(run: Path) -> None:
    selected = load_subject(str(run))
    assert selected.origin.checkpoint == "best_probe"
    last = load_subject(str(run), kind="last")
    assert (last.origin.checkpoint, last.origin.step) == ("last", 30)
    assert selected.task == recipe_named("addition-puma-smoke").task
    assert selected.origin.recipe == "addition-puma-smoke"
    with pytest.raises(HardtailError, match="holds the weights 'last', not 'best_probe'"):
        load_subject(str(run / "last.safetensors"), kind="best_probe")
    weights = load_subject(str(run / "last.safetensors"))
    assert weights.folder is None
    assert weights.origin.seed == 42


Words = Callable[..., subprocess.CompletedProcess[str]]
"""The command line: words in, what came out back."""


@pytest.fixture
def words(hardtail_command: Command) -> Words:
    return lambda *given: subprocess.CompletedProcess(given, *hardtail_command(*given))


def test_eval_prints_a_list_of_records_and_keeps_them(run: Path, words: Words) -> None:
    done = words("eval", str(run), "--policies", "top1", "lsb", "--strata", "natural", "chain>=4", "-n", "20", "--json")
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)
    assert [(record["kind"], record["policy"], record["stratum"], record["n"]) for record in records] == [
        (kind, policy, stratum, 20)
        for stratum in ("natural", "chain>=4")
        for kind, policy in (("probe", "none"), ("accuracy", "top1"), ("accuracy", "lsb"), ("paired", "top1"))
    ]
    accuracies = [record for record in records if record["kind"] == "accuracy"]
    assert all(record["low"] <= record["exact_match"] <= record["high"] for record in accuracies)
    kept = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert kept == records
    again = words("eval", str(run), "--policies", "top1", "--strata", "natural", "-n", "20")
    assert "exact match" in again.stdout
    assert f"instances of data seed {records[0]['data_seed']}, decoded in fp32 on CPU" in again.stdout
    assert len((run / "evaluations.jsonl").read_text().splitlines()) == len(kept) + 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["nowhere"], "nowhere: there is no such run or file; give"),
        (["RUN", "--policies", "topp1"], "top1"),
        (["RUN", "--strata", "chain>=99"], "does not fit"),
        (["RUN", "--strata", "corridor>=4"], "corridor"),
        (["RUN", "-n", "0"], "at least 1"),
        (["RUN", "--device", "cuda:77"], "cuda:77"),
        (["RUN/recipe.json"], "safetensors"),
        (["RUN", "--out", "RUN/log.jsonl"], "its lines are not evaluations or diagnoses"),
        (["RUN", "--steps", "0"], "at least 1"),
        (["RUN", "--gallery", "-1"], "at least 0"),
        (["RUN", "--each", "1", "--steps", "3"], "--each 1 and --steps 3"),
    ],
)
def test_a_mistake_is_one_sentence(given: list[str], sentence: str, run: Path, words: Words) -> None:
    done = words("eval", *(word.replace("RUN", str(run)) for word in given))
    assert done.returncode == 2
    *before, last = done.stderr.strip().splitlines()
    assert last.startswith("hardtail: ")
    assert sentence in last
    assert all(" decodes = " in line for line in before)


@pytest.mark.parametrize("given", [("--temperature", "nan"), ("--seed", "-1"), ("--batch", "0")])
def test_a_mistake_is_found_before_anything_is_kept(
    given: tuple[str, str], run: Path, tmp_path: Path, words: Words
) -> None:
    """Else a run's records would have a probe "at temperature NaN", which is no JSON."""
    done = words("eval", str(run), *given, "--strata", "natural", "-n", "5", "--out", str(tmp_path / "kept.jsonl"))
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_checkpoint_that_a_run_does_not_have_is_named_with_the_one_that_it_has(run: Path, tmp_path: Path) -> None:
    copytree(run, tmp_path / "copy")
    remedies = {"best_probe": r"it has last \(--checkpoint last\)$", "last": "continue it with `hardtail train`$"}
    for gone, remedy in remedies.items():
        (tmp_path / "copy" / f"{gone}.safetensors").unlink()
        with pytest.raises(HardtailError, match=f"probe.safetensors: this run has no such checkpoint; {remedy}"):
            load_subject(str(tmp_path / "copy"))


@pytest.mark.parametrize("command", ["eval", "diagnose"])
def test_a_run_that_cannot_be_written_is_not_decoded_first(
    command: str, run: Path, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(dir: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("hardtail.cli.common.TemporaryFile", closed)
    done = words(command, str(run))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"hardtail: {run}/")
    assert done.stderr.endswith("s.jsonl cannot be written: Permission denied; give another place with --out FILE\n")


def test_who_stops_an_evaluation_keeps_what_was_measured_and_no_empty_file(
    run: Path, tmp_path: Path, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "kept" / "evaluations.jsonl"
    given = ["eval", str(run), "--policies", "l2r", "--strata", "natural", "-n", "5", "--out", str(path)]
    monkeypatch.setattr("hardtail.measuring.evaluate.probe", stopped)
    assert words(*given).returncode == 130
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr("hardtail.measuring.evaluate.compare", stopped)
    done = words(*given, "--policies", "l2r", "r2l")
    assert done.returncode == 130
    assert f"3 records of what was measured so far added to {path}; " in done.stderr
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["probe", "accuracy", "accuracy"]


def test_who_stops_an_evaluation_is_told_how_the_rest_is_measured(
    run: Path, tmp_path: Path, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Strata that are complete need not be measured again."""
    path, taken = tmp_path / "evaluations.jsonl", list[str]()

    def stopped(*given: Any) -> Any:
        taken.append(given[2])
        if len(taken) == 3:
            raise KeyboardInterrupt
        return probe(*given)

    strata = "natural", "chain>=2", "chain>=3"
    given = ["eval", str(run), "--policies", "l2r", "-n", "5", "--out", str(path), "--strata"]
    monkeypatch.setattr("hardtail.measuring.evaluate.probe", stopped)
    assert "and with --strata 'chain>=2' 'chain>=3' what may be" in words(*given, *strata).stderr
    monkeypatch.undo()
    assert words(*given, *strata[1:]).returncode == 0
    measured = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["stratum"] for line in measured if line["kind"] == "accuracy"] == [*strata[:2], *strata[1:]]


def test_a_full_disk_costs_no_record_that_was_measured(
    run: Path, tmp_path: Path, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*given: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "evaluations.jsonl"
    monkeypatch.setattr("hardtail.core.trace_files.TraceWriter.add", full)
    given = ["eval", str(run), "--policies", "l2r", "--strata", "natural", "-n", "5", "--out", str(path)]
    done = words(*given, "--traces", str(tmp_path / "traces"))
    assert (done.returncode, "No space left" in done.stderr) == (2, True)
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["probe"]


@pytest.mark.parametrize("command", ["eval", "diagnose", "view", "compare", "report"])
def test_who_measures_a_run_that_goes_on_is_told_how_far_it_is(
    command: str, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Words
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(run, "begun")
    policies = ["--policies", "top1", "lsb"] if command != "view" else []
    assert "has not finished" not in words(command, "begun", "-n", "2", *policies).stderr
    Path("begun/finished.json").unlink()
    done = words(command, "begun", "-n", "2", *policies, "--checkpoint", "last")
    assert "begun has not finished training; its weights are of step 30 of 30\n" in done.stderr


def test_one_policy_may_be_called_a_policy(run: Path, words: Words) -> None:
    done = words("eval", str(run), "--policy", "tests.decoding_toys:EveryOther", "--strata", "natural", "-n", "5")
    assert done.returncode == 0, done.stderr
    assert "EveryOther" in done.stdout


def test_weights_of_another_task_are_refused(run: Path, tmp_path: Path) -> None:
    raw = (run / "last.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    header = raw[8 : 8 + size].replace(b'\\"digits\\": 8', b'\\"digits\\": 7')
    assert header != raw[8 : 8 + size]
    (tmp_path / "other.safetensors").write_bytes(raw[:8] + header + raw[8 + size :])
    with pytest.raises(HardtailError, match="do not fit the task"):
        load_subject(str(tmp_path / "other.safetensors"))


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda recipe: recipe["fields"] | {"task": 3}, ": fields.task: expected `object`, got `int`"),
        (
            lambda recipe: recipe["fields"] | {"task": recipe["fields"]["task"] | {"fields": [7]}},
            " does not name a task that can be used here (its task is {",
        ),
        (
            lambda recipe: recipe["fields"] | {"task": {}},
            " does not name a task that can be used here (the task None is not",
        ),
        (lambda recipe: [recipe], ": fields: expected `object`, got `array`"),
        (lambda recipe: recipe["fields"] | {"seed": "abc"}, ": fields.seed: expected `int | null`, got `str`"),
    ],
)
def test_a_recipe_that_names_no_task_is_refused_in_a_helpful_sentence(
    change: Callable[[dict[str, Any]], Any], sentence: str, run: Path, tmp_path: Path
) -> None:
    recipe = json.loads((run / "recipe.json").read_bytes())
    (tmp_path / "recipe.json").write_text(json.dumps(recipe | {"fields": change(recipe)}))
    with pytest.raises(HardtailError, match=re.escape(f"{tmp_path / 'recipe.json'}{sentence}")):
        load_subject(str(tmp_path))


@dataclass(frozen=True)
class MySums(Addition):
    """A person's own task, not registered."""

    name: ClassVar[str] = "my_sums"


def test_a_run_on_a_task_that_is_not_registered_is_loaded_with_it(tmp_path: Path) -> None:
    mine, folder = MySums(digits=8), tmp_path / "mine"
    train(replace(recipe_named("addition-puma-smoke"), task=mine, steps=1), folder)
    with pytest.raises(HardtailError, match=r"'tests.test_eval_command:MySums' is not registered"):
        load_subject(str(folder))
    for source in (folder, folder / "last.safetensors"):
        subject = load_subject(str(source), task=mine)
        assert subject.task is mine
        with pytest.raises(HardtailError, match=r"its task has digits=8, but .*digits=7.* was given"):
            load_subject(str(source), task=MySums(digits=7))
        with pytest.raises(HardtailError, match=r"MySums, but addition was given"):
            load_subject(str(source), task=Addition(digits=8))


def test_weights_of_another_run_in_a_runs_folder_are_refused(run: Path, tmp_path: Path) -> None:
    """Their records and diagnoses would be added to those of the run."""
    mixed = shutil.copytree(run, tmp_path / "mixed")
    train(replace(recipe_named("maze-random-smoke"), steps=1), tmp_path / "maze")
    shutil.copy(tmp_path / "maze" / "last.safetensors", mixed)
    with pytest.raises(HardtailError, match=r"from a different run than .* it differs in task, .*; put the run's own"):
        load_subject(str(mixed), kind="last")
    assert load_subject(str(mixed), kind="best_probe").task == load_subject(str(run)).task


def test_a_run_that_was_renamed_keeps_its_weights(run: Path, tmp_path: Path) -> None:
    """Best weights of before have the name of then in their header; what they were trained on is the same."""
    renamed = shutil.copytree(run, tmp_path / "renamed")
    recipe = json.loads((renamed / "recipe.json").read_bytes())
    recipe["fields"]["name"] = "addition-by-another-name"
    (renamed / "recipe.json").write_text(json.dumps(recipe))
    assert load_subject(str(renamed)).origin.recipe == "addition-by-another-name"


def test_the_gallery_draws_one_failure_unless_told(run: Path, words: Words) -> None:
    """Wherever it stands: an option that takes any number of words would take RUN for one."""
    here = str(run)
    for said, drawn in (
        ([here], 0),
        ([here, "--gallery"], 1),
        ([here, "--gallery", "2"], 2),
        (["--gallery", here], 1),
        (["--gallery", "2", here], 2),
    ):
        done = words("eval", *said, "--policies", "top1", "--strata", "natural", "-n", "5")
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("top1 on natural") == drawn, said
        lines = done.stdout.splitlines()
        told = [line for before, line in pairwise(lines) if before.startswith("  the digit")]
        assert all(line.startswith(("  ", "╭", "instances of")) for line in told), "a reason keeps its indent"


def test_traces_of_another_model_are_not_replaced(run: Path, tmp_path: Path, words: Words) -> None:
    few = ("--policies", "top1", "--strata", "natural", "-n", "3", "--traces", str(tmp_path))
    for again in range(2):
        assert words("eval", str(run), *few).returncode == 0, again
    kept = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = words("eval", str(shutil.copytree(run, tmp_path.with_name("other"))), *few)
    assert other.returncode == 2
    assert f"natural.top1.npz is a trace of {run.name}, which one of other would replace" in other.stderr
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == kept
    (tmp_path / "natural.top1.json").unlink()  # what is left is no trace
    assert words("eval", str(tmp_path.with_name("other")), *few).returncode == 0


def test_diagnose_explains_a_run_and_a_trace(run: Path, tmp_path: Path, words: Words) -> None:
    done = words("diagnose", str(run), "--strata", "chain>=4", "natural", "-n", "20", "--json")
    assert done.returncode == 0, done.stderr
    diagnoses = json.loads(done.stdout)
    assert [found["policy"] for found in diagnoses] == ["top1", "lsb"]
    for found in diagnoses:
        lines = found["first_wrong"]["by_stratum"]
        assert {name: line["n"] for name, line in lines.items()} == {"all": 40, "chain>=4": 20, "natural": 20}
        assert lines["all"]["failures"] == sum(lines[name]["failures"] for name in ("chain>=4", "natural")) > 0
    traces = str(tmp_path / "traces")
    words("eval", str(run), "--policies", "top1", "--strata", "chain>=4", "-n", "20", "--traces", traces)
    done = words("diagnose", str(tmp_path / "traces" / "chain-ge-4.top1.npz"))
    assert done.returncode == 0, done.stderr
    assert "fails on 100 % of 20 sums with chain>=4" in done.stdout
    assert "first wrong commits" not in done.stdout
    full = words("diagnose", str(tmp_path / "traces" / "chain-ge-4.top1.npz"), "--full")
    assert full.stdout.startswith(done.stdout.splitlines()[0])
    assert "first wrong commits: by stratum" in full.stdout
    assert re.search(r"^chain>=4 +20 ", full.stdout, re.MULTILINE)
    assert max(map(len, full.stdout.splitlines())) <= 80


def test_of_many_models_few_are_held_at_a_time(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    """Together they may need more memory than there is, and captured steps, which refer to their model, keep it."""
    load, held, most = common.load, WeakSet[Any](), 0

    def watched(*given: Any, **others: Any) -> Any:
        nonlocal most
        subject: Any = load(*given, **others)
        held.add(subject)
        subject.denoiser.loops["captured"] = subject
        most = max(most, len(held))
        return subject

    monkeypatch.setattr(common, "load", watched)
    models = [f"zoo:addition-{name}" for name in ("papl", "papl5", "puma", "random")]
    gc.disable()  # by itself it may come too late
    try:
        done = words("diagnose", *models, "--strata", "natural", "-n", "2", "--json")
    finally:
        gc.enable()
    assert [found["model"] for found in json.loads(done.stdout)][::2] == [name.removeprefix("zoo:") for name in models]
    assert most == 2, "the last one, and the one that follows it"


def test_a_trace_from_python_is_diagnosed_if_it_says_its_task(tmp_path: Path, words: Words) -> None:
    task, path = Addition(digits=4), tmp_path / "mine.npz"
    instances = task.sample(5, Stream("mine"))
    save_trace(path, gold_trace(task, instances, instances.orders["lsb"]))
    done = words("diagnose", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert "does not name its task; give a file that `hardtail eval --traces`" in done.stderr
    about = {"task": task.name, "config": task.config(), "model": "mine [bold]"}
    save_trace(path, replace(gold_trace(task, instances, instances.orders["lsb"]), about=about))
    done = words("diagnose", str(path))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mine [bold], addition\n")
