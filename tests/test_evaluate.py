"""Evaluation from a run directory to records: what a person sees, and what a mistake costs."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import hardtail
from hardtail import HardtailError, Streams, cli
from hardtail.decode import decode
from hardtail.denoiser import Function, ModelDenoiser
from hardtail.evaluate import (
    Decoding,
    Outcome,
    chosen_policies,
    evaluate,
    evaluate_all,
    half_reveal,
    measured_instances,
    measured_split,
    probe,
    records_of,
    reveal,
)
from hardtail.model import Shape, Transformer
from hardtail.policies.base import Commit
from hardtail.policies.confidence import Top1
from hardtail.policies.orders import Logical
from hardtail.study.recipes import recipe_named
from hardtail.subject import Subject, load_subject
from hardtail.tasks.base import Task
from hardtail.traces import load_trace, save_trace, trace_parts
from hardtail.train.run import train
from hardtail.types import Instances, Trace

ADDITION = hardtail.task("addition", digits=4)


def tiny(task: Task, seed: int = 0) -> Subject:
    """An untrained model of a task."""
    shape = Shape(1, 2, 16, task.vocabulary.size, task.seq_len)
    model = Transformer(shape).initialise(torch.Generator().manual_seed(seed))
    origin = {"recipe": "none", "seed": seed, "checkpoint": "last", "step": 0}
    return Subject(task, ModelDenoiser(model, task.vocabulary.mask_id), "tiny", origin)


def knowing(task: Task, instances: Instances, wrong: Sequence[int] = ()) -> Function:
    """A denoiser that knows the gold answers of these instances, but for those at `wrong`."""
    gold_NA = torch.from_numpy(instances.answer_NA.astype(np.int64)).clone()
    gold_NA[list(wrong), -1] = (gold_NA[list(wrong), -1] + 1) % 10
    prompt_N = {instances.prompt(i).tobytes(): i for i in range(len(instances))}

    def logits(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        rows = [
            prompt_N[tokens[: int(at[0])].numpy().astype(np.uint8).tobytes()]
            for tokens, at in zip(tokens_BL, at_BA, strict=True)
        ]
        return 9.0 * torch.nn.functional.one_hot(gold_NA[rows], task.vocabulary.size).float()

    return Function(logits, task.vocabulary.mask_id)


def test_accuracy_counts_what_is_right() -> None:
    instances = ADDITION.sample(50, Streams(0).named("evaluate"))
    subject = replace(tiny(ADDITION), denoiser=knowing(ADDITION, instances, wrong=[3, 7, 11]))  # type: ignore[arg-type]
    outcome = evaluate(subject, "top1", Top1(), instances, "natural", Decoding(), failures=2)
    record = outcome.record
    assert (record["n"], record["exact_match"], record["valid"], record["steps"]) == (50, 0.94, 0.94, 5)
    assert record["cell_accuracy"] == pytest.approx(1 - 3 / 250)
    assert record["low"] < 0.94 < record["high"]
    assert np.flatnonzero(~outcome.exact_N).tolist() == [3, 7, 11]
    assert outcome.failures is not None
    assert outcome.failures.instances.tokens_NL.tolist() == instances.take(np.array([3, 7])).tokens_NL.tolist()


def test_the_measured_instances_are_those_of_the_studys_splits() -> None:
    task = hardtail.task("addition")
    assert measured_split(task, "natural") == "test"
    assert measured_split(task, "chain >= 28") == "sweep"
    assert measured_split(task, "chain=5-7") == "test"
    few, many = (measured_instances(task, "chain>=28", n, seed=1) for n in (5, 9))
    assert np.array_equal(few.tokens_NL, many.tokens_NL[:5])


def test_paired_comparisons_share_their_instances() -> None:
    subject = tiny(ADDITION)
    policies = chosen_policies(ADDITION, ("top1", "lsb", "random"))
    found = list(evaluate_all(subject, policies, ["natural", "chain>=3"], 20, Decoding(), data_seed=3))
    records = records_of(found)
    pairs = [record for record in records if record["kind"] == "paired"]
    assert [(record["stratum"], record["policy"], record["against"]) for record in pairs] == [
        ("natural", "top1", "lsb"),
        ("natural", "top1", "random"),
        ("chain>=3", "top1", "lsb"),
        ("chain>=3", "top1", "random"),
    ]
    for item in found:
        if isinstance(item, Outcome):
            assert len(item.exact_N) == 20
    assert len([record for record in records if record["kind"] == "probe"]) == 2
    for record in records:
        assert {"task", "policy", "stratum", "recipe", "seed", "checkpoint", "commit", "device"} <= record.keys()


def test_probe_is_the_mean_over_hidden_cells() -> None:
    task = hardtail.task("sudoku")
    instances = task.sample(3, Streams(0).named("probe"), "tier=easy")
    subject = tiny(task)
    found = probe(subject, instances, "tier=easy", Decoding(batch=2))["probe_nll"]
    total = cells = 0.0
    for i in range(3):
        tokens = torch.from_numpy(instances.tokens_NL[i].astype(np.int64))
        hidden = [82 + int(cell) for cell in np.flatnonzero(instances.maskable_NA[i])]
        gold, tokens[hidden] = tokens[hidden].clone(), task.vocabulary.mask_id
        log_p = subject.denoiser.model(tokens[None], torch.tensor([hidden])).log_softmax(-1)[0]
        total -= float(log_p[range(len(hidden)), gold].sum())
        cells += len(hidden)
    assert found == pytest.approx(total / cells, rel=1e-5)


def test_the_reveal_is_restricted_to_answer_tokens_where_its_record_says_so() -> None:
    task = hardtail.task("countdown")
    instances = task.sample(4, Streams(0).named("reveal"))
    known, barred = knowing(task, instances), task.vocabulary.id("|")

    def logits(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        logits_BAV = known.logits(tokens_BL, at_BA)
        logits_BAV[..., barred] = 99.0
        return logits_BAV

    subject = replace(tiny(task), denoiser=Function(logits, task.vocabulary.mask_id))  # type: ignore[arg-type]
    found = [reveal(subject, instances, "natural", Decoding(restrict=restrict)) for restrict in (False, True)]
    assert [record["token_accuracy"] for record in found] == [0, 1]


def test_every_decode_leaves_its_trace_that_from_half_of_the_answer_too(tmp_path: Path) -> None:
    task = hardtail.task("countdown")
    policies = chosen_policies(task, ("l2r", "block,size=20"))
    options = {"data_seed": 0, "traces": tmp_path}
    found = evaluate_all(tiny(task), policies, ["natural"], 4, Decoding(Commit(each=20)), **options)  # type: ignore[arg-type]
    exact = {record["policy"]: record["exact_match"] for record in records_of(list(found)) if "exact_match" in record}
    traces = {path.name: load_trace(path) for path in tmp_path.glob("*.npz")}
    assert sorted(traces) == ["natural.block_size-20.npz", "natural.l2r.half-revealed.npz", "natural.l2r.npz"]
    assert {trace.about["policy"]: trace.exact_N.mean() for trace in traces.values()} == exact
    whole, half = traces["natural.l2r.npz"], traces["natural.l2r.half-revealed.npz"]
    shown_NA = task.meaningful(whole.instances) & ~half.instances.maskable_NA
    assert whole.commit_NT.sum() - half.commit_NT.sum() == shown_NA.sum() > 0


def test_half_reveal_shows_half_of_the_chain_and_no_padding() -> None:
    task = hardtail.task("countdown")
    instances = task.sample(40, Streams(0).named("reveal"))
    shown = half_reveal(task, instances, seed=5)
    meant_NA = task.meaningful(instances)
    revealed_NA = ~shown.maskable_NA
    assert not (revealed_NA & ~meant_NA).any()
    assert revealed_NA.sum(axis=1).tolist() == (meant_NA.sum(axis=1) // 2).tolist()
    assert np.array_equal(half_reveal(task, instances, seed=5).maskable_NA, shown.maskable_NA)
    assert not np.array_equal(half_reveal(task, instances, seed=6).maskable_NA, shown.maskable_NA)
    record = reveal(tiny(task), instances, "natural", Decoding(seed=5))
    assert record["tokens"] == int((meant_NA & shown.maskable_NA).sum())
    assert decode(tiny(task).denoiser, shown, Top1()).commit_NT.sum() == shown.maskable_NA.sum()


def test_restricting_the_vocabulary_keeps_answers_to_the_tasks_characters() -> None:
    subject = tiny(ADDITION)
    instances = ADDITION.sample(40, Streams(0).named("restrict"))
    free, held = (
        evaluate(subject, "top1", Top1(), instances, "natural", Decoding(restrict=restrict), failures=40).failures
        for restrict in (False, True)
    )
    assert free is not None
    assert held is not None
    digits = [ADDITION.vocabulary.id(digit) for digit in "0123456789"]
    assert not np.isin(free.answer_NA, digits).all()
    assert np.isin(held.answer_NA, digits).all()


# -- traces on disk ---------------------------------------------------------------------------------------------------


def trace_of(n: int = 20) -> Trace:
    instances = ADDITION.sample(n, Streams(0).named("trace"))
    return decode(tiny(ADDITION).denoiser, instances, Logical("lsb"), about={"policy": "lsb", "what": "<script>"})


def test_traces_come_back_as_they_were(tmp_path: Path) -> None:
    trace = trace_of()
    save_trace(tmp_path / "t.npz", trace)
    back = load_trace(tmp_path / "t.npz")
    assert back.about == trace.about
    assert back.mask_id == trace.mask_id
    for name, array in trace.arrays().items():
        assert np.array_equal(back.arrays()[name], array, equal_nan=array.dtype.kind == "f"), name
    again = tmp_path / "again.npz"
    save_trace(again, trace)
    assert again.read_bytes() == (tmp_path / "t.npz").read_bytes()


def test_traces_load_without_torch(tmp_path: Path) -> None:
    save_trace(tmp_path / "t.npz", trace_of())
    code = (
        "import sys; from pathlib import Path; from hardtail.traces import load_trace\n"
        "assert len(load_trace(Path(sys.argv[1]))) == 20\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.npz")], check=True)


def test_evaluation_streams_traces_in_parts(tmp_path: Path) -> None:
    instances = measured_instances(ADDITION, "natural", 1100, 0)
    decoding = Decoding(batch=32)
    evaluate(tiny(ADDITION), "top1", Top1(), instances, "natural", decoding, traces=tmp_path / "t.npz")
    sizes = [len(part) for part in trace_parts(tmp_path / "t.npz")]
    assert sizes == [512, 512, 76]
    assert np.array_equal(load_trace(tmp_path / "t.npz").instances.tokens_NL, instances.tokens_NL)


@pytest.mark.parametrize("damage", ["truncated", "altered", "no manifest", "no archive", "another file"])
def test_a_damaged_trace_is_refused_in_one_sentence(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    save_trace(path, trace_of())
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:-200])
    elif damage == "altered":
        raw = bytearray(path.read_bytes())
        raw[300] ^= 1
        path.write_bytes(raw)
    elif damage == "no manifest":
        path.with_suffix(".json").unlink()
    elif damage == "no archive":
        path.unlink()
    else:
        path.with_suffix(".json").write_text('{"format": 1, "task": "addition"}')
    with pytest.raises(HardtailError, match=r"t\.(npz|json)"):
        load_trace(path)


# -- models -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a few steps."""
    recipe = recipe_named("addition-puma-smoke")
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(replace(recipe, steps=30, watch=replace(recipe.watch, eval_every=10)), folder)
    return folder


