"""Runs, decodes and traces at the edges of what they accept: patience, divergence, batches, parts, canvases."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from hardtail import HardtailError, Streams
from hardtail.core.files import file_hash, manifest_path
from hardtail.core.provenance import origin
from hardtail.core.records import LogLine
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.decoding.loop import decode, in_flight, refuse_strangers, tile
from hardtail.decoding.options import Decoding
from hardtail.decoding.workers import batch_rows
from hardtail.models.precision import Precision, computing
from hardtail.models.transformer import Shape, Transformer
from hardtail.models.weights import read_tensors
from hardtail.policies.named import policy_named
from hardtail.schemes.base import Corpus, Rows
from hardtail.study.recipes import recipe_named
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.datasets import build, parts_of
from hardtail.tasks.maze.task import Maze
from hardtail.testing import same
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from hardtail.training.checkpoint import STATE
from hardtail.training.gradient import Predicted
from hardtail.training.keeper import Keeper
from hardtail.training.monitor import DIVERGENCE_FACTOR, Monitor
from hardtail.training.optimiser import AdamW
from hardtail.training.probe import Probed
from hardtail.training.run import train
from hardtail.training.step import Step
from tests.planted import adder, lookahead

# -- runs ---------------------------------------------------------------------------------------------------------


def test_a_run_out_of_patience_continues_only_with_more(tmp_path: Path) -> None:
    keeper = Keeper(recipe_named("addition-random-smoke"), tmp_path)
    assert keeper.ended(None, None) is None
    (tmp_path / STATE).touch()
    keeper.progress.step = 9
    keeper.finish("somehow", origin("cpu"), None, 5)
    ends = {patience: keeper.ended(patience, None) for patience in (1, 5, 6, None)}
    assert [patience for patience, ended in ends.items() if ended is not None] == [1, 5]
    (tmp_path / STATE).unlink()
    with pytest.raises(HardtailError, match="ended at step 9, when a patience of 5 steps had run out, and cannot cont"):
        keeper.ended(6, None)
    keeper.finish("somehow", origin("cpu"), None, None)
    assert all(keeper.ended(patience, None) for patience in (1, 6, None))


def test_patience_counts_from_the_best_probe_to_the_latest(tmp_path: Path) -> None:
    keeper = Keeper(recipe_named("addition-random-smoke"), tmp_path)
    assert (keeper.latest_probe, keeper.waited) == (None, 0)
    keeper.progress.log += [LogLine(step=3, probe_nll=1.0), LogLine(step=8, probe_nll=2.0), LogLine(step=9, loss=1.0)]
    assert (keeper.latest_probe, keeper.waited) == (8, 0)
    keeper.progress.best_step = 0
    assert keeper.waited == 8
    keeper.progress.best_step = 3
    assert keeper.waited == 5
    assert keeper.kept() == "nothing had been saved yet"
    keeper.progress.saved = 1200
    assert keeper.kept() == f"{tmp_path} keeps the state of step 1,200"


@pytest.mark.parametrize("beyond", [False, True])
def test_a_probe_a_hundred_times_worse_than_guessing_is_a_divergence(
    beyond: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = recipe_named("addition-random-smoke")
    limit = DIVERGENCE_FACTOR * math.log(recipe.task.vocabulary.size)
    found = Probed(limit if beyond else math.nextafter(limit, 0), 0)
    monkeypatch.setattr("hardtail.training.probe.Probe.of", lambda probe, model: found)
    few = replace(recipe, steps=1, train_size=20, watch=replace(recipe.watch, probe_size=4, decoded=2))
    assert DIVERGENCE_FACTOR == 100
    if beyond:
        with pytest.raises(
            HardtailError, match=r"the run has diverged: at step 0 the probe's NLL is .* higher prec|div"
        ):
            train(few, tmp_path)
    else:
        assert train(few, tmp_path).finished


def test_an_equal_probe_is_no_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of several equal probes keeps its weights."""
    monkeypatch.setattr("hardtail.training.probe.Probe.of", lambda probe, model: Probed(1.0, 0))
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, eval_every=5, probe_size=4, decoded=2)
    train(replace(recipe, steps=3, train_size=20, watch=watch), tmp_path)
    header = (tmp_path / "best_probe.safetensors").read_bytes()
    about = json.loads(json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])["__metadata__"]["hardtail"])
    assert (about["about"]["step"], about["about"]["kind"]) == (0, "best_probe")


def test_what_is_not_finite_has_diverged() -> None:
    class Holder:
        loss, flat = torch.tensor(1.0), type("Flat", (), {"weight_P": torch.ones(3)})

    monitor = object.__new__(Monitor)
    monitor.step = Holder()  # type: ignore[assignment]
    monitor.refuse_divergence()
    monitor._diverged = lambda sign: HardtailError(sign)  # type: ignore[method-assign]
    for loss, weight in ((math.nan, 1.0), (1.0, math.inf)):
        Holder.loss, Holder.flat.weight_P = torch.tensor(loss), torch.tensor([1.0, weight])  # type: ignore[attr-defined]
        with pytest.raises(HardtailError, match="no longer finite"):
            monitor.refuse_divergence()


