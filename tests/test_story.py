"""The story of a page: what its sentence says of the decodes that it is made of, for any task."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

import hardtail
from hardtail.core.tables import percent
from hardtail.core.types import Trace
from hardtail.decoding.loop import decode
from hardtail.models.denoiser import Function
from hardtail.policies.named import policy_named
from hardtail.show.failures import failures
from hardtail.show.stages import Stage, ready_events, stages
from hardtail.show.story import Story, story
from hardtail.study.claims.evidence import GATES, Gate
from hardtail.tasks.addition.task import Addition
from hardtail.tasks.base import Task
from hardtail.tasks.sudoku.task import Sudoku
from tests.planted import adder, lookahead
from tests.report_toys import TASK, addition_traces, markup_trace

HARD = "chain>=8"
N = 40


def traces_of(
    denoisers: Mapping[str, Any],
    policies: tuple[str, ...] = ("top1", "lsb"),
    strata: tuple[str, ...] = ("natural", HARD),
) -> list[Trace]:
    """Short sums that the denoisers decoded."""
    found = []
    for stratum in strata:
        sums = TASK.sample(N, hardtail.Streams(3).named(stratum), stratum)
        for model, denoiser in denoisers.items():
            for policy in policies:
                about = {"task": TASK.name, "config": TASK.config(), "policy": policy, "stratum": stratum}
                order = policy_named(policy, TASK.order_names)
                found.append(decode(denoiser, sums, order, about=about | {"model": model}))
    return found


def told(traces: list[Trace]) -> tuple[Story, Stage]:
    (stage,) = stages(traces)
    return story(stage), stage


def test_a_planted_shortcut_is_told_with_its_numbers() -> None:
    found, stage = told(traces_of({"right": adder(TASK), "hasty": lookahead(TASK, 6)}))
    assert [model.name for model in found.models] == ["hasty", "right"], "the one whose order matters comes first"
    hasty = found.models[0]
    decoder = next(one for one in stage.decoders if one.name == "hasty · top1")
    failed = int((~decoder.trace.exact_N[decoder.stratum_N == HARD]).sum())
    score = hasty.score(1, 0)
    assert score is not None
    assert (score.right, score.n) == (N - failed, N)
    assert found.gain == pytest.approx(failed / N)
    assert found.text == (
        f"By confidence, hasty solves 100 % of ordinary sums but only {percent(1 - failed / N)} of sums with "
        "a carry chain of 8 or more digits. With the same weights, lowest digit first, it solves 100 %."
    )
    assert [phrase.way for phrase in found.sentence if phrase.way is not None] == [0, 0, 1]


def test_its_problem_is_a_failure_that_only_the_order_solves() -> None:
    found, stage = told(traces_of({"hasty": lookahead(TASK, 6)}))
    assert found.problem is not None
    assert stage.stratum_P[found.problem] == HARD
    solved = {
        decoder.policy: bool(decoder.trace.exact_N[rows.tolist().index(found.problem)])
        for decoder, rows in zip(stage.decoders, stage.rows, strict=True)
    }
    assert solved == {"top1": False, "lsb": True}


def test_commits_are_counted_by_what_they_were_based_on() -> None:
    found, stage = told(traces_of({"hasty": lookahead(TASK, 6)}))
    sound, misled, unready = found.mechanism
    assert sound.right == sound.n > 0, "a planted adder errs only where it did not wait"
    assert unready.right < unready.n
    trace = stage.decoders[0].trace.take(stage.decoders[0].stratum_N == HARD)
    assert trace.instances.parents_NAE is not None
    free = int((trace.instances.parents_NAE < 0).all(axis=2).sum())
    assert sound.n + misled.n + unready.n == trace.commit_NT.sum() - free


def test_no_difference_is_not_told_as_one() -> None:
    found, _ = told(traces_of({"right": adder(TASK)}, strata=("natural", TASK.showcase().hard)))
    assert (found.gain, found.problem) == (0.0, None)
    assert found.text == (
        "By confidence, right solves 100 % of ordinary sums and 100 % of sums with a carry chain of 8 or more digits. "
        "Lowest digit first, it solves as many: 100 %."
    )


def test_a_difference_of_few_instances_may_be_chance() -> None:
    few = [trace.take(slice(12)) for trace in traces_of({"hasty": lookahead(TASK, 6)})]
    found, _ = told(few)
    assert found.gain == 0
    assert found.text.endswith("Lowest digit first, it solves 100 %; with 12 sums this may be chance.")


def test_a_decoder_that_solves_nothing_hard_is_told_in_words() -> None:
    traces = traces_of({"hasty": adder(TASK)}, ("top1",))
    none = replace(traces[1], answer_NA=(traces[1].answer_NA + 1) % 10)
    found, _ = told([traces[0], none])
    assert found.text == (
        "By confidence, hasty solves 100 % of ordinary sums but none of the sums with a carry chain of 8 or more "
        "digits."
    )
    both = [
        replace(trace, answer_NA=(trace.answer_NA + 1) % 10) if trace.about["stratum"] != "natural" else trace
        for trace in traces_of({"hasty": adder(TASK)}, strata=("natural", TASK.showcase().hard))
    ]
    found, _ = told(both)
    assert found.text.endswith("Lowest digit first, it solves none of them either.")


def test_a_model_that_never_learned_decides_nothing() -> None:
    wrong = [replace(trace, answer_NA=(trace.answer_NA + 1) % 10) for trace in traces_of({"lost": adder(TASK)})]
    found, _ = told([*wrong, *traces_of({"hasty": lookahead(TASK, 6)})])
    assert [(model.name, model.learned) for model in found.models] == [("hasty", True), ("lost", False)]
    assert "hasty solves" in found.text
    alone, _ = told(wrong)
    assert alone.text == "No model here has learned addition: lost solves 0 % of ordinary sums."
    assert alone.gain == 0
    third_N1 = np.arange(N)[:, None] % 3 == 0
    better = replace(wrong[0], answer_NA=np.where(third_N1, wrong[0].instances.answer_NA, wrong[0].answer_NA))
    several, _ = told([*wrong, replace(better, about={**better.about, "model": "better"})])
    assert several.text.startswith("No model here has learned addition: the best of them, better, solves ")


@pytest.mark.parametrize(
    ("gate", "learned"),
    [(Gate(), False), (Gate(0.1), True), (Gate(0.9, metric="cell_accuracy"), True)],
    ids=["half", "a tenth", "cells"],
)
def test_the_gate_of_the_task_says_who_has_learned(gate: Gate, learned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fifth of the ordinary sums right, and all cells but one of the others."""
    monkeypatch.setitem(GATES, TASK.name, gate)
    traces = traces_of({"some": adder(TASK)}, ("top1",))
    answer_NA = traces[0].answer_NA.copy()
    answer_NA[N // 5 :, 0] = (answer_NA[N // 5 :, 0] + 1) % 10
    found, _ = told([replace(traces[0], answer_NA=answer_NA), traces[1]])
    assert [model.learned for model in found.models] == [learned]


@pytest.mark.parametrize(
    ("policies", "strata", "said"),
    [
        (("top1",), ("natural", HARD), "By confidence, hasty solves 100 % of ordinary sums but only "),
        (("lsb",), ("natural", HARD), "Lowest digit first, hasty solves 100 % of ordinary sums and 100 % of sums with"),
        (("random", "lsb"), ("natural",), "Under random, hasty solves "),
        (("top1", "lsb"), ("chain>=4", "chain>=8"), "By confidence, hasty solves "),
    ],
)
def test_whatever_was_decoded_is_told(policies: tuple[str, ...], strata: tuple[str, ...], said: str) -> None:
    found, _ = told(traces_of({"hasty": lookahead(TASK, 6)}, policies, strata))
    assert found.text.startswith(said)
    assert len(found.ways) == len(policies)
    assert [side.name for side in found.strata] == list(strata)


def test_a_plug_in_without_words_has_a_story(monkeypatch: pytest.MonkeyPatch) -> None:
    from hardtail.core.registry import TASKS

    monkeypatch.setitem(TASKS._known, "markup", "tests.report_toys:Markup")
    found, _ = told([markup_trace()])
    assert len(found.models) == 1
    assert "none of the instances" in found.text


@pytest.mark.parametrize("name", ["addition", "maze", "listops", "countdown", "sudoku"])
def test_a_showcase_names_strata_and_an_order_of_its_task(name: str) -> None:
    task: Task = hardtail.task(name)
    case = task.showcase()
    assert {case.ordinary, case.hard} <= set(task.strata()) | set(task.gallery())
    assert case.order in task.order_names
    assert case.order in task.words.orders


@pytest.mark.parametrize(
    ("name", "stratum", "words"),
    [
        ("addition", "chain>=28", "sums with a carry chain of 28 or more digits"),
        ("addition", "chain=28", ""),
        ("maze", "corridor>=60", "mazes with a corridor of 60 or more cells"),
        ("listops", "depth=3", "expressions of depth 3"),
        ("listops", "depth=3-4", ""),
        ("countdown", "heldout=1,m>=11", "puzzles with eleven or more solutions"),
        ("countdown", "m=1-3", "puzzles with one to three solutions"),
        ("countdown", "m>=12", ""),
        ("sudoku", "tier=medium", "puzzles of the medium tier"),
        ("sudoku", "tier=top1pct", "puzzles of the hardest tier"),
        ("sudoku", "tier=very_hard", "puzzles of the very hard tier"),
        ("sudoku", "rating>=30", ""),
    ],
)
def test_the_problems_of_a_stratum_have_a_name(name: str, stratum: str, words: str) -> None:
    assert hardtail.task(name).problems_of(stratum) == words


def test_a_failure_says_what_was_written_and_what_it_did_not_wait_for() -> None:
    trace = next(trace for trace in addition_traces(20) if not trace.exact_N.all())
    found = failures(TASK, trace)
    assert [one.row for one in found] == (~trace.exact_N).nonzero()[0].tolist()
    for one in found:
        at = trace.cell_NT[one.row].tolist().index(one.cell)
        written, gold = int(trace.token_NT[one.row, at]), int(trace.instances.answer(one.row)[one.cell])
        assert written != gold
        said = (
            f"In step {trace.step_NT[one.row, at] + 1} of 13 it writes {written} into {TASK.cell_name(one.cell)} with"
        )
        assert one.sentence.startswith(said)
        assert f", where {gold} belongs." in one.sentence
        missing = f"It waits for {TASK.cell_name(one.cell + 1)}, which is still hidden."
        assert (missing in one.sentence) == one.waiting
    assert any(one.waiting for one in found)


def test_a_sudoku_failure_says_whether_its_cell_was_ready() -> None:
    """Sudoku has no fixed prerequisites, so that none are named, and no cell is said to wait for nothing."""
    task = Sudoku()
    puzzles = task.sample(3, hardtail.Streams(3).named("sudoku"), "tier=easy")

    def cannot(tokens_BL: torch.Tensor, at_BA: torch.Tensor) -> torch.Tensor:
        return torch.zeros(*at_BA.shape, task.vocabulary.size)

    trace = decode(Function(cannot, task.vocabulary.mask_id), puzzles, policy_named("l2r"))
    found = failures(task, trace)
    ready_NT = ready_events(task, trace)
    for one in found:
        assert "wait" not in one.sentence
        assert one.waiting == (not ready_NT[one.row, trace.cell_NT[one.row].tolist().index(one.cell)])
        assert ("The cell is not ready yet." in one.sentence) == one.waiting
    assert any(one.waiting for one in found)


def test_a_failure_of_bare_instances_says_nothing_of_prerequisites() -> None:
    trace = next(trace for trace in addition_traces(20) if not trace.exact_N.all())
    bare = replace(trace, instances=trace.instances.bare())
    assert all("wait" not in one.sentence and not one.waiting for one in failures(Addition(digits=12), bare))
