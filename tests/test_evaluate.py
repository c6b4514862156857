"""Evaluation: what is measured, against its definition, and traces on disk."""

import subprocess
import sys
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from msgspec import structs

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.records import Paired, Probe, append_jsonl, as_json, read_measurements
from hardtail.core.trace_files import load_trace, save_trace, trace_parts
from hardtail.core.types import Instances, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.choices import chosen_policies, measured_instances, measured_split
from hardtail.measuring.evaluate import Evaluating, Outcome, evaluate, evaluate_all, records_of
from hardtail.measuring.one_pass import half_reveal, probe, reveal
from hardtail.measuring.passes import HERE, Here
from hardtail.measuring.statistics import wilson
from hardtail.measuring.subject import ModelOrigin, Subject
from hardtail.models.denoiser import Function, ModelDenoiser
from hardtail.models.transformer import Shape, Transformer
from hardtail.policies.base import Commit
from hardtail.policies.confidence import Top1
from hardtail.policies.orders import Logical
from hardtail.tasks.base import Task

ADDITION = hardtail.task("addition", digits=4)


def tiny(task: Task, seed: int = 0) -> Subject:
    """An untrained model of a task."""
    shape = Shape(1, 2, 16, task.vocabulary.size, task.seq_len)
    model = Transformer(shape).initialise(torch.Generator().manual_seed(seed))
    origin = ModelOrigin(recipe="none", seed=seed, checkpoint="last", step=0)
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
    subject = replace(tiny(ADDITION), denoiser=knowing(ADDITION, instances, wrong=[3, 7, 11]))
    outcome = evaluate(subject, "top1", Top1(), instances, "natural", Decoding(), Evaluating(failures=2))
    record = outcome.record
    assert (record.n, record.exact_match, record.valid, record.steps) == (50, 0.94, 0.94, 5)
    assert record.cell_accuracy == pytest.approx(1 - 3 / 250)
    assert (record.low, record.high) == wilson(47, 50)
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


def test_of_more_than_four_policies_the_first_is_compared_with_each() -> None:
    names = ("top1", "lsb", "l2r", "r2l", "topk")
    policies = chosen_policies(ADDITION, names)
    found = records_of(list(evaluate_all(tiny(ADDITION), policies, ["natural"], 2, Decoding(), data_seed=3)))
    pairs = [(record.policy, record.against) for record in found if isinstance(record, Paired)]
    assert pairs == [("top1", other) for other in names[1:]]


def test_paired_comparisons_share_their_instances() -> None:
    subject = tiny(ADDITION)
    policies = chosen_policies(ADDITION, ("top1", "lsb", "random"))
    found = list(evaluate_all(subject, policies, ["natural", "chain>=3"], 20, Decoding(), data_seed=3))
    records = records_of(found)
    pairs = [record for record in records if isinstance(record, Paired)]
    assert [(record.stratum, record.policy, record.against) for record in pairs] == [
        ("natural", "top1", "lsb"),
        ("natural", "top1", "random"),
        ("natural", "lsb", "random"),
        ("chain>=3", "top1", "lsb"),
        ("chain>=3", "top1", "random"),
        ("chain>=3", "lsb", "random"),
    ]
    for item in found:
        if isinstance(item, Outcome):
            assert len(item.exact_N) == 20
    assert sum(isinstance(record, Probe) for record in records) == 2
    wanted = {"schema", "task", "policy", "stratum", "recipe", "seed", "checkpoint", "commit", "device"}
    for record in records:
        assert wanted <= as_json(record).keys()


def test_probe_is_the_mean_over_hidden_cells() -> None:
    task = hardtail.task("sudoku")
    instances = task.sample(3, Streams(0).named("probe"), "tier=easy")
    subject = tiny(task)
    assert isinstance(subject.denoiser, ModelDenoiser)
    found = probe(subject, instances, "tier=easy", Decoding(batch=2)).probe_nll
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

    subject = replace(tiny(task), denoiser=Function(logits, task.vocabulary.mask_id))
    allowed = (None, task.answer_tokens)
    found = [reveal(subject, instances, "natural", Decoding(allowed=tokens)) for tokens in allowed]
    assert [record.token_accuracy for record in found] == [0, 1]


