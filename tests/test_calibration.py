"""Ladders whose limit is set by natural problems."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from hardtail import HardtailError
from hardtail.core.records import Accuracy, read_measurements
from hardtail.core.trace_files import load_trace
from hardtail.decoding.loop import decode
from hardtail.decoding.options import Decoding
from hardtail.measuring.calibration import APART, LEAST, calibrate, ladders, rounded_up
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.subject import load_subject
from hardtail.measuring.trust import Question, asked
from hardtail.policies.confidence import Top1
from hardtail.policies.ladder import Ladder
from hardtail.policies.named import policy_named
from hardtail.policies.parallel import Threshold
from hardtail.tasks.named import make_task
from tests.conftest import Command


class Clueless:
    """Finds all tokens equally likely."""

    mask_id = make_task("addition").vocabulary.mask_id

    def logits(self, tokens_BL: Tensor, at_BA: Tensor) -> Tensor:
        return torch.zeros(*at_BA.shape, self.mask_id + 1)


LADDER = "ladder,rungs=threshold/top1,hide=comb,parts=3,splits=1"


@pytest.mark.parametrize(
    ("value", "limit"),
    [(0.0, 0.0), (0.00149, 0.0015), (0.0015, 0.0015), (0.00995, 0.01), (9.91, 10.0), (1234.0, 1300.0)],
)
def test_limits_are_rounded_up_to_two_digits(value: float, limit: float) -> None:
    assert rounded_up(value) == limit


def test_the_limit_is_a_quantile_of_right_answers_to_other_natural_problems() -> None:
    """By its definition: decode with the last rung, ask as the ladder asks, and leave out the wrong answers."""
    subject = load_subject("zoo:addition-papl5")
    ladder = Ladder((Threshold(), Top1()), hide="block", parts=4, splits=1, again=2)
    found = calibrate(subject, "ladder", ladder, 60, Decoding(), data_seed=3)
    trace = decode(subject.denoiser, measured_instances(subject.task, "natural", 60, 3 + APART), Top1(), Decoding())
    energy_N = asked(subject.denoiser, trace, Question("block", 4), Decoding()).energy
    right_K, limit = np.sort(energy_N[trace.exact_N]), found.ladder.limit
    assert found.ladder == replace(ladder, limit=limit)
    assert (right_K <= limit).mean() >= 0.99
    assert limit == rounded_up(float(right_K[math.ceil(0.99 * len(right_K)) - 1])) > LEAST
    assert found.name == f"ladder,limit={limit:g}"
    assert found.words.endswith(f"by {int(trace.exact_N.sum())} right answers to 60 natural problems")


def test_eval_measures_with_the_limit_and_names_it(hardtail_command: Command, tmp_path: Path) -> None:
    words = ("eval", "zoo:addition-papl-paper", "--policies", "top1", LADDER, "--strata", "natural", "-n", "8")
    code, _, said = hardtail_command(*words, "--calibrate", "20", "--out", str(tmp_path / "out.jsonl"))
    assert code == 0
    told = f"{LADDER}: limit {LEAST:g} nats (the smallest), by 20 right answers to 20 natural problems"
    assert told in " ".join(said.split())
    records = [record for record in read_measurements(tmp_path / "out.jsonl") if isinstance(record, Accuracy)]
    assert [record.policy for record in records] == ["top1", f"{LADDER},limit={LEAST:g}"]
    assert all(policy_named(record.policy) for record in records), "the name can be used again"


def test_records_and_traces_say_how_many_problems_set_the_limit(hardtail_command: Command, tmp_path: Path) -> None:
    """A limit that was given by hand looks the same in the name."""
    out, chosen = tmp_path / "out.jsonl", (LADDER, "top1", "ladder,limit=2")
    words = ("eval", "zoo:addition-papl-paper", "--strata", "natural", "-n", "4", "--policies", *chosen, "--trust")
    code, *_ = hardtail_command(*words, "--calibrate", "20", "--traces", str(tmp_path / "traces"), "--out", str(out))
    assert code == 0
    limited = f"{LADDER},limit={LEAST:g}"
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    told = {(line["kind"], line["policy"], line.get("calibrated")) for line in lines}
    assert {held for held in told if held[2]} == {(kind, limited, 20) for kind in ("accuracy", "trust", "paired")}
    assert {("accuracy", "top1", None), ("accuracy", "ladder,limit=2", None), ("probe", "none", None)} <= told
    traces = [load_trace(path) for path in sorted((tmp_path / "traces").glob("*.npz"))]
    assert {trace.about["policy"]: trace.about.get("calibrated") for trace in traces} == {
        "top1": None,
        limited: 20,
        "ladder,limit=2": None,
    }


def test_what_cannot_be_calibrated_is_refused(hardtail_command: Command) -> None:
    for policy in ("top1", "ladder,limit=2", "ladder, limit=2"):
        code, _, error = hardtail_command("eval", "zoo:addition-puma", "--calibrate", "9", "--policies", policy)
        assert (code, "no policy is one without a limit" in " ".join(error.split())) == (2, True)
    assert list(ladders({"ladder": Ladder(), "ladder,limit=2": Ladder(limit=2.0), "top1": Top1()})) == ["ladder"]
    subject = load_subject("zoo:addition-papl5")
    with pytest.raises(HardtailError, match=r"solves none of 3 natural problems; give more \(--calibrate\)"):
        calibrate(replace(subject, denoiser=Clueless()), "ladder", Ladder(), 3, Decoding(), data_seed=1)
