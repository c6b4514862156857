"""Arrays that pass their hash but not their meaning: every command refuses them in one sentence that names the file."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load, save_file

import hardtail
from hardtail import HardtailError
from hardtail.core.files import manifest_path
from hardtail.core.types import Array, Instances
from hardtail.study.recipes import recipe_named
from hardtail.tasks.jit import NoCompilerError
from hardtail.tasks.stored import stored_instances, stored_trace
from tests.conftest import Command
from tests.hostile import data_set, drawn, small_addition, trace_file, untrained_run


def _with(place: tuple[int, ...], value: Any) -> Callable[[Array], Array]:
    def change(array: Array) -> Array:
        changed = array.copy()
        changed[place] = value
        return changed

    return change


def _cast(kind: str) -> Callable[[Array], Array]:
    return lambda array: array.astype(kind)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "parents of four dimensions": ({"parents_NAE": lambda array: array[..., None]}, "parents_NAE"),
    "parents that are no whole numbers": ({"parents_NAE": _cast("f4")}, "parents_NAE"),
    "parents of too few cells": ({"parents_NAE": lambda array: array[:, 1:]}, "parents_NAE"),
    "a parent outside the answer": ({"parents_NAE": _with((0, 0, 0), 99)}, "wait for cells outside"),
    "text for tokens": ({"tokens_NL": _cast("U3")}, "tokens_NL"),
    "wide tokens": ({"tokens_NL": _cast("u8")}, "tokens_NL"),
    "one dimension of tokens": ({"tokens_NL": np.ravel}, "tokens_NL"),
    "tokens outside the vocabulary": ({"tokens_NL": _with((0, 0), 200)}, "tokens outside the task's vocabulary"),
    "a prompt that is no problem": ({"tokens_NL": _with((0, 0), 11)}, "does not hold problems of addition"),
    "an answer that is wrong": ({"tokens_NL": lambda array: (array + (np.arange(15) == 14)) % 10}, "does not"),
    "a prompt beyond the end": ({"prompt_len_N": _with((0,), 14)}, "no room"),
    "a prompt before the start": ({"prompt_len_N": _with((0,), -1)}, "no room"),
    "another prompt length": ({"prompt_len_N": _with((0,), 7)}, "does not hold problems of addition"),
    "numbers for masks": ({"maskable_NA": _cast("u1")}, "maskable_NA"),
    "masks of another length": ({"scored_NA": lambda array: array[:, 1:]}, "scored_NA"),
    "ranks beyond the cells": ({"orders/lsb": _with((0, 0), 100)}, "'lsb' has ranks"),
    "ranks that are no whole numbers": ({"orders/lsb": _cast("f8")}, "orders/lsb"),
    "text in a stratum": ({"strata/chain": _cast("U9")}, "'chain' is not a number"),
    "an infinite stratum": ({"strata/chain": lambda array: array / 0.0 if array.any() else array + np.inf}, "'chain'"),
    "roles out of range": ({"extras/role_NA": _with((0, 0), 77)}, "'role_NA' has values"),
    "text for roles": ({"extras/role_NA": _cast("U3")}, "'role_NA' has values"),
    "roles of one dimension": ({"extras/role_NA": lambda array: array[:, 0]}, "role_NA"),
    "a group that there is not": ({"others/x": np.zeros(3)}, "'others/x' does not belong"),
    "no tokens": ({"tokens_NL": None}, "'tokens_NL' is missing"),
    "fewer instances": ({"maskable_NA": lambda array: array[1:]}, "maskable_NA"),
    "objects of fields": ({"extras/x": np.zeros(3, dtype=[("a", "i4")])}, "not plain numbers"),
    "times": ({"extras/x": np.zeros(3, dtype="M8[s]")}, "not plain numbers"),
    "another order of bytes": ({"prompt_len_N": _cast(">i4")}, "not plain numbers"),
    "complex numbers": ({"extras/x": np.zeros(3, dtype=complex)}, "not plain numbers"),
}

EVENTS: dict[str, tuple[dict[str, Any], str]] = {
    "a cell outside the answer": ({"cell_NT": _with((0, 0), 99)}, "events outside the answer"),
    "a runner-up outside the answer": ({"runner_up_NT": _with((0, 0), 99)}, "events outside the answer"),
    "a step before the first": ({"step_NT": _with((0, 0), -1)}, "steps or ranks"),
    "a step beyond all": ({"step_NT": lambda array: array.astype("i8") + (1 << 40)}, "steps or ranks"),
    "a rank below the first": ({"gold_rank_NT": _with((0, 0), -2)}, "steps or ranks"),
    "a probability above one": ({"prob_NT": _with((0, 0), 2.0)}, "not probabilities"),
    "an infinite probability": ({"gold_prob_NT": _with((0, 0), np.inf)}, "not probabilities"),
    "fewer events": ({"token_NT": lambda array: array[:, 1:]}, "token_NT"),
    "a token that there is not": ({"token_NT": _with((0, 0), 250)}, "tokens outside the task's vocabulary"),
    "an answer of other tokens": ({"answer_NA": _with((0, 0), 250)}, "tokens outside the task's vocabulary"),
    "text for probabilities": ({"prob_NT": _cast("U3")}, "prob_NT"),
    "no margins": ({"margin_NT": None}, "'margin_NT' is missing"),
}


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("what", CHANGES)
def test_a_data_set_of_wrong_arrays(what: str, tmp_path: Path, hardtail_command: Command) -> None:
    changed, sentence = CHANGES[what]
    path = data_set(tmp_path / "data.npz", small_addition(), changed)
    with pytest.raises(HardtailError, match=sentence) as refused:
        stored_instances(path)
    assert str(path) in str(refused.value)
    code, out, err = hardtail_command("inspect", str(path), "-n", "3")
    assert (code, out) == (2, "")
    assert sentence in err


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("what", [*CHANGES, *EVENTS])
def test_a_trace_of_wrong_arrays(what: str, tmp_path: Path, hardtail_command: Command) -> None:
    changed, sentence = CHANGES.get(what) or EVENTS[what]
    names = {name if what in EVENTS else f"instances/{name}": change for name, change in changed.items()}
    path = trace_file(tmp_path / "trace.npz", small_addition(), names)
    with pytest.raises(HardtailError, match=sentence) as refused:
        stored_trace(path)
    assert str(path) in str(refused.value)
    code, out, err = hardtail_command("view", str(path))
    assert (code, out) == (2, "")
    assert sentence in err


@pytest.mark.parametrize("name", hardtail.TASKS.names())
def test_whole_files_of_every_task_are_read(name: str, tmp_path: Path) -> None:
    task = hardtail.task(name)
    assert stored_trace(trace_file(tmp_path / "trace.npz", task))[0] == task
    assert stored_instances(data_set(tmp_path / "data.npz", task))[0] == task
    for extra in task.extra_limits():
        path = data_set(tmp_path / "data.npz", task, {f"extras/{extra}": lambda array: array.astype("i8") + 1000})
        with pytest.raises(HardtailError, match=f"'{extra}' has values outside the task's range"):
            stored_instances(path)


def test_an_empty_data_set_is_refused_wherever_it_is_read(tmp_path: Path, hardtail_command: Command) -> None:
    run = untrained_run(tmp_path / "run")
    task = recipe_named("addition-random-smoke").task
    arrays = drawn(task).arrays()
    data = data_set(tmp_path / "data.npz", task, {name: lambda array: array[:0] for name in arrays})
    held = json.loads(manifest_path(data).read_text()) | {"count": 0, "split": "all"}
    manifest_path(data).write_text(json.dumps(held))
    out = str(tmp_path / "new")
    for words in (
        ("inspect",),
        ("train", "addition-random-smoke", "--out", out, "--data"),
        ("eval", str(run), "--data"),
    ):
        code, _, err = hardtail_command(*words, str(data))
        assert (code, "it is empty" in err) == (2, True), words


def test_measuring_refuses_prompts_that_are_no_problems(tmp_path: Path, hardtail_command: Command) -> None:
    run = untrained_run(tmp_path / "run")
    task = recipe_named("addition-random-smoke").task
    data = data_set(tmp_path / "data.npz", task, {"prompt_len_N": lambda array: array * 0})
    held = json.loads(manifest_path(data).read_text()) | {"split": "test"}
    manifest_path(data).write_text(json.dumps(held))
    code, _, err = hardtail_command("eval", str(run), "--data", str(data), "--strata", "natural", "--gallery", "1")
    assert (code, "data.npz does not hold problems of addition" in err) == (2, True)
    assert not (run / "evaluations.jsonl").exists()


def test_a_trace_without_events_is_explained(tmp_path: Path, hardtail_command: Command) -> None:
    path = trace_file(tmp_path / "trace.npz", small_addition(), {"cell_NT": lambda array: array * 0 - 1})
    code, out, _ = hardtail_command("diagnose", str(path), "--json")
    assert (code, json.loads(out)[0]["readiness"]["commits"]) == (0, 0)


def test_files_are_read_where_solvers_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without numba trains and measures; it cannot solve problems again to compare them."""
    task = hardtail.task("listops")
    trace, data = trace_file(tmp_path / "trace.npz", task), data_set(tmp_path / "data.npz", task)

    def uncompiled(*prompts: object) -> Instances:
        raise NoCompilerError("it needs numba")

    monkeypatch.setattr(type(task), "parse", uncompiled)
    assert len(stored_trace(trace)[1]) == len(stored_instances(data)[1]) == 3