@pytest.mark.parametrize("allowed", [None, ADDITION.answer_tokens])
def test_a_denoiser_that_answers_for_digits_alone_is_measured_as_it_is_decoded(allowed: list[int] | None) -> None:
    """The mask is the last of its task's tokens but one: nothing says that a denoiser has a logit for it."""
    instances = ADDITION.sample(30, Streams(0).named("digits"))
    known = knowing(ADDITION, instances, wrong=[3])
    mask_id, decoding = ADDITION.vocabulary.mask_id, Decoding(allowed=allowed)
    digits = Subject(ADDITION, Function(lambda *seen: known.logits(*seen)[..., :10], mask_id), "digits")
    assert evaluate(digits, "top1", Top1(), instances, "natural", decoding).record.exact_match == 29 / 30
    # All of the mass is on ten tokens: log(1 + 9e⁻⁹), and 9 more in the one wrong cell of 150.
    nll = np.log1p(9 * np.exp(-9.0)) + 9 / 150
    assert probe(digits, instances, "natural", decoding).probe_nll == pytest.approx(nll, rel=1e-5)
    assert reveal(digits, instances, "natural", decoding).token_accuracy > 0.98
    few = replace(digits, denoiser=Function(lambda *seen: known.logits(*seen)[..., :4], mask_id))
    with pytest.raises(HardtailError, match="tokens up to 9, but the denoiser predicts only 4 tokens"):
        probe(few, instances, "natural", decoding)
    with pytest.raises(HardtailError, match="tokens up to 9, but the denoiser predicts only 4 tokens"):
        decode(few.denoiser, instances, Top1(), decoding)


def test_every_decode_leaves_its_trace_that_from_half_of_the_answer_too(tmp_path: Path) -> None:
    task = hardtail.task("countdown")
    policies = chosen_policies(task, ("l2r", "block,size=20"))
    options = {"data_seed": 0, "traces": tmp_path}
    found = evaluate_all(tiny(task), policies, ["natural"], 4, Decoding(Commit(each=20)), **options)  # type: ignore[arg-type]
    exact = {item.record.policy: item.record.exact_match for item in found if isinstance(item, Outcome)}
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
    assert record.tokens == int((meant_NA & shown.maskable_NA).sum())
    assert decode(tiny(task).denoiser, shown, Top1()).commit_NT.sum() == shown.maskable_NA.sum()


