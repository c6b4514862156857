"""Canvases of other tools as traces, and back."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import torch

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.registry import TASKS
from hardtail.core.types import MOST_CELLS, MOST_STEPS, Trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.diagnosis import diagnose, read_diagnoses, verdict
from hardtail.measuring.evaluate import keep
from hardtail.measuring.subject import load_subject
from hardtail.models.denoiser import Function
from hardtail.policies.base import Commit
from hardtail.policies.confidence import Top1
from hardtail.policies.named import policy_named
from hardtail.show.failures import failures
from hardtail.tasks.addition.task import Addition
from hardtail.traces.canvases import canvases_of, trace_of_canvases
from hardtail.traces.states import hidden_before, wrong_before
from tests.conftest import Command
from tests.decoding_toys import MASK, NAMES, TOY, VOCAB, problems
from tests.planted import lookahead

KNOWN = ("answer_NA", "cell_NT", "step_NT", "token_NT")


@pytest.fixture(scope="module", params=["threshold", "remdm"])
def trace(request: pytest.FixtureRequest) -> Trace:
    """Several cells a step, and a policy that hides cells again."""
    subject = load_subject("zoo:addition-papl-paper")
    sums = subject.task.sample(6, Streams(0).named("canvases"), "chain>=28")
    return decode(subject.denoiser, sums, policy_named(request.param))


def test_a_trace_survives_as_canvases(trace: Trace) -> None:
    found = trace_of_canvases(trace.instances, list(canvases_of(trace)), trace.mask_id)
    again = trace_of_canvases(trace.instances, list(canvases_of(found)), trace.mask_id)
    for name in KNOWN:
        assert np.array_equal(getattr(again, name), getattr(found, name))
    assert np.array_equal(found.answer_NA, trace.answer_NA)
    for i in range(len(trace)):  # cells of one step have no order among each other
        ours, theirs = (
            sorted(zip(held.step_NT[i], held.cell_NT[i], held.token_NT[i], strict=True)) for held in (trace, found)
        )
        if not (trace.token_NT == trace.mask_id).any():
            assert [item for item in ours if item[1] >= 0] == [item for item in theirs if item[1] >= 0]


@pytest.mark.parametrize("name", NAMES)
def test_states_are_those_of_the_canvases(name: str) -> None:
    """What was hidden and what was wrong when a step looked is what the canvas before it shows."""
    held = decode(TOY, problems(24, seed=5), policy_named(name, ("zigzag",)))
    gold_NA, maskable_NA = held.instances.answer_NA, held.instances.maskable_NA
    before = np.concatenate([np.where(maskable_NA, MASK, gold_NA)[None], canvases_of(held)[:-1]])
    hidden_NSA, wrong_NSA = hidden_before(held), wrong_before(held)
    for step, canvas_NA in enumerate(before):
        np.testing.assert_array_equal(hidden_NSA[:, step], canvas_NA == MASK)
        np.testing.assert_array_equal(wrong_NSA[:, step], (canvas_NA != MASK) & (canvas_NA != gold_NA))


def test_whole_sequences_and_a_first_canvas_of_masks_mean_the_same(trace: Trace) -> None:
    instances, answers = trace.instances, canvases_of(trace)
    start_NA = np.where(instances.maskable_NA, trace.mask_id, instances.answer_NA).astype(np.uint8)
    wholes = []
    for answer_NA in (start_NA, *answers):
        whole_NL = instances.tokens_NL.copy()
        np.put_along_axis(whole_NL, instances.answer_at_NA, answer_NA, axis=1)
        wholes.append(whole_NL.astype(np.int64))
    ours, theirs = (trace_of_canvases(instances, given, trace.mask_id) for given in (list(answers), wholes))
    for name in KNOWN:
        assert np.array_equal(getattr(ours, name), getattr(theirs, name))


def test_cells_that_are_never_hidden_may_hold_anything(trace: Trace) -> None:
    maskable_NA = trace.instances.maskable_NA.copy()
    maskable_NA[:, 0] = False
    instances = replace(trace.instances, maskable_NA=maskable_NA)
    answer_NA = trace.answer_NA.astype(np.int64)
    answer_NA[:, 0] = -1
    found = trace_of_canvases(instances, [answer_NA], trace.mask_id)
    assert np.array_equal(found.answer_NA[:, 0], instances.answer_NA[:, 0])
    answer_NA[0, 1] = -2
    with pytest.raises(HardtailError, match="the canvases have the token -2; ids are 0 to"):
        trace_of_canvases(instances, [answer_NA], trace.mask_id)


def test_a_diagnosis_reads_what_canvases_say(trace: Trace) -> None:
    task = hardtail.task("addition", "paper-carry")
    found = trace_of_canvases(trace.instances, list(canvases_of(trace)), trace.mask_id)
    ours, theirs = diagnose(task, trace), diagnose(task, found)
    assert theirs.result == ours.result
    if not (trace.token_NT == trace.mask_id).any():
        assert theirs.readiness.premature == ours.readiness.premature


@pytest.mark.parametrize("name", TASKS.names())
def test_a_diagnosis_of_canvases_is_read_as_it_was_written(name: str, tmp_path: Path) -> None:
    """What canvases do not say is unknown: no probability, and no rank of the gold token."""
    task = TASKS.load(name)()
    instances = task.sample(3, Streams(0).named("canvases"))
    wrong_NA = np.where(instances.maskable_NA, task.answer_tokens[0], instances.answer_NA)
    trace = trace_of_canvases(instances, [wrong_NA], task.vocabulary.mask_id)
    found = diagnose(task, trace)
    keep(tmp_path / "diagnoses.jsonl", [found])
    assert read_diagnoses(tmp_path / "diagnoses.jsonl") == [found]
    assert found.first_wrong is not None
    first = found.first_wrong.by_stratum["all"]
    assert (first.failures, first.prob, first.gold_second) == (3, None, None)
    assert [held.bins for held in found.readiness.calibration.values()] == [()] * 4
    sentences = [one.sentence for one in failures(task, trace)]
    assert len(sentences) == 3
    assert not any("nan" in text or "probability" in text for text in sentences)
    general = verdict([msgspec.structs.replace(found, profile=None)], task.words).lines[1]
    assert f"The first wrong {task.words.cell} comes at step 1 (median); in " in general


def test_canvases_that_do_not_fit_are_refused(trace: Trace) -> None:
    answers = list(canvases_of(trace))
    with pytest.raises(HardtailError, match="there are no canvases"):
        trace_of_canvases(trace.instances, [], trace.mask_id)
    with pytest.raises(HardtailError, match=r"canvas 0 is \[3, 3\] of float64; .* must be token ids \[6, "):
        trace_of_canvases(trace.instances, [np.zeros((3, 3))], trace.mask_id)
    with pytest.raises(HardtailError, match="is still hidden"):
        trace_of_canvases(trace.instances, [np.full_like(answers[0], trace.mask_id)], trace.mask_id)


# -- from a file ------------------------------------------------------------------------------------------------------

TASK = hardtail.task("addition", digits=3)
PROBLEMS = ["123+456", "999+001", "500+250"]
IDS = {sign: 1000 + 7 * place for place, sign in enumerate(TASK.vocabulary.characters)}


def recorded(**change: Any) -> dict[str, Any]:
    """Two problems solved from the right, two digits at a time; the second has a wrong digit."""
    answers = ["0579", "1009", "0750"]
    canvases = [["____"] * 3, [f"__{answer[2:]}" for answer in answers], answers]
    return {"problems": PROBLEMS, "canvases": canvases, "mask": "_", "model": "other", "policy": "theirs"} | change


def as_ids(held: dict[str, Any], before: list[int]) -> dict[str, Any]:
    """The same in token ids of whole sequences."""
    table = {**IDS, "_": 5}
    canvases = [[before + [table[sign] for sign in row] + [2] for row in rows] for rows in held["canvases"]]
    return held | {"canvases": canvases, "mask": 5, "tokens": IDS, "answer_at": len(before)}


def written(folder: Path, held: dict[str, Any]) -> Path:
    path = folder / "theirs.json"
    path.write_text(json.dumps(held))
    return path


def test_a_file_of_text_and_one_of_ids_mean_the_same(tmp_path: Path) -> None:
    text = hardtail.load_canvases(written(tmp_path, recorded()), TASK)
    ids = hardtail.load_canvases(written(tmp_path, as_ids(recorded(), [900, 901])), "addition,digits=3")
    assert text.exact_N.tolist() == [True, False, True]
    assert text.cell_NT[0].tolist() == [2, 3, 0, 1]
    assert text.step_NT[0].tolist() == [0, 0, 1, 1]
    for name in KNOWN:
        assert np.array_equal(getattr(text, name), getattr(ids, name))
    strange = as_ids(recorded(), [])
    strange["canvases"][2][0][3] = 77
    wrong = hardtail.load_canvases(written(tmp_path, strange), TASK)
    assert wrong.answer_NA[0, 3] == TASK.vocabulary.pad_id, "an id of no digit is a wrong token"


def test_every_command_reads_what_was_imported(hardtail_command: Command, tmp_path: Path) -> None:
    path, trace = written(tmp_path, recorded()), str(tmp_path / "theirs-trace.npz")
    other, second = str(tmp_path / "second-trace.npz"), tmp_path / "second.json"
    second.write_text(json.dumps(recorded(policy="second")))
    for words, said in (
        (["import", str(second), "--task", "addition,digits=3", "--out", other], "3 problems"),
        (["import", str(path), "--task", "addition,digits=3"], "3 problems, 2 solved, 2 steps"),
        (["diagnose", trace], "fails on 33 % of 3 sums"),
        (["view", trace, "--instance", "1"], "step "),
        (["compare", trace, other], "other · theirs"),
        (["report", trace, "--out", str(tmp_path / "page.html")], "open it in a browser"),
    ):
        code, out, err = hardtail_command(*words)
        assert code == 0, err
        assert said in out
    code, _, err = hardtail_command("import", str(path), "--task", "addition,digits=3", "--out", trace[:-10] + ".npz")
    assert code == 2
    assert "its manifest would replace" in err
    kept = Path(other).read_bytes()
    second.write_text(json.dumps(recorded(model="another")))
    code, _, err = hardtail_command("import", str(second), "--task", "addition,digits=3", "--out", other)
    assert (code, "is a trace of other, and would be replaced" in err) == (2, True)
    assert Path(other).read_bytes() == kept
    assert json.loads(path.read_text())["policy"] == "theirs"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"canvases": [["0579"]]}, "canvas 0 has 1 rows for 3 problems"),
        ({"canvases": [["57", "1000", "0750"]]}, "problem 1 has 2 cells in canvas 0; its answer has 4"),
        ({"canvases": [["05_9", "1000", "0750"]]}, "cell 2 of problem 1 is still hidden"),
        ({"canvases": []}, "there are no canvases"),
        ({"canvases": "none"}, "canvases: expected `array`"),
        ({"problems": ["1+2", "x", "3"]}, "addition"),
        ({"mask": 5}, "`tokens` has no id for '0'"),
        ({"mask": 5, "tokens": {"z": 1}}, "`tokens` names 'z'"),
        ({"mask": 5, "tokens": {"0": 5}}, "the id 5 twice, or it is the mask's"),
        ({"answer_at": [1]}, "answer_at must be one place"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(change: dict[str, Any], reason: str, tmp_path: Path) -> None:
    with pytest.raises(HardtailError, match=re.escape(reason)):
        hardtail.load_canvases(written(tmp_path, recorded(**change)), TASK)


@pytest.mark.parametrize("name", ["a\0b.json", ".", "", "no/such.json", "x" * 300])
def test_a_name_that_no_file_has_is_refused_in_a_sentence(name: str, hardtail_command: Command) -> None:
    code, _, err = hardtail_command("import", name, "--task", "addition,digits=3")
    assert (code, "Traceback" in err) == (2, False), err


@pytest.mark.parametrize("text", ["{", "[]", '{"problems": []}', "5"])
def test_a_file_of_another_kind_gets_the_page_that_describes_it(
    text: str, tmp_path: Path, hardtail_command: Command
) -> None:
    (tmp_path / "other.json").write_text(text)
    code, _, err = hardtail_command("import", str(tmp_path / "other.json"), "--task", "addition,digits=3")
    assert code == 2
    assert err.endswith("(docs/models.md has an example of such a file)\n")


@pytest.mark.parametrize("more", [0, 1])
def test_a_trace_may_have_as_many_steps_as_it_can_count(more: int) -> None:
    instances = problems(1, cells=1)
    full = replace(instances, maskable_NA=np.ones((1, 1), dtype=np.bool_))
    steps = [np.array([[step % 2]]) for step in range(MOST_STEPS + more)]
    if more:
        with pytest.raises(HardtailError, match="a trace can have 32,767 steps"):
            trace_of_canvases(full, steps, MASK)
    else:
        assert trace_of_canvases(full, steps, MASK).step_NT.max() == MOST_STEPS - 1


@pytest.mark.parametrize("more", [0, 1])
def test_a_trace_may_have_as_many_cells_as_it_can_name(more: int) -> None:
    """One more became cell -32768, and its commit no event."""
    long = problems(1, cells=MOST_CELLS + more)
    long = replace(long, maskable_NA=np.ones_like(long.maskable_NA), orders={})
    denoiser = Function(lambda tokens_BL, at_BA: torch.zeros((*at_BA.shape, VOCAB)), MASK)
    ways: list[Callable[[], Trace]] = [
        lambda: trace_of_canvases(long, [long.answer_NA], MASK),
        lambda: decode(denoiser, long, Top1(), Decoding(Commit(each=MOST_CELLS))),
    ]
    for way in ways:
        if more:
            with pytest.raises(HardtailError, match="the answers have 32,769 cells; a trace can hold 32,768"):
                way()
        else:
            assert np.array_equal(np.sort(way().cell_NT[0]), np.arange(MOST_CELLS))


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
        ([first], "cell 0 of problem 1 is still hidden"),
        ([first[:, :3]], r"canvas 0 is \[6, 3\]"),
        ([first.astype(float)], "canvas 0 is .* of float64"),
    ):
        with pytest.raises(HardtailError, match=fault):
            trace_of_canvases(trace.instances, canvases, trace.mask_id)