@pytest.mark.parametrize("name", [name for name in hardtail.TASKS.names() if name != "sudoku"])
def test_wrong_answers_are_explained_without_numba(name: str, tmp_path: Path) -> None:
    """Runs are measured, and so diagnosed, on the machine that trains them. Sudoku's diagnosis asks its solver."""
    task = hardtail.task(name)

    def wrong(token: Array) -> Array:
        return (token + 1) % task.vocabulary.mask_id

    path = trace_file(tmp_path / "trace.npz", task, {"answer_NA": wrong, "token_NT": wrong})
    program = "import sys; sys.modules['numba'] = None; from hardtail.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", program, "diagnose", str(path), "--json"], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout)[0]["profile"]["failures"] == 3


def test_training_refuses_data_that_it_could_not_index(tmp_path: Path, hardtail_command: Command) -> None:
    task = recipe_named("addition-random-smoke").task
    for changed in ({"tokens_NL": _with((0, 0), 200)}, {"orders/lsb": _with((0, 0), 100)}):
        data = data_set(tmp_path / "data.npz", task, changed)
        out = str(tmp_path / "run")
        code, _, err = hardtail_command("train", "addition-random-smoke", "--data", str(data), "--out", out)
        assert code == 2
        assert str(data) in err


# -- manifests, recipes, weights --------------------------------------------------------------------------------------

