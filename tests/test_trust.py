"""Which answers to distrust: scores and how well they separate, against their definitions; passes in traces on disk."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.records import Accuracy, Head, Trust, read_measurements
from hardtail.core.trace_files import load_trace, save_trace
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.evaluate import Evaluating, evaluate
from hardtail.measuring.statistics import auroc
from hardtail.measuring.trust import SCORES, Question, asked, own_doubt, trust_records, trusted
from hardtail.models.denoiser import Function
from hardtail.policies.check import Check
from hardtail.policies.confidence import Top1
from hardtail.policies.parallel import Threshold
from tests.conftest import Command
from tests.decoding_toys import MASK, TOY, VOCAB, problems, same_trace
from tests.test_evaluate import tiny

RNG = np.random.default_rng(0)


def test_a_question_adds_up_what_the_model_says_of_each_group() -> None:
    """Three groups, cell by cell in plain Python; whatever the batch."""
    trace = decode(TOY, problems(40), Threshold())
    found = asked(TOY, trace, Question("comb", 3), Decoding())
    alone = asked(TOY, trace.take(slice(5, 6)), Question("comb", 3), Decoding())
    assert alone.energy[0] == found.energy[5]
    for i in range(len(trace)):
        cells = np.flatnonzero(trace.instances.maskable_NA[i])
        energy = differs = entropy = 0.0
        for part in range(3):
            tokens_L = trace.instances.tokens_NL[i].astype(np.int64)
            at_A = trace.instances.answer_at_NA[i]
            tokens_L[at_A] = trace.answer_NA[i]
            tokens_L[at_A[cells[part::3]]] = MASK
            logits_AV = TOY.logits(torch.from_numpy(tokens_L)[None], torch.from_numpy(at_A)[None])[0].double()[:, :MASK]
            p_AV = logits_AV.softmax(dim=-1).numpy()
            for cell in cells[part::3]:
                energy -= float(np.log(p_AV[cell, trace.answer_NA[i, cell]]))
                differs += int(p_AV[cell].argmax()) != int(trace.answer_NA[i, cell])
                entropy -= float((p_AV[cell] * np.log(p_AV[cell])).sum())
        assert (found.energy[i], found.differs[i], found.entropy[i]) == pytest.approx(
            (energy, differs, entropy), rel=1e-4
        )


def test_tokens_that_may_not_be_committed_have_no_part_in_a_score() -> None:
    decoding = Decoding(allowed=[2, 5])
    trace = decode(TOY, problems(20), Threshold(), decoding)
    free, bound = (asked(TOY, trace, Question("comb", 1), how) for how in (Decoding(), decoding))
    most = np.log(2) * trace.instances.maskable_NA.sum(axis=1)
    assert (bound.entropy <= most + 1e-4).all()
    assert (free.entropy >= bound.entropy).all()


def test_random_halves_are_the_instance_s_own_and_the_seed_s() -> None:
    trace = decode(TOY, problems(60), Threshold())
    order_N = RNG.permutation(60)
    one, moved = (asked(TOY, held, Question("random", 2, 2), Decoding()) for held in (trace, trace.take(order_N)))
    other = asked(TOY, trace, Question("random", 2, 2), Decoding(seed=1))
    np.testing.assert_array_equal(one.energy[order_N], moved.energy)
    assert (one.energy != other.energy).any()


def test_own_doubt_is_of_the_tokens_that_stand() -> None:
    trace = decode(TOY, problems(30), Check(rounds=1))
    for i in range(len(trace)):
        last = {int(cell): float(p) for cell, p in zip(trace.cell_NT[i], trace.prob_NT[i], strict=True) if cell >= 0}
        assert own_doubt(trace)[i] == pytest.approx(-sum(np.log(p) for p in last.values()), rel=1e-5, abs=1e-6)


def test_auroc_is_the_chance_that_a_wrong_answer_scores_higher() -> None:
    score_N, wrong_N = RNG.integers(0, 6, 80).astype(float), RNG.random(80) < 0.3
    pairs = [(bad > good) + 0.5 * (bad == good) for bad in score_N[wrong_N] for good in score_N[~wrong_N]]
    found = auroc(score_N, wrong_N)
    assert found.auroc == pytest.approx(np.mean(pairs))
    assert found.low is not None
    assert found.high is not None
    assert found.low < np.mean(pairs) < found.high
    perfect = auroc(np.array([0.0, 0.0, 1.0]), np.array([False, False, True]))
    assert perfect.auroc == 1
    assert perfect.low is not None
    assert perfect.low < 0.5  # one wrong answer says little
    assert auroc(score_N, np.zeros(80, dtype=bool)).auroc is None


def test_accuracy_at_coverage_shares_ties() -> None:
    """Ten answers: four trusted alike with one wrong among them, six doubted alike with three right."""
    score_N = np.array([0.0] * 4 + [1.0] * 6)
    right_N = np.array([True, True, True, False, True, True, True, False, False, False])
    record, *_ = trust_records(Head(policy="top1"), "natural", right_N, dict.fromkeys(SCORES, score_N))
    assert record.accuracy_at == pytest.approx({"0.5": 3.5 / 5, "0.8": 5 / 8, "0.9": 5.5 / 9, "0.95": 6 / 10})
    assert (record.wrong, record.passes, record.high_score) == (4, 4, 1.0)


def test_an_evaluation_with_trust_records_every_score_and_keeps_them_in_the_trace(tmp_path: Path) -> None:
    """A model that is sure of a wrong last digit where the first is hidden, and knows better where it is shown."""
    task = hardtail.task("addition", digits=4)
    instances = task.sample(40, Streams(0).named("trust"))
    gold_NA = torch.from_numpy(instances.answer_NA.astype(np.int64))
    row_of = {instances.prompt(i).tobytes(): i for i in range(len(instances))}

    def logits(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        rows = [
            row_of[t[: int(at[0])].numpy().astype(np.uint8).tobytes()] for t, at in zip(tokens_BL, at_BA, strict=True)
        ]
        said_BA = gold_NA[rows].clone()
        fooled_B = (torch.tensor(rows) % 4 == 0) & (tokens_BL.gather(1, at_BA)[:, 0] == task.vocabulary.mask_id)
        said_BA[:, -1] = torch.where(fooled_B, (said_BA[:, -1] + 1) % 10, said_BA[:, -1])
        return 9.0 * torch.nn.functional.one_hot(said_BA, task.vocabulary.size).float()

    subject = replace(tiny(task), denoiser=Function(logits, task.vocabulary.mask_id))
    path = tmp_path / "trace.npz"
    how = Evaluating(trust=True)
    outcome = evaluate(subject, "threshold", Threshold(), instances, "natural", Decoding(), how, trace=path)
    assert (outcome.record.exact_match, outcome.record.passes) == (0.75, 1.0)  # trust is not counted as decoding
    area = {record.score: record.auroc for record in outcome.trust}
    assert list(area) == list(SCORES)
    assert area["comb energy"] == area["comb differs"] == 1.0
    halves = area["halves energy"]
    assert halves is not None
    assert 0.8 < halves < 1  # the first and the last digit may be in the same half both times
    assert area["own doubt"] == pytest.approx(0.5, abs=0.1)
    assert area["first look entropy"] == pytest.approx(0.5, abs=0.1)
    assert load_trace(path).notes["comb differs"].tolist() == [float(i % 4 == 0) for i in range(40)]


def test_the_command_line_asks_for_trust(tmp_path: Path, hardtail_command: Command) -> None:
    out = tmp_path / "records.jsonl"
    asked_for = ("--policies", "threshold", "--strata", "chain>=28", "-n", "8", "--trust", "--out", str(out))
    code, shown, complaint = hardtail_command("eval", "zoo:addition-papl-paper", *asked_for)
    assert not code, complaint
    assert "which answers to distrust" in shown
    assert "forward passes" in shown
    held = read_measurements(out)
    assert [record.score for record in held if isinstance(record, Trust)] == list(SCORES)
    [accuracy] = [record for record in held if isinstance(record, Accuracy)]
    assert accuracy.passes is not None
    assert 1 <= accuracy.passes <= 8


# -- passes and notes on disk ---------------------------------------------------------------------------------------


def test_passes_and_notes_survive_a_file(tmp_path: Path) -> None:
    trace = trusted(TOY, decode(TOY, problems(20), Check(rounds=2)), Decoding())
    save_trace(tmp_path / "a.npz", trace)
    loaded = load_trace(tmp_path / "a.npz")
    assert same_trace(trace, loaded)
    assert set(loaded.notes) == {"checks", "differed", "caught", "settled", *SCORES}


def test_a_trace_from_before_passes_were_counted_loads_with_unknown_ones(tmp_path: Path) -> None:
    trace = decode(TOY, problems(20), Top1())
    old = replace(trace, passes_N=None)
    save_trace(tmp_path / "old.npz", old)
    loaded = load_trace(tmp_path / "old.npz")
    assert loaded.passes_N is None
    assert Trace.concat([loaded, trace]).passes_N is None  # unknown in part is unknown
    assert loaded.take(slice(3)).passes_N is None
    record = {"kind": "accuracy", "policy": "top1", "stratum": "natural", "n": 5, "exact_match": 1.0}
    (tmp_path / "old.jsonl").write_text(json.dumps(record) + "\n")
    [read] = read_measurements(tmp_path / "old.jsonl")
    assert isinstance(read, Accuracy)
    assert read.passes is None


@pytest.mark.parametrize("policy", [Top1(), Threshold()], ids=str)
def test_a_pass_is_a_step_in_which_something_was_hidden(policy: Top1) -> None:
    trace = decode(TOY, problems(50), policy)
    steps = [len(set(trace.step_NT[i][trace.happened_NT[i]])) for i in range(len(trace))]
    assert trace.passes_N is not None
    assert trace.passes_N.tolist() == steps
    assert len(set(steps)) > 3


def test_finished_rows_are_not_looked_at() -> None:
    """Not counted, and on a CPU not computed either."""
    looked = 0

    def watched(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        nonlocal looked
        looked += len(tokens_BL)
        return TOY.logits(tokens_BL, at_BA)

    instances = problems(256)
    trace = decode(Function(watched, MASK), instances, Top1(), Decoding(batch=256))
    assert trace.passes_N is not None
    assert looked < int(trace.passes_N.sum()) + 32 * (int(trace.passes_N.max()) + 1)
    assert VOCAB > MASK


@pytest.mark.parametrize("damage", ["negative", "too few", "text"])
def test_damaged_passes_and_notes_are_refused(tmp_path: Path, damage: str) -> None:
    trace = decode(TOY, problems(5), Top1())
    assert trace.passes_N is not None
    damaged = {
        "negative": replace(trace, passes_N=-1 - trace.passes_N),
        "too few": replace(trace, passes_N=trace.passes_N[:3]),
        "text": replace(trace, notes={"rung": np.array(list("abcde"))}),
    }[damage]
    save_trace(tmp_path / "a.npz", damaged)
    with pytest.raises(HardtailError, match=r"passes|notes/rung"):
        load_trace(tmp_path / "a.npz")