def test_a_runs_own_selection_is_evaluated(run: Path) -> None:
    selected = load_subject(str(run))
    assert selected.origin["checkpoint"] == "best_probe"
    last = load_subject(str(run), kind="last")
    assert (last.origin["checkpoint"], last.origin["step"]) == ("last", 30)
    assert selected.task == recipe_named("addition-puma-smoke").task
    assert selected.origin["recipe"] == "addition-puma-smoke"
    weights = load_subject(str(run / "last.safetensors"))
    assert weights.folder is None
    assert weights.origin["seed"] == 42


Words = Callable[..., subprocess.CompletedProcess[str]]
"""The command line: words in, what came out back."""


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Words:
    def called(*given: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["hardtail", *given])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        return subprocess.CompletedProcess(given, code, *capsys.readouterr())

    return called


def test_eval_prints_a_list_of_records_and_keeps_them(run: Path, words: Words) -> None:
    done = words("eval", str(run), "--policies", "top1", "lsb", "--strata", "natural", "chain>=4", "-n", "20", "--json")
    assert done.returncode == 0, done.stderr
    records = json.loads(done.stdout)
    assert [(record["policy"], record["stratum"], record["n"]) for record in records] == [
        ("top1", "natural", 20),
        ("lsb", "natural", 20),
        ("top1", "chain>=4", 20),
        ("lsb", "chain>=4", 20),
    ]
    assert all(record["low"] <= record["exact_match"] <= record["high"] for record in records)
    kept = [json.loads(line) for line in (run / "evaluations.jsonl").read_text().splitlines()]
    assert [record for record in kept if record["kind"] == "accuracy"] == records
    again = words("eval", str(run), "--policies", "top1", "--strata", "natural", "-n", "20")
    assert "exact match" in again.stdout
    assert len((run / "evaluations.jsonl").read_text().splitlines()) == len(kept) + 2


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["nowhere"], "neither a run directory nor a weights file"),
        (["RUN", "--policies", "topp1"], "top1"),
        (["RUN", "--strata", "chain>=99"], "does not fit"),
        (["RUN", "--strata", "corridor>=4"], "corridor"),
        (["RUN", "-n", "0"], "at least 1"),
        (["RUN", "--device", "cuda:77"], "cuda:77"),
        (["RUN/recipe.json"], "safetensors"),
        (["RUN", "--steps", "0"], "at least 1"),
        (["RUN", "--gallery", "-1"], "at least 0"),
        (["RUN", "--each", "1", "--steps", "3"], "--each 1 and --steps 3"),
    ],
)
def test_a_mistake_is_one_sentence(given: list[str], sentence: str, run: Path, words: Words) -> None:
    done = words("eval", *(word.replace("RUN", str(run)) for word in given))
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_who_stops_an_evaluation_keeps_what_was_measured_and_no_empty_file(
    run: Path, tmp_path: Path, words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*given: object) -> None:
        raise KeyboardInterrupt

    path = tmp_path / "kept" / "evaluations.jsonl"
    given = ["eval", str(run), "--policies", "l2r", "--strata", "natural", "-n", "5", "--out", str(path)]
    monkeypatch.setattr("hardtail.evaluate.probe", stopped)
    assert words(*given).returncode == 130
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    monkeypatch.setattr("hardtail.evaluate.compare", stopped)
    assert words(*given, "--policies", "l2r", "r2l").returncode == 130
    assert [json.loads(line)["kind"] for line in path.read_text().splitlines()] == ["probe", "accuracy", "accuracy"]


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
        (lambda recipe: recipe["fields"] | {"task": 3}, "its task is 3; it takes"),
        (lambda recipe: recipe["fields"] | {"task": recipe["fields"]["task"] | {"fields": [7]}}, "its task is {"),
        (lambda recipe: recipe["fields"] | {"task": {}}, "the task None is not registered"),
        (lambda recipe: [recipe], "its recipe is {"),
    ],
)
def test_a_recipe_that_names_no_task_is_refused_in_a_helpful_sentence(
    change: Callable[[dict[str, Any]], Any], sentence: str, run: Path, tmp_path: Path
) -> None:
    recipe = json.loads((run / "recipe.json").read_bytes())
    (tmp_path / "recipe.json").write_text(json.dumps(recipe | {"fields": change(recipe)}))
    with pytest.raises(HardtailError, match=re.escape(f"{tmp_path / 'recipe.json'} cannot be read ({sentence}")):
        load_subject(str(tmp_path))


def test_weights_of_another_run_in_a_runs_folder_are_refused(run: Path, tmp_path: Path) -> None:
    """Their records and diagnoses would be added to those of the run."""
    mixed = shutil.copytree(run, tmp_path / "mixed")
    train(replace(recipe_named("maze-random-smoke"), steps=1), tmp_path / "maze")
    shutil.copy(tmp_path / "maze" / "last.safetensors", mixed)
    with pytest.raises(HardtailError, match="of another task"):
        load_subject(str(mixed), kind="last")
    assert load_subject(str(mixed), kind="best_probe").task == load_subject(str(run)).task


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
    assert "premature" in done.stdout.lower()
    assert "first wrong commits: by stratum" in done.stdout
    assert "│ chain>=4 │ 20 │" in done.stdout