MANIFESTS: dict[str, tuple[dict[str, Any], str]] = {
    "text for a count": ({"count": "three"}, "count: expected `int`, got `str`"),
    "400 digits": ({"count": 10**400}, "a whole number has more than 64 bits"),
    "a negative count": ({"count": -1}, "count: expected `int` >= 0"),
    "a hash that is none": ({"sha256": 5}, "sha256: expected `str`, got `int`"),
    "a task that is none": ({"task": {"name": "bogus", "fields": {}}}, "the task 'bogus' is not registered"),
    "a task of no shape": (
        {"task": {"name": "addition", "fields": {"digits": 10**18}}},
        "digits is 1000000000000000000",
    ),
    "text for digits": ({"task": {"name": "addition", "fields": {"digits": "4"}}}, "digits is '4'"),
    "a list for fields": ({"task": {"name": "addition", "fields": [4]}}, "it must be a name and fields"),
    "a list for a task": ({"task": [4]}, "task"),
    "no task": ({"task": None}, "does not name its task; give a file that `hardtail"),
    "another format": ({"format": 99}, "is not the manifest of a"),
    "another kind": ({"kind": "evil"}, "is not the manifest of a"),
}


@pytest.mark.parametrize("what", MANIFESTS)
def test_a_wrong_manifest(what: str, tmp_path: Path, hardtail_command: Command) -> None:
    said, sentence = MANIFESTS[what]
    data, trace = (
        data_set(tmp_path / "data.npz", small_addition()),
        trace_file(tmp_path / "trace.npz", small_addition()),
    )
    for path, words in ((data, ("inspect",)), (trace, ("view",)), (trace, ("diagnose",)), (trace, ("report",))):
        held = json.loads(manifest_path(path).read_text())
        about = {key: value for key, value in said.items() if key == "task" and path == trace}
        changed = held | {key: value for key, value in said.items() if key not in about}
        changed |= {"about": held["about"] | about} if about else {}
        manifest_path(path).write_text(json.dumps(changed))
        code, _, err = hardtail_command(
            *words, str(path), *(["--out", str(tmp_path / "p.html")] if "report" in words else [])
        )
        manifest_path(path).write_text(json.dumps(held))
        assert code == 2, words
        assert sentence in err
        assert path.with_suffix("").name in err
        assert not {"load_subject", "about={", "task_to_json"} & set(err.replace("(", " ").split())


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"task": None}, "fields.task"),
        ({"seed": "x"}, "fields.seed: expected `int"),
        ({"seed": 10**400}, "more than 64 bits"),
        ({"steps": 0}, "fields.steps"),
        ({"selection": "evil"}, "fields.selection"),
        ({"watch": 3}, "fields.watch"),
        ({"name": 3}, "fields.name"),
        (None, "missing required field `fields`"),
    ],
)
def test_a_recipe_with_wrong_or_missing_keys(
    changed: dict[str, Any] | None, sentence: str, tmp_path: Path, hardtail_command: Command
) -> None:
    run = untrained_run(tmp_path / "run")
    held = json.loads((run / "recipe.json").read_text())
    held = {} if changed is None else held | {"fields": held["fields"] | changed}
    (run / "recipe.json").write_text(json.dumps(held))
    for words in (("eval",), ("diagnose",), ("report",), ("train", "addition-random-smoke", "--out")):
        code, _, err = hardtail_command(*words, str(run))
        assert code == 2, words
        assert "recipe.json: " in err
        assert sentence in err
        assert "everything" not in err