def test_a_state_that_has_diverged_is_not_saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing was due to be measured: the state before it is what a person wants back."""
    real = Step._once

    def spoiled(step: Step) -> None:
        real(step)
        step.loss.fill_(math.nan)

    monkeypatch.setattr(Step, "_once", spoiled)
    recipe = recipe_named("addition-random-smoke")
    watch = replace(recipe.watch, log_every=50, eval_every=500, gen_every=0, save_every=1, probe_size=4, decoded=2)
    with pytest.raises(HardtailError, match=r"has diverged: at step 1 the loss .*; nothing had been saved yet"):
        train(replace(recipe, steps=90, train_size=20, watch=watch), tmp_path)
    assert not (tmp_path / STATE).exists()


def test_the_learning_rate_step_by_step() -> None:
    def rates(settings: AdamW, *steps: int) -> list[float]:
        return [round(float(settings.rate(torch.tensor(step), 10)), 4) for step in steps]

    cosine = AdamW(lr=1.0, floor=0.2, warmup=4)
    assert rates(cosine, 0, 2, 3, 6, 9, 50) == [0.25, 0.75, 1.0, 0.6, 0.2, 0.2]
    assert rates(AdamW(lr=1.0, floor=0.2, warmup=0), 0, 9) == [0.9804, 0.2]
    assert rates(replace(cosine, schedule="constant"), 0, 3, 9) == [0.25, 1.0, 1.0]
    AdamW(lr=1e-4, floor=1e-4)
    with pytest.raises(HardtailError, match=r"floor=0.0002 is above lr=0.0001"):
        AdamW(lr=1e-4, floor=2e-4)


def test_only_cells_that_may_be_hidden_are_predicted() -> None:
    task = Maze(size=3)
    corpus = Corpus.on(torch.device("cpu"), task.sample(5, "natural", seed=1), task.vocabulary.mask_id)
    predicted, rows = Predicted(corpus), corpus.rows(torch.tensor([3, 1]))
    assert isinstance(rows, Rows)
    view = rows.hide(rows.maskable_BA, corpus)
    at_BK = predicted.at(view)
    most = int(corpus.maskable_NA.sum(dim=1).max())
    assert isinstance(at_BK, torch.Tensor)
    assert at_BK.shape == (2, most)
    spread_BAV = predicted.spread(at_BK[..., None].float(), view)
    for row in range(2):
        for cell, place in enumerate(rows.at_BA[row].tolist()):
            if rows.maskable_BA[row, cell]:
                assert spread_BAV[row, cell, 0] == place
            else:
                assert spread_BAV[row, cell, 0] in (0, place)
    whole = Addition(digits=4)
    every = Predicted(Corpus.on(torch.device("cpu"), whole.sample(3, "natural", seed=1), whole.vocabulary.mask_id))
    assert every.cell_NK is None


# -- decodes ------------------------------------------------------------------------------------------------------


def test_how_many_rows_are_decoded_at_a_time() -> None:
    cpu = Decoding()
    assert [in_flight(n, cpu) for n in (1, 32, 33, 1000)] == [32] * 4
    assert [in_flight(1000, replace(cpu, batch=batch)) for batch in (1, 32, 33, 5000)] == [32, 32, 64, 1024]
    assert [tile(length) for length in (1, 100_000)] == [32, 4]
    assert all(tile(length) >= tile(length + 1) for length in range(1, 3000))
    assert [batch_rows(256, n, 8, 2) for n in (1, 16, 17, 5000)] == [8, 8, 16, 256]
    assert batch_rows(256, 1, 8, 1) == 256


def test_tokens_that_the_denoiser_does_not_know() -> None:
    refuse_strangers(9, 10)
    with pytest.raises(HardtailError, match="tokens up to 10, but the denoiser predicts only 10 tokens"):
        refuse_strangers(10, 10)


# -- traces -------------------------------------------------------------------------------------------------------


def test_canvases_have_no_probabilities() -> None:
    task = Addition(digits=4)
    trace = decode(lookahead(task, 1), task.sample(6, Streams(0).named("edges")), policy_named("loo,rounds=1"))
    found = trace_of_canvases(trace.instances, list(canvases_of(trace)), trace.mask_id, {"model": "m"})
    happened_NT = found.happened_NT
    assert found.about == {"model": "m"}
    for name, value in (("gold_rank_NT", -1), ("runner_up_NT", -1)):
        assert (getattr(found, name)[happened_NT] == value).all()
    for name in ("prob_NT", "gold_prob_NT", "margin_NT"):
        assert np.isnan(getattr(found, name)[happened_NT]).all()
    assert (found.answer_NA == trace.answer_NA).all()
    assert (canvases_of(found) == canvases_of(trace)).all()
    first = np.where(trace.instances.maskable_NA, trace.mask_id, trace.instances.answer_NA)
    again = trace_of_canvases(trace.instances, [first, *canvases_of(trace)], trace.mask_id)
    assert (again.step_NT == found.step_NT).all()
    for canvases, fault in (
        ([], "there are no canvases"),
        ([first], "cell 0 of instance 0 is still hidden"),
        ([first[:, :3]], r"canvas 0 is \[6, 3\]"),
        ([first.astype(float)], "canvas 0 is .* of float64"),
    ):
        with pytest.raises(HardtailError, match=fault):
            trace_of_canvases(trace.instances, canvases, trace.mask_id)


@pytest.mark.parametrize(("parts", "count"), [(2, 3), (0, 3), (1, 4)])
def test_a_trace_has_the_parts_and_instances_that_its_manifest_says(parts: int, count: int, tmp_path: Path) -> None:
    task = Addition(digits=4)
    path = tmp_path / "trace.npz"
    save_trace(path, decode(adder(task), task.sample(3, Streams(0).named("edges")), policy_named("top1")))
    said = json.loads(manifest_path(path).read_bytes())
    assert (said["parts"], said["count"]) == (1, 3)
    assert len(load_trace(path)) == 3
    manifest_path(path).write_text(json.dumps(said | {"parts": parts, "count": count, "sha256": file_hash(path)}))
    with pytest.raises(HardtailError, match="its manifest says"):
        load_trace(path)


def test_precision_holds_while_it_lasts() -> None:
    before = torch.get_float32_matmul_precision()
    kinds: tuple[tuple[Precision, str, torch.dtype], ...] = (
        ("fp32", "highest", torch.float32),
        ("tf32", "high", torch.float32),
        ("bf16", "high", torch.bfloat16),
    )
    for precision, wanted, kind in kinds:
        with computing(precision, torch.device("cpu")):
            assert torch.get_float32_matmul_precision() == wanted
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype == kind
        assert torch.get_float32_matmul_precision() == before


@pytest.mark.parametrize("split", ["train", "test"])
def test_data_drawn_in_small_pieces_is_the_same(split: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two digits: many problems meet the other side, so that several rounds of drawing are needed."""
    task = Addition(digits=2)
    whole = build(task, split, seed=3, n=40)
    monkeypatch.setattr("hardtail.tasks.datasets.CHUNK", 3)
    done: list[int] = []
    pieces = build(task, split, seed=3, n=40, progress=done.append)
    assert same(pieces.instances, whole.instances)
    assert pieces.manifest.removed == whole.manifest.removed
    assert sum(done) == 40


