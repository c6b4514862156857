"""The diagnosis of Countdown: what answers are worth, and which token went wrong first."""

import json
from dataclasses import replace

import numpy as np
import pytest

from hardtail import HardtailError, Instances, Streams
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.policies.confidence import Top1
from hardtail.tasks.countdown import profile as countdown
from hardtail.tasks.countdown.solver import KINDS
from hardtail.tasks.countdown.task import Countdown
from tests.diagnose_toys import profiled
from tests.planted_other import reciting

TASK = Countdown()
PUZZLE = "86,28,13,31,96"
GOLD = "86+28=114,31-13=18,114-18=96"


def answered(texts: list[str], surest: int | None = None, tail: str = "") -> Trace:
    """Decodes of the puzzle that end in the given answers; the cell `surest` is committed before all others."""
    instances = TASK.parse([PUZZLE])
    assert TASK.answer_text(instances, 0) == GOLD
    traces = []
    for text in texts:
        answer_NA = TASK.read_answer(instances, 0, text)[None].copy()
        for place, character in enumerate(reversed(tail), start=1):
            answer_NA[0, -place] = TASK.vocabulary.id(character)
        sure_NA = np.linspace(0.8, 0.5, 40)[None].copy()
        if surest is not None:
            sure_NA[0, surest] = 0.9
        traces.append(decode(reciting(TASK, instances, answer_NA, sure_NA), instances, Top1()))
    return Trace.concat(traces)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (GOLD, "exact"),
        ("31-13=18,86+28=114,114-18=96", "valid"),
        ("95+1=96", "cheat"),  # numbers that are not there
        ("86+28=114,114-18=96", "cheat"),  # 18 comes from nowhere
        ("86+28=114,86+28=114,114-18=96", "cheat"),  # numbers used twice
        ("86+28=114,31-13=18,114+18=132", "wrong_target"),
        ("86+28=114", "wrong_target"),
        ("86+28=114,31-13=19,114-19=95", "arithmetic"),  # it ends elsewhere too
        ("95+1=97", "arithmetic"),
        ("86/0=96", "arithmetic"),
        ("86+28=114,31-13=18,114-18", "malformed"),
        ("86+28=115,31-13=", "malformed"),  # false before it breaks off
        ("086+28=114,31-13=18,114-18=96", "malformed"),
        ("", "malformed"),
    ],
)
def test_what_an_answer_is_worth(text: str, verdict: str) -> None:
    trace = answered([text])
    figures = profiled(TASK, trace)
    assert figures["validity"] == {name: int(name == verdict) for name in countdown.VALIDITY}
    assert figures["solved"] == (verdict in ("exact", "valid"))
    assert (figures["solved"] == 1) == TASK.check(trace.instances, trace.answer_NA)[0], "there are two definitions"


def test_the_sentence_about_answers_leaves_none_out() -> None:
    trace = answered([GOLD, "95+1=96", "86+28=114", "95+1=97", "95+1=97", ""])
    assert countdown.Profile.of(TASK, trace).in_words() == (
        "Of the answers that are not gold, 20 % do not use each number once, 20 % miss the target, "
        "40 % have a false equation, 20 % are not written as equations."
    )
    assert countdown.Profile.of(TASK, answered([GOLD])).in_words() is None


def test_gold_with_other_padding_is_valid_but_not_exact() -> None:
    figures = profiled(TASK, answered([GOLD], tail="a"))
    assert (figures["failures"], figures["validity"]["valid"], figures["unsolved"]["answers"]) == (1, 1, 0)
    assert figures["inexact"]["kind"]["first_in_time"]["padding"] == 1


@pytest.mark.parametrize(
    ("text", "kind", "equation"),
    [
        ("87+28=114,31-13=18,114-18=96", "operand", 0),
        ("86-28=114,31-13=18,114-18=96", "operator", 0),
        ("86+28=114,31-13=19,114-18=96", "result", 1),
        ("86+28=114,31-13=18-114-18=96", "comma", 1),
        ("86+28=114,31-13=18,114-18,96", "equals", 2),
        ("86+28=114,31-13=18,114-18=96,", "eos", -1),
    ],
)
def test_the_kind_of_the_first_wrong_token(text: str, kind: str, equation: int) -> None:
    figures = profiled(TASK, answered([text]))["unsolved"]
    for first in ("first_in_time", "lowest_index"):
        assert figures["kind"][first] == {name: int(name == kind) for name in KINDS}
        assert figures["equation"][first] == {str(number): int(number == equation) for number in (-1, 0, 1, 2)}


def test_first_in_time_is_not_first_in_position() -> None:
    wrong = "87+28=115,31-13=18,114-18=96"  # cells 1 and 8
    figures = profiled(TASK, answered([wrong], surest=8))["unsolved"]
    assert figures["kind"]["wrong"]["operand"] == figures["kind"]["wrong"]["result"] == 1
    assert figures["kind"]["all"]["operator"] == figures["kind"]["all"]["equals"] == 3
    assert {name: position["mean"] for name, position in figures["position"].items()} == {
        "first_in_time": 8,
        "lowest_index": 1,
    }
    assert figures["kind"]["first_in_time"]["result"] == figures["kind"]["lowest_index"]["operand"] == 1
    in_time, in_position = figures["first_wrong"]["first_in_time"], figures["first_wrong"]["lowest_index"]
    assert (in_time["step_mean"], in_position["step_mean"]) == (0, 2)
    assert in_time["probability_mean"] == pytest.approx(0.9)


def test_a_valid_chain_is_inexact_but_not_unsolved() -> None:
    figures = profiled(TASK, answered([GOLD, "31-13=18,86+28=114,114-18=96", "95+1=96"]))
    assert (figures["instances"], figures["failures"]) == (3, 2)
    assert (figures["inexact"]["answers"], figures["unsolved"]["answers"]) == (2, 1)
    assert figures["solved"] == 2 / 3


def test_gold_has_an_empty_profile() -> None:
    instances: Instances = TASK.sample(30, Streams(1).named("gold"))
    sure_NA = np.full(instances.maskable_NA.shape, 0.9)
    trace = decode(reciting(TASK, instances, instances.answer_NA, sure_NA), instances, Top1())
    figures = profiled(TASK, trace)
    assert (figures["failures"], figures["validity"]["exact"]) == (0, 30)
    assert figures["inexact"]["first_wrong"]["first_in_time"]["step_mean"] is None
    json.dumps(figures, allow_nan=False)


def test_bare_instances_are_refused_in_a_sentence() -> None:
    trace = answered(["95+1=96"])
    with pytest.raises(HardtailError, match=r"'target'.*without `--bare`"):
        profiled(TASK, replace(trace, instances=trace.instances.bare()))
