"""How long decodes will take, as commands say beforehand: the passes that policies expect, against those they take."""

import math

import pytest

from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.measuring import cost
from hardtail.measuring.choices import measured_instances
from hardtail.measuring.cost import decode_seconds
from hardtail.measuring.subject import load_subject
from hardtail.policies.base import Commit
from hardtail.policies.named import policy_named
from tests.conftest import Command

MODEL = "zoo:addition-puma"


def passes(text: str, stratum: str) -> float:
    subject = load_subject(MODEL)
    trace: Trace = decode(subject.denoiser, measured_instances(subject.task, stratum, 6, 1), policy_named(text))
    assert trace.passes_N is not None
    return float(trace.passes_N.mean())


@pytest.mark.parametrize(
    "text", ["threshold", "factor", "eb", "klass", "check", "check,hide=random,rounds=1", "ladder", "ladder,again=6"]
)
def test_a_policy_that_decides_for_itself_expects_more_than_easy_and_not_many_more_than_hard_problems_take(
    text: str,
) -> None:
    likely = policy_named(text).likely_passes(33, Commit())
    assert passes(text, "natural") <= likely <= 2 * passes(text, "chain>=28")


@pytest.mark.parametrize("text", ["top1", "p2", "remdm", "topk,k=4", "block,size=4", "loo,rounds=0", "loo,rounds=1"])
def test_where_the_number_of_passes_is_fixed_it_is_expected_exactly(text: str) -> None:
    assert policy_named(text).likely_passes(33, Commit()) == passes(text, "natural")


def test_a_total_of_steps_is_expected() -> None:
    assert policy_named("top1").likely_passes(33, Commit(steps=5)) == 5
    assert policy_named("check").likely_passes(33, Commit(steps=5)) < 33


def test_time_follows_passes() -> None:
    subject = load_subject(MODEL)
    top1, topk = policy_named("top1"), policy_named("topk,k=11")
    slow, fast = (decode_seconds(subject, [(policy, 100)]) for policy in (top1, topk))
    assert slow is not None
    assert fast is not None
    assert slow == pytest.approx(11 * fast)
    assert decode_seconds(subject, [(top1, 60), (topk, 100), (top1, 40)]) == pytest.approx(slow + fast)
    assert decode_seconds(subject, [(top1, 100)], further=33) == pytest.approx(2 * slow)
    assert decode_seconds(subject, [(top1, 100)], Commit(each=11)) == pytest.approx(fast)


def test_eval_says_the_time_of_every_pass(hardtail_command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a pass took a second, on one core: of the decodes, of `--trust`, and of setting a limit."""
    monkeypatch.setattr(cost, "RATE", math.inf)
    monkeypatch.setattr(cost, "OVERHEAD", 1.0)
    monkeypatch.setattr(cost, "worker_count", lambda *given: 1)

    def said(*words: str) -> str:
        code, _, err = hardtail_command("eval", MODEL, "--strata", "natural", "-n", "2", "--policies", *words)
        assert code == 0, err
        return err.partition("\n")[0].rpartition("about ")[2]

    assert said("topk,k=11") == "6 seconds"
    assert said("topk,k=11", "--trust") == "22 seconds"
    assert (
        said("ladder,rungs=topk+k=11/topk+k=11", "--calibrate", "5") == "56 seconds"
    )  # 2 × (3 + 4 + 7 / 2) + 5 × (3 + 4)