def test_headers_of_weights(tmp_path: Path, hardtail_command: Command) -> None:
    path = untrained_run(tmp_path / "run") / "best_probe.safetensors"
    raw = path.read_bytes()
    tensors = load(raw)
    length = int.from_bytes(raw[:8], "little")
    said = json.loads(json.loads(raw[8 : 8 + length])["__metadata__"]["hardtail"])
    for changed in (
        {"shape": said["shape"] | {"layers": 10**9}},
        {"shape": said["shape"] | {"width": "wide"}},
        {"shape": said["shape"] | {"width": 10**18}},
        {"shape": said["shape"] | {"heads": 0}},
        {"shape": [1]},
        {"about": [1]},
        {"about": said["about"] | {"step": 10**400}},
        {"about": said["about"] | {"recipe": {}}},
    ):
        save_file(tensors, path, metadata={"hardtail": json.dumps(said | changed)})
        code, _, err = hardtail_command("eval", str(path), "-n", "1")
        assert code == 2, changed
        assert str(path) in err
    for broken in (
        b"",
        raw[:7],
        (1 << 60).to_bytes(8, "little") + raw[8:],
        raw[:-1],
        raw + b"\0",
        b"\x02" + bytes(7) + b"[]",
    ):
        path.write_bytes(broken)
        code, _, err = hardtail_command("eval", str(path), "-n", "1")
        assert code == 2
        assert "is damaged or not a safetensors file" in err
        assert err.endswith("; copy or download it again, or give other weights\n")