def test_a_half_revealed_answer_matches_if_all_of_its_hidden_characters_do() -> None:
    """One cell is always wrong; only the answers in which it was shown or is padding are right as a whole."""
    task, cell = hardtail.task("countdown"), 9
    instances = task.sample(40, Streams(0).named("reveal"))
    known = knowing(task, instances)

    def logits(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        logits_BAV = known.logits(tokens_BL, at_BA)
        logits_BAV[:, cell] = logits_BAV[:, cell].roll(1, dims=-1)
        return logits_BAV

    subject = replace(tiny(task), denoiser=Function(logits, task.vocabulary.mask_id))
    record = reveal(subject, instances, "natural", Decoding(seed=5))
    asked_NA = half_reveal(task, instances, seed=5).maskable_NA & task.meaningful(instances)
    wrong = sum(bool(asked_NA[i, cell]) for i in range(40))
    assert 0 < wrong < 40
    assert record.exact_match == (40 - wrong) / 40
    assert record.token_accuracy == pytest.approx(1 - wrong / asked_NA.sum())


def test_restricting_the_vocabulary_keeps_answers_to_the_tasks_characters() -> None:
    subject = tiny(ADDITION)
    instances = ADDITION.sample(40, Streams(0).named("restrict"))
    free, held = (
        evaluate(
            subject, "top1", Top1(), instances, "natural", Decoding(allowed=allowed), Evaluating(failures=40)
        ).failures
        for allowed in (None, ADDITION.answer_tokens)
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
        "import sys; from pathlib import Path; from hardtail.core.trace_files import load_trace\n"
        "assert len(load_trace(Path(sys.argv[1]))) == 20\nassert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "t.npz")], check=True)


@pytest.mark.parametrize("replaced", ["natural.ladder_limit-3.npz", "natural.ladder_limit-3.half-revealed.npz"])
def test_no_trace_of_another_model_is_replaced(replaced: str, tmp_path: Path) -> None:
    """By whatever name, such as a limit that was only just set; nor that of half-revealed answers."""
    task = hardtail.task("countdown")

    def run(subject: Subject) -> None:
        policies = {"ladder,limit=3": Logical("step_sequential")}
        list(evaluate_all(subject, policies, ["natural"], 1, Decoding(), data_seed=0, traces=tmp_path))

    run(tiny(task))
    for path in tmp_path.glob("*.json"):
        if path.stem != Path(replaced).stem:
            path.unlink()  # what is left is no trace
    kept = (tmp_path / replaced).read_bytes()
    with pytest.raises(HardtailError, match=f"{replaced} is a trace of tiny, which one of other would replace"):
        run(replace(tiny(task, seed=1), name="other"))
    assert (tmp_path / replaced).read_bytes() == kept


def test_evaluation_streams_traces_in_parts(tmp_path: Path) -> None:
    instances = measured_instances(ADDITION, "natural", 1100, 0)
    decoding = Decoding(batch=32)
    evaluate(tiny(ADDITION), "top1", Top1(), instances, "natural", decoding, trace=tmp_path / "t.npz")
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


class InParts(Here):
    """Hands a trace out in parts of a few instances, each of which took 10 seconds of asking."""

    def traces(self, *given: Any, **how: Any) -> Generator[tuple[Trace, float], None, None]:
        for whole, _ in super().traces(*given, **how):
            for start in range(0, len(whole), 3):
                yield whole.take(slice(start, start + 3)), 10.0


@pytest.mark.parametrize(("failures", "kept"), [(0, []), (2, [1, 2]), (4, [1, 2, 4, 7]), (9, [1, 2, 4, 7, 9])])
def test_a_measurement_in_parts_is_that_of_the_whole(failures: int, kept: list[int]) -> None:
    instances = measured_instances(ADDITION, "natural", 10, 0)
    subject = Subject(ADDITION, knowing(ADDITION, instances, [1, 2, 4, 7, 9]), "knowing", ModelOrigin())
    given = subject, "top1", Top1(), instances, "natural", Decoding()
    ways = (Evaluating(passes, failures=failures, trust=True) for passes in (HERE, InParts()))
    whole, parts = (evaluate(*given, how) for how in ways)
    records = [structs.replace(of.record, wall=None) for of in (whole, parts)]
    assert records[0] == records[1]
    assert whole.trust == parts.trust
    np.testing.assert_array_equal(whole.exact_N, parts.exact_N)
    assert (whole.record.n, whole.record.exact_match, whole.record.steps) == (10, 0.5, 5)
    assert whole.record.cell_accuracy == 0.9
    for found in (whole, parts):
        tokens_NL = found.failures.instances.tokens_NL if found.failures else instances.tokens_NL[:0]
        np.testing.assert_array_equal(tokens_NL, instances.tokens_NL[kept])
    assert parts.record.wall is not None
    assert -40 <= parts.record.wall < -30  # what asking took is not the decode's


def test_a_model_that_is_certain_and_wrong_is_measured(tmp_path: Path) -> None:
    """The right token has probability 0, so the probe's NLL is infinite, which no number in a record can say."""
    task = hardtail.task("addition", digits=4)
    certain = Function(
        lambda tokens_BL, at_BA: torch.nn.functional.one_hot(at_BA * 0 + 3, task.vocabulary.size).float().log(),
        task.vocabulary.mask_id,
    )
    subject, instances = replace(tiny(task), denoiser=certain), task.sample(5, Streams(0).named("sure"), "natural")
    found = probe(subject, instances, "natural", Decoding())
    append_jsonl(tmp_path / "records.jsonl", [found])
    assert read_measurements(tmp_path / "records.jsonl") == [found]
    assert found.probe_nll is None
    broken = replace(subject, denoiser=Function(lambda tokens_BL, at_BA: certain.logits(tokens_BL, at_BA) * 0, 15))
    with pytest.raises(HardtailError, match="NaN"):
        probe(broken, instances, "natural", Decoding())