def test_a_split_in_few_instances_keeps_every_part() -> None:
    task = Addition()
    parts = parts_of(task, "sweep", None)
    assert parts_of(task, "sweep", len(parts)) == [part._replace(n=1) for part in parts]
    some = parts_of(task, "sweep", 1000)
    assert sum(part.n for part in some) == 1000
    with pytest.raises(HardtailError, match=f"cannot cover the strata of 'sweep'; give at least {len(parts)}"):
        parts_of(task, "sweep", len(parts) - 1)
    with pytest.raises(HardtailError, match="there is no split 'x'; give one of train"):
        parts_of(task, "x", None)


def test_the_parts_of_a_trace_are_numbered_from_0(tmp_path: Path) -> None:
    task = Addition(digits=4)
    path = tmp_path / "trace.npz"
    save_trace(path, decode(adder(task), task.sample(3, Streams(0).named("edges")), policy_named("top1")))
    with np.load(path) as held:
        renamed = {name.replace("000000/", "000001/"): held[name] for name in held.files}
    np.savez(path, allow_pickle=False, **renamed)
    said = json.loads(manifest_path(path).read_bytes())
    manifest_path(path).write_text(json.dumps(said | {"sha256": file_hash(path)}))
    with pytest.raises(HardtailError, match="it does not have the 1 parts that its manifest says"):
        load_trace(path)


def test_a_file_of_no_tensors_is_read_as_one(tmp_path: Path) -> None:
    header = json.dumps({"__metadata__": {"a": "b"}}).encode()
    path = tmp_path / "none.safetensors"
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    assert read_tensors(path) == ({}, {"a": "b"})
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(HardtailError, match="its header describes another number of bytes"):
        read_tensors(path)


def test_initial_weights_do_not_depend_on_what_was_there() -> None:
    shape = Shape(layers=1, heads=2, width=8, vocab_size=5, seq_len=4)
    fresh, used = Transformer(shape), Transformer(shape)
    with torch.no_grad():
        for parameter in used.parameters():
            parameter.fill_(3.0)
    for model in (fresh, used):
        model.initialise(torch.Generator().manual_seed(1))
    for name, tensor in fresh.state_dict().items():
        assert torch.equal(tensor, used.state_dict()[name]), name
    assert fresh.norm.weight.tolist() == [1.0] * 8
    assert not fresh.blocks[0].qkv.bias.any()  # type: ignore[union-attr, operator]


@pytest.mark.parametrize(("row", "known"), [(0, True), (19, True), (-1, False), (20, False)])
def test_chains_go_on_with_rows_that_the_data_has(row: int, known: bool) -> None:
    step = object.__new__(Step)
    step.corpus = range(20)  # type: ignore[assignment]
    step.state = {"first/row_B": torch.tensor([3, row]), "stage_B": torch.tensor([99])}
    assert step.knows_its_rows() == known
