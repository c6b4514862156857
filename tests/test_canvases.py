"""Canvases of other tools as traces, and back."""

import numpy as np
import pytest

import hardtail
from hardtail import HardtailError, Streams
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.measuring.diagnosis import diagnose
from hardtail.measuring.subject import load_subject
from hardtail.policies.named import policy_named
from hardtail.traces.canvases import canvases_of, trace_of_canvases

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


def test_a_diagnosis_reads_what_canvases_say(trace: Trace) -> None:
    task = hardtail.task("addition", "paper-carry")
    found = trace_of_canvases(trace.instances, list(canvases_of(trace)), trace.mask_id)
    ours, theirs = diagnose(task, trace), diagnose(task, found)
    assert theirs.result == ours.result
    if not (trace.token_NT == trace.mask_id).any():
        assert theirs.readiness.premature == ours.readiness.premature


def test_canvases_that_do_not_fit_are_refused(trace: Trace) -> None:
    answers = list(canvases_of(trace))
    with pytest.raises(HardtailError, match="there are no canvases"):
        trace_of_canvases(trace.instances, [], trace.mask_id)
    with pytest.raises(HardtailError, match=r"canvas 0 is \[3, 3\] of float64; .* must be token ids \[6, "):
        trace_of_canvases(trace.instances, [np.zeros((3, 3))], trace.mask_id)
    with pytest.raises(HardtailError, match="is still hidden"):
        trace_of_canvases(trace.instances, [np.full_like(answers[0], trace.mask_id)], trace.mask_id)
